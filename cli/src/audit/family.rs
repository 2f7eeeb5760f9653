//! The processes of a run, each address space once.

use casemate_keeper::sys::{process, procfs};
use serde::Serialize;

use crate::door;
use crate::exit_codes;
use crate::failure::Failure;

/// A run that is looked at. (The door is shut again at once: the keeper hears one caller at a
/// time.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its front process.
    pub front: u32,
    /// Its keeper.
    pub keeper: i32,
}

/// Whose an address space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The program's: of the command, or of what it started. An agent's memory is its program's.
    Program,
    /// The keeper's.
    Keeper,
    /// The front's, and the witness's in its process group.
    Front,
}

/// An address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// A process that has it.
    pub pid: i32,
    /// A thread of that process that lives.
    pub thread: i32,
    /// Whose it is.
    pub role: Role,
    /// The thread's name, as the kernel has it.
    pub name: String,
}

/// A run's address spaces: those of ours first, whose mailboxes are then not the program's.
pub struct Family {
    /// Each once.
    pub spaces: Vec<Space>,
    /// How many agents there are.
    pub agents: usize,
}

const AGENT: &str = "casemate-agent";

impl Family {
    /// Looks for the processes of a run. What starts meanwhile may be missed.
    pub fn of(run: &Run) -> Family {
        let front = i32::try_from(run.front).unwrap_or(0);
        let mut spaces: Vec<Space> = space(front, Role::Front).into_iter().collect();
        spaces.extend(space(run.keeper, Role::Keeper));
        // The witness runs what the front runs; children that the front has from before do not.
        let is_ours = |pid: &i32| *pid != run.keeper && executable(*pid) == executable(front);
        let others = procfs::children(front).into_iter().filter(is_ours);
        spaces.extend(others.filter_map(|pid| space(pid, Role::Front)));
        let below = procfs::descendants(run.keeper);
        let below = below.into_iter().filter_map(|pid| space(pid, Role::Program));
        let (agents, programs): (Vec<Space>, Vec<Space>) =
            below.partition(|space| space.name == AGENT);
        let count = agents.len();
        // An agent stands for a program only if that has ended before it.
        for space in programs.into_iter().chain(agents) {
            if !spaces.iter().any(|known| process::same_memory(known.thread, space.thread)) {
                spaces.push(space);
            }
        }
        Family { spaces, agents: count }
    }
}

fn executable(pid: i32) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// That of a process; none if it has ended.
fn space(pid: i32, role: Role) -> Option<Space> {
    let thread = procfs::living_thread(pid)?;
    let name = procfs::status_field(thread, "Name")?;
    Some(Space { pid, thread, role, name: procfs::printable(&name) })
}

/// The run of a process, if this process stands outside it and may read all of its memory.
pub fn admitted(pid: u32) -> anyhow::Result<Run> {
    // Whatever stands in the way, nothing was looked at.
    let cannot = |sentence: String| Failure::new(exit_codes::OWN_ERROR, sentence);
    let door = door::of(pid).map_err(|error| cannot(crate::failure::sentence(&error)))?;
    let run = Run { front: door.front, keeper: door.keeper };
    drop(door);
    if procfs::descendants(run.keeper).contains(&(std::process::id() as i32)) {
        return Err(cannot(format!(
            "run {} protects this very process, which would find itself; give the command from \
             outside",
            run.front
        ))
        .into());
    }
    if let Err(error) = std::fs::File::open(format!("/proc/{}/mem", run.keeper)) {
        if has_ended(&run) {
            return Err(cannot(door::ended(run.front)).into());
        }
        return Err(cannot(format!(
            "the memory of run {} and of its keeper, process {}, cannot be read ({error}): that \
             takes root or CAP_SYS_PTRACE (see sudo)",
            run.front, run.keeper
        ))
        .into());
    }
    Ok(run)
}

/// Whether the run is over: the keeper is no child of the front any more, or is one without memory.
pub fn has_ended(run: &Run) -> bool {
    let parent = procfs::state_and_parent(run.keeper).map(|(_, parent)| parent as u32);
    parent != Some(run.front) || procfs::living_thread(run.keeper).is_none()
}
