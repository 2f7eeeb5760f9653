#!/bin/sh
# Lets two programs take turns on OTP/SNC's machine: what a flush of the Sequence Number Cache at
# each switch costs, and what tags do (section 4.3, which leaves it open).
#   sh examples/two-processes.sh [FOLDER]     with casemate in the PATH; a minute, 20 MB
# Needs perl, sort and qemu-x86_64.
folder=${1:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder" || exit 1
awk 'BEGIN { srand(1); for (i = 0; i < 200000; i++) printf "%d %d\n", rand() * 1e9, i }' > numbers
cat > count.pl <<'END'
my (%of, $sum);
open(my $in, '<', 'numbers') or die;
while (<$in>) { my ($key, $number) = split; $of{$key % 50000} += $number }
$sum += $_ for values %of;
print "$sum\n";
END
casemate trace record --skip 20M --length 20M -o perl.casetrace -- /usr/bin/perl count.pl || exit 1
casemate trace record --skip 20M --length 20M -o sort.casetrace -- /usr/bin/sort -n numbers > sorted || exit 1
for turn in 10_000 100_000 1_000_000; do
    casemate trace merge --every $turn perl.casetrace sort.casetrace -o both-$turn.casetrace || exit 1
done
casemate sim --preset otp-snc --scheme none,otp-lru --set protection.snc_on_switch=flush,tag \
    --trace both-10_000.casetrace --trace both-100_000.casetrace --trace both-1_000_000.casetrace
