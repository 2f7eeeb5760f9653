//! `casemate audit`: looks at a live run, or at an image of a machine's memory, as one who dumps
//! all of it does.
//!
//! ```text
//! family     whose memory: the front, the keeper, every address space of the program
//! pages      which pages are in RAM, and what they are (class)
//! look       their contents, once: markers and AES key schedules (search, marker, aes, swap_file)
//! watch      which pages are clear, for a time, and how long each stays so (stays)
//! report     as JSON; text for people
//! image      a file, of which nothing is known but its bytes
//! ```

mod aes;
pub mod args;
mod class;
mod family;
mod image;
mod look;
pub mod marker;
mod pages;
mod report;
mod search;
mod stays;
mod swap_file;
mod text;
mod watch;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::door;
use crate::exit_codes;
use crate::failure::Failure;
use crate::sys::signals;
use crate::{output, progress};

use args::AuditArgs;
use look::Look;
use report::Report;

/// Looks at a run, watches it if that is asked for, and says what there was.
pub fn audit(args: &AuditArgs) -> Result<u8> {
    match (&args.image, args.pid) {
        (Some(image), _) => audit_image(image, args),
        (None, Some(pid)) => audit_run(pid, args),
        (None, None) => bail!("nothing to look at: name a PID, or --image FILE"),
    }
}

/// Searches a file, and says what there was.
fn audit_image(path: &Path, args: &AuditArgs) -> Result<u8> {
    let searched = image::search(path, &args.markers);
    progress::clear();
    let image = searched?;
    match &args.json.to {
        Some(to) => output::json(to, &image.report(path, &args.markers))?,
        None => output::stdout(&image.text(path, &args.markers))?,
    }
    Ok(if image.has_marker() { exit_codes::NO } else { 0 })
}

fn audit_run(pid: u32, args: &AuditArgs) -> Result<u8> {
    if args.watch {
        signals::remember_stop().context("cannot wait for Ctrl-C")?;
    }
    let run = family::admitted(pid)?;
    progress::stage("reading the run's memory");
    let looked = look::look(&run, &args.markers);
    progress::clear();
    let look = looked?;
    if look.spaces.is_empty() || family::has_ended(&run) {
        return Err(Failure::new(exit_codes::OWN_ERROR, door::ended(run.front)).into());
    }
    let is_told_at_once = args.json.to.is_none();
    if is_told_at_once {
        output::stdout(&text::look(&run, &look, &args.markers))?;
    }
    let watched = match args.watch {
        true => Some(watch::watch(&run, args.seconds.map(Duration::from_secs))?),
        false => None,
    };
    if let Some(to) = &args.json.to {
        output::json(to, &Report::new(&run, &look, &args.markers, watched.as_ref()))?;
    } else if let Some(watched) = &watched {
        output::stdout(&text::watched(watched))?;
    }
    Ok(if look.has_found() { exit_codes::NO } else { 0 })
}

impl Look {
    /// Whether a marker was found, or a key of the run's own.
    pub fn has_found(&self) -> bool {
        self.finds.keys().any(|place| match place.what {
            search::What::Marker(_) => true,
            search::What::Schedule(_) => place.is_our_key(),
        })
    }
}
