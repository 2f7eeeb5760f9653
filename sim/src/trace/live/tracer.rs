//! Which tool can trace a program here. Found out by running it: builds of the same version differ.

use std::fmt;
use std::process::{Command, Stdio};

use super::launch;
use crate::trace::TraceError;

/// The kinds of tracers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// QEMU's user mode with our plugin: fast, with values.
    Qemu,
    /// Valgrind's tool lackey: everywhere, slow, without values and threads.
    Valgrind,
}

/// A tracer that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracer {
    /// Its kind.
    pub which: Which,
    /// What it says its version is.
    pub version: String,
    /// The image of our plugin that it takes.
    pub(super) image: &'static [u8],
}

/// Our plugin, for either version of QEMU's interface (`build.rs`).
const IMAGES: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/casemate_trace_1.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/casemate_trace_2.so")),
];

impl Tracer {
    /// The fastest that works, or the one that is wanted.
    ///
    /// # Errors
    /// None works; the sentence says what to install.
    pub fn find(wanted: Option<Which>) -> Result<Self, TraceError> {
        let allowed = |which| wanted.is_none_or(|wanted| wanted == which);
        let qemu = allowed(Which::Qemu).then(Self::qemu).flatten();
        let found = qemu.or_else(|| allowed(Which::Valgrind).then(Self::valgrind).flatten());
        found.ok_or_else(|| {
            TraceError::Recorder(match wanted {
                Some(Which::Qemu) => "qemu-x86_64 is not installed, or takes no plugins; install Debian's package qemu-user (its version 7.2 takes them), or record with Valgrind".to_owned(),
                Some(Which::Valgrind) => "valgrind is not installed; install the package valgrind".to_owned(),
                None => "neither QEMU with plugins nor Valgrind works here; install the packages qemu-user or valgrind".to_owned(),
            })
        })
    }

    fn qemu() -> Option<Self> {
        let version = first_line(launch::QEMU)?;
        let image = IMAGES.into_iter().find(|image| launch::qemu_takes(image))?;
        Some(Tracer { which: Which::Qemu, version, image })
    }

    fn valgrind() -> Option<Self> {
        let version = first_line(launch::VALGRIND)?;
        Some(Tracer { which: Which::Valgrind, version, image: &[] })
    }

    /// Whether it knows values.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.which == Which::Qemu
    }
}

/// The first line that `program --version` prints.
fn first_line(program: &str) -> Option<String> {
    let asked = Command::new(program).arg("--version").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(asked.stdout).ok().filter(|_| asked.status.success())?;
    text.lines().next().map(str::to_owned)
}

impl fmt::Display for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.which {
            Which::Qemu => write!(f, "{} with Casemate's plugin", self.version),
            Which::Valgrind => write!(f, "{}, tool lackey", self.version),
        }
    }
}
