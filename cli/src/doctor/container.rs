//! Whether we are inside a container, and how its user hands in what is missing.

use std::path::Path;

use super::read;

/// Where we run.
pub struct Container {
    /// The container engine, if any.
    pub engine: Option<&'static str>,
}

impl Container {
    /// Looks at the marks that engines leave.
    pub fn find() -> Self {
        let exists = |path: &str| Path::new(path).exists();
        let cgroup = read("/proc/1/cgroup").unwrap_or_default();
        let environment = read("/proc/1/environ").unwrap_or_default();
        let engine = if exists("/.dockerenv") || cgroup.contains("/docker") {
            Some("docker")
        } else if exists("/run/.containerenv") || cgroup.contains("/libpod") {
            Some("podman")
        } else if cgroup.contains("/kubepods") {
            Some("kubernetes")
        } else if cgroup.contains("/lxc") || environment.contains("container=lxc") {
            Some("lxc")
        } else if environment.contains("container=") {
            Some("other")
        } else {
            None
        };
        Container { engine }
    }

    /// How to reach userfaultfd and CAP_SYS_PTRACE from here.
    pub fn remedy(&self) -> String {
        // Where the container has both already, an ordinary user inside lacks only the setup.
        if Path::new("/dev/userfaultfd").exists() && crate::sys::caps::sys_ptrace().bounding {
            return super::privileges::setup_remedy();
        }
        match self.engine {
            Some(engine @ ("docker" | "podman")) => format!(
                "start the container with: {engine} run --device /dev/userfaultfd --cap-add \
                 SYS_PTRACE ... (and as an ordinary user inside, also: casemate setup, as root, \
                 in the image)"
            ),
            Some("kubernetes") => "give the pod capabilities: add: [SYS_PTRACE] and the device \
                                   /dev/userfaultfd (a device plugin, or privileged: true)"
                .to_owned(),
            Some("lxc") => "in the container's configuration: lxc.mount.entry = /dev/userfaultfd \
                            dev/userfaultfd none bind,create=file and keep sys_ptrace"
                .to_owned(),
            Some(_) => "give the container the device /dev/userfaultfd and the capability \
                        SYS_PTRACE"
                .to_owned(),
            None => super::privileges::setup_remedy(),
        }
    }
}
