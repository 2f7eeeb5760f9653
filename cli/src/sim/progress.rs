//! A bar for somebody who waits: how much is done, and how long the rest will take.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::output;

/// How often it is drawn at most.
const PAUSE: Duration = Duration::from_millis(200);
const WIDTH: usize = 30;

/// The bar. Nothing is drawn where stderr is no terminal.
pub struct Progress {
    shown: bool,
    start: Instant,
    /// Instructions of all runs together; `None` if nobody knows.
    total: Option<u64>,
    state: Mutex<State>,
}

struct State {
    done: u64,
    runs: usize,
    drawn: Option<Instant>,
}

impl Progress {
    /// Of runs with so many instructions together.
    pub fn new(total: Option<u64>) -> Self {
        let state = Mutex::new(State { done: 0, runs: 0, drawn: None });
        Progress { shown: stderr().is_terminal(), start: Instant::now(), total, state }
    }

    /// So many more instructions were given to runs.
    pub fn add(&self, instructions: u64) {
        self.change(|state| state.done += instructions);
    }

    /// One more run is done.
    pub fn run_done(&self) {
        self.change(|state| state.runs += 1);
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

fn line(state: &State, total: Option<u64>, passed: Duration) -> String {
    let seconds = passed.as_secs_f64();
    let rate = state.done as f64 / seconds.max(1e-3) / 1e6;
    let runs = state.runs;
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!(
            "{:.0} million instructions, {rate:.1} million/s, {runs} runs done",
            state.done as f64 / 1e6
        );
    };
    let share = (state.done as f64 / total as f64).min(1.0);
    let full = (share * WIDTH as f64) as usize;
    let bar = "#".repeat(full) + &"-".repeat(WIDTH - full);
    let left = if share > 0.0 { duration(seconds / share - seconds) } else { "?".to_owned() };
    format!(
        "[{bar}] {:3.0} %, {rate:.1} million instructions/s, {runs} runs done, {left} left",
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
        let state = State { done: 100_000_000, runs: 2, drawn: None };
        let text = line(&state, Some(300_000_000), Duration::from_secs(50));
        assert_eq!(
            text,
            "[##########--------------------]  33 %, 2.0 million instructions/s, 2 runs done, 1 min 40 s left"
        );
        let unknown = line(&state, None, Duration::from_secs(50));
        assert!(unknown.starts_with("100 million") && !unknown.contains('['), "{unknown}");
        assert_eq!(duration(7800.0), "2 h 10 min");
    }
}
