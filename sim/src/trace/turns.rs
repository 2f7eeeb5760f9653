//! Several programs that take turns on one processor: one trace made of theirs.

use super::process::{MOST_PROCESSES, in_process, process_of};
use super::{Extent, Instruction, Source, TraceError};

/// Why programs cannot take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnsError {
    /// Too many or too few.
    #[error("2 to {MOST_PROCESSES} programs can take turns; here are {0}")]
    Programs(usize),
    /// A turn of nothing.
    #[error("a turn has at least one instruction")]
    Empty,
}

/// A program, and which of its threads have which numbers in the whole.
struct Program<S> {
    source: S,
    threads: Vec<(u32, u32)>,
    has_ended: bool,
}

/// The instructions of several programs, in turns. Each is a process, in
/// [addresses](super::process) and threads of its own; one that ends leaves its turns to the
/// others.
pub struct Turns<S> {
    programs: Vec<Program<S>>,
    instructions_of_turn: u64,
    running: usize,
    left: u64,
    threads: u32,
    /// The program of the last instruction, and how often that changed.
    last: usize,
    switches: u64,
}

impl<S: Source> Turns<S> {
    /// Turns of so many instructions, the first program first.
    ///
    /// # Errors
    /// There are too many programs or too few, or a turn is empty.
    pub fn new(sources: Vec<S>, instructions_of_turn: u64) -> Result<Self, TurnsError> {
        if !(2..=MOST_PROCESSES).contains(&sources.len()) {
            return Err(TurnsError::Programs(sources.len()));
        }
        if instructions_of_turn == 0 {
            return Err(TurnsError::Empty);
        }
        let program = |source| Program { source, threads: Vec::new(), has_ended: false };
        Ok(Turns {
            programs: sources.into_iter().map(program).collect(),
            instructions_of_turn,
            running: 0,
            left: instructions_of_turn,
            threads: 0,
            last: 0,
            switches: 0,
        })
    }

    /// How often an instruction was another program's than the one before.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// The program whose source was asked last: whose error it is.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// The next program that has not ended begins its turn; `false` if all have.
    fn turn(&mut self) -> bool {
        let count = self.programs.len();
        let mut others = (1..=count).map(|ahead| (self.running + ahead) % count);
        let Some(next) = others.find(|&next| !self.programs[next].has_ended) else { return false };
        (self.running, self.left) = (next, self.instructions_of_turn);
        true
    }

    /// The number of a thread of the running program in the whole.
    fn thread(&mut self, thread: u32) -> u32 {
        let known = &mut self.programs[self.running].threads;
        if let Some(&(_, number)) = known.iter().find(|(own, _)| *own == thread) {
            return number;
        }
        let number = self.threads;
        self.threads += 1;
        known.push((thread, number));
        number
    }
}

impl<S: Source> Source for Turns<S> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        loop {
            if self.left == 0 && !self.turn() {
                return Ok(false);
            }
            let program = &mut self.programs[self.running];
            if !program.has_ended && program.source.next(into)? {
                break;
            }
            program.has_ended = true;
            self.left = 0;
        }
        self.switches += u64::from(self.running != self.last);
        self.last = self.running;
        self.left = self.left.saturating_sub(into.instructions());
        into.thread = self.thread(into.thread);
        move_into(into, self.running as u32)?;
        Ok(true)
    }
}

/// Gives all addresses of an instruction of process 0 to another one.
///
/// # Errors
/// It is of another process already.
pub fn move_into(instruction: &mut Instruction, process: u32) -> Result<(), TraceError> {
    let addresses = instruction.references.iter().map(|reference| reference.address);
    if addresses.chain([instruction.pc]).any(|address| process_of(address) != 0) {
        return Err(TraceError::Processes);
    }
    if instruction.pc != 0 {
        instruction.pc = in_process(instruction.pc, process);
    }
    for reference in &mut instruction.references {
        reference.address = in_process(reference.address, process);
    }
    for extent in instruction.changed.iter_mut().filter(|one| **one != Extent::EVERYTHING) {
        extent.address = in_process(extent.address, process);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Reference;

    /// So many instructions, on two threads in turn.
    struct Few(u64, u64);

    impl Source for Few {
        fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
            into.clear();
            (into.pc, into.thread) = (0x1000 + self.0, (self.0 % 2) as u32);
            into.references.push(Reference::load(0x8000 + self.0, 8));
            self.0 += 1;
            Ok(self.0 <= self.1)
        }
    }

    #[test]
    fn programs_take_turns_until_all_have_ended() {
        let mut turns = Turns::new(vec![Few(0, 5), Few(0, 2), Few(0, 4)], 2).expect("three");
        let (mut all, mut one) = (Vec::new(), Instruction::default());
        while turns.next(&mut one).expect("it is made up") {
            let process = process_of(one.pc);
            assert_eq!(process_of(one.references[0].address), process);
            all.push((process, in_process(one.pc, process) - 0x1000, one.thread));
        }
        let expected = [
            (0, 0, 0),
            (0, 1, 1),
            (1, 0, 2),
            (1, 1, 3),
            (2, 0, 4),
            (2, 1, 5),
            (0, 2, 0),
            (0, 3, 1),
            (2, 2, 4),
            (2, 3, 5),
            (0, 4, 0),
        ];
        assert_eq!(all, expected);
        assert_eq!(turns.switches(), 5);
    }

    #[test]
    fn what_took_turns_takes_none_again() {
        let inner = Turns::new(vec![Few(0, 4), Few(0, 4)], 2).expect("two");
        let few: Box<dyn Source> = Box::new(Few(0, 4));
        let mut outer = Turns::new(vec![few, Box::new(inner)], 1).expect("two");
        let mut one = Instruction::default();
        let ended = loop {
            match outer.next(&mut one) {
                Ok(true) => {}
                other => break other,
            }
        };
        assert!(matches!(ended, Err(TraceError::Processes)), "{ended:?}");
    }

    #[test]
    fn one_program_takes_no_turns_and_nine_are_too_many() {
        assert_eq!(Turns::new(vec![Few(0, 1)], 1).err(), Some(TurnsError::Programs(1)));
        let nine = (0..9).map(|_| Few(0, 1)).collect();
        assert_eq!(Turns::new(nine, 1).err(), Some(TurnsError::Programs(9)));
        assert_eq!(Turns::new(vec![Few(0, 1), Few(0, 1)], 0).err(), Some(TurnsError::Empty));
    }
}
