//! What `run` refuses before the keeper starts, and with which code.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use common::{Folder, casemate, code, copy, root, stderr};

fn one_sentence(text: &str) {
    assert!(text.starts_with("casemate: "), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn a_missing_command_is_127() {
    for name in ["no-such-command-anywhere", "/no/such/file", "./no-such-file", "/etc/passwd/x"] {
        let output = casemate(&["run", "--", name]);
        assert_eq!(code(&output), 127, "{name}: {}", stderr(&output));
        one_sentence(&stderr(&output));
        assert!(stderr(&output).contains(name));
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    let folder = Folder::new("noexec");
    let script = folder.path("bad-interpreter");
    fs::write(&script, "#!/no/such/interpreter -x\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["/etc/passwd", "/usr/bin", &script.display().to_string()] {
        let output = casemate(&["run", "--", name]);
        assert_eq!(code(&output), 126, "{name}: {}", stderr(&output));
        one_sentence(&stderr(&output));
    }
}

#[test]
fn a_command_in_path_that_is_not_executable_is_126() {
    let folder = Folder::new("path");
    fs::write(folder.path("tool"), "x").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["run", "--", "tool"])
        .env("PATH", &folder.0)
        .output()
        .unwrap();
    assert_eq!(code(&output), 126, "{}", stderr(&output));
}

#[test]
fn a_program_that_the_kernel_does_not_execute_is_126_and_was_not_stopped() {
    let folder = Folder::new("loader");
    let file = folder.path("no-loader");
    let mut bytes = fs::read("/bin/true").unwrap();
    let loader = b"/lib64/ld-linux-x86-64.so.2";
    let at = bytes.windows(loader.len()).position(|window| window == loader).expect("a loader");
    bytes[at + loader.len() - 1] = b'9';
    fs::write(&file, bytes).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let output = casemate(&["run", "--", &file.display().to_string()]);
    assert_eq!(code(&output), 126, "{}", stderr(&output));
    one_sentence(&stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("could not be executed") && !text.contains("stopped"), "{text}");
}

#[test]
fn a_swap_file_that_cannot_be_made_starts_nothing_and_says_so() {
    let folder = Folder::new("swap-exists");
    let file = folder.arg("swap");
    fs::write(&file, "mine").unwrap();
    let nowhere = folder.arg("no/folder");
    for (path, expected, words) in
        [(&file, 125, "exists already"), (&nowhere, 121, "never started")]
    {
        let output = casemate(&["run", "--swap", path, "--", "echo", "started"]);
        let text = stderr(&output);
        assert_eq!(code(&output), expected, "{text}");
        one_sentence(&text);
        assert!(text.contains(words) && !text.contains("stopped"), "{text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
}

#[test]
fn an_unknown_name_is_answered_by_the_nearest_one() {
    for (words, meant) in [
        (["attack", "--scheme", "aise+btm"].as_slice(), "did you mean aise+bmt?"),
        (&["attack", "--scheme", "mac", "--attack", "rollback"], "did you mean roll-back?"),
        (&["reproduce", "lhsh"], "did you mean lhash?"),
        (&["reproduce", "delta-ecc", "--figure", "table2"], "did you mean table-2?"),
    ] {
        let output = casemate(words);
        assert_eq!(code(&output), 125, "{}", stderr(&output));
        one_sentence(&stderr(&output));
        assert!(stderr(&output).contains(meant), "{}", stderr(&output));
    }
}

#[test]
fn a_flag_that_would_do_nothing_is_refused() {
    let folder = Folder::new("nothing");
    let (loads, own, out) = (folder.arg("t.ramulator-ls"), folder.arg("t"), folder.arg("out"));
    fs::write(&loads, "LD 0x40\n".repeat(50)).unwrap();
    assert_eq!(code(&casemate(&["trace", "convert", &loads, "-o", &own])), 0);
    let misses = |set| ["trace", "misses", &own, "-o", &out, "--set", set];
    let of_run = ["attack", "--scheme", "mac", "--kind", "flip"];
    let sim = ["sim", "--trace", &own];
    let twice = [&sim[..], &["--set", "l2.ways=4", "--set", "l2.ways=8"]].concat();
    let misses_twice = [&misses("l2.ways=4")[..], &["--set", "l2.ways=8"]].concat();
    let to_a_file = [&sim[..], &["-o", &own]].concat();
    for (arguments, expected, words) in [
        (&of_run[..], 125, "--kind"),
        (&["attack", "--attack", "flip-data", "--kind", "flip"], 125, "--kind"),
        (&misses("run.length_instructions=10"), 125, "--length ends it earlier"),
        (&misses("run.scheme=mac"), 125, "without protection"),
        (&misses("protection.mac_bits=64"), 125, "without protection"),
        (&misses("run.sheme=mac"), 125, "did you mean run.scheme?"),
        (&misses("run.seed=7"), 0, ""),
        (&twice, 125, "--set l2.ways=8 says again what --set l2.ways=4 says"),
        (&misses_twice, 125, "--set l2.ways=8 says again what --set l2.ways=4 says"),
        (&to_a_file, 1, "t: this is no folder"),
        (&["trace", "caches", &own, "--warmup", "50"], 1, "nothing of its 50 instructions"),
        (&["trace", "caches", &own, "--warmup", "49"], 0, ""),
    ] {
        let output = casemate(arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_32_bit_program_is_123() {
    let folder = Folder::new("elf");
    let mut head = vec![0_u8; 128];
    head[..5].copy_from_slice(b"\x7fELF\x01");
    head[18] = 3;
    let file = folder.path("old");
    fs::write(&file, head).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let output = casemate(&["run", "--", &file.display().to_string()]);
    assert_eq!(code(&output), 123, "{}", stderr(&output));
    one_sentence(&stderr(&output));
    assert!(stderr(&output).contains("32-bit") && stderr(&output).contains("--allow-unprotected"));
    let flags = ["run", "--allow-unprotected", "--require-protected", "10", "--"];
    let output = casemate(&[&flags[..], &[&file.display().to_string()]].concat());
    assert_eq!(code(&output), 123, "{}", stderr(&output));
    one_sentence(&stderr(&output));
    assert!(stderr(&output).contains("none of the program's memory"), "{}", stderr(&output));
}

#[test]
fn a_percentage_over_100_is_125() {
    let output = casemate(&["run", "--require-protected", "101", "--", "true"]);
    assert_eq!(code(&output), 125, "{}", stderr(&output));
    assert!(stderr(&output).contains("from 0 to 100"), "{}", stderr(&output));
}

#[test]
fn programs_that_gain_privileges_are_123() {
    if !root() {
        eprintln!("skipped: needs root to make a setuid file");
        return;
    }
    let folder = Folder::new("setuid");
    for (mode, word) in [(0o4755, "setuid"), (0o2755, "setgid")] {
        let file = folder.path(word);
        copy("/bin/true", &file);
        chown(&file, Some(1), Some(1)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let output = casemate(&["run", "--", &file.display().to_string()]);
        assert_eq!(code(&output), 123, "{word}: {}", stderr(&output));
        one_sentence(&stderr(&output));
        assert!(stderr(&output).contains(word));
    }
}

#[test]
fn an_attack_on_a_run_that_is_not_attackable_is_refused() {
    let own = std::process::id().to_string();
    for kind in ["flip", "replay", "splice", "rollback", "metadata"] {
        let output = casemate(&["attack", "--pid", &own, "--kind", kind]);
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains("no attackable run with that pid"), "{}", stderr(&output));
    }
}

#[test]
fn setup_without_root_says_so() {
    let arguments = ["setup", "--json"];
    let output = if root() {
        let folder = Folder::new("noroot");
        let binary = folder.path("casemate");
        copy(env!("CARGO_BIN_EXE_casemate"), &binary);
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&binary)
            .args(arguments)
            .output()
            .unwrap()
    } else {
        casemate(&arguments)
    };
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("sudo "), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}
