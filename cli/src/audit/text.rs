//! What an audit tells a person.

use std::fmt::Write;
use std::time::Duration;

use super::class::Class;
use super::family::{Role, Run};
use super::look::{Group, Look, Place};
use super::marker::Marker;
use super::pages;
use super::search::What;
use super::stays::Lengths;
use super::watch::Watched;
use crate::size::format as size;

/// A line: what it is about, and what there is to say.
fn line(text: &mut String, name: &str, said: &str) {
    let _ = writeln!(text, "  {name:<11}{said}");
}

/// The lines about what can be read now.
pub fn look(run: &Run, look: &Look, markers: &[Marker]) -> String {
    let programs = look.spaces.iter().filter(|seen| seen.space.role == Role::Program).count();
    let mut text = format!(
        "run {}, keeper {}: {programs} of the program's address spaces, {} agents\n",
        run.front, run.keeper, look.agents
    );
    let bytes = |class: Class| look.bytes.get(&class).copied().unwrap_or(0);
    let of = |class: Class| {
        (bytes(class) > 0).then(|| format!("{} {}", size(bytes(class)), class.shown()))
    };
    let parts: Vec<String> = Class::EXPOSED.into_iter().filter_map(of).collect();
    let sum = size(pages::exposed(&look.bytes));
    line(&mut text, "exposed", &format!("{sum} of the program now: {}", or_nothing(&parts)));
    let parts: Vec<String> =
        [Class::InFlight, Class::Files, Class::Ours].into_iter().filter_map(of).collect();
    line(&mut text, "besides", &or_nothing(&parts));
    let mut hidden = vec![match bytes(Class::Secret) {
        0 => "there is no secret memory".to_owned(),
        bytes => format!("{} of secret memory cannot be read", size(bytes)),
    }];
    if look.kernel_swap_bytes > 0 {
        hidden.push(format!("{} in the kernel's swap", size(look.kernel_swap_bytes)));
    }
    hidden.push(match look.swap_file_bytes {
        Some(bytes) => format!("{} of the run's swap file were searched", size(bytes)),
        None => "there is no swap file".to_owned(),
    });
    line(&mut text, "hidden", &hidden.join(", "));
    for (number, marker) in markers.iter().enumerate() {
        let places = places(look, &|place| place.what == What::Marker(number));
        line(&mut text, "marker", &format!("{:?}: {places}", marker.text));
    }
    keys(&mut text, look);
    caveats(&mut text, look);
    text
}

fn keys(text: &mut String, look: &Look) {
    let is_key = |place: &Place| matches!(place.what, What::Schedule(_));
    let ours = places(look, &|place| place.is_our_key());
    line(text, "AES keys", &format!("of casemate's own: {ours}"));
    if look.finds.keys().any(|place| is_key(place) && !place.is_our_key()) {
        let own = places(look, &|place| is_key(place) && !place.is_our_key());
        line(text, "", &format!("of the program's own: {own}"));
    }
}

fn caveats(text: &mut String, look: &Look) {
    if look.left_pages > 0 {
        let pages = look.left_pages;
        line(text, "note", &format!("{pages} pages left while they were looked at"));
    }
    if !look.unreadable.is_empty() {
        line(text, "note", &format!("processes that cannot be read: {:?}", look.unreadable));
    }
    if look.are_frames_hidden {
        let note = "what processes share counts for each: only root sees which page is which";
        line(text, "note", note);
    }
}

/// Where these were found, and how often.
fn places(look: &Look, is_wanted: &dyn Fn(&Place) -> bool) -> String {
    let shown = |(place, group): (&Place, &Group)| {
        let count = match (place.what, group.count) {
            (What::Schedule(bits), count) => format!("{count} of {bits} bits"),
            (What::Marker(_), 1) => "once".to_owned(),
            (What::Marker(_), count) => format!("{count} times"),
        };
        format!("{} {count} in {}", process(look, place), place.class.shown())
    };
    let found: Vec<String> =
        look.finds.iter().filter(|(place, _)| is_wanted(place)).map(shown).collect();
    or_nothing(&found)
}

fn process(look: &Look, place: &Place) -> String {
    let seen = look.spaces.iter().find(|seen| seen.space.pid == place.pid);
    let name = seen.map_or("the keeper", |seen| seen.space.name.as_str());
    format!("{name} ({})", place.pid)
}

fn or_nothing(parts: &[String]) -> String {
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// The lines about what was watched.
pub fn watched(watched: &Watched) -> String {
    let mut text = String::new();
    let [mean, most] = [watched.mean_bytes, watched.most_bytes].map(size);
    let time = time(watched.time.as_millis() as u64);
    let looks = watched.looks;
    line(
        &mut text,
        "watched",
        &format!("{time}, {looks} looks: {mean} exposed on average, {most} at most"),
    );
    line(&mut text, "stays", &stays(&watched.whole, "whole"));
    line(&mut text, "", &stays(&watched.cut, "cut off by the beginning or the end"));
    text
}

fn stays(lengths: &Lengths, which: &str) -> String {
    let count = lengths.count();
    let at = |percent| lengths.percentile_ms(percent).map(time);
    match (at(50), at(90), at(99), at(100)) {
        (Some(p50), Some(p90), Some(p99), Some(longest)) => format!(
            "{count} {which}: half up to {p50}, 90 % up to {p90}, 99 % up to {p99}, longest {longest}"
        ),
        _ => format!("none {which}"),
    }
}

/// A time for people.
fn time(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms} ms");
    }
    format!("{:.1} s", Duration::from_millis(ms).as_secs_f64())
}
