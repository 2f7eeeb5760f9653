//! Traces of requests: past the cores and caches, at their cycles.

use crate::machine::{FLAT, Listed, load, machine, run, small, store};
use casemate_sim::trace::Instruction;

fn request(cycle: u64, instruction: Instruction) -> Instruction {
    Instruction { arrival_cycle: Some(cycle), ..instruction }
}

/// A read that arrives at 1000 is answered at 1100; the write at 1050 goes at once, and the read
/// that comes late in the trace (900 after 1050) goes at 1050: the last answer is there at 1150.
/// Reads of a block are not kept: the second one goes to memory too.
#[test]
fn requests_go_to_memory_at_their_cycle() {
    let program = [request(1000, load(0)), request(1050, store(64)), request(900, load(0))];
    let statistics = run(&small(), &program[..1]);
    assert_eq!(statistics.cycles, 1100);
    let statistics = run(&small(), &program);
    assert_eq!(statistics.cycles, 1150);
    assert_eq!((statistics.requests.reads, statistics.requests.writes), (2, 1));
    assert_eq!(statistics.requests.read_latency.sum_cycles, 200);
    assert_eq!(statistics.memory.data_reads.requests, 2);
    assert_eq!(statistics.instructions, 3);
}

/// With several cores too.
#[test]
fn requests_need_no_core() {
    let mut config = small();
    config.core.cores = 4;
    let program = [request(5, load(0)), request(7, load(128))];
    assert_eq!(run(&config, &program).cycles, 107);
}

#[test]
fn requests_beyond_memory_are_refused() {
    let mut machine = machine(&small(), FLAT);
    let program = [request(0, load((1 << 20) - 8)), request(0, load((1 << 20) - 7))];
    let mut source = Listed::new(&program);
    let error = machine.run_until_instructions(&mut source, 9).expect_err("beyond");
    assert_eq!(
        error.to_string(),
        "a request goes to byte 0x100000 of 1048576 bytes of memory; set memory_bytes higher"
    );
}
