//! A progress bar: how much is done, and how long the rest will take.
//!
//! [`Progress`] is of runs, which may be on several threads; [`Meter`] is of one loop.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::output;

/// How often it is drawn at most.
const PAUSE: Duration = Duration::from_millis(200);
/// Before that, an estimate is of how something starts.
const SETTLED: Duration = Duration::from_millis(500);
const WIDTH: usize = 30;

/// The bar. Nothing is drawn where stderr is no terminal.
pub struct Progress {
    shown: bool,
    start: Instant,
    /// Instructions of all runs together; `None` if that is not known.
    total: Option<u64>,
    state: Mutex<State>,
}

struct State {
    done: u64,
    /// Runs that are done; `None` where there is but one thing to do.
    runs: Option<usize>,
    drawn: Option<Instant>,
}

impl Progress {
    /// Of runs with so many instructions together.
    pub fn new(total: Option<u64>) -> Self {
        Self::begin(total, Some(0), stderr().is_terminal())
    }

    fn begin(total: Option<u64>, runs: Option<usize>, shown: bool) -> Self {
        let state = Mutex::new(State { done: 0, runs, drawn: None });
        Progress { shown, start: Instant::now(), total, state }
    }

    /// So many more instructions were given to runs.
    pub fn add(&self, instructions: u64) {
        self.change(|state| state.done += instructions);
    }

    /// One more run is done.
    pub fn run_done(&self) {
        self.change(|state| state.runs = state.runs.map(|runs| runs + 1));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if self.shown && state.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            state.drawn = Some(Instant::now());
            output::stderr(&format!("\r{}\x1b[K", line(&state, self.total, self.start.elapsed())));
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if self.shown {
            output::stderr("\r\x1b[K");
        }
    }
}

/// How often a loop looks at the clock, in instructions.
const EVERY: u64 = 1 << 14;

/// Counts the instructions that one loop handles. The line goes with it, whatever ends the loop.
pub struct Meter {
    progress: Progress,
    /// Not yet told.
    pending: u64,
    begun: bool,
}

impl Meter {
    /// Of so many instructions, if that is known. Nothing is drawn if not `wanted`, or where stderr
    /// is no terminal.
    pub fn new(total: Option<u64>, wanted: bool) -> Self {
        let shown = wanted && stderr().is_terminal();
        Meter { progress: Progress::begin(total, None, shown), pending: 0, begun: false }
    }

    /// Why nothing comes yet.
    pub fn waits(&self, why: &str) {
        if self.progress.shown {
            output::stderr(&format!("\r{why}\x1b[K"));
        }
    }

    /// So many more were handled. The clock starts with the first: the wait for it would falsify
    /// the rate.
    #[inline]
    pub fn add(&mut self, instructions: u64) {
        self.pending += instructions;
        if self.pending >= EVERY || !self.begun {
            self.tell();
        }
    }

    fn tell(&mut self) {
        if !self.begun {
            self.begun = true;
            self.progress.start = Instant::now();
        }
        self.progress.add(std::mem::take(&mut self.pending));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.progress.clear();
    }
}

fn line(state: &State, total: Option<u64>, passed: Duration) -> String {
    let seconds = passed.as_secs_f64();
    let rate = state.done as f64 / seconds.max(1e-3) / 1e6;
    let done = format!("{:.0} million", state.done as f64 / 1e6);
    let runs = state.runs.map_or(String::new(), |runs| format!(", {runs} runs done"));
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{done} instructions, {rate:.1} million/s{runs}");
    };
    let share = (state.done as f64 / total as f64).min(1.0);
    let full = (share * WIDTH as f64) as usize;
    let bar = "#".repeat(full) + &"-".repeat(WIDTH - full);
    let known = share > 0.0 && passed >= SETTLED;
    let left = if known { duration(seconds / share - seconds) } else { "?".to_owned() };
    let so_far = if state.runs.is_some() { String::new() } else { format!(", {done}") };
    format!(
        "[{bar}] {:3.0} %{so_far}, {rate:.1} million instructions/s{runs}, {left} left",
        share * 100.0
    )
}

/// `42 s`, `3 min 5 s`, `2 h 10 min`.
fn duration(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9) as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_done_takes_twice_as_long_again() {
        let state = State { done: 100_000_000, runs: Some(2), drawn: None };
        let text = line(&state, Some(300_000_000), Duration::from_secs(50));
        assert_eq!(
            text,
            "[##########--------------------]  33 %, 2.0 million instructions/s, 2 runs done, 1 min 40 s left"
        );
        let unknown = line(&state, None, Duration::from_secs(50));
        assert!(unknown.starts_with("100 million") && !unknown.contains('['), "{unknown}");
        assert_eq!(duration(7800.0), "2 h 10 min");
        let begun = line(&state, Some(300_000_000), Duration::from_millis(100));
        assert!(begun.ends_with(", ? left"), "{begun}");
    }

    #[test]
    fn a_loop_has_no_runs_and_says_how_far_it_is() {
        let state = State { done: 30_000_000, runs: None, drawn: None };
        assert_eq!(
            line(&state, Some(40_000_000), Duration::from_secs(6)),
            "[######################--------]  75 %, 30 million, 5.0 million instructions/s, 2 s left"
        );
        assert_eq!(
            line(&state, None, Duration::from_secs(6)),
            "30 million instructions, 5.0 million/s"
        );
    }

    #[test]
    fn a_meter_tells_of_every_instruction_but_the_last_few() {
        let mut meter = Meter::new(None, false);
        for _ in 0..3 * EVERY {
            meter.add(1);
        }
        let state = meter.progress.state.lock().expect("nobody else has it");
        assert_eq!(state.done + meter.pending, 3 * EVERY);
        assert!(state.done > 2 * EVERY && meter.pending < EVERY, "{}", state.done);
    }
}
