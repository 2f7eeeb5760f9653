//! The processor: sixteen registers, words of untrusted memory, and a check before anything is said
//! about either.

use super::bytes_of;
use super::instruction::{Instruction, Operation, REGISTERS};
use super::words::{BLOCK_WORDS, PAGE_WORDS, Unit, Words};
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::violation::Violation;
use casemate_schemes::unit::bytes::UnitSecret;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::scheme::SchemeError;

/// Most words of a result.
pub const MOST_RESULT_WORDS: u64 = 1 << 16;
/// Most memory of a machine, in words: 64 MiB.
pub const MOST_MEMORY_WORDS: u64 = 1 << 23;

/// A program that did something that means nothing. It would on any machine: this is no attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trap {
    /// The program went on behind its end.
    #[error("instruction {0} is behind the end of the program")]
    BehindTheEnd(u64),
    /// A word is no instruction.
    #[error("word {0} of the program is no instruction")]
    Malformed(u64),
    /// An address is not in memory, or is the program's and was to be written.
    #[error("instruction {at} may not use address {address}")]
    Address {
        /// The instruction.
        at: u64,
        /// The address.
        address: u64,
    },
    /// A division by zero.
    #[error("instruction {0} divides by zero")]
    DivisionByZero(u64),
    /// A result that is not in memory, or too long.
    #[error(
        "the result is {words} words from address {address}: not in memory, or more than {MOST_RESULT_WORDS}"
    )]
    Result {
        /// Where it begins.
        address: u64,
        /// How long it is.
        words: u64,
    },
    /// It did not end.
    #[error("the program has not ended after {0} instructions")]
    StillRunning(u64),
}

/// Why there is no execution to certify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// Memory was changed from outside while the program ran.
    #[error("memory was tampered with: {0}")]
    Tampered(#[from] Violation),
    /// The program's own fault.
    #[error(transparent)]
    Trap(#[from] Trap),
    /// Program and input are larger than memory.
    #[error("program and input take {needed} words, but memory has {given}")]
    DoesNotFit {
        /// Words that they take.
        needed: u64,
        /// Words of memory.
        given: u64,
    },
    /// The unit could not be built.
    #[error(transparent)]
    Unit(#[from] SchemeError),
}

/// Whether a program has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Not yet.
    Running,
    /// Yes.
    Halted,
}

/// What a program came to in memory that was found untouched. Nothing else makes one, so that
/// nothing else can be certified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub(super) program: [u8; 32],
    pub(super) input: [u8; 32],
    pub(super) result: super::Words,
}

impl Execution {
    /// The words that the program ended with.
    pub fn result(&self) -> &[u64] {
        &self.result
    }
}

/// A machine with a program in it.
pub struct Machine<M: OffChip, C: Checks = AllChecks> {
    words: Words<M, C>,
    registers: [u64; REGISTERS],
    next: u64,
    program_words: u64,
    memory_words: u64,
    hashes: [[u8; 32]; 2],
    steps: u64,
    /// Address and words of the result.
    halted: Option<(u64, u64)>,
}

/// Why an instruction did not come to its end.
enum Stop {
    Trap(Trap),
    Violation(Violation),
}

impl From<Trap> for Stop {
    fn from(trap: Trap) -> Self {
        Stop::Trap(trap)
    }
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Stop::Violation(violation)
    }
}

