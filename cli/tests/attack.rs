//! The adversary against a keeper that the test plays: what it changes, and only that.

mod common;

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};

use common::{code, stderr, stdout};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept, bind, listen, sendmsg, socket_with,
};
use serde_json::Value;

const PAGE: usize = casemate_core::PAGE_BYTES;
const PAGES: usize = 64;

/// A store of pages; every page but the first few has content of its own.
fn store(pages: usize, empty: usize) -> File {
    let file = File::from(memfd_create("store", MemfdFlags::CLOEXEC).unwrap());
    file.set_len((pages * PAGE) as u64).unwrap();
    for page in empty..pages {
        file.write_all_at(&[page as u8 + 1; PAGE], (page * PAGE) as u64).unwrap();
    }
    file
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Plays the keeper once: offers the stores, and lets `meanwhile` run while the attack does.
fn attack(
    number: u32,
    kind: &str,
    crypt: &File,
    metadata: &File,
    meanwhile: impl FnOnce(&mut Child),
) -> Output {
    // Process ids end below this, so no keeper can have the number.
    let pid = (i32::MAX as u32) - std::process::id() * 16 - number;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap();
    let name = format!("casemate-attack-{pid}");
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    listen(&socket, 1).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["attack", "--kind", kind, "--seed", "7", "--json", "--pid", &pid.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let connection = accept(&socket).unwrap();
    hand_out(&connection, crypt, metadata);
    meanwhile(&mut child);
    let output = child.wait_with_output().unwrap();
    drop(connection);
    output
}

fn hand_out(connection: &OwnedFd, crypt: &File, metadata: &File) {
    let header = format!(
        r#"{{"page_bytes":4096,"crypt_bytes":{},"metadata_regions":[],"metadata_bytes":{},"swap_bytes":0}}"#,
        crypt.metadata().unwrap().len(),
        metadata.metadata().unwrap().len()
    );
    let files = [crypt.as_fd(), metadata.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
    let header = [IoSlice::new(header.as_bytes())];
    sendmsg(connection, &header, &mut ancillary, SendFlags::empty()).unwrap();
}

fn report(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    let report: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["seed"], 7);
    report
}

/// The bytes that differ.
fn differences(before: &[u8], after: &[u8]) -> Vec<usize> {
    (0..before.len()).filter(|i| before[*i] != after[*i]).collect()
}

#[test]
fn flip_changes_one_bit_of_a_page_with_content() {
    let (crypt, metadata) = (store(PAGES, PAGES - 1), store(4, 0));
    let (before, untouched) = (content(&crypt), content(&metadata));
    let report = report(&attack(0, "flip", &crypt, &metadata, |_| {}));
    let after = content(&crypt);
    let changed = differences(&before, &after);
    assert_eq!(changed.len(), 1);
    assert_eq!((before[changed[0]] ^ after[changed[0]]).count_ones(), 1);
    assert_eq!(changed[0] / PAGE, PAGES - 1, "an empty page was flipped");
    assert_eq!(report["changes"][0]["offset"], changed[0] as u64);
    assert_eq!(report["changes"][0]["store"], "crypt");
    assert_eq!(content(&metadata), untouched);
}

#[test]
fn splice_exchanges_two_pages() {
    let (crypt, metadata) = (store(PAGES, 0), store(4, 0));
    let before = content(&crypt);
    let report = report(&attack(1, "splice", &crypt, &metadata, |_| {}));
    let after = content(&crypt);
    let offset = |i: usize| report["changes"][i]["offset"].as_u64().unwrap() as usize;
    let (one, two) = (offset(0), offset(1));
    assert_ne!(one, two);
    assert_eq!(after[one..one + PAGE], before[two..two + PAGE]);
    assert_eq!(after[two..two + PAGE], before[one..one + PAGE]);
    assert_eq!(differences(&before, &after).len(), 2 * PAGE);
}

#[test]
fn metadata_changes_one_bit_of_the_metadata() {
    let (crypt, metadata) = (store(PAGES, 0), store(8, 4));
    let (untouched, before) = (content(&crypt), content(&metadata));
    report(&attack(2, "metadata", &crypt, &metadata, |_| {}));
    let changed = differences(&before, &content(&metadata));
    assert_eq!(changed.len(), 1);
    assert!(changed[0] >= 4 * PAGE, "an empty line was flipped");
    assert_eq!(content(&crypt), untouched);
}

/// Writes ever new content to every page until the attack has seen a change and ended. What it
/// restores may be overwritten at once, as by a real keeper, so only its report is looked at.
fn keep_writing(stores: &[(&File, usize)], attack: &mut Child) {
    let mut round = 100_u8;
    while attack.try_wait().unwrap().is_none() {
        round = if round == 250 { 100 } else { round + 1 };
        for (store, pages) in stores {
            for page in 0..*pages {
                store.write_all_at(&[round; PAGE], (page * PAGE) as u64).unwrap();
            }
        }
    }
}

#[test]
fn replay_puts_an_old_page_back() {
    let (crypt, metadata) = (store(PAGES, 0), store(4, 0));
    let report = report(&attack(3, "replay", &crypt, &metadata, |attack| {
        keep_writing(&[(&crypt, PAGES)], attack);
    }));
    assert_eq!(report["changes"].as_array().unwrap().len(), 1);
    assert_eq!(report["changes"][0]["bytes"], PAGE as u64);
}

#[test]
fn rollback_puts_data_and_metadata_back() {
    let (crypt, metadata) = (store(PAGES, 0), store(4, 0));
    let report = report(&attack(4, "rollback", &crypt, &metadata, |attack| {
        keep_writing(&[(&crypt, PAGES), (&metadata, 4)], attack);
    }));
    for store in ["crypt", "metadata"] {
        let changes = report["changes"].as_array().unwrap();
        assert!(changes.iter().any(|change| change["store"] == store), "{store}: {changes:?}");
    }
}

#[test]
fn an_attack_that_waits_ends_with_the_run() {
    let (crypt, metadata) = (store(PAGES, 0), store(4, 0));
    let pid = (i32::MAX as u32) - std::process::id() * 16 - 5;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap();
    let name = format!("casemate-attack-{pid}");
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    listen(&socket, 1).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["attack", "--kind", "rollback", "--pid", &pid.to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let connection = accept(&socket).unwrap();
    hand_out(&connection, &crypt, &metadata);
    drop(connection);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("nothing that was remembered changed"), "{}", stderr(&output));
}

#[test]
fn a_run_without_ciphertext_has_nothing_to_attack() {
    let (crypt, metadata) = (store(PAGES, PAGES), store(4, 4));
    for (number, kind) in [(6, "flip"), (7, "splice"), (8, "replay"), (9, "metadata")] {
        let output = attack(number, kind, &crypt, &metadata, |_| {});
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains("no ciphertext"), "{kind}: {}", stderr(&output));
    }
}

#[test]
fn flips_are_for_flips() {
    let refused = common::run(&["attack", "--pid", "1", "--kind", "replay", "--flips", "2"]);
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    assert!(refused.stderr.contains("--flips is for --kind flip"), "{}", refused.stderr);
    for (flag, value) in [("--scheme", "mac"), ("--attack", "spoof"), ("--rounds", "10")] {
        let refused = common::run(&["attack", flag, value, "--flips", "3"]);
        assert_eq!(refused.code, 125, "{flag}: {}", refused.stderr);
        assert!(refused.stderr.contains("--flips"), "{flag}: {}", refused.stderr);
    }
}
