//! Sealed programs from outside: made by a vendor, run on one processor, refused on another.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{Folder, casemate, code, stderr, stdout};

const SCRIPT: &str = "#!/bin/sh\necho \"sealed: $*\"\nexit 7\n";

/// A folder with two processors' keys and a script sealed for the first.
fn vendor(name: &str) -> Folder {
    let folder = Folder::new(name);
    for key in ["one", "two"] {
        let made = casemate(&["processor-key", "--out", &folder.arg(key)]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
        assert!(stdout(&made).starts_with("processor "), "{}", stdout(&made));
    }
    fs::write(folder.path("script"), SCRIPT).expect("a script");
    seal(&folder, &folder.arg("script"), "image");
    folder
}

fn seal(folder: &Folder, program: &str, image: &str) {
    let public = folder.arg("one.pub");
    let sealed = casemate(&["seal-image", "--for", &public, "--out", &folder.arg(image), program]);
    assert_eq!(code(&sealed), 0, "{}", stderr(&sealed));
}

#[test]
fn a_script_runs_with_its_arguments_and_its_own_code() {
    let folder = vendor("distribution-script");
    let ran = casemate(&[
        "open-image",
        "--key",
        &folder.arg("one"),
        &folder.arg("image"),
        "--",
        "a",
        "--key",
        "b c",
    ]);
    assert_eq!(stdout(&ran), "sealed: a --key b c\n", "{}", stderr(&ran));
    assert_eq!(code(&ran), 7);
    let image = fs::read(folder.path("image")).expect("the image");
    assert!(!image.windows(8).any(|window| SCRIPT.as_bytes().starts_with(window)));
}

#[test]
fn an_executable_runs_and_comes_out_unchanged() {
    let folder = vendor("distribution-executable");
    seal(&folder, "/bin/echo", "echo");
    let key = folder.arg("one");
    let ran = casemate(&["open-image", "--key", &key, &folder.arg("echo"), "--", "from", "memory"]);
    assert_eq!((code(&ran), stdout(&ran)), (0, "from memory\n".to_owned()), "{}", stderr(&ran));
    let out = folder.arg("out");
    let written = casemate(&["open-image", "--key", &key, "--out", &out, &folder.arg("echo")]);
    assert_eq!(code(&written), 0, "{}", stderr(&written));
    assert!(fs::read(&out).expect("the program") == fs::read("/bin/echo").expect("the original"));
    assert_eq!(fs::metadata(&out).expect("the program").permissions().mode() & 0o777, 0o700);
}

/// OTP/SNC, section 2.1.
#[test]
fn the_other_processor_refuses() {
    let folder = vendor("distribution-other");
    let ran = casemate(&["open-image", "--key", &folder.arg("two"), &folder.arg("image")]);
    assert_eq!(code(&ran), 123, "{}", stderr(&ran));
    assert!(stderr(&ran).contains("another processor") && ran.stdout.is_empty());
}

#[test]
fn a_changed_image_is_never_used() {
    let folder = vendor("distribution-changed");
    let image = fs::read(folder.path("image")).expect("the image");
    let mut cases = vec![("cut", image[..image.len() - 1].to_vec())];
    for (what, at) in [("length", 40), ("secret", 60), ("key", 1150), ("program", 1200)] {
        let mut changed = image.clone();
        changed[at] ^= 1;
        cases.push((what, changed));
    }
    for (what, changed) in cases {
        fs::write(folder.path("changed"), changed).expect("a changed image");
        let out = folder.arg("out");
        let key = folder.arg("one");
        for action in [&["--out", &out][..], &[]] {
            let arguments = [&["open-image", "--key", &key][..], action, &[&folder.arg("changed")]];
            let ran = casemate(&arguments.concat());
            assert_eq!(code(&ran), 120, "{what}: {}", stderr(&ran));
            assert!(ran.stdout.is_empty() && !folder.path("out").exists(), "{what}");
        }
    }
}

#[test]
fn private_keys_are_private_and_nothing_is_replaced() {
    let folder = vendor("distribution-keys");
    let mode =
        |name: &str| fs::metadata(folder.path(name)).expect("a key").permissions().mode() & 0o777;
    assert_eq!(mode("one"), 0o600);
    let before = fs::read(folder.path("one")).expect("a key");
    let again = casemate(&["processor-key", "--out", &folder.arg("one")]);
    assert_eq!(code(&again), 125, "{}", stderr(&again));
    assert!(stderr(&again).contains("exists already"));
    assert!(fs::read(folder.path("one")).expect("a key") == before);
    // A public key in the way takes the private one back.
    fs::write(folder.path("three.pub"), "mine").expect("a file");
    assert_eq!(code(&casemate(&["processor-key", "--out", &folder.arg("three")])), 125);
    assert!(!folder.path("three").exists());
    let public = folder.arg("one.pub");
    let sealed = casemate(&[
        "seal-image",
        "--for",
        &public,
        "--out",
        &folder.arg("image"),
        &folder.arg("script"),
    ]);
    assert_eq!(code(&sealed), 125, "{}", stderr(&sealed));
}

#[test]
fn wrong_files_get_one_sentence() {
    let folder = vendor("distribution-wrong");
    let [private, public, image] = ["one", "one.pub", "image"].map(|name| folder.arg(name));
    let out = folder.arg("out");
    let cases: [&[&str]; 6] = [
        &["open-image", "--key", &public, &image],
        &["open-image", "--key", &image, &image],
        &["open-image", "--key", &private, &private],
        &["open-image", "--key", "/nonexistent", &image],
        &["seal-image", "--for", &private, "--out", &out, &image],
        &["seal-image", "--for", &public, "--out", &out, "/nonexistent"],
    ];
    for case in cases {
        let ran = casemate(case);
        assert_eq!(code(&ran), 125, "{case:?}: {}", stderr(&ran));
        assert_eq!(stderr(&ran).lines().count(), 1, "{case:?}: {}", stderr(&ran));
    }
    fs::write(folder.path("noise"), [0xa5; 100]).expect("no program");
    seal(&folder, &folder.arg("noise"), "noise-image");
    let ran = casemate(&["open-image", "--key", &private, &folder.arg("noise-image")]);
    assert_eq!(code(&ran), 126, "{}", stderr(&ran));
}
