#!/usr/bin/perl
# A program with something to hide: primes, totients and an index of them, well over 100 MB of
# Perl scalars, lists and hashes. It knows nothing of Casemate.
#
# It checks itself: a wrong bit in any totient, prime or hash entry ends it with code 1. Same
# output every time, whatever the order of Perl's hashes.
use strict;
use warnings;

my $N = 2_500_000;
my $M = 4_294_967_291;    # modulus of the checksum

# Smallest prime factors, block by block, and from them all totients up to N.
my $block = 65_536;
my (@small, @primes, %index, %starts);
for my $n (2 .. int(sqrt $N)) {
    push @small, $n unless grep { $n % $_ == 0 } @small;
}
my @phi = (0, 1);
for (my $low = 2; $low <= $N; $low += $block) {
    my $high = $low + $block - 1;
    $high = $N if $high > $N;
    my @factor;
    $#factor = $high - $low;
    for my $p (@small) {
        my $first = $p * $p;
        last if $first > $high;
        $first = $low + (-$low % $p) if $first < $low;
        for (my $i = $first - $low; $i <= $high - $low; $i += $p) {
            $factor[$i] ||= $p;
        }
    }
    for my $n ($low .. $high) {
        my $p = $factor[$n - $low];
        if ($p) {
            my $rest = $n / $p;
            push @phi, $phi[$rest] * ($rest % $p ? $p - 1 : $p);
            next;
        }
        push @phi, $n - 1;
        $index{"prime $n"} = @primes;
        push @{ $starts{ $n - $primes[-1] } }, $primes[-1] if @primes;
        push @primes, $n;
    }
}

# Every totient counts: the sum of phi(d) * floor(N / d) over all d is N (N + 1) / 2.
my ($sum, $check) = (0, 0);
for my $d (1 .. $N) {
    $sum += $phi[$d] * int($N / $d);
    $check = ($check * 31 + $phi[$d]) % $M;
}
wrong("the totients sum up to $sum") if $sum != $N * ($N + 1) / 2;

# Every prime is found again through the index, in an order that no read-ahead can guess.
my $count = @primes;
my $at    = 0;
for (1 .. $count) {
    $at = ($at + 77_777) % $count;
    my $p = $primes[$at];
    my $i = $index{"prime $p"};
    wrong("prime $p is not where it was put") unless defined $i && $i == $at;
    wrong("the totient of prime $p is $phi[$p]") if $phi[$p] != $p - 1;
    $check = ($check * 31 + $p) % $M;
}
wrong("the index has another size") if keys(%index) != $count;

# Every gap between neighbours leads from a prime to the next one.
my $gaps = 0;
for my $gap (sort { $a <=> $b } keys %starts) {
    for my $p (@{ $starts{$gap} }) {
        my $i = $index{"prime $p"};
        wrong("there is no gap of $gap after $p") if $primes[ $i + 1 ] - $p != $gap;
        $gaps++;
        $check = ($check * 31 + $gap) % $M;
    }
}
wrong("a gap was lost") if $gaps != $count - 1;

print "sieve: $count primes and $N totients, all verified, checksum $check\n";

sub wrong {
    print STDERR "sieve: WRONG: $_[0]\n";
    exit 1;
}
