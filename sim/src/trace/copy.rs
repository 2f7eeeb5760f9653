//! Copying records: from a trace or a machine into a trace of any format.

use super::{Instruction, TraceError};

/// Why copying ended early. What was written before is whole.
#[derive(Debug, thiserror::Error)]
pub enum CopyError<E> {
    /// The next record cannot be had.
    #[error(transparent)]
    Read(E),
    /// A record cannot be written.
    #[error(transparent)]
    Write(TraceError),
}

/// Copies records until `next` has none (`false`), or `goes_on` says that the one that was just
/// written is the last. One record is filled again and again.
///
/// # Errors
/// Those of `next` and `write`.
pub fn copy<E>(
    mut next: impl FnMut(&mut Instruction) -> Result<bool, E>,
    mut write: impl FnMut(&Instruction) -> Result<(), TraceError>,
    mut goes_on: impl FnMut(&Instruction) -> bool,
) -> Result<(), CopyError<E>> {
    let mut record = Instruction::default();
    while next(&mut record).map_err(CopyError::Read)? {
        write(&record).map_err(CopyError::Write)?;
        if !goes_on(&record) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies up to five records of one instruction each. Which were written, and how it ended.
    fn copied(unreadable: u64, unwritable: u64, last: u64) -> (Vec<u64>, Result<(), String>) {
        let (mut read, mut written) = (0, Vec::new());
        let next = |record: &mut Instruction| {
            read += 1;
            record.pc = read;
            if read == unreadable { Err("unreadable") } else { Ok(read <= 5) }
        };
        let write = |record: &Instruction| match record.pc {
            pc if pc == unwritable => Err(TraceError::Unwritable("a test")),
            pc => {
                written.push(pc);
                Ok(())
            }
        };
        let ended = copy(next, write, |record| record.pc != last);
        (written, ended.map_err(|error| error.to_string()))
    }

    #[test]
    fn everything_before_the_end_is_written_once_and_in_order() {
        assert_eq!(copied(0, 0, 0), (vec![1, 2, 3, 4, 5], Ok(())));
        assert_eq!(copied(0, 0, 3), (vec![1, 2, 3], Ok(())), "the last one is not the last");
        assert_eq!(copied(4, 0, 0), (vec![1, 2, 3], Err("unreadable".to_owned())));
        let refused = "an instruction cannot be written: a test".to_owned();
        assert_eq!(copied(0, 2, 0), (vec![1], Err(refused)));
    }
}
