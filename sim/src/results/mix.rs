//! What programs of a mix do to each other: each one's speed in the mix over that alone.

use serde::{Deserialize, Serialize};

/// A program's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its instructions.
    pub instructions: u64,
    /// The cycles that its core took for them.
    pub cycles: u64,
}

/// The mix, program by program in the order of their cores, and all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Names of the traces.
    pub programs: Vec<String>,
    /// Instructions of each region.
    pub instructions: Vec<u64>,
    /// Cycles for them in the mix.
    pub cycles: Vec<u64>,
    /// Cycles for the same instructions alone on the same machine.
    pub alone_cycles: Vec<u64>,
    /// Instructions a cycle in the mix.
    pub ipc: Vec<f64>,
    /// Instructions a cycle alone.
    pub alone_ipc: Vec<f64>,
    /// The one over the other; 1 is undisturbed.
    pub speedup: Vec<f64>,
    /// Their sum (Snavely and Tullsen, ASPLOS 2000).
    pub weighted_speedup: f64,
    /// Their harmonic mean (Luo, Gummaraju and Franklin, ISPASS 2001).
    pub harmonic_mean_speedup: f64,
    /// The least over the greatest: 1 if all suffer alike (Gabor, Weiss and Mendelson, MICRO 2006).
    pub fairness: f64,
}

impl Mix {
    /// From each program's name, its region in the mix, and the same alone.
    #[must_use]
    pub fn of(programs: &[(&str, Part, Part)]) -> Mix {
        let ipc = |part: &Part| part.instructions as f64 / part.cycles.max(1) as f64;
        let of = |number: fn(&Part, &Part) -> u64| -> Vec<u64> {
            programs.iter().map(|(_, mixed, alone)| number(mixed, alone)).collect()
        };
        let speedup: Vec<f64> =
            programs.iter().map(|(_, mixed, alone)| ipc(mixed) / ipc(alone)).collect();
        let (least, greatest) =
            speedup.iter().fold((f64::INFINITY, 0.0_f64), |(least, greatest), one| {
                (least.min(*one), greatest.max(*one))
            });
        let slowdowns: f64 = speedup.iter().map(|one| 1.0 / one).sum();
        Mix {
            programs: programs.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            instructions: of(|mixed, _| mixed.instructions),
            cycles: of(|mixed, _| mixed.cycles),
            alone_cycles: of(|_, alone| alone.cycles),
            ipc: programs.iter().map(|(_, mixed, _)| ipc(mixed)).collect(),
            alone_ipc: programs.iter().map(|(.., alone)| ipc(alone)).collect(),
            weighted_speedup: speedup.iter().sum(),
            harmonic_mean_speedup: speedup.len() as f64 / slowdowns,
            fairness: least / greatest,
            speedup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One program takes twice as long, the other four times: 1/2 + 1/4; 2 / (2 + 4); 1/4 over 1/2.
    #[test]
    fn speedups_are_summed_averaged_and_compared() {
        let part = |instructions, cycles| Part { instructions, cycles };
        let mix = Mix::of(&[
            ("a", part(100, 400), part(100, 200)),
            ("b", part(300, 400), part(300, 100)),
        ]);
        assert_eq!((mix.ipc, mix.alone_ipc), (vec![0.25, 0.75], vec![0.5, 3.0]));
        assert_eq!(mix.speedup, [0.5, 0.25]);
        assert_eq!((mix.weighted_speedup, mix.fairness), (0.75, 0.5));
        assert!((mix.harmonic_mean_speedup - 1.0 / 3.0).abs() < 1e-12);
    }
}
