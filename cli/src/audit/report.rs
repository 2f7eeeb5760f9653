//! What an audit tells: as JSON, all of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::class::Class;
use super::family::{Role, Run};
use super::look::{Group, Look, Place};
use super::marker::Marker;
use super::pages;
use super::search::What;
use super::stays::Lengths;
use super::watch::Watched;
use crate::output::SCHEMA;

/// The report.
#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    run: u32,
    keeper: i32,
    /// A marker was found, or a key of the run's own.
    found: bool,
    exposed_bytes: u64,
    bytes: &'a BTreeMap<Class, u64>,
    kernel_swap_bytes: u64,
    swap_file_bytes: Option<u64>,
    left_pages: u64,
    shared_counted_once: bool,
    unreadable_processes: &'a [i32],
    agents: usize,
    processes: Vec<Process<'a>>,
    markers: Vec<Sought<'a>>,
    keys: Vec<Key<'a>>,
    watched: Option<Watching>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: i32,
    role: Role,
    name: &'a str,
    exposed_bytes: u64,
    bytes: &'a BTreeMap<Class, u64>,
}

#[derive(Serialize)]
struct Sought<'a> {
    marker: &'a str,
    count: u64,
    places: Vec<At<'a>>,
}

#[derive(Serialize)]
struct At<'a> {
    pid: i32,
    role: Role,
    class: Class,
    count: u64,
    addresses: &'a [u64],
}

#[derive(Serialize)]
struct Key<'a> {
    bits: u32,
    /// Where the program's own may not be.
    ours: bool,
    #[serde(flatten)]
    at: At<'a>,
}

#[derive(Serialize)]
struct Watching {
    seconds: f64,
    looks: u64,
    exposed_bytes_mean: u64,
    exposed_bytes_most: u64,
    exposed_bytes_last: u64,
    stays: Told,
    stays_cut_off: Told,
}

/// Lengths of stays, in milliseconds.
#[derive(Serialize)]
struct Told {
    count: u64,
    p50_ms: Option<u64>,
    p90_ms: Option<u64>,
    p99_ms: Option<u64>,
    longest_ms: Option<u64>,
}

impl From<&Lengths> for Told {
    fn from(lengths: &Lengths) -> Self {
        let [p50_ms, p90_ms, p99_ms, longest_ms] =
            [50, 90, 99, 100].map(|percent| lengths.percentile_ms(percent));
        Told { count: lengths.count(), p50_ms, p90_ms, p99_ms, longest_ms }
    }
}

impl From<&Watched> for Watching {
    fn from(watched: &Watched) -> Self {
        Watching {
            seconds: watched.time.as_secs_f64(),
            looks: watched.looks,
            exposed_bytes_mean: watched.mean_bytes,
            exposed_bytes_most: watched.most_bytes,
            exposed_bytes_last: watched.last_bytes,
            stays: (&watched.whole).into(),
            stays_cut_off: (&watched.cut).into(),
        }
    }
}

impl<'a> Report<'a> {
    /// Of a look, and of what was watched.
    pub fn new(
        run: &Run,
        look: &'a Look,
        markers: &'a [Marker],
        watched: Option<&Watched>,
    ) -> Report<'a> {
        let process = |seen: &'a super::look::Seen| Process {
            pid: seen.space.pid,
            role: seen.space.role,
            name: &seen.space.name,
            exposed_bytes: pages::exposed(&seen.bytes),
            bytes: &seen.bytes,
        };
        let at = |(place, group): (&'a Place, &'a Group)| At {
            pid: place.pid,
            role: place.role,
            class: place.class,
            count: group.count,
            addresses: &group.addresses,
        };
        let sought = |(number, marker): (usize, &'a Marker)| {
            let of_it = |(place, _): &(&Place, &Group)| place.what == What::Marker(number);
            let places: Vec<At> = look.finds.iter().filter(of_it).map(at).collect();
            let count = places.iter().map(|place| place.count).sum();
            Sought { marker: &marker.text, count, places }
        };
        let key = |found: (&'a Place, &'a Group)| match found.0.what {
            What::Schedule(bits) => Some(Key { bits, ours: found.0.is_our_key(), at: at(found) }),
            What::Marker(_) => None,
        };
        Report {
            schema: SCHEMA,
            run: run.front,
            keeper: run.keeper,
            found: look.has_found(),
            exposed_bytes: pages::exposed(&look.bytes),
            bytes: &look.bytes,
            kernel_swap_bytes: look.kernel_swap_bytes,
            swap_file_bytes: look.swap_file_bytes,
            left_pages: look.left_pages,
            shared_counted_once: !look.are_frames_hidden,
            unreadable_processes: &look.unreadable,
            agents: look.agents,
            processes: look.spaces.iter().map(process).collect(),
            markers: markers.iter().enumerate().map(sought).collect(),
            keys: look.finds.iter().filter_map(key).collect(),
            watched: watched.map(Into::into),
        }
    }
}
