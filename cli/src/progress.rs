//! How much is done of what takes long, for people at a terminal: one line on standard error that
//! is drawn over. Nothing is drawn where standard error is no terminal.
//!
//! [`Progress`] is of runs, which may be on several threads, [`Meter`] of one loop; [`stage`] names
//! what is being done where nothing can be counted. All appear after two seconds.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use casemate_sim::experiment::session;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// What is over by then is not worth a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is drawn at most.
const DRAWS_PER_SECOND: u8 = 5;

/// The line that is drawn now, so that sentences are not printed into it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A line that appears after two seconds.
struct Line {
    bar: ProgressBar,
    begun: Instant,
    wanted: bool,
}

impl Line {
    fn new(total: Option<u64>, unit: &'static str, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(style(total.is_some(), unit));
        Line { bar, begun: Instant::now(), wanted: wanted && stderr().is_terminal() }
    }

    /// Draws it from now on, once it is time.
    fn show(&self) {
        if self.wanted && self.bar.is_hidden() && self.begun.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
            if let Some(before) = shown().replace(self.bar.clone()) {
                before.finish_and_clear();
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        clear();
    }
}

fn shown() -> std::sync::MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the line away, if there is one.
pub fn clear() {
    if let Some(bar) = shown().take() {
        bar.finish_and_clear();
    }
}

/// Prints with the line out of the way.
pub fn beside(print: impl FnOnce()) {
    // A copy, so that what is printed may not wait for the lock.
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Millions of what is counted, and how many of them in a second. With a bar that takes what is
/// left of the terminal's width, so that the line does not wrap where 80 columns are.
fn style(total_known: bool, unit: &'static str) -> ProgressStyle {
    let template = if total_known {
        "[{wide_bar}] {percent:>3} %, {millions}, {rate}{msg}, {eta} left"
    } else {
        "{millions}, {rate}{msg}"
    };
    let millions = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.0} M {unit}", state.pos() as f64 / 1e6);
    };
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.1} M/s", state.per_sec() / 1e6);
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("millions", millions).with_key("rate", rate).progress_chars("#-")
}

/// Of runs. The line goes with it.
pub struct Progress {
    line: Line,
    runs: AtomicU64,
}

impl Progress {
    /// Of runs with so many instructions together, if that is known.
    pub fn new(total: Option<u64>) -> Self {
        Progress {
            line: Line::new(total.filter(|total| *total > 0), INSTRUCTIONS, true),
            runs: AtomicU64::new(0),
        }
    }
}

impl session::Progress for Progress {
    fn decoded(&self, instructions: u64) {
        self.line.bar.inc(instructions);
        self.line.show();
    }

    fn run_done(&self) {
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        self.line.bar.set_message(format!(", {runs} runs done"));
        self.line.show();
    }
}

/// What is counted.
const INSTRUCTIONS: &str = "instructions";
/// How often a loop looks at the clock, in what it counts.
const EVERY: u64 = 1 << 14;

/// Counts the instructions, or requests, that one loop handles. The line goes with it, however the
/// loop ends.
pub struct Meter {
    line: Line,
    /// Not yet told.
    pending: u64,
    begun: bool,
}

impl Meter {
    /// Of so many instructions, if that is known. Nothing is drawn if not `wanted`.
    pub fn new(total: Option<u64>, wanted: bool) -> Self {
        Meter::counting(INSTRUCTIONS, total, wanted)
    }

    /// Of so many requests to memory.
    pub fn of_requests(total: u64) -> Self {
        Meter::counting("requests", Some(total), true)
    }

    fn counting(unit: &'static str, total: Option<u64>, wanted: bool) -> Self {
        let line = Line::new(total.filter(|total| *total > 0), unit, wanted);
        Meter { line, pending: 0, begun: false }
    }

    /// Says why nothing comes yet.
    pub fn waits(&self, why: &str) {
        if self.line.wanted {
            stage(why);
        }
    }

    /// So many more were handled. The clock starts with the first: the wait for it would falsify
    /// the rate.
    #[inline]
    pub fn add(&mut self, more: u64) {
        self.pending += more;
        if self.pending >= EVERY || !self.begun {
            self.tell();
        }
    }

    fn tell(&mut self) {
        if !self.begun {
            self.begun = true;
            clear();
            self.line.begun = Instant::now();
            self.line.bar.reset_elapsed();
        }
        self.line.bar.inc(std::mem::take(&mut self.pending));
        self.line.show();
    }
}

/// Says on a terminal what is being done now, in the place of what was said before; two seconds
/// after the first that was said at the earliest.
pub fn stage(what: &str) {
    if !stderr().is_terminal() {
        return;
    }
    let mut shown = shown();
    let bar = shown.get_or_insert_with(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}, {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        appears_later(bar.clone());
        bar
    });
    bar.set_message(what.to_owned());
}

/// Draws a stage's line once it is time, unless it was taken away. On a thread of its own: what is
/// being done may say nothing more until it is over.
fn appears_later(bar: ProgressBar) {
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        // Under the lock, so that the line is not taken away between the question and the drawing.
        let _shown = shown();
        if !bar.is_finished() {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the line shows, drawn into memory.
    fn drawn(total: Option<u64>, done: u64, message: &str) -> String {
        let terminal = indicatif::InMemoryTerm::new(1, 80);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(total.is_some(), INSTRUCTIONS));
        bar.set_position(done);
        bar.set_message(message.to_owned());
        bar.tick();
        terminal.contents()
    }

    #[test]
    fn a_known_total_has_a_bar_and_an_unknown_one_a_count() {
        let bar = drawn(Some(40_000_000), 30_000_000, ", 2 runs done");
        let drawn_bar = bar.split(']').next().unwrap_or_default();
        let full = drawn_bar.matches('#').count();
        let rest = drawn_bar.matches('-').count();
        assert!(full >= 10 && full.abs_diff(3 * rest) <= 3, "{bar}");
        assert!(bar.contains(" 75 %, 30 M instructions, "), "{bar}");
        assert!(bar.contains("M/s, 2 runs done, ") && bar.ends_with("left"), "{bar}");
        assert_eq!(bar.lines().count(), 1, "it wraps: {bar}");
        let count = drawn(None, 100_000_000, "");
        assert!(count.starts_with("100 M instructions, ") && !count.contains('['), "{count}");
    }

    #[test]
    fn a_meter_tells_of_every_instruction_but_the_last_few() {
        let mut meter = Meter::new(None, false);
        for _ in 0..3 * EVERY {
            meter.add(1);
        }
        let told = meter.line.bar.position();
        assert_eq!(told + meter.pending, 3 * EVERY);
        assert!(told > 2 * EVERY && meter.pending < EVERY, "{told}");
    }

    #[test]
    fn nothing_is_drawn_in_the_first_two_seconds() {
        let mut line = Line::new(Some(10), INSTRUCTIONS, true);
        line.wanted = true;
        line.show();
        assert!(line.bar.is_hidden());
    }
}
