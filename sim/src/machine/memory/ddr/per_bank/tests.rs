//! Hand-counted sequences.

use super::*;
use crate::machine::memory::ddr::Timing;

fn channel(timing: Timing) -> PerBank {
    let mut config = DdrConfig::ddr4_2400(1, 1200).expect("it is possible");
    config.timing = timing;
    PerBank::new(config, Rules::DRAMSIM3).expect("it is possible")
}

fn run(channel: &mut PerBank, clocks: Clock) {
    (0..clocks).for_each(|_| channel.tick());
}

/// A clock into the bank's queue, tRCD 11, CL 11, a burst of 4; two of one block together.
#[test]
fn a_read_takes_as_long_as_counted_by_hand() {
    let mut channel = channel(Timing::DDR3_1600K);
    channel.take(0, Access::Read);
    run(&mut channel, 3);
    channel.take(0, Access::Read);
    run(&mut channel, 40);
    let expected = [Answered { taken: 0, at: 27 }, Answered { taken: 3, at: 27 }];
    assert_eq!(channel.answered(), expected);
    assert_eq!(channel.commands().len(), 2);
}

#[test]
fn eight_writes_wait_for_ever_and_nine_go_together() {
    let mut channel = channel(Timing::DDR3_1600K);
    (0..8).for_each(|burst| channel.take(burst, Access::Write));
    run(&mut channel, 500);
    assert!(channel.commands().is_empty());
    channel.take(3, Access::Read);
    assert_eq!(channel.answered(), [Answered { taken: 500, at: 501 }]);
    channel.take(8, Access::Write);
    run(&mut channel, 500);
    let writes = channel.commands().iter().filter(|one| one.command == Command::Write);
    assert_eq!(writes.count(), 9);
}

/// A burst for another row waits among six for the open one, which is closed after its fourth
/// use and opened again for the rest. (With tRTP above tCCD each read would put that off.)
#[test]
fn a_row_is_closed_after_its_fourth_use() {
    let mut channel = channel(Timing { t_rtp: 1, ..Timing::DDR3_1600K });
    let burst = |row: u64, column: u64| row * (1 << 11) + column * 4;
    channel.take(burst(0, 0), Access::Read);
    run(&mut channel, 60);
    for (row, column) in [(0, 1), (0, 2), (1, 0), (0, 3), (0, 4), (0, 5), (0, 6)] {
        assert_eq!(channel.config.location(burst(row, column)).row, row);
        channel.take(burst(row, column), Access::Read);
    }
    run(&mut channel, 400);
    let commands: Vec<Command> = channel.commands().iter().map(|one| one.command).collect();
    let reads = |range: &[Command]| range.iter().filter(|one| **one == Command::Read).count();
    let rows: Vec<usize> = commands.split(|one| *one == Command::Precharge).map(reads).collect();
    assert_eq!(rows, [4, 1, 3], "{commands:?}");
}
