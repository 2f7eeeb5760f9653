//! Inputs are what their size and seed say, and programs take them.

use casemate_workloads::inputs::{INPUTS, of_name};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn inputs_depend_on_size_and_seed_alone() {
    for input in &INPUTS {
        let made = (input.make)(200_000, 1);
        assert_eq!(made, (input.make)(200_000, 1), "{}", input.name);
        assert_ne!(made, (input.make)(200_000, 2), "{}", input.name);
        assert!(!(input.make)(0, 0).is_empty(), "{}", input.name);
        if !["sql", "sql-updates", "perl", "python"].contains(&input.name) {
            let length = made.len();
            assert!((100_000..400_000).contains(&length), "{}: {length}", input.name);
        }
    }
}

/// Feeds an input to a program; what it prints. `None` where the program is not here and need not
/// be.
fn fed(kind: &str, program: &str, arguments: &[&str]) -> Option<String> {
    printed(program, arguments, &made(kind))
}

fn made(kind: &str) -> Vec<u8> {
    (of_name(kind).expect("it is one of ours").make)(400_000, 1)
}

fn printed(program: &str, arguments: &[&str], fed: &[u8]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if std::env::var_os("CASEMATE_INSTALLED").is_some() => {
            panic!("{program} is not here, though packages were installed: {error}")
        }
        Err(error) => {
            eprintln!("SKIPPED: {program} is not here: {error}");
            return None;
        }
    };
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(fed).expect("the program reads");
    drop(pipe);
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// 400,000 bytes are 4,000 orders. amount = i * 104729 % 1000 counts evenly through 0..1000, so
/// that those below 100, a tenth, are deleted, but for those that the update lifted from 99 to 100.
#[test]
fn sqlite_takes_the_script() {
    let Some(printed) = fed("sql", "sqlite3", &[":memory:"]) else { return };
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 13, "{printed}");
    let left: Vec<u64> = lines[12].split('|').map(|word| word.parse().expect("a number")).collect();
    assert!((3600..=3604).contains(&left[0]), "{printed}");
}

/// 400,000 bytes are 3,636 accounts with as many payments to random ones: 1 - 1 / e of them get one
/// at least, and few of their balances are 0 again.
#[test]
fn sqlite_books_payments() {
    let Some(printed) = fed("sql-updates", "sqlite3", &[":memory:"]) else { return };
    let words: Vec<&str> =
        printed.trim().rsplit('\n').next().map_or(vec![], |l| l.split('|').collect());
    assert_eq!(words[..3], ["1", "1", "3636"], "{printed}");
    let changed: f64 = words[3].parse().expect("a number");
    assert!((changed / 3636.0 - 0.632).abs() < 0.03, "{printed}");
}

#[test]
fn povray_takes_the_scene() {
    // It does not read pipes.
    let scene = std::env::temp_dir().join(format!("casemate-scene-{}.pov", std::process::id()));
    std::fs::write(&scene, made("scene")).expect("a file for the test");
    let input = format!("+I{}", scene.display());
    let image = printed("povray", &[&input, "+W32", "+H24", "+O-", "+FP", "-D", "+WT1"], b"");
    let _ = std::fs::remove_file(&scene);
    assert!(image.is_none_or(|image| image.starts_with("P6\n")));
}

#[test]
fn python_takes_the_script() {
    let Some(printed) = fed("python", "python3", &["-"]) else { return };
    let words: Vec<i64> =
        printed.split_whitespace().map(|w| w.parse().expect("a number")).collect();
    // 1,000 accounts of 10^9 possible numbers: one or two may meet.
    assert!((998..=1000).contains(&words[0]), "{printed}");
}

#[test]
fn perl_takes_the_script() {
    let text = std::env::temp_dir().join(format!("casemate-perl-{}", std::process::id()));
    std::fs::write(&text, "bad bare bad\nface bare bad\n").expect("a file for the test");
    let printed = fed("perl", "perl", &["-", &text.display().to_string()]);
    let _ = std::fs::remove_file(&text);
    // Three words; "bad=3 bare=2 face=1" keeps its length; bare and face have an a before an e.
    assert!(printed.is_none_or(|printed| printed == "3 19 2 bad\n"));
}
