//! Secrets in a simulated TPM: they come back, and only as long as they may.

mod memory;
mod swtpm;

use casemate_keeper::hiding::tpm::{Code, Tpm, TpmError};
use casemate_keeper::hiding::{Hideaway, SECRET_BYTES};
use std::io;
use std::time::{Duration, Instant};
use swtpm::{Start, Swtpm};

type Secret = [u8; SECRET_BYTES];

/// Bytes that occur nowhere else.
fn secret(number: u8) -> Secret {
    std::array::from_fn(|at| (at as u8).wrapping_mul(151) ^ number.rotate_left(3) ^ 0x5a)
}

fn open(swtpm: &Swtpm) -> Tpm {
    Tpm::open(&swtpm.path()).expect("a TPM")
}

fn hide(tpm: &mut Tpm, hidden: Secret) {
    tpm.hide(&hidden).expect("a TPM hides");
    assert_eq!(reveal(tpm).expect("what is hidden is revealed"), hidden);
}

fn reveal(tpm: &mut Tpm) -> io::Result<Secret> {
    let mut secret = [0; SECRET_BYTES];
    tpm.reveal(&mut secret).map(|()| secret)
}

fn cause(error: &io::Error) -> &TpmError {
    let inner = error.get_ref().expect("the error of a TPM");
    inner.downcast_ref().expect("the error of a TPM")
}

/// What an adversary gets who has the memory: any TPM, and what it makes of that.
fn stolen(swtpm: &Swtpm, memory: &[u8]) -> io::Result<Secret> {
    let mut tpm = open(swtpm);
    hide(&mut tpm, secret(99));
    tpm.memory().copy_from_slice(memory);
    reveal(&mut tpm)
}

#[test]
fn a_secret_comes_back_until_there_is_another() {
    let Some(swtpm) = Swtpm::new("a_secret_comes_back") else { return };
    let mut tpm = open(&swtpm);
    let error = reveal(&mut tpm).expect_err("nothing is hidden");
    assert!(matches!(cause(&error), TpmError::Empty), "{error}");
    assert!(tpm.memory().is_empty());
    hide(&mut tpm, secret(1));
    assert_eq!(reveal(&mut tpm).expect("again"), secret(1));
    let before = tpm.memory().to_vec();
    hide(&mut tpm, secret(2));
    assert_ne!(tpm.memory(), before);
    // More often than a TPM has places for objects and sessions.
    for number in 0..20 {
        hide(&mut tpm, secret(number));
    }
}

