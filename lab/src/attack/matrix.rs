//! The matrix: schemes against attacks by name, and a cell of it, run.

use super::governor::RESIDENCIES;
use super::promise::{Promise, promise};
use super::strike::Attack;
use super::tally::Tally;
use super::{epoch, unit};
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, NamedScheme, SCHEMES, by_name};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::scheme::{Residency, SchemeError, Walk};

/// Every scheme by its name: the published ones, and all combinations of their parts that go
/// together.
///
/// # Errors
/// If parts do not go together for a reason that no table of the catalogue knows.
pub fn schemes() -> Result<Vec<NamedScheme>, SchemeError> {
    let mut all = SCHEMES.to_vec();
    for (encryption, _) in ENCRYPTIONS {
        for (integrity, _) in INTEGRITIES {
            let Some(named) = by_name(&format!("{encryption}/{integrity}")) else { continue };
            match named.scheme.check() {
                Ok(()) => all.push(named),
                Err(SchemeError::BonsaiWithoutCounters | SchemeError::SequenceNumbersNotLogged) => {
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}

/// Every way of bringing metadata on chip that the matrix attacks.
///
/// # Errors
/// As [`schemes`].
pub fn attacked_walks() -> Result<Vec<Walk>, SchemeError> {
    let walks = |named: NamedScheme| {
        RESIDENCIES.map(|residency| named.scheme.walk(unit::unit_size(residency)))
    };
    Ok(schemes()?.into_iter().flat_map(walks).collect())
}

/// How much is done for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Operations of traffic, at least.
    pub operations: u64,
    /// Strikes that the cell needs to say anything, at least one.
    pub strikes: u64,
}

/// Strikes that a letter of the matrix needs. What comes of every other strike is then missed once
/// in 2^8 cells.
pub const STRIKES_NEEDED: u64 = 8;
/// Epochs for each strike that is needed, before a cell gives up.
const MOST_EPOCHS_EACH: u64 = 4;

impl Effort {
    /// So many operations, and the strikes that a letter needs.
    pub fn of(operations: u64) -> Effort {
        Effort { operations, strikes: STRIKES_NEEDED }
    }

    fn is_enough(self, tally: &Tally) -> bool {
        let given_up = tally.epochs >= MOST_EPOCHS_EACH * self.strikes;
        tally.operations >= self.operations && (tally.strikes() >= self.strikes || given_up)
    }
}

/// Runs epochs until the effort is made, with one of these residencies after the other. Where
/// nothing is to be attacked one epoch of each shows that nothing was struck.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn cell(
    residencies: &[Residency],
    scheme: &Scheme,
    attack: Attack,
    effort: Effort,
    seed: u64,
) -> Result<Tally, SchemeError> {
    let nothing = matches!(promise(scheme, attack), Promise::NothingToAttack(_));
    let mut tally = Tally::default();
    for (number, residency) in (0..).zip(residencies.iter().cycle()) {
        let (verdict, done) = epoch::run(scheme, *residency, attack, seed.wrapping_add(number))?;
        tally.add(verdict, done);
        if effort.is_enough(&tally) || nothing && tally.epochs >= residencies.len() as u64 {
            break;
        }
    }
    Ok(tally)
}
