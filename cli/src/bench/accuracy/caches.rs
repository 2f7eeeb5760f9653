//! Caches beside Valgrind's cachegrind: recorded counts, or those of this machine's programs.

use std::fmt::Write as _;

use anyhow::Result;
use casemate_sim::locality::reference::{Compared, RECORDED_WITH, Totals, recorded};
use serde::Serialize;

use super::valgrind;
use super::{Pair, both, pair};

/// A program through the same caches, by both.
#[derive(Serialize)]
pub(super) struct Caches {
    program: String,
    /// Cachegrind's nine totals: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw.
    cachegrind: [u64; 9],
    same_rules: [u64; 9],
    machine: [u64; 9],
    #[serde(skip)]
    compared: Compared,
}

/// What the table is of, and its rows.
pub(super) fn compare(live: bool) -> Result<(String, Vec<Caches>)> {
    let (with, compared) =
        if live { valgrind::run_all()? } else { (RECORDED_WITH.to_owned(), recorded()) };
    Ok((with, compared.into_iter().map(row).collect()))
}

fn row(compared: Compared) -> Caches {
    Caches {
        program: compared.program.clone(),
        cachegrind: compared.cachegrind.0,
        same_rules: compared.same_rules.0,
        machine: compared.machine.0,
        compared,
    }
}

pub(super) fn table(with: &str, rows: &[Caches]) -> String {
    let mut text = format!(
        "\nCaches beside cachegrind ({with}): ours / theirs. I1 {}, D1 {}, LL {}.\n",
        valgrind::words(&valgrind::GEOMETRY.instruction),
        valgrind::words(&valgrind::GEOMETRY.data),
        valgrind::words(&valgrind::GEOMETRY.last)
    );
    text += &part("by its rules", rows, |one| one.compared.same_rules);
    text += &part("as the machine", rows, |one| one.compared.machine);
    text
}

fn part(name: &str, rows: &[Caches], ours: impl Fn(&Caches) -> Totals) -> String {
    let mut text = format!(
        "\n{name:<14} {:>19} {:>25} {:>28} {:>26} {:>24}\n",
        "I refs", "I1 misses", "D refs", "D1 misses", "LL misses"
    );
    for row in rows {
        let (ours, theirs) = (ours(row), row.compared.cachegrind);
        let counts = |count: fn(&Totals) -> u64| pair(count(&ours), count(&theirs));
        let _ = writeln!(
            text,
            "{:<14} {:>19} {:>17} {} {:>20} {} {:>18} {} {:>16} {}",
            row.program,
            both(&counts(Totals::instructions)),
            both(&counts(Totals::instruction_misses)),
            difference(&counts(Totals::instruction_misses)),
            both(&counts(Totals::data)),
            difference(&counts(Totals::data)),
            both(&counts(Totals::data_misses)),
            difference(&counts(Totals::data_misses)),
            both(&counts(Totals::last_misses)),
            difference(&counts(Totals::last_misses))
        );
    }
    text
}

/// Of theirs, in 7 characters; nothing where there is none.
fn difference(counts: &Pair<u64>) -> String {
    if counts.ours == counts.theirs {
        return format!("{:>7}", "=");
    }
    format!("{:>+6.2}%", 100.0 * (counts.ours as f64 / counts.theirs as f64 - 1.0))
}
