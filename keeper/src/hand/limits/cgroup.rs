//! The limit on processes of a control group.
use crate::sys::procfs;
use std::path::{Path, PathBuf};

/// Where groups are, by version 2 and with a hierarchy of their own for processes.
const ROOTS: [(&str, &str); 2] = [("", "/sys/fs/cgroup"), ("pids", "/sys/fs/cgroup/pids")];
/// An agent, and the process that begins it.
const WANTED: u64 = 2;

/// Which group of process `pid` has no room for an agent, in words; none if all have.
pub(super) fn full(pid: i32) -> Option<String> {
    let text = procfs::text(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups(&text).into_iter().find(|group| is_full(group))?;
    Some(format!("the processes of its control group: raise {}", group.join("pids.max").display()))
}

/// The groups that limit a process, from its own one up, by what the kernel says of it:
/// `NUMBER:CONTROLLERS:PATH`.
fn groups(text: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (_, root) = ROOTS.into_iter().find(|(name, _)| *name == controllers)?;
        let own = Path::new(root).join(path.trim_start_matches('/'));
        Some(own.ancestors().take_while(|at| at.starts_with(root)).map(Path::to_owned).collect())
    };
    text.lines().filter_map(of_line).flat_map(|groups: Vec<PathBuf>| groups).collect()
}

fn is_full(group: &Path) -> bool {
    let number = |name: &str| procfs::text(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let both = number("pids.max").zip(number("pids.current"));
    both.is_some_and(|(most, now)| now + WANTED > most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_group_is_in_all_groups_above_it() {
        let paths = |text: &str| -> Vec<String> {
            groups(text).iter().map(|group| group.display().to_string()).collect()
        };
        let all = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(paths("0::/a/b\n"), all);
        let of_pids = "5:cpu,cpuacct:/x\n3:pids:/c\n";
        assert_eq!(paths(of_pids), ["/sys/fs/cgroup/pids/c", "/sys/fs/cgroup/pids"]);
        assert!(paths("nonsense").is_empty());
    }

    #[test]
    fn a_group_is_full_when_no_two_more_fit() {
        let folder = std::env::temp_dir().join(format!("casemate-pids-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (most, now, expected) in [("3", "1", false), ("3", "2", true), ("max", "900", false)] {
            fs::write(folder.join("pids.max"), format!("{most}\n")).expect("a file");
            fs::write(folder.join("pids.current"), format!("{now}\n")).expect("a file");
            assert_eq!(is_full(&folder), expected, "{now} of {most}");
        }
        fs::remove_dir_all(&folder).expect("it is there");
        assert!(!is_full(&folder));
    }
}
