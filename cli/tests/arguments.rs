//! Wrong arguments get one clear sentence and code 125; help, man page and completions come out.

mod common;

use common::{casemate, code, stderr, stdout};

#[test]
fn usage_errors_end_with_125_and_no_panic() {
    let cases: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["run"],
        &["run", "--clear"],
        &["run", "--clear", "12Q", "--", "true"],
        &["run", "--clear", "", "--", "true"],
        &["run", "--clear=-1", "--", "true"],
        &["run", "--clear", "0%", "--", "true"],
        &["run", "--clear", "101%", "--", "true"],
        &["run", "--clear", "1K", "--", "true"],
        &["run", "--crypt-limit", "99999999999999999999", "--", "true"],
        &["run", "--node-cache", "1K", "--", "true"],
        &["run", "--node-cache", "2G", "--", "true"],
        &["run", "--on-violation", "ignore", "--", "true"],
        &["run", "--null-cipher", "--", "true"],
        &["run", ""],
        &["attack", "--pid", "0", "--kind", "flip"],
        &["attack", "--pid", "-1", "--kind", "flip"],
        &["attack", "--pid", "1", "--kind", "smile"],
        &["attack", "--kind", "flip"],
        &["bench"],
        &["bench", "pager", "--runs", "0"],
        &["bench", "pager", "--clear", "0"],
        &["bench", "pager", "--clear", "1M"],
        &["bench", "pager", "--clear", "16000P"],
        &["bench", "memeater", "--clear", "1M"],
        &["bench", "memeater", "--mode", "spiral"],
        &["bench", "memeater", "--runs", "0"],
        &["bench", "memeater", "--pages", "8192:40960:0"],
        &["bench", "memeater", "--pages", "40960:8192:8192"],
        &["bench", "memeater", "--pages", "1:65:1"],
        &["bench", "memeater", "--pages", "1:18446744073709551615:18446744073709551614"],
        &["bench", "schemes", "--runs", "0"],
        &["completions", "csh"],
        &["setup", "--user"],
        &["doctor", "--json=/nonexistent/folder/x", "surplus"],
    ];
    for case in cases {
        let output = casemate(case);
        assert_eq!(code(&output), 125, "{case:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty(), "{case:?} says nothing");
        assert!(!stderr(&output).contains("panicked"), "{case:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{case:?} writes to stdout");
    }
}

#[test]
fn every_command_has_help_and_run_documents_the_exit_codes() {
    for command in ["run", "doctor", "setup", "attack", "bench", "man", "completions"] {
        let output = casemate(&[command, "--help"]);
        assert_eq!(code(&output), 0);
        assert!(stdout(&output).contains("Usage:"), "{command}");
        assert!(stdout(&casemate(&["help"])).contains(command), "{command} is not in the help");
    }
    let help = stdout(&casemate(&["run", "--help"]));
    for word in ["120", "121", "122", "123", "125", "126", "127", "--clear", "--swap", "--json"] {
        assert!(help.contains(word), "{word} is missing");
    }
}

#[test]
fn the_programs_under_measurement_are_not_advertised() {
    for program in ["bench-load", "bench-memeater"] {
        assert!(!stdout(&casemate(&["help"])).contains(program));
        assert!(!stdout(&casemate(&["man"])).contains(program));
    }
}

