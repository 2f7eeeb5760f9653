//! Starts a program under a tracer, with a pipe from the tracer to us.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;

use super::lackey::Lackey;
use super::tracer::{Tracer, Which};
use super::wire::Wire;
use super::{Options, Stream};
use crate::trace::TraceError;

pub(super) const QEMU: &str = "qemu-x86_64";
pub(super) const VALGRIND: &str = "valgrind";

/// Bytes that the pipe holds, if the system lets us: fewer switches between the two processes.
const PIPE_BYTES: usize = 1 << 20;
/// `e_machine` of x86-64.
const EM_X86_64: [u8; 2] = [62, 0];

/// The program's file, as a shell would find it.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, TraceError> {
    let refuse = |what| Err(TraceError::Recorder(format!("{}: {what}", name.display())));
    let path = if name.as_encoded_bytes().contains(&b'/') {
        PathBuf::from(name)
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
        match paths.find(|path| path.is_file()) {
            Some(path) => path,
            None => return refuse("no such program in $PATH; name its file"),
        }
    };
    let mut head = Vec::new();
    match File::open(&path).and_then(|file| file.take(20).read_to_end(&mut head)) {
        Err(error) => refuse(&format!("the program cannot be read ({error})")),
        Ok(_) if head.starts_with(b"#!") => {
            refuse("a script; record its interpreter, with the script as first argument")
        }
        Ok(_) if !head.starts_with(b"\x7fELF\x02\x01") || head.get(18..20) != Some(&EM_X86_64) => {
            refuse("no 64-bit x86 program, and no other can be recorded")
        }
        Ok(_) => Ok(path),
    }
}

/// Whether QEMU starts with this image of our plugin, and the plugin speaks.
pub(super) fn qemu_takes(image: &[u8]) -> bool {
    let Some(program) = ["/bin/true", "/usr/bin/true"].into_iter().find(|p| Path::new(p).exists())
    else {
        return false;
    };
    let asked = || -> io::Result<bool> {
        let mut command = Command::new(QEMU);
        let (mut pipe, kept) = with_plugin(&mut command, image, u64::MAX, false)?;
        command.arg(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        drop((kept, command));
        let mut said = Vec::new();
        pipe.read_to_end(&mut said)?;
        Ok(child.wait()?.success() && said.len() > 8)
    };
    asked().unwrap_or(false)
}

/// What the child inherits: to be dropped once it runs, or the pipe has no end.
struct Inherited {
    _pipe: PipeWriter,
    _image: Option<OwnedFd>,
}

/// A pipe whose writing end is inherited.
fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    // Smaller is slower, not wrong.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
    rustix::io::fcntl_setfd(&writer, FdFlags::empty())?;
    Ok((reader, writer))
}

/// Gives QEMU the plugin: as a file without a name, so that nothing has to be installed or removed.
fn with_plugin(
    command: &mut Command,
    image: &[u8],
    skip: u64,
    values: bool,
) -> io::Result<(PipeReader, Inherited)> {
    let (reader, writer) = pipe()?;
    let file = rustix::fs::memfd_create("casemate_trace.so", MemfdFlags::empty())?;
    let mut file = File::from(file);
    file.write_all(image)?;
    let (image, pipe) = (file.as_fd().as_raw_fd(), writer.as_raw_fd());
    let values = if values { "on" } else { "off" };
    command.arg("-plugin").arg(format!(
        "/proc/self/fd/{image},pipe={pipe},image={image},skip={skip},values={values}"
    ));
    Ok((reader, Inherited { _pipe: writer, _image: Some(file.into()) }))
}

/// Starts `path` with the arguments of `options`.
pub(super) fn start(
    tracer: &Tracer,
    path: &Path,
    options: &Options,
) -> Result<(Child, Box<dyn Stream>), TraceError> {
    let name = options.command.first().map_or(path.as_os_str(), |name| name.as_os_str());
    let arguments = options.command.iter().skip(1);
    match tracer.which {
        Which::Qemu => {
            let mut command = Command::new(QEMU);
            let (reader, kept) =
                with_plugin(&mut command, tracer.image, options.skip, options.values)?;
            let program = command.arg("-0").arg(name).arg(path).args(arguments).spawn()?;
            drop(kept);
            Ok((program, Box::new(Wire::new(reader, options.skip))))
        }
        Which::Valgrind => {
            let (reader, writer) = pipe()?;
            let mut command = Command::new(VALGRIND);
            command.args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"]);
            command.arg(format!("--log-fd={}", writer.as_raw_fd()));
            let program = command.arg("--").arg(path).args(arguments).spawn()?;
            drop(Inherited { _pipe: writer, _image: None });
            Ok((program, Box::new(Lackey::new(reader, options.skip))))
        }
    }
}
