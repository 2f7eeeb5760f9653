//! `setup` and `setup --undo` on a system of the test's own: apply, apply again, undo exactly.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

use common::{Folder, code, copy, root, stderr, stdout};

struct System {
    folder: Folder,
}

impl System {
    fn new() -> Option<Self> {
        if !root() {
            eprintln!("skipped: setup needs root");
            return None;
        }
        let folder = Folder::new("setup");
        for name in ["etc/udev/rules.d", "dev"] {
            fs::create_dir_all(folder.path(name)).unwrap();
        }
        fs::write(folder.path("etc/group"), "root:x:0:\nusers:x:100:\n").unwrap();
        fs::write(folder.path("etc/gshadow"), "root:*::\nusers:*::\n").unwrap();
        fs::write(
            folder.path("etc/passwd"),
            "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\n",
        )
        .unwrap();
        fs::write(folder.path("etc/shadow"), "root:*:1::::::\nann:*:1::::::\n").unwrap();
        fs::write(folder.path("dev/userfaultfd"), "").unwrap();
        chown(folder.path("dev/userfaultfd"), Some(0), Some(0)).unwrap();
        fs::set_permissions(folder.path("dev/userfaultfd"), fs::Permissions::from_mode(0o600))
            .unwrap();
        copy(env!("CARGO_BIN_EXE_casemate"), &folder.path("casemate"));
        Some(System { folder })
    }

    fn setup(&self, arguments: &[&str]) -> Output {
        let output = Command::new(self.folder.path("casemate"))
            .args(["setup", "--root"])
            .arg(&self.folder.0)
            .args(arguments)
            .env_remove("SUDO_USER")
            .output()
            .unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        output
    }

    fn capability(&self) -> Option<Vec<u8>> {
        let mut bytes = [0_u8; 64];
        let path = self.folder.path("casemate");
        let length = rustix::fs::getxattr(path, "security.capability", &mut bytes).ok()?;
        Some(bytes[..length].to_vec())
    }

    /// Everything that setup may touch, as text.
    fn state(&self) -> String {
        let device = fs::metadata(self.folder.path("dev/userfaultfd")).unwrap();
        let mut text = format!("{:o} {} {}\n", device.mode(), device.uid(), device.gid());
        text += &format!("{:?}\n", self.capability());
        for name in ["etc/group", "etc/gshadow"] {
            text += &fs::read_to_string(self.folder.path(name)).unwrap();
        }
        let mut names = Vec::new();
        list(&self.folder.0, &mut names);
        // The shadow tools keep a copy of what they change.
        names.retain(|name| !name.ends_with('-') && !name.contains(".lock"));
        names.sort();
        text + &names.join("\n")
    }
}

fn list(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.display().to_string());
        if path.is_dir() {
            list(&path, names);
        }
    }
}

#[test]
fn apply_apply_again_and_undo() {
    let Some(system) = System::new() else { return };
    let before = system.state();

    let dry = system.setup(&["--dry-run", "--user", "ann"]);
    assert!(stdout(&dry).contains("create the system group casemate"), "{}", stdout(&dry));
    assert_eq!(system.state(), before, "a dry run changed something");

    system.setup(&["--user", "ann"]);
    // cap_dac_read_search,cap_sys_ptrace=p: revision 2, bits 2 and 19, and no effective flag.
    let mut expected = vec![0; 20];
    expected[3] = 2;
    expected[4] = 4;
    expected[6] = 8;
    assert_eq!(system.capability(), Some(expected));
    let group = fs::read_to_string(system.folder.path("etc/group")).unwrap();
    let line = group.lines().find(|line| line.starts_with("casemate:")).unwrap();
    assert!(line.ends_with(":ann"), "{line}");
    let gid: u32 = line.split(':').nth(2).unwrap().parse().unwrap();
    let device = fs::metadata(system.folder.path("dev/userfaultfd")).unwrap();
    assert_eq!((device.gid(), device.mode() & 0o7777), (gid, 0o660));
    let rule =
        fs::read_to_string(system.folder.path("etc/udev/rules.d/60-casemate.rules")).unwrap();
    assert!(rule.contains(r#"KERNEL=="userfaultfd", GROUP="casemate", MODE="0660""#));

    let applied = system.state();
    let again = system.setup(&["--user", "ann"]);
    assert!(stdout(&again).contains("Nothing to do"), "{}", stdout(&again));
    assert_eq!(system.state(), applied);

    system.setup(&["--undo"]);
    assert_eq!(strip(&system.state()), strip(&before));
    let nothing = system.setup(&["--undo"]);
    assert!(stdout(&nothing).contains("Nothing to do"), "{}", stdout(&nothing));
}

/// The folder of the record may leave its parents behind.
fn strip(state: &str) -> String {
    state.lines().filter(|line| !line.ends_with("/var") && !line.ends_with("/var/lib")).collect()
}

#[test]
fn what_was_there_before_comes_back() {
    let Some(system) = System::new() else { return };
    let rule = system.folder.path("etc/udev/rules.d/60-casemate.rules");
    fs::write(&rule, "# mine\n").unwrap();
    let group = system.folder.path("etc/group");
    let mut text = fs::read_to_string(&group).unwrap();
    text += "casemate:x:777:\n";
    fs::write(&group, &text).unwrap();
    let device = system.folder.path("dev/userfaultfd");
    chown(&device, Some(0), Some(100)).unwrap();
    fs::set_permissions(&device, fs::Permissions::from_mode(0o640)).unwrap();

    system.setup(&[]);
    assert_eq!(fs::metadata(&device).unwrap().gid(), 777);
    system.setup(&["--undo"]);

    assert_eq!(fs::read_to_string(&rule).unwrap(), "# mine\n");
    assert_eq!(fs::read_to_string(&group).unwrap(), text);
    let metadata = fs::metadata(&device).unwrap();
    assert_eq!((metadata.gid(), metadata.mode() & 0o7777), (100, 0o640));
    assert_eq!(system.capability(), None);
}

#[test]
fn json_says_what_was_done() {
    let Some(system) = System::new() else { return };
    let output = system.setup(&["--json", "--dry-run"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["dry_run"], true);
    assert_eq!(report["done"].as_array().unwrap().len(), 4);
}

#[test]
fn a_user_that_there_is_not_is_refused_before_anything_is_done() {
    let folder = Folder::new("setup-user");
    fs::create_dir_all(folder.path("etc")).unwrap();
    fs::write(folder.path("etc/group"), "root:x:0:\n").unwrap();
    fs::write(folder.path("etc/passwd"), "root:x:0:0::/:/bin/sh\nnobody:x:9:9::/:/bin/sh\n")
        .unwrap();
    let root = folder.0.display().to_string();
    for (user, words) in
        [("nobdy", "there is no user nobdy (did you mean nobody?);"), ("-x", "is no user name")]
    {
        let user = format!("--user={user}");
        let output = common::casemate(&["setup", "--dry-run", "--root", &root, &user]);
        assert_eq!(code(&output), 125, "{}", stderr(&output));
        assert!(stderr(&output).contains(words) && output.stdout.is_empty(), "{}", stderr(&output));
    }
}
