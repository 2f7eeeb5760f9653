//! The shape of what `doctor` says, on machines of all kinds.

mod common;

use common::{Folder, casemate, code, stdout};
use serde_json::Value;

#[test]
fn json_has_a_schema_a_verdict_and_a_remedy_for_everything_that_is_not_ok() {
    let output = casemate(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["schema"], 1);
    let works = report["works"].as_bool().unwrap();
    assert_eq!(code(&output), i32::from(!works));
    let state = report["state"].as_str().unwrap();
    assert!(["root", "user-with-setup", "user-without-setup"].contains(&state), "{state}");
    let checks = report["checks"].as_array().unwrap();
    let mut failed = false;
    for check in checks {
        let status = check["status"].as_str().unwrap();
        assert!(["ok", "warn", "fail"].contains(&status), "{check}");
        assert!(!check["found"].as_str().unwrap().is_empty(), "{check}");
        assert_eq!(check["remedy"].is_string(), status != "ok", "{check}");
        failed |= status == "fail";
    }
    assert_eq!(works, !failed);
    for id in ["kernel", "architecture", "userfaultfd", "cap-sys-ptrace", "ptrace", "memfd-secret"]
    {
        assert!(checks.iter().any(|check| check["id"] == id), "{id} is missing");
    }
}

#[test]
fn the_table_ends_with_the_verdict_and_has_no_colours_when_piped() {
    let output = casemate(&["doctor"]);
    let text = stdout(&output);
    assert!(!text.contains('\x1b'), "{text}");
    let last = text.trim_end().lines().last().unwrap();
    assert_eq!(last.contains("will work here"), code(&output) == 0, "{last}");
}

#[test]
fn json_goes_to_a_file_in_one_step() {
    let folder = Folder::new("json");
    let file = folder.arg("report.json");
    // What was there is replaced, and nothing else stays in the folder.
    std::fs::write(&file, "old").unwrap();
    let output = casemate(&["doctor", &format!("--json={file}")]);
    assert!(output.stdout.is_empty());
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn a_report_that_cannot_be_written_is_one_sentence() {
    let output = casemate(&["doctor", "--json=/no/such/folder/report.json"]);
    assert_eq!(code(&output), 1);
    let text = common::stderr(&output);
    assert!(text.contains("/no/such/folder/report.json"), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}
