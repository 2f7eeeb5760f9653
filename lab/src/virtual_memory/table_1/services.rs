//! What an operating system does with pages, as short as it can be shown.

use super::super::{ProcessId, Sharing, VmError};
use super::{Recorded, SIZE};
use casemate_schemes::unit::{Block, PAGE_BLOCKS};

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Two processes with pages of their own at the same addresses.
    Isolation,
    /// Two processes share memory, at addresses of their own.
    Ipc,
    /// A process forks; both write then.
    Fork,
    /// Three processes see one library, at addresses of their own.
    SharedLibraries,
    /// More pages than frames: they leave and come back.
    Swap,
    /// A page is unmapped, and another mapped at its address.
    AddressAgain,
    /// A process ends, and another gets its number.
    ProcessAgain,
}

/// Pages of a program or a library.
const PAGES: u64 = 4;

impl Service {
    /// All of them, in the order of the table.
    pub const ALL: [Service; 7] = [
        Service::Isolation,
        Service::Ipc,
        Service::Fork,
        Service::SharedLibraries,
        Service::Swap,
        Service::AddressAgain,
        Service::ProcessAgain,
    ];

    /// Its column.
    pub fn name(self) -> &'static str {
        match self {
            Service::Isolation => "isolation",
            Service::Ipc => "IPC",
            Service::Fork => "fork",
            Service::SharedLibraries => "libraries",
            Service::Swap => "swap",
            Service::AddressAgain => "address again",
            Service::ProcessAgain => "process again",
        }
    }

    /// Runs it. Returns whether every process read what it should.
    pub(super) fn run(self, memory: &mut Recorded) -> Result<bool, VmError> {
        let first = memory.spawn();
        match self {
            Service::Isolation => {
                let second = memory.spawn();
                fill(memory, first, 1)?;
                fill(memory, second, 2)?;
                Ok(holds(memory, first, 0, 1)? & holds(memory, second, 0, 2)?)
            }
            Service::Ipc => {
                let second = memory.spawn();
                fill(memory, first, 1)?;
                share(memory, first, second, 100, Sharing::Shared)?;
                let seen = holds(memory, second, 100, 1)?;
                rewrite(memory, second, 100, 2)?;
                Ok(seen & holds(memory, first, 0, 2)?)
            }
            Service::Fork => {
                fill(memory, first, 1)?;
                let child = memory.fork(first)?;
                let inherited = holds(memory, child, 0, 1)?;
                rewrite(memory, first, 0, 2)?;
                let kept = holds(memory, child, 0, 1)?;
                rewrite(memory, child, 0, 3)?;
                let parted = holds(memory, first, 0, 2)? & holds(memory, child, 0, 3)?;
                Ok(inherited & kept & parted)
            }
            Service::SharedLibraries => {
                fill(memory, first, 1)?;
                let mut seen = true;
                for number in 1..3 {
                    let other = memory.spawn();
                    share(memory, first, other, 100 * number, Sharing::CopyOnWrite)?;
                    seen &= holds(memory, other, 100 * number, 1)?;
                }
                Ok(seen)
            }
            Service::Swap => swap(memory, first),
            Service::AddressAgain => {
                fill(memory, first, 1)?;
                (0..PAGES).try_for_each(|page| memory.unmap(first, page))?;
                fill(memory, first, 2)?;
                holds(memory, first, 0, 2)
            }
            Service::ProcessAgain => {
                fill(memory, first, 1)?;
                memory.exit(first)?;
                memory.spawn_again(first)?;
                fill(memory, first, 2)?;
                holds(memory, first, 0, 2)
            }
        }
    }
}

/// Half as many pages again as there are frames, each written and read in turn, twice.
fn swap(memory: &mut Recorded, process: ProcessId) -> Result<bool, VmError> {
    let pages = SIZE.frames + SIZE.frames / 2;
    memory.switch_to(process)?;
    (0..pages).try_for_each(|page| memory.map(process, page))?;
    let mut right = true;
    for round in 0..2 {
        for page in 0..pages {
            memory.write(page, page, &contents(round, page, page))?;
        }
        for page in 0..pages {
            right &= memory.read(page, page)? == contents(round, page, page);
        }
    }
    Ok(right)
}

/// What a process writes there.
fn contents(writer: u8, page: u64, block: u64) -> Block {
    [writer ^ (page as u8) << 4 ^ (block as u8).rotate_left(2); 64]
}

/// Maps the process's pages and writes them.
fn fill(memory: &mut Recorded, process: ProcessId, writer: u8) -> Result<(), VmError> {
    (0..PAGES).try_for_each(|page| memory.map(process, page))?;
    rewrite(memory, process, 0, writer)
}

fn rewrite(
    memory: &mut Recorded,
    process: ProcessId,
    first_page: u64,
    writer: u8,
) -> Result<(), VmError> {
    memory.switch_to(process)?;
    for page in 0..PAGES {
        for block in 0..PAGE_BLOCKS {
            memory.write(first_page + page, block, &contents(writer, page, block))?;
        }
    }
    Ok(())
}

/// Whether a process reads what `writer` wrote.
fn holds(
    memory: &mut Recorded,
    process: ProcessId,
    first_page: u64,
    writer: u8,
) -> Result<bool, VmError> {
    memory.switch_to(process)?;
    let mut right = true;
    for page in 0..PAGES {
        for block in 0..PAGE_BLOCKS {
            right &= memory.read(first_page + page, block)? == contents(writer, page, block);
        }
    }
    Ok(right)
}

fn share(
    memory: &mut Recorded,
    from: ProcessId,
    to: ProcessId,
    first_page: u64,
    sharing: Sharing,
) -> Result<(), VmError> {
    (0..PAGES).try_for_each(|page| memory.share((from, page), (to, first_page + page), sharing))
}
