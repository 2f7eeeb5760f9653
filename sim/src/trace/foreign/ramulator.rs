//! Ramulator 2's traces: `loadstore_trace.cpp` and `simpleO3/trace.cpp` of its frontends say what
//! it accepts.

use super::lines::{hexadecimal, number, words};
use crate::trace::record::{Instruction, Reference};

/// `LD ADDRESS` or `ST ADDRESS`, decimal or after 0x hexadecimal.
pub(super) fn load_store(line: &str, into: &mut Instruction) -> Result<(), String> {
    let expected = "LD ADDRESS or ST ADDRESS";
    let (operation, word, None) = words(line, expected)? else {
        return Err(format!("found {:?}, expected {expected}", line.trim_end()));
    };
    let is_hexadecimal = word.starts_with("0x") || word.starts_with("0X");
    let address = if is_hexadecimal { hexadecimal(word)? } else { number(word, word, 10)? };
    into.references.push(match operation {
        "LD" => Reference::load(address, 0),
        "ST" => Reference::store(address, 0),
        _ => return Err(format!("found {operation:?}, expected LD or ST")),
    });
    Ok(())
}

/// `BUBBLES LOAD [STORE]`, all decimal. Ramulator itself would read 0x12 as 0.
pub(super) fn simple_o3(line: &str, into: &mut Instruction) -> Result<(), String> {
    let (bubbles, load, store) = words(line, "BUBBLES LOAD [STORE], in decimal")?;
    let before = u32::try_from(number(bubbles, bubbles, 10)?);
    into.unrecorded_before = before.map_err(|_| format!("{bubbles} bubbles exceed 32 bits"))?;
    into.references.push(Reference::load(number(load, load, 10)?, 0));
    if let Some(store) = store {
        into.references.push(Reference::store(number(store, store, 10)?, 0));
    }
    Ok(())
}
