//! DRAMsim3's traces: `ADDRESS OPERATION CYCLE` (its `common.cc`). Requests to memory, not
//! instructions of a program.

use super::lines::{hexadecimal, number, words};
use crate::trace::record::{Instruction, Reference};

/// DRAMsim3 takes any other word for a read; here it is an error.
const READS: [&str; 4] = ["READ", "read", "P_MEM_RD", "P_FETCH"];
/// The words that it takes for a write.
const WRITES: [&str; 4] = ["WRITE", "write", "P_MEM_WR", "BOFF"];

pub(super) fn request(line: &str, into: &mut Instruction) -> Result<(), String> {
    let expected = "ADDRESS READ|WRITE CYCLE";
    let (address, operation, Some(cycle)) = words(line, expected)? else {
        return Err(format!("found {:?}, expected {expected}", line.trim_end()));
    };
    let address = hexadecimal(address)?;
    into.arrival_cycle = Some(number(cycle, cycle, 10)?);
    into.references.push(if READS.contains(&operation) {
        Reference::load(address, 0)
    } else if WRITES.contains(&operation) {
        Reference::store(address, 0)
    } else {
        return Err(format!("found {operation:?}, expected READ or WRITE"));
    });
    Ok(())
}