impl<M: OffChip, C: Checks> Machine<M, C> {
    /// A machine with at least so many words of memory, program and input loaded.
    ///
    /// The program begins at address 0, the input at the next block, free memory at the next after
    /// it. Registers: r1 the input's address, r2 its words, r3 the first free address, r4 the words
    /// of memory, all others 0.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn load(
        program: &[u64],
        input: &[u64],
        memory_words: u64,
        memory: M,
        secret: &UnitSecret,
    ) -> Result<Self, ExecutionError> {
        let block_end = |words: u64| words.next_multiple_of(BLOCK_WORDS);
        let program_words = program.len() as u64;
        let input_at = block_end(program_words);
        let free_at = block_end(input_at + input.len() as u64);
        let pages = memory_words.div_ceil(PAGE_WORDS).max(1);
        let given = pages * PAGE_WORDS;
        if free_at > given || given > MOST_MEMORY_WORDS {
            let given = given.min(MOST_MEMORY_WORDS);
            return Err(ExecutionError::DoesNotFit { needed: free_at, given });
        }
        let mut words = Words::new(memory, pages, secret)?;
        let loaded = (0..).zip(program).chain((input_at..).zip(input));
        loaded.into_iter().try_for_each(|(address, word)| words.store(address, *word))?;
        // The program is to come from memory, not from what loading it left in the cache.
        words.empty()?;
        let mut registers = [0; REGISTERS];
        registers[1..5].copy_from_slice(&[input_at, input.len() as u64, free_at, given]);
        let hashes = [program, input].map(|words| *blake3::hash(&bytes_of(words)).as_bytes());
        let memory_words = given;
        Ok(Machine {
            words,
            registers,
            next: 0,
            program_words,
            memory_words,
            hashes,
            steps: 0,
            halted: None,
        })
    }

    /// Executes at most so many instructions.
    ///
    /// # Errors
    /// [`ExecutionError::Tampered`] if memory was seen to be changed. A program that traps is
    /// blamed only if memory was not: what looks like a mistake may have been put there by an
    /// attacker.
    pub fn run(&mut self, steps: u64) -> Result<Progress, ExecutionError> {
        for _ in 0..steps {
            if self.halted.is_some() {
                break;
            }
            match self.step() {
                Ok(()) => self.steps += 1,
                Err(Stop::Violation(violation)) => return Err(violation.into()),
                Err(Stop::Trap(trap)) => return Err(self.blame(trap)),
            }
        }
        Ok(if self.halted.is_some() { Progress::Halted } else { Progress::Running })
    }

    /// Reads the result, has memory checked, and only then says what the result is.
    ///
    /// # Errors
    /// As [`run`](Self::run); and if the program has not halted.
    pub fn finish(mut self) -> Result<Execution, ExecutionError> {
        let Some((address, words)) = self.halted else {
            return Err(self.blame(Trap::StillRunning(self.steps)));
        };
        let end = address.checked_add(words).filter(|end| *end <= self.memory_words);
        let Some(end) = end.filter(|_| words <= MOST_RESULT_WORDS) else {
            return Err(self.blame(Trap::Result { address, words }));
        };
        // Before the check: it covers what was read before it, and nothing after.
        let result: Result<_, _> = (address..end).map(|at| self.words.load(at)).collect();
        let result = result?;
        self.words.check()?;
        let [program, input] = self.hashes;
        Ok(Execution { program, input, result })
    }

    /// The unit, for adversaries.
    pub fn unit_mut(&mut self) -> &mut Unit<M, C> {
        self.words.unit_mut()
    }

    fn blame(&mut self, trap: Trap) -> ExecutionError {
        match self.words.check() {
            Ok(()) => trap.into(),
            Err(violation) => violation.into(),
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        let at = self.next;
        if at >= self.program_words {
            return Err(Trap::BehindTheEnd(at).into());
        }
        let word = self.words.load(at)?;
        let instruction = Instruction::decode(word).ok_or(Trap::Malformed(at))?;
        self.next = at + 1;
        self.execute(at, instruction)
    }

    fn execute(&mut self, at: u64, instruction: Instruction) -> Result<(), Stop> {
        use Operation as O;
        let [a, b, c] = instruction.registers.map(usize::from);
        let [in_a, in_b, in_c] = [a, b, c].map(|register| self.registers[register]);
        let immediate = i64::from(instruction.immediate) as u64;
        let address = in_b.wrapping_add(immediate);
        let target = u64::from(instruction.immediate as u32);
        let divisor = || if in_c == 0 { Err(Trap::DivisionByZero(at)) } else { Ok(in_c) };
        self.registers[a] = match instruction.operation {
            O::Set => immediate,
            O::Addi => address,
            O::Add => in_b.wrapping_add(in_c),
            O::Sub => in_b.wrapping_sub(in_c),
            O::Mul => in_b.wrapping_mul(in_c),
            O::Div => in_b / divisor()?,
            O::Rem => in_b % divisor()?,
            O::And => in_b & in_c,
            O::Or => in_b | in_c,
            O::Xor => in_b ^ in_c,
            O::Shl => in_b << (in_c % 64),
            O::Shr => in_b >> (in_c % 64),
            O::Load if address < self.memory_words => self.words.load(address)?,
            O::Store if (self.program_words..self.memory_words).contains(&address) => {
                return Ok(self.words.store(address, in_a)?);
            }
            O::Load | O::Store => return Err(Trap::Address { at, address }.into()),
            O::Halt => {
                self.halted = Some((in_a, in_b));
                return Ok(());
            }
            O::Jump | O::Jeq | O::Jne | O::Jlt | O::Jge => {
                let goes = match instruction.operation {
                    O::Jeq => in_a == in_b,
                    O::Jne => in_a != in_b,
                    O::Jlt => in_a < in_b,
                    O::Jge => in_a >= in_b,
                    _ => true,
                };
                self.next = if goes { target } else { self.next };
                return Ok(());
            }
        };
        Ok(())
    }
}