#[test]
fn memory_with_any_bit_changed_reveals_nothing() {
    let Some(swtpm) = Swtpm::new("memory_with_any_bit_changed") else { return };
    let mut tpm = open(&swtpm);
    hide(&mut tpm, secret(3));
    for bit in 0..tpm.memory().len() * 8 {
        tpm.memory()[bit / 8] ^= 1 << (bit % 8);
        let error = reveal(&mut tpm).expect_err("a bit was changed");
        assert!(matches!(cause(&error), TpmError::Refused { .. }), "bit {bit}: {error}");
        tpm.memory()[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(reveal(&mut tpm).expect("as it was"), secret(3));
}

#[test]
fn after_a_cold_boot_what_was_in_memory_opens_nothing() {
    let Some(mut swtpm) = Swtpm::new("after_a_cold_boot") else { return };
    let refused = |swtpm: &Swtpm, memory: &[u8]| {
        let error = stolen(swtpm, memory).expect_err("the TPM has started since");
        let TpmError::Refused { command, code } = cause(&error) else { panic!("{error}") };
        assert_eq!((*command, *code), (Code::ContextLoad, 0x1df), "integrity: {error}");
    };
    let memory = |swtpm: &Swtpm| {
        let mut tpm = open(swtpm);
        hide(&mut tpm, secret(4));
        let memory = tpm.memory().to_vec();
        assert_eq!(stolen(swtpm, &memory).expect("the TPM still runs"), secret(4));
        memory
    };

    // A machine that ran: TPM Reset.
    let left = memory(&swtpm);
    swtpm.stop();
    swtpm.start(Start::Clear);
    refused(&swtpm, &left);

    // A machine that was suspended, and wakes up: TPM Resume.
    let left = memory(&swtpm);
    swtpm.save_state();
    swtpm.stop();
    swtpm.start(Start::State);
    assert_eq!(stolen(&swtpm, &left).expect("the machine was asleep"), secret(4));

    // One that was suspended and loses its power: TPM Restart.
    swtpm.save_state();
    swtpm.stop();
    swtpm.start(Start::Clear);
    refused(&swtpm, &left);

    // Another machine.
    let other = Swtpm::new("another machine").expect("there is one");
    refused(&other, &memory(&swtpm));
}

#[test]
fn connections_do_not_disturb_each_other_and_leave_nothing() {
    let Some(swtpm) = Swtpm::new("connections_do_not_disturb") else { return };
    assert_eq!(swtpm.held(), 0);
    let (mut one, mut other) = (open(&swtpm), open(&swtpm));
    hide(&mut one, secret(5));
    hide(&mut other, secret(6));
    assert_eq!(reveal(&mut one).expect("its own"), secret(5));
    drop(one);
    assert_eq!(reveal(&mut other).expect("its own"), secret(6));
    other.memory()[0] ^= 1;
    reveal(&mut other).expect_err("another name");
    assert_eq!(swtpm.held(), 1, "the key of the connection");
    drop(other);
    // The bus passes the last command on after the connection has ended.
    let deadline = Instant::now() + Duration::from_secs(10);
    while swtpm.held() > 0 {
        assert!(Instant::now() < deadline, "{} are left", swtpm.held());
    }
}

#[test]
fn the_secret_is_not_seen_on_the_bus() {
    let Some(swtpm) = Swtpm::new("the_secret_is_not_seen") else { return };
    let mut tpm = open(&swtpm);
    hide(&mut tpm, secret(7));
    let seen = swtpm.seen();
    let is_seen = |part: &[u8]| seen.windows(part.len()).any(|window| window == part);
    // The bus does see what is not secret: the context when it was saved and loaded.
    assert!(is_seen(&tpm.memory()[34..]));
    for part in secret(7).chunks(8) {
        assert!(!is_seen(part), "{part:?} was on the bus");
    }
}

#[test]
fn no_changed_response_gives_a_wrong_secret() {
    let Some(swtpm) = Swtpm::new("no_changed_response") else { return };
    let (mut failed, mut passed) = (0, 0);
    // A reveal has four responses: of ContextLoad, StartAuthSession, Unseal, FlushContext.
    for (response, step) in (0..4).flat_map(|response| (0..40).map(move |step| (response, step))) {
        let mut tpm = open(&swtpm);
        hide(&mut tpm, secret(8));
        swtpm.flip(response, step * 37 + response);
        match reveal(&mut tpm) {
            Ok(revealed) => {
                passed += 1;
                assert_eq!(revealed, secret(8), "response {response}, step {step}");
            }
            Err(_) => failed += 1,
        }
        assert!(swtpm.let_be(), "response {response} did not come");
        drop(tpm);
        swtpm.forget_all();
    }
    println!("{failed} were errors, {passed} made no difference");
    assert_eq!(passed, 0);
}

#[test]
fn a_tpm_that_dies_is_an_error_at_once() {
    let Some(mut swtpm) = Swtpm::new("a_tpm_that_dies") else { return };
    let mut tpm = open(&swtpm);
    hide(&mut tpm, secret(9));
    swtpm.stop();
    let began = Instant::now();
    let error = reveal(&mut tpm).expect_err("it is dead");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    let error = tpm.hide(&secret(10)).expect_err("it is dead");
    assert!(matches!(cause(&error), TpmError::GivenUp), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());

    swtpm.start(Start::Clear);
    hide(&mut open(&swtpm), secret(11));
}

#[test]
fn a_tpm_that_was_reset_is_an_error_until_it_is_opened_again() {
    let Some(mut swtpm) = Swtpm::new("a_tpm_that_was_reset") else { return };
    let mut tpm = open(&swtpm);
    hide(&mut tpm, secret(12));
    swtpm.stop();
    swtpm.start(Start::Clear);
    let error = reveal(&mut tpm).expect_err("it was reset");
    assert!(error.to_string().contains("0x1df: what it once protected is from before a reset"));
    tpm.hide(&secret(13)).expect_err("its key is gone");
}

#[test]
fn what_is_no_tpm_is_an_error() {
    let error = |path: &str| match Tpm::open(path.as_ref()) {
        Ok(_) => panic!("{path} is no TPM"),
        Err(error) => error.to_string(),
    };
    assert!(error("/proc/version").contains("neither"));
    assert!(error("/no/tpm").contains("No such file"));
    assert!(error("/dev/null").contains("closed"));
    assert!(error("/dev/zero").contains("malformed"));
}

/// Run it alone, with `--ignored --nocapture`: medians of 50.
#[test]
#[ignore = "measures"]
fn what_hiding_and_revealing_take() {
    let Some(swtpm) = Swtpm::new("what_hiding_and_revealing_take") else { return };
    let opening = median(|| drop(open(&swtpm)));
    let mut tpm = open(&swtpm);
    let hiding = median(|| tpm.hide(&secret(14)).expect("a TPM hides"));
    let revealing = median(|| assert_eq!(reveal(&mut tpm).expect("it reveals"), secret(14)));
    println!("open {opening:?}, hide {hiding:?}, reveal {revealing:?}");
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}
