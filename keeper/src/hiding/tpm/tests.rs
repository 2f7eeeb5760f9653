//! What a channel may bring, without a TPM.

use super::channel::Channel;
use super::wire::{self, Code, Command};
use super::{Hideaway, StorageKey, Tpm, TpmError};
use crate::lock::Hex;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// A channel, and what is at its other end.
fn pair() -> (Channel, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("two sockets");
    ours.set_nonblocking(true).expect("a socket");
    (Channel::new(File::from(OwnedFd::from(ours))), theirs)
}

/// A channel over which these bytes come, and no more.
fn bringing(bytes: &[u8]) -> (Channel, UnixStream) {
    let (channel, mut theirs) = pair();
    theirs.write_all(bytes).expect("there is room");
    theirs.shutdown(std::net::Shutdown::Write).expect("a socket");
    (channel, theirs)
}

/// A response with a header that fits.
fn with_header(tag: u16, code: u32, body: &[u8]) -> Vec<u8> {
    let size = (wire::HEADER_BYTES + body.len()) as u32;
    [&tag.to_be_bytes(), size.to_be_bytes().as_slice(), &code.to_be_bytes(), body].concat()
}

/// A TPM whose key is the curve's base point (SP 800-186, 3.2.1.3): one that a session can use.
fn tpm(channel: Channel, memory: Vec<u8>) -> Tpm {
    let x = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296";
    let y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    let number = |hex| Hex::<32>::parse(hex).expect("digits").0;
    Tpm { channel, key: StorageKey { handle: 0x8000_0000, x: number(x), y: number(y) }, memory }
}

fn flush() -> Command<'static> {
    Command { code: Code::FlushContext, handles: &[1], parameters: Vec::new() }
}

#[test]
fn a_command_and_its_response_are_laid_out_as_the_specification_says() {
    let (mut channel, mut theirs) = bringing(&[0x80, 1, 0, 0, 0, 10, 0, 0, 0, 0]);
    let response = channel.exchange(&flush(), Some(&[7])).expect("a response");
    assert_eq!(wire::response(Code::FlushContext, false, &response).expect("one").handle, 0);
    let mut sent = [0; 19];
    theirs.read_exact(&mut sent).expect("a command");
    let expected = [0x80, 2, 0, 0, 0, 19, 0, 0, 1, 0x65, 0, 0, 0, 1, 0, 0, 0, 1, 7];
    assert_eq!(sent, expected);
}

#[test]
fn a_tpm_that_says_nothing_is_an_error_within_the_time_limit() {
    // Nothing, and a response that does not go on.
    for bytes in [&[][..], &[0x80, 1, 0, 0, 0, 20, 0, 0, 0, 0]] {
        let (channel, mut theirs) = pair();
        theirs.write_all(bytes).expect("there is room");
        let limit = Duration::from_millis(100);
        let mut channel = channel.with_time_limit(limit);
        let began = Instant::now();
        let error = channel.exchange(&flush(), None).expect_err("nothing comes");
        assert!(matches!(error, TpmError::NoAnswer(_)), "{error}");
        assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        // What comes now would be taken for the response to another command.
        let error = channel.exchange(&flush(), None).expect_err("it is not used any more");
        assert!(matches!(error, TpmError::GivenUp), "{error}");
    }
}

#[test]
fn a_busy_tpm_is_asked_again() {
    let (mut channel, mut theirs) = pair();
    let answering = thread::spawn(move || {
        let mut commands = 0;
        for code in [0x922, 0x90a, 0x908, 0] {
            theirs.read_exact(&mut [0; 14]).expect("a command");
            commands += 1;
            theirs.write_all(&with_header(0x8001, code, &[])).expect("it is read");
        }
        commands
    });
    let response = channel.exchange(&flush(), None).expect("a response in the end");
    wire::response(Code::FlushContext, false, &response).expect("that it was done");
    assert_eq!(answering.join().expect("no panic"), 4);
}

#[test]
fn a_key_that_is_no_point_of_the_curve_is_an_error() {
    let (channel, _end) = bringing(&[]);
    let mut tpm = tpm(channel, Vec::new());
    tpm.key.y[31] ^= 1;
    let error = tpm.hide(&[1; 64]).expect_err("no such point");
    assert!(error.to_string().contains("could not be made"), "{error}");
    tpm.key.y[31] ^= 1;
    // Now a session is begun, and gets no answer.
    let error = tpm.hide(&[1; 64]).expect_err("nothing comes");
    assert!(error.to_string().contains("closed"), "{error}");
}

#[test]
fn a_refusal_is_told_in_words() {
    let refused = |code| {
        let bytes = with_header(0x8001, code, &[]);
        wire::response(Code::Unseal, true, &bytes).expect_err("a refusal").to_string()
    };
    let told = "the TPM refuses TPM2_Unseal with 0x902: its memory is full";
    assert_eq!(refused(0x902), told);
    let told = "the TPM refuses TPM2_Unseal with 0x98e: an authorisation that is wrong";
    assert_eq!(refused(0x98e), told);
}

/// Starts of responses that get far: tags, response codes and handles that can be.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![Just(0x8001), Just(0x8002), any::<u16>()];
    let code = prop_oneof![4 => Just(0), 1 => any::<u32>().prop_filter("busy", |code| {
        !super::error::is_transient(*code)
    })];
    // Small numbers are sizes that fit.
    let byte = prop_oneof![Just(0), 0..40_u8, any::<u8>()];
    let laid_out =
        (tag, code, vec(byte, 0..200)).prop_map(|(tag, code, body)| with_header(tag, code, &body));
    prop_oneof![vec(any::<u8>(), 0..200), laid_out]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_an_error_and_no_panic(
        responses in vec(responses(), 1..5),
        secret in any::<[u8; 32]>(),
    ) {
        let bytes = responses.concat();
        let mut whole = [0; 64];
        whole[..32].copy_from_slice(&secret);
        // The other ends stay open: a command that is not read would be an error.
        let (channel, _end) = bringing(&bytes);
        prop_assert!(Tpm::with_channel(channel).is_err());
        let (channel, _end) = bringing(&bytes);
        prop_assert!(tpm(channel, Vec::new()).hide(&whole).is_err());
        let (channel, _end) = bringing(&bytes);
        prop_assert!(tpm(channel, vec![0; 300]).reveal(&mut whole).is_err());
    }

    #[test]
    fn a_response_in_parts_is_the_response(body in vec(any::<u8>(), 0..100), cut in 0..100_usize) {
        let whole = with_header(0x8001, 0, &body);
        let (mut channel, mut theirs) = pair();
        let cut = cut.min(whole.len());
        let rest = whole[cut..].to_vec();
        theirs.write_all(&whole[..cut]).expect("there is room");
        // The other end stays open: a command that is not read would be an error.
        let sending = thread::spawn(move || theirs.write_all(&rest).map(|()| theirs));
        let response = channel.exchange(&flush(), None);
        sending.join().expect("no panic").expect("there is room");
        prop_assert_eq!(response.expect("a response"), whole);
    }

    #[test]
    fn any_parameters_are_taken_apart_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        for code in [Code::CreatePrimary, Code::Unseal, Code::ContextSave] {
            for is_authorised in [false, true] {
                let _ = wire::response(code, is_authorised, &with_header(0x8001, 0, &bytes));
                let _ = wire::response(code, is_authorised, &with_header(0x8002, 0, &bytes));
            }
        }
        let _ = super::name_of_made(&bytes);
    }
}
