//! What no window of a sample met, and how much that can change.
//!
//! Windows that agree do not say that the rest agrees with them: if none of n is of some kind, up
//! to 3 / n of the region can be of it (the rule of three, at 95 %; Hanley and Lippman-Hand, JAMA
//! 1983). And something is known of all that no window met: misses and mispredictions are counted
//! for every instruction, also where no time passes. A stretch that has more to wait for than every
//! window is like none of them, and what it has more is taken for waits that nothing overlaps.

use serde::{Deserialize, Serialize};

use crate::machine::processor::WaitCounts;

/// Logarithm of what is left to chance, 5 %.
const LN_CHANCE: f64 = -2.995_732_273_553_991;
/// Cycles of a read from memory where no window has one.
const UNKNOWN_READ_CYCLES: f64 = 400.0;

/// What a sample has not met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// As much of the region can be unlike every window.
    pub share: f64,
    /// As much that can change the region's cycles for an instruction, in each direction.
    pub cycles_per_instruction: f64,
}

/// How windows lie in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Windows that were measured.
    pub windows: u64,
    /// From one to the next, in windows.
    pub distance: u64,
    /// Windows of the region.
    pub of_windows: u64,
}

/// What waits cost if nothing overlaps them, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// A line that a first level lacks.
    pub first_level_miss: f64,
    /// A line that memory is asked for.
    pub memory_read: f64,
    /// A branch that goes another way than was predicted.
    pub misprediction: f64,
}

/// Instructions on end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How many.
    pub instructions: u64,
    /// What they have to wait for.
    pub waits: WaitCounts,
}

impl Layout {
    /// The share of the region that can be unlike every window. Of K such windows none is met with
    /// a chance of (1 - n/M)^K, and K is as large as leaves 5 %: 3 / n of a long region, nothing if
    /// all are measured. Windows that no seed reaches, behind the last distance, come on top.
    #[must_use]
    pub fn unseen_share(&self) -> f64 {
        let (windows, all) = (self.windows as f64, self.of_windows.max(1) as f64);
        let reached = (self.windows.saturating_mul(self.distance) as f64).min(all);
        let measured = 1.0 - windows / reached.max(1.0);
        let unlike = if measured <= 0.0 { 0.0 } else { LN_CHANCE / measured.ln() };
        ((unlike + all - reached) / all).clamp(0.0, (1.0 - windows / all).max(0.0))
    }
}

impl Prices {
    /// With reads from memory as long as they are in windows.
    #[must_use]
    pub fn with_reads(self, requests: u64, sum_cycles: u64) -> Prices {
        let mean = sum_cycles as f64 / requests.max(1) as f64;
        Prices { memory_read: if requests == 0 { UNKNOWN_READ_CYCLES } else { mean }, ..self }
    }

    fn of(&self, piece: &Piece) -> f64 {
        let WaitCounts { first_level_misses, memory_reads, mispredictions } = piece.waits;
        self.first_level_miss * first_level_misses as f64
            + self.memory_read * memory_reads as f64
            + self.misprediction * mispredictions as f64
    }
}

impl Unseen {
    /// Of a sample whose windows take `cpi` cycles for an instruction, by what lies between them:
    /// what nothing tells apart takes between nothing and twice as long as the rest.
    #[must_use]
    pub fn of(
        layout: &Layout,
        windows: &[Piece],
        between: &[Piece],
        prices: &Prices,
        cpi: f64,
    ) -> Unseen {
        let waits = |piece: &Piece| prices.of(piece) / piece.instructions.max(1) as f64;
        let most = windows.iter().map(waits).fold(0.0, f64::max);
        let beyond = |piece: &Piece| (waits(piece) - most).max(0.0) * piece.instructions as f64;
        let all = windows.iter().chain(between).map(|piece| piece.instructions).sum::<u64>();
        let beyond = between.iter().map(beyond).sum::<f64>() / all.max(1) as f64;
        let share = layout.unseen_share();
        Unseen { share, cycles_per_instruction: beyond + share * cpi }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} and {b}");
    }

    /// 300 of a long region: 3 / 300, a little less than 1 %. 50 of 100: half of the windows are
    /// missed with a chance of 1/2 each, ln 0.05 / ln 0.5 = 4.321928 of 100. Of 103 the last 3 are
    /// not reached. All, or all but nothing: none.
    #[test]
    fn a_share_that_no_window_met_follows_the_rule_of_three() {
        let share =
            |windows, distance, of_windows| Layout { windows, distance, of_windows }.unseen_share();
        assert!((share(300, 1 << 20, 300 << 20) * 300.0 - 2.995_732).abs() < 1e-4);
        near(share(50, 2, 100), 0.043_219_28);
        near(share(50, 2, 103), (4.321_928 + 3.0) / 103.0);
        assert_eq!(share(100, 1, 100), 0.0);
        // Two of four leave no more than the other two.
        assert_eq!(share(2, 2, 4), 0.5);
    }

    /// Two windows of 10 instructions wait for 10 cycles, a miss of the first level each: one for
    /// an instruction. Of the pieces between, one of 40 reads memory 3 times for 100 cycles and
    /// misses the first level 5 times, that is 350 cycles, 310 beyond; one of 440 has 44
    /// mispredictions of 7, 308 cycles, less than a window. Over 500 instructions: 0.62.
    #[test]
    fn what_has_more_to_wait_for_than_every_window_counts_with_what_it_has_more() {
        let layout = Layout { windows: 2, distance: 25, of_windows: 50 };
        let piece = |instructions, first_level_misses, memory_reads, mispredictions| {
            let waits = WaitCounts { first_level_misses, memory_reads, mispredictions };
            Piece { instructions, waits }
        };
        let windows = [piece(10, 1, 0, 0), piece(10, 1, 0, 0)];
        let pieces = [piece(440, 0, 0, 44), piece(40, 5, 3, 0)];
        let prices = Prices { first_level_miss: 10.0, memory_read: 0.0, misprediction: 7.0 };
        let prices = prices.with_reads(2, 200);
        let found = Unseen::of(&layout, &windows, &pieces, &prices, 0.25);
        near(found.share, layout.unseen_share());
        near(found.cycles_per_instruction, 310.0 / 500.0 + 0.25 * found.share);
        // Where nothing is beyond the windows, a share of the rest's cycles is left.
        let found = Unseen::of(&layout, &windows, &pieces[..1], &prices, 20.0);
        near(found.cycles_per_instruction, 20.0 * found.share);
        // Windows that never asked memory do not say how long that takes.
        assert_eq!(prices.with_reads(0, 0).memory_read, UNKNOWN_READ_CYCLES);
        let all = Layout { windows: 100, distance: 1, of_windows: 100 };
        let none = Unseen { share: 0.0, cycles_per_instruction: 0.0 };
        assert_eq!(Unseen::of(&all, &windows, &[], &prices, 3.0), none);
    }
}
