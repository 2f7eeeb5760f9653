//! One look at all memory of a run, contents included.
//!
//! A page is read through `/proc/PID/mem` only if the kernel says that it is in RAM. One that
//! leaves between the two cannot be read either: Linux ends such a read with an error, and asks no
//! userfaultfd. So a look brings nothing into the Clear.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Result;
use casemate_core::PAGE_BYTES;
use zeroize::Zeroizing;

use super::class::{Class, Judge};
use super::family::{Family, Role, Run, Space};
use super::marker::Marker;
use super::pages::{self, Count, Mappings, Page};
use super::search::{Find, Search, What};
use super::swap_file;

/// Addresses that are kept of one group of finds.
const MOST_ADDRESSES: usize = 1000;

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What.
    pub what: What,
    /// Whose memory.
    pub role: Role,
    /// A process that has it; the keeper for the swap file.
    pub pid: i32,
    /// What memory.
    pub class: Class,
}

impl Place {
    /// A key of the keeper's, where none may be. (A program's own schedules are in its pages,
    /// wherever these are.)
    pub fn is_our_key(&self) -> bool {
        let is_programs = self.role == Role::Program && self.class != Class::Ours;
        matches!(self.what, What::Schedule(_)) && !is_programs && self.class != Class::InFlight
    }
}

/// How often something was found at a place.
#[derive(Default)]
pub struct Group {
    /// How often.
    pub count: u64,
    /// Where; of the swap file offsets. Not more than a thousand.
    pub addresses: Vec<u64>,
}

/// An address space and what is in RAM of it.
pub struct Seen {
    /// The address space.
    pub space: Space,
    /// Bytes by class; of what spaces share, what was not counted before.
    pub bytes: BTreeMap<Class, u64>,
}

/// What a look found.
#[derive(Default)]
pub struct Look {
    /// The address spaces.
    pub spaces: Vec<Seen>,
    /// Bytes by class, in all.
    pub bytes: BTreeMap<Class, u64>,
    /// How many agents there are.
    pub agents: usize,
    /// What was found, by place.
    pub finds: BTreeMap<Place, Group>,
    /// In the kernel's own swap, in bytes. It is not read.
    pub kernel_swap_bytes: u64,
    /// Bytes of the swap file that were searched, if there is one.
    pub swap_file_bytes: Option<u64>,
    /// Pages that left before they could be read.
    pub left_pages: u64,
    /// Processes that could not be read, and had not ended.
    pub unreadable: Vec<i32>,
    /// What processes share counts for each.
    pub are_frames_hidden: bool,
}

/// Looks at a run.
pub fn look(run: &Run, markers: &[Marker]) -> Result<Look> {
    let family = Family::of(run);
    let judge = judge(&family);
    let mut look = Look { agents: family.agents, ..Look::default() };
    let mut count = Count::default();
    for space in family.spaces {
        let before = count.bytes().clone();
        if !look.at(&space, &judge, markers, &mut count) {
            look.unreadable.push(space.pid);
        }
        let new = |(class, bytes): (&Class, &u64)| {
            let bytes = bytes - before.get(class).copied().unwrap_or(0);
            (bytes > 0).then_some((*class, bytes))
        };
        let bytes = count.bytes().iter().filter_map(new).collect();
        look.spaces.push(Seen { space, bytes });
    }
    look.bytes = count.bytes().clone();
    look.are_frames_hidden = count.are_frames_hidden;
    look.swap_file_bytes = swap_file::search(run, markers, &mut |find| {
        look.finds.add(find, (Role::Keeper, run.keeper, Class::SwapFile));
    })?;
    Ok(look)
}

/// How pages of these are judged.
pub fn judge(family: &Family) -> Judge {
    let keeper = family.spaces.iter().find(|space| space.role == Role::Keeper);
    Judge { has_secret_memory: keeper.is_some_and(pages::has_secret_memory) }
}

impl Look {
    /// Looks at one address space; false if that is not allowed.
    fn at(&mut self, space: &Space, judge: &Judge, markers: &[Marker], count: &mut Count) -> bool {
        let is_there = || casemate_keeper::sys::procfs::living_thread(space.pid).is_some();
        let Ok(memory) = File::open(format!("/proc/{}/mem", space.thread)) else {
            return !is_there();
        };
        let mut mappings = Mappings::default();
        let Ok(described) = mappings.refresh(space) else { return !is_there() };
        if space.role == Role::Program {
            self.kernel_swap_bytes += described.iter().map(|one| one.swapped_bytes).sum::<u64>();
        }
        let mut reader = Reader::new(memory, markers);
        let walked = pages::for_each(space, described, judge, &mut |page| {
            let is_new = count.is_new(page.frame);
            match reader.read(page, is_new) {
                Some(contents) => {
                    if is_new && (page.class != Class::InFlight || contents.has_any) {
                        count.add(page.class);
                    }
                    for find in contents.finds {
                        self.finds.add(find, (space.role, space.pid, page.class));
                    }
                }
                None if page.class == Class::Secret && is_new => count.add(Class::Secret),
                // Pages of devices cannot be read at all.
                None if Class::EXPOSED.contains(&page.class) => self.left_pages += 1,
                None => {}
            }
        });
        walked.is_ok() || !is_there()
    }
}

/// What a page holds.
struct Contents {
    /// A byte that is not zero.
    has_any: bool,
    finds: Vec<Find>,
}

/// Reads pages of one address space one after the other, and searches them.
struct Reader<'a> {
    memory: File,
    search: Search<'a>,
    bytes: Zeroizing<Vec<u8>>,
    /// Whether the page before was searched for the first time.
    was_new: bool,
}

impl<'a> Reader<'a> {
    fn new(memory: File, markers: &'a [Marker]) -> Self {
        let bytes = Zeroizing::new(vec![0; PAGE_BYTES]);
        Reader { memory, search: Search::new(markers), bytes, was_new: false }
    }

    /// None if the page cannot be read. Of a page that was searched before, what it has in common
    /// with the one before it is found again only if that one is new.
    fn read(&mut self, page: Page, is_new: bool) -> Option<Contents> {
        let was_new = std::mem::replace(&mut self.was_new, is_new);
        self.memory.read_exact_at(&mut self.bytes, page.address).ok()?;
        let mut finds = self.search.feed(page.address, &self.bytes);
        finds.retain(|find| is_new || (was_new && find.address < page.address));
        Some(Contents { has_any: self.bytes.iter().any(|byte| *byte != 0), finds })
    }
}

/// Finds by place.
trait Finds {
    fn add(&mut self, find: Find, place: (Role, i32, Class));
}

impl Finds for BTreeMap<Place, Group> {
    fn add(&mut self, find: Find, (role, pid, class): (Role, i32, Class)) {
        let group = self.entry(Place { what: find.what, role, pid, class }).or_default();
        group.count += 1;
        if group.addresses.len() < MOST_ADDRESSES {
            group.addresses.push(find.address);
        }
    }
}
