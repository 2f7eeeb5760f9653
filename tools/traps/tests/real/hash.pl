#!/usr/bin/perl
# Hashes of arrays: filled, walked, thinned out and sorted. SCALE times 8,000 keys with 6 kB.
use strict;
use warnings;
my $scale = $ENV{SCALE};
my $state = 42;
sub random { $state = ($state * 1103515245 + 12345) % 2147483648; return $state; }
my %table;
for my $i (1 .. 8_000 * $scale) {
    my $key = sprintf("%08x-%d", random(), $i % 97);
    push @{$table{$key}}, $i, random(), "value $i" x 600;
}
my $sum = 0;
for my $key (sort keys %table) {
    my $row = $table{$key};
    $sum = ($sum * 31 + $row->[0] + $row->[1] + length($row->[2])) % 4294967291;
    delete $table{$key} if $row->[0] % 3 == 0;
}
print scalar(keys %table), " $sum\n";
my %count;
$count{substr($_, 0, 4)} += @{$table{$_}} for keys %table;
print "$_ $count{$_}\n" for sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
