//! Kernel, processor, memory and limits.

use rustix::process::{Resource, getrlimit};

use super::{Check, read};
use crate::sys::caps::with_dac_read_search;
use crate::sys::probe;

/// UFFDIO_MOVE came with 6.8.
const LEAST_KERNEL: (u32, u32) = (6, 8);

/// The kernel, what it tells of processes, its huge pages, and the kind of processor: `run` needs
/// all of it.
pub fn kernel(checks: &mut Vec<Check>) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    checks.push(match version(&release) {
        Some(v) if v >= LEAST_KERNEL => Check::ok("kernel", format!("Linux {release}")),
        Some(_) => Check::fail(
            "kernel",
            format!("Linux {release} has no UFFDIO_MOVE"),
            "use Linux 6.8 or later (Debian 12: the kernel of bookworm-backports)",
        ),
        None => Check::warn("kernel", format!("Linux {release}"), "casemate knows 6.8 and later"),
    });
    let machine = name.machine().to_string_lossy().into_owned();
    checks.push(if machine == "x86_64" {
        Check::ok("architecture", machine)
    } else {
        Check::fail("architecture", machine, "use an x86-64 machine")
    });
    checks.push(processes());
    checks.push(huge_pages());
}

/// Whether `/proc` names processes as system calls do. One of another PID namespace names others.
fn processes() -> Check {
    const ID: &str = "proc";
    const REMEDY: &str = "mount -t proc proc /proc (unshare: --mount-proc)";
    let own = std::process::id().to_string();
    match std::fs::read_link("/proc/self") {
        Ok(number) if number.as_os_str() == own.as_str() => {
            Check::ok(ID, "/proc is of this PID namespace")
        }
        Ok(_) => Check::fail(ID, "/proc is of another PID namespace: it names no process", REMEDY),
        Err(error) => Check::fail(ID, format!("/proc does not name processes: {error}"), REMEDY),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The processor's instructions for encryption.
pub fn processor() -> Check {
    const ID: &str = "crypto";
    let info = read("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_ascii_whitespace().any(|f| f == flag);
    let found: Vec<&str> = ["aes", "pclmulqdq", "vaes", "vpclmulqdq", "avx512f"]
        .into_iter()
        .filter(|flag| has(flag))
        .collect();
    let found = found.join(" ");
    if !has("aes") || !has("pclmulqdq") {
        return Check::warn(
            ID,
            format!("no AES instructions ({found}): encryption will be slow"),
            "use a processor, or a virtual machine's CPU model, with AES-NI and PCLMULQDQ",
        );
    }
    Check::ok(ID, found)
}

/// Memory: secrets, limits.
pub fn memory(checks: &mut Vec<Check>) {
    checks.push(match probe::memfd_secret() {
        Ok(()) => Check::ok("memfd-secret", "keys stay out of the kernel's map and of dumps"),
        Err(error) => Check::warn(
            "memfd-secret",
            format!("not available ({error}): keys lie in ordinary locked memory"),
            "before 6.5, start the kernel with secretmem.enable=1; or raise ulimit -l",
        ),
    });
    checks.push(match with_dac_read_search(probe::pagemap_scan).and_then(|tried| tried) {
        Ok(()) => Check::ok("pagemap-scan", "PAGEMAP_SCAN works"),
        Err(error) => Check::warn(
            "pagemap-scan",
            format!("does not work: {error}"),
            "use Linux 6.7 or later with /proc mounted",
        ),
    });
    checks.push(limit("memlock", Resource::Memlock, 64 * 1024, "ulimit -l unlimited"));
    checks.push(limit("open-files", Resource::Nofile, 1024, "ulimit -n 4096"));
    checks.push(mappings());
    checks.push(match read("/proc/sys/vm/overcommit_memory").as_deref() {
        Some("2") => Check::warn(
            "overcommit",
            "vm.overcommit_memory=2: memory may be refused although there is some",
            "sudo sysctl -w vm.overcommit_memory=0",
        ),
        other => {
            Check::ok("overcommit", format!("vm.overcommit_memory={}", other.unwrap_or("unknown")))
        }
    });
}

fn huge_pages() -> Check {
    const ID: &str = "huge-pages";
    let Some(modes) = read("/sys/kernel/mm/transparent_hugepage/enabled") else {
        return Check::ok(ID, "this kernel has none");
    };
    let mode = modes.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned();
    let before = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false);
    let switched = rustix::thread::disable_transparent_huge_pages(true)
        .and_then(|()| rustix::thread::transparent_huge_pages_are_disabled());
    let _ = rustix::thread::disable_transparent_huge_pages(before);
    match switched {
        Ok(true) => Check::ok(ID, format!("{mode}; can be switched off for a program")),
        _ if mode == "never" => Check::ok(ID, mode),
        _ => Check::fail(
            ID,
            format!("{mode}, and cannot be switched off for a program"),
            "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

fn limit(id: &'static str, resource: Resource, least: u64, remedy: &str) -> Check {
    match getrlimit(resource).current {
        None => Check::ok(id, "unlimited"),
        Some(now) if now >= least => Check::ok(id, format!("{now}")),
        Some(now) => Check::warn(id, format!("{now} is little"), remedy),
    }
}

fn mappings() -> Check {
    const ID: &str = "max-map-count";
    let count = read("/proc/sys/vm/max_map_count").and_then(|text| text.parse::<u64>().ok());
    match count {
        Some(n) if n < 65_530 => Check::warn(
            ID,
            format!("vm.max_map_count={n} is little"),
            "sudo sysctl -w vm.max_map_count=65530",
        ),
        Some(n) => Check::ok(ID, format!("vm.max_map_count={n}")),
        None => Check::ok(ID, "unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn reads_kernel_versions() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("6.1.0-28-amd64"), Some((6, 1)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert_eq!(version("strange"), None);
    }
}
