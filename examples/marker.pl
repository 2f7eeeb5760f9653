# `hold`: keeps a secret in memory and works with 100 MB beside it. `find PID`: counts how often
# that secret is found in the memory of process PID and all that descend from it. See marker.sh.
use strict;
use warnings;
no warnings 'portable';
use List::Util 'min';

sub secret {
    return join '', map { scalar reverse } ( 'EHT-', 'NOITISOP-', 'FO-', 'EHT-', 'ERUSAERT' );
}

sub hold {
    my $page = ( 'x' x 8192 ) . secret() . ( 'x' x 8192 );
    my @rest = map { chr( 65 + $_ % 26 ) x 1_000_000 } 1 .. 100;
    for my $round ( 1 .. 3 ) { tr/A-Za-z/B-ZAb-za/ for @rest }
    $| = 1;
    print "ready\n";
    <STDIN>;
    die "the secret is gone" unless index( $page, secret() ) == 8192;
}

sub descendants {
    my ($pid) = @_;
    my @children = map { split ' ', do { open my $f, '<', $_ or next; <$f> // '' } }
        glob "/proc/$pid/task/*/children";
    return ( $pid, map { descendants($_) } @children );
}

# The pages of a mapping that are in memory, by its page table.
sub present {
    my ( $table, $start, $end ) = @_;
    my @present;
    for ( my $page = $start / 4096 ; $page < $end / 4096 ; $page += 65536 ) {
        my $count = min( 65536, $end / 4096 - $page );
        sysseek( $table, $page * 8, 0 ) or return @present;
        my $bytes = sysread( $table, my $entries, $count * 8 ) or return @present;
        next if $entries eq "\0" x $bytes;
        my @entries = unpack 'Q*', $entries;
        push @present, grep { $entries[ $_ - $page ] >> 63 } $page .. $page + $#entries;
    }
    return @present;
}

sub find {
    my ($top) = @_;
    my ( $secret, $found, $read ) = ( secret(), 0, 0 );
    my @pids = descendants($top);
    for my $pid (@pids) {
        open my $maps, '<', "/proc/$pid/maps" or next;
        open my $table, '<:raw', "/proc/$pid/pagemap" or next;
        open my $memory, '<:raw', "/proc/$pid/mem" or next;
        while ( my $line = <$maps> ) {
            my ( $start, $end ) = map { hex } $line =~ /^([0-9a-f]+)-([0-9a-f]+) r/ or next;
            for my $page ( present( $table, $start, $end ) ) {
                sysseek( $memory, $page * 4096, 0 ) or last;
                sysread( $memory, my $bytes, 4096 ) or next;
                $read += 4096;
                $found++ while $bytes =~ /\Q$secret\E/g;
            }
        }
    }
    printf "found %d times in %d MB of %d processes\n", $found, $read / 1e6, scalar @pids;
}

$ARGV[0] eq 'hold' ? hold() : find( $ARGV[1] );
