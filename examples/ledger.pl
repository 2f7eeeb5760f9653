#!/usr/bin/perl
# Keeps a ledger of 96 MiB in memory: 96 blocks of random-looking bytes. In each of six rounds every
# block is inverted and its set bits are counted again, so that every page is read and written and
# every bit is checked. Prints one line, the same in every run.
use strict;
use warnings;

my $BLOCK = 1 << 20;
my $BITS  = 8 * $BLOCK;
my $ones  = "\xff" x $BLOCK;

# A small generator of our own: the same numbers under every version of Perl.
my $state = 20031;
sub noise {
    my ($bytes) = @_;
    my @words;
    for (1 .. $bytes / 4) {
        $state = (1103515245 * $state + 12345) % 2147483648;
        push @words, $state;
    }
    return pack 'N*', @words;
}

my $seed_page = noise(4096);
my (@blocks, @counts);
for my $number (0 .. 95) {
    # Pages differ within a block and between blocks.
    my $block = '';
    for my $page (0 .. 255) {
        $block .= $seed_page ^ (pack('N', 65536 * $number + $page) x 1024);
    }
    push @blocks, $block;
    push @counts, unpack('%32b*', $block);
}

for my $round (1 .. 6) {
    for my $number (0 .. $#blocks) {
        $blocks[$number] ^= $ones;
        $counts[$number] = $BITS - $counts[$number];
        my $found = unpack('%32b*', $blocks[$number]);
        die "block $number: $found bits where $counts[$number] were expected in round $round\n"
            if $found != $counts[$number];
    }
}

my $sum = 0;
$sum = ($sum + $_) % 4294967296 for map { unpack('%32N*', $_) } @blocks;
printf "ledger: %d blocks inverted six times, all verified, checksum %d\n", scalar @blocks, $sum;
