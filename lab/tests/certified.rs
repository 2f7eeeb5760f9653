//! Certified execution: the machine against a model, tampering of every kind, certificates that
//! were changed.

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::random::Random;
use casemate_lab::attack::memory::HostileMemory;
use casemate_lab::attack::strike::Attack;
use casemate_lab::certified::instruction::{Form, Instruction, Operation, REGISTERS};
use casemate_lab::certified::{
    Certificate, CertificateError, Execution, ExecutionError, Machine, Progress, Trap, assemble,
};
use casemate_lab::processor_key::ProcessorKey;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::{BlockAddress, PageAddress};

const SECRET: [u8; 32] = [5; 32];
const MEMORY_WORDS: u64 = 1024;
const MOST_STEPS: u64 = 1_000_000;

fn execute(program: &[u64], input: &[u64]) -> Result<Execution, ExecutionError> {
    execute_within(program, input, MOST_STEPS)
}

fn execute_within(program: &[u64], input: &[u64], steps: u64) -> Result<Execution, ExecutionError> {
    let memory = SparseMemory::default();
    let mut machine = Machine::<_>::load(program, input, MEMORY_WORDS, memory, &SECRET)?;
    machine.run(steps)?;
    machine.finish()
}

fn example(name: &str) -> Vec<u64> {
    let path = format!("{}/../examples/certified/{name}.asm", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    assemble(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The machine as one would write it in a minute: a vector for memory, nothing on chip or off.
fn model(program: &[u64], input: &[u64], steps: u64) -> Result<Vec<u64>, Trap> {
    let round = |words: usize| words.div_ceil(8) * 8;
    let mut memory = vec![0; MEMORY_WORDS as usize];
    memory[..program.len()].copy_from_slice(program);
    let input_at = round(program.len());
    memory[input_at..input_at + input.len()].copy_from_slice(input);
    let mut r = [0_u64; 16];
    r[1] = input_at as u64;
    r[2] = input.len() as u64;
    r[3] = round(input_at + input.len()) as u64;
    r[4] = MEMORY_WORDS;
    let mut next = 0_u64;
    for _ in 0..steps {
        let at = next;
        if at >= program.len() as u64 {
            return Err(Trap::BehindTheEnd(at));
        }
        let word = memory[at as usize];
        let byte = |n: u32| (word >> (8 * n) & 0xff) as usize;
        let (a, b, c) = (byte(1), byte(2), byte(3));
        let immediate = (word >> 32) as u32 as i32 as i64 as u64;
        let target = word >> 32;
        let used = match byte(0) {
            15 => 0,
            1 => 1,
            0 | 2 | 13 | 14 | 16..=19 => 2,
            _ => 3,
        };
        let plain = matches!(byte(0), 0 | 3..=12);
        let sound = [a, b, c].iter().all(|n| *n < 16) && [a, b, c][used..].iter().all(|n| *n == 0);
        if byte(0) > 19 || !sound || (plain && target != 0) {
            return Err(Trap::Malformed(at));
        }
        next += 1;
        let address = r[b].wrapping_add(immediate);
        let bad = Trap::Address { at, address };
        match byte(0) {
            0 => {
                let (address, words) = (r[a], r[b]);
                let trap = Trap::Result { address, words };
                let end = address.checked_add(words).ok_or(trap)?;
                let range = address as usize..end as usize;
                return memory.get(range).map(<[u64]>::to_vec).ok_or(trap);
            }
            1 => r[a] = immediate,
            2 => r[a] = address,
            3 => r[a] = r[b].wrapping_add(r[c]),
            4 => r[a] = r[b].wrapping_sub(r[c]),
            5 => r[a] = r[b].wrapping_mul(r[c]),
            6 => r[a] = r[b].checked_div(r[c]).ok_or(Trap::DivisionByZero(at))?,
            7 => r[a] = r[b].checked_rem(r[c]).ok_or(Trap::DivisionByZero(at))?,
            8 => r[a] = r[b] & r[c],
            9 => r[a] = r[b] | r[c],
            10 => r[a] = r[b] ^ r[c],
            11 => r[a] = r[b].wrapping_shl((r[c] & 63) as u32),
            12 => r[a] = r[b].wrapping_shr((r[c] & 63) as u32),
            13 => r[a] = *memory.get(address as usize).ok_or(bad)?,
            14 if address < program.len() as u64 => return Err(bad),
            14 => *memory.get_mut(address as usize).ok_or(bad)? = r[a],
            15 => next = target,
            16 if r[a] == r[b] => next = target,
            17 if r[a] != r[b] => next = target,
            18 if r[a] < r[b] => next = target,
            19 if r[a] >= r[b] => next = target,
            _ => {}
        }
    }
    Err(Trap::StillRunning(steps))
}

/// A program that more often than not does something before it traps, halts or runs on.
fn random_program(random: &mut Random) -> Vec<u64> {
    let length = 4 + random.below(60);
    let program = (0..length).map(|number| {
        let operation = if number + 1 == length {
            Operation::Halt
        } else {
            Operation::ALL[1 + random.below(19) as usize]
        };
        let mut registers = [0; 3].map(|_: u8| random.below(REGISTERS as u64) as u8);
        let used = match operation.form() {
            Form::Three => 3,
            Form::Two | Form::TwoImmediate => 2,
            Form::OneImmediate => 1,
            Form::Immediate => 0,
        };
        registers[used..].fill(0);
        let immediate = match operation {
            Operation::Jump | Operation::Jeq | Operation::Jne | Operation::Jlt | Operation::Jge => {
                (number + 1 + random.below(4)).min(length - 1) as i32
            }
            Operation::Load | Operation::Store => {
                // Mostly addresses of data, through registers that point there.
                registers[1] = 1 + 2 * random.below(2) as u8;
                random.below(40) as i32 - 4
            }
            Operation::Set | Operation::Addi => random.below(200) as i32 - 40,
            _ => 0,
        };
        if operation == Operation::Halt {
            registers = [3, 2, 0];
        }
        Instruction { operation, registers, immediate }.encode()
    });
    program.collect()
}

#[test]
fn the_machine_does_what_the_model_does() {
    let seed = 20_261_121;
    let mut random = Random::new(seed);
    let (mut halted, mut trapped) = (0, 0);
    for case in 0..1500 {
        let mut program = random_program(&mut random);
        if random.one_in(10) {
            let at = random.below(program.len() as u64) as usize;
            program[at] = random.next();
        }
        let mut input = vec![0; random.below(30) as usize];
        input.iter_mut().for_each(|word| *word = random.next() >> random.below(64));
        let expected = model(&program, &input, 400);
        let got = execute_within(&program, &input, 400);
        match (&expected, got) {
            (Ok(result), Ok(execution)) => {
                halted += 1;
                assert_eq!(execution.result(), result, "seed {seed}, case {case}");
            }
            (Err(trap), Err(ExecutionError::Trap(got))) => {
                trapped += 1;
                assert_eq!(got, *trap, "seed {seed}, case {case}");
            }
            (expected, got) => panic!("seed {seed}, case {case}: {got:?}, not {expected:?}"),
        }
    }
    assert!(halted > 200 && trapped > 200, "{halted} halted, {trapped} trapped: no test of both");
}

#[test]
fn the_examples_compute_what_they_say() {
    let mut random = Random::new(3);
    let mut input = vec![0; 60];
    input.iter_mut().for_each(|word| *word = random.next());
    let sum = input.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
    assert_eq!(execute(&example("sum"), &input).expect("a sum").result(), [sum]);
    assert_eq!(execute(&example("sum"), &[]).expect("a sum").result(), [0]);
    let mut sorted = input.clone();
    sorted.sort_unstable();
    assert_eq!(execute(&example("sort"), &input).expect("sorted").result(), sorted);
    assert_eq!(execute(&example("sort"), &[]).expect("sorted").result(), [0; 0]);
    let prime = |n: &u64| !(2..*n).any(|divisor| n.is_multiple_of(divisor));
    let primes: Vec<u64> = (2..200).filter(prime).collect();
    assert_eq!(execute(&example("sieve"), &[200]).expect("primes").result(), primes);
}

#[test]
fn what_does_not_fit_is_refused() {
    let too_long = vec![0; MEMORY_WORDS as usize + 1];
    assert!(matches!(execute(&too_long, &[]), Err(ExecutionError::DoesNotFit { .. })));
    assert!(matches!(execute(&[0], &too_long), Err(ExecutionError::DoesNotFit { .. })));
    let memory = SparseMemory::default();
    let huge = Machine::<_>::load(&[0], &[], u64::MAX, memory, &SECRET).map(|_| ());
    assert!(matches!(huge, Err(ExecutionError::DoesNotFit { .. })));
}

/// Runs the sort, strikes somewhere on the way, and lets it end. `None`: the strike changed
/// nothing.
fn struck<C: Checks>(attack: Attack, seed: u64) -> Option<Result<Execution, ExecutionError>> {
    let mut random = Random::new(seed);
    let mut input = vec![0; 80];
    input.iter_mut().for_each(|word| *word = random.next());
    let memory = HostileMemory::default();
    let mut machine: Machine<_, C> =
        Machine::load(&example("sort"), &input, MEMORY_WORDS, memory, &SECRET).expect("it fits");
    assert_eq!(machine.run(random.below(5000)), Ok(Progress::Running));
    machine.unit_mut().flush().expect("memory is intact");
    let old = machine.unit_mut().port_mut().memory_mut().image();
    assert_eq!(machine.run(2000 + random.below(3000)), Ok(Progress::Running));
    machine.unit_mut().flush().expect("memory is intact");
    // A block of the input, which the sort writes all the time.
    let block = |random: &mut Random| -> BlockAddress {
        PageAddress::identical(0).block(3 + random.below(8))
    };
    let victim = block(&mut random);
    let other = PageAddress::identical(0).block((victim.block + 1) % 64);
    let unit = machine.unit_mut();
    let (victim, other) = (unit.anatomy(victim), unit.anatomy(other));
    if !attack.applies_to(&victim) {
        return None;
    }
    let memory = unit.port_mut().memory_mut();
    if !attack.strike(memory, &victim, &other, &old, &mut random) {
        return None;
    }
    Some(machine.run(MOST_STEPS).and_then(|_| machine.finish()))
}

/// LHash, section 3.1: if memory was tampered with, there is nothing to certify.
#[test]
fn tampering_of_every_kind_leaves_nothing_to_certify() {
    let mut kinds = 0;
    for attack in Attack::ALL {
        let outcomes: Vec<_> =
            (0..12).filter_map(|seed| struck::<AllChecks>(attack, seed)).collect();
        for outcome in &outcomes {
            let tampered = matches!(outcome, Err(ExecutionError::Tampered(_)));
            assert!(tampered, "{}: {outcome:?}", attack.name());
        }
        kinds += usize::from(!outcomes.is_empty());
    }
    assert!(kinds >= 12, "only {kinds} kinds of attack struck anything");
}

/// The same with a check that compares nothing: now wrong results would be signed, and this test
/// sees it.
#[test]
fn a_check_that_compares_nothing_is_caught() {
    let outcomes =
        (0..12).filter_map(|seed| struck::<broken::LogsNotCompared>(Attack::FlipData, seed));
    assert!(outcomes.filter(Result::is_ok).count() > 0, "the canary lives: no test of anything");
}

#[test]
fn a_certificate_proves_its_result_and_no_change_of_it_passes() {
    let key = ProcessorKey::generate().expect("there is randomness");
    let public = key.public_key().expect("a fresh key");
    let (program, input) = (example("sum"), [3, 4, 5]);
    let execution = execute(&program, &input).expect("a sum");
    let bytes = Certificate::issue(&execution, &key).expect("a good key").to_bytes();
    let verify = |bytes: &[u8]| {
        Certificate::from_bytes(bytes)?.verify(&public, &program, &input).map(<[u64]>::to_vec)
    };
    assert_eq!(verify(&bytes), Ok(vec![12]));
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&changed).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(verify(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(verify(&[&bytes[..], &[0]].concat()).is_err());
    let certificate = Certificate::from_bytes(&bytes).expect("its own bytes");
    let other = ProcessorKey::generate().expect("there is randomness").public_key().expect("fresh");
    let refused = |processor, program: &[u64], input: &[u64]| {
        certificate.verify(processor, program, input).expect_err("it is about something else")
    };
    assert!(matches!(refused(&other, &program, &input), CertificateError::OtherProcessor(_)));
    assert_eq!(refused(&public, &program[1..], &input), CertificateError::OtherProgram);
    assert_eq!(refused(&public, &program, &[3, 4, 6]), CertificateError::OtherInput);
    // Under the other processor's name it is not its signature.
    let mut renamed = bytes.clone();
    renamed[8..40].copy_from_slice(&other.fingerprint().0);
    let renamed = Certificate::from_bytes(&renamed).expect("well-formed");
    assert_eq!(renamed.verify(&other, &program, &input), Err(CertificateError::WrongSignature));
}
