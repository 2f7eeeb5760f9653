//! How long each part of a chore takes.

use anyhow::Result;
use std::time::{Duration, Instant};

/// The phases so far.
pub struct Phases {
    done: Vec<(String, Duration)>,
}

impl Phases {
    /// None yet.
    pub fn new() -> Self {
        Phases { done: Vec::new() }
    }

    /// Runs one and notes its time.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("== {name}");
        let start = Instant::now();
        let outcome = work();
        let time = start.elapsed();
        println!("== {name}: {:.1} s", time.as_secs_f64());
        self.done.push((name.to_owned(), time));
        outcome
    }

    /// The table.
    pub fn print(&self) {
        println!("\nphase                          seconds");
        for (name, time) in &self.done {
            println!("{name:<28} {:>9.1}", time.as_secs_f64());
        }
        let all: Duration = self.done.iter().map(|(_, time)| *time).sum();
        println!("{:<28} {:>9.1}", "all", all.as_secs_f64());
    }
}
