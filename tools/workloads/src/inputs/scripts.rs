//! Scripts for interpreters.

/// Counts the words of the file that it is given, and turns them round.
#[must_use]
pub fn perl(_size_bytes: u64, seed: u64) -> Vec<u8> {
    format!(
        "use strict;
my (%count, %turned);
open(my $file, '<', $ARGV[0]) or die;
while (my $line = <$file>) {{
    for my $word (split /[^a-z]+/, $line) {{
        next if $word eq '';
        $count{{$word}}++;
        $turned{{reverse $word}} .= chr(97 + ($. + {seed}) % 26) if $word =~ /a.*e/;
    }}
}}
my @words = sort {{ $count{{$b}} <=> $count{{$a}} || $a cmp $b }} keys %count;
my $joined = join ' ', map {{ \"$_=$count{{$_}}\" }} @words;
$joined =~ s/([aeiou])([^aeiou ]+)/$2$1/g;
print scalar(@words), ' ', length($joined), ' ', scalar(keys %turned), ' ', $words[0], \"\\n\";
"
    )
    .into_bytes()
}

/// Bytes that the script works on for each of its objects.
const OBJECT_BYTES: u64 = 400;

/// Builds objects in dictionaries, sorts them, and writes and reads them as text.
#[must_use]
pub fn python(size_bytes: u64, seed: u64) -> Vec<u8> {
    format!(
        "class Account:
    __slots__ = ('number', 'owner', 'entries')

    def __init__(self, number, owner):
        self.number, self.owner, self.entries = number, owner, []

    def balance(self):
        return sum(self.entries)


state = {seed}


def draw(bound):
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % bound


accounts = {{}}
for i in range({objects}):
    number = draw(10**9)
    accounts[number] = Account(number, 'owner %d' % draw(5000))
numbers = list(accounts)
for i in range({objects} * 4):
    accounts[numbers[draw(len(numbers))]].entries.append(draw(2001) - 1000)
by_owner = {{}}
for account in accounts.values():
    by_owner.setdefault(account.owner, []).append(account.balance())
text = '\\n'.join('%s;%d;%d' % (o, len(b), sum(b)) for o, b in sorted(by_owner.items()))
back = {{line.split(';')[0]: int(line.split(';')[2]) for line in text.split('\\n')}}
best = sorted(accounts.values(), key=lambda a: (a.balance(), a.number))
print(len(accounts), len(text), sum(back.values()), best[0].number, best[-1].number)
",
        objects = (size_bytes / OBJECT_BYTES).max(1)
    )
    .into_bytes()
}