#[test]
fn every_command_has_a_manual_page_with_its_flags_and_examples() {
    let page = stdout(&casemate(&["man"]));
    assert!(page.contains(".TH casemate 1"), "{page}");
    for word in ["casemate\\-run(1)", "casemate\\-doctor(1)", "casemate\\-attack(1)"] {
        assert!(page.contains(word), "{word} is missing");
    }
    let page = stdout(&casemate(&["man", "run"]));
    for word in [".TH casemate-run 1", "crypt\\-limit", "on\\-violation", ".SH EXAMPLES", "120"] {
        assert!(page.contains(word), "{word} is missing in {page}");
    }
    assert!(page.contains(".SH \"EXIT STATUS\"\n.nf\n"), "{page}");
    assert!(page.contains("\n  127    the command was not found\n"), "lines are filled: {page}");
    for command in [&["man"][..], &["man", "open-image"], &["man", "certify"]] {
        let page = stdout(&casemate(command));
        assert!(page.contains(".SH \"EXIT STATUS\"\n.nf\n") && !page.contains("EXTRA"), "{page}");
    }
    let page = stdout(&casemate(&["man", "dram"]));
    assert!(page.contains(".SH \"NOTES\"\n.nf\n") && !page.contains("EXTRA"), "{page}");
    assert!(stdout(&casemate(&["man", "trace", "record"])).contains("no\\-values"));
    let page = stdout(&casemate(&["man", "bench", "pager"]));
    for name in ["bench pager", "bench-pager", "casemate-bench-pager"] {
        assert_eq!(stdout(&casemate(&["man", name])), page, "{name}");
    }
    assert_eq!(stdout(&casemate(&["man", "casemate"])), stdout(&casemate(&["man"])));
    let version = concat!("\"casemate ", env!("CARGO_PKG_VERSION"), "\"");
    for command in [&["man"][..], &["man", "bench", "pager"]] {
        let page = stdout(&casemate(command));
        let title = page.lines().find(|line| line.starts_with(".TH ")).expect("a title");
        assert!(title.contains(version), "{title}");
    }
    let unknown = casemate(&["man", "trace", "recrod"]);
    assert_eq!(code(&unknown), 125);
    assert!(stderr(&unknown).contains("did you mean record?"), "{}", stderr(&unknown));

    let folder = common::Folder::new("man-pages");
    let out = folder.arg("man1");
    assert_eq!(code(&casemate(&["man", "-o", &out])), 0);
    for file in ["casemate.1", "casemate-run.1", "casemate-trace-record.1"] {
        let page = std::fs::read_to_string(folder.path("man1").join(file)).expect("a page");
        assert!(page.contains(".SH EXAMPLES") && page.contains(".SH SYNOPSIS"), "{file}");
    }
    assert!(!folder.path("man1/casemate-bench-load.1").exists());
}

/// `docs/commands.md` has every command's usage and flags as `--help` has them.
#[test]
fn the_document_of_commands_is_what_the_help_says() {
    let folder = common::Folder::new("command-tables");
    let copy = folder.path("commands.md");
    let document = include_str!("../../docs/commands.md");
    std::fs::write(&copy, document).expect("a copy");
    let output = casemate(&["command-tables", &folder.arg("commands.md")]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let fresh = std::fs::read_to_string(&copy).expect("the copy");
    assert!(fresh.contains("### casemate trace misses\n") && fresh.contains("`--l1d "), "{fresh}");
    let stale = document.lines().zip(fresh.lines()).find(|(is, should)| is != should);
    assert_eq!(stale, None, "docs/commands.md is stale: run `cargo xtask tables`");
    assert_eq!(document, fresh, "docs/commands.md is stale: run `cargo xtask tables`");
    assert!(!stdout(&casemate(&["help"])).contains("command-tables"));

    std::fs::write(&copy, "no markers").expect("a copy");
    let refused = casemate(&["command-tables", &folder.arg("commands.md")]);
    assert_ne!(code(&refused), 0);
    assert!(stderr(&refused).contains("no markers for COMMANDS"), "{}", stderr(&refused));
}

#[test]
fn completions_come_out_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = casemate(&["completions", shell]);
        assert_eq!(code(&output), 0);
        assert!(stdout(&output).contains("crypt-limit"), "{shell}");
    }
}

#[test]
fn a_reader_who_goes_away_is_no_error() {
    let script = format!(
        "{} man | head -n 1 > /dev/null; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_casemate")
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(stdout(&output).trim(), "0", "{}", stderr(&output));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for words in [&["--help"][..], &["--version"], &["help", "run"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_casemate"));
        let output = command.args(words).stdout(full).output().expect("casemate starts");
        assert_eq!(code(&output), 1, "{words:?}");
        assert!(stderr(&output).contains("cannot write to standard output"), "{words:?}");
    }
}

#[test]
fn an_argument_that_is_no_text_or_below_zero_is_told_as_such() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_casemate"));
    command.args(["sim", "--preset"]).arg(std::ffi::OsStr::from_bytes(b"a\xff"));
    let output = command.output().unwrap();
    assert_eq!(code(&output), 125);
    assert!(stderr(&output).contains("argument 3, \"a\\xFF\", has to be"), "{}", stderr(&output));
    for words in [&["sim", "--seed", "-1"][..], &["trace", "head", "-n", "-1", "x"]] {
        let output = casemate(words);
        assert_eq!(code(&output), 125);
        let said = stderr(&output);
        assert!(said.contains("-1") && !said.contains("tip:"), "{said}");
    }
    let folder = casemate(&["man", "-o", "/dev/null"]);
    assert_eq!(code(&folder), 1);
    assert!(stderr(&folder).contains("this is no folder"), "{}", stderr(&folder));
    let both = stderr(&casemate(&["exposure", "--csv", "-", "--json"]));
    assert!(both.contains("--csv -"), "{both}");
}
