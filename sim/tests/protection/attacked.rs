//! A scheme's cycles mean something only if what is timed was attacked.

use casemate_lab::attack::matrix;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_sim::machine::timeline::Timeline;
use casemate_sim::protection::Protected;

use crate::common::{FREE_BUS, PLAIN, flat};

/// Every scheme that can be simulated brings metadata on chip, verifies it and takes it out as in
/// epochs of the attack matrix.
#[test]
fn no_scheme_is_simulated_with_a_walk_that_no_adversary_has_met() {
    let attacked = matrix::attacked_walks().expect("all parts of the catalogue go together");
    let parts = ENCRYPTIONS.iter().flat_map(|(encryption, _)| {
        INTEGRITIES.iter().map(move |(integrity, _)| format!("{encryption}/{integrity}"))
    });
    let names = SCHEMES.iter().map(|named| named.name.to_string()).chain(parts);
    let mut simulated = 0;
    for name in names {
        let mut timeline = Timeline::new(flat(FREE_BUS));
        if Protected::named(&name, &PLAIN, &mut timeline).is_err() {
            continue;
        }
        simulated += 1;
        let scheme = by_name(&name).expect("it was simulated").scheme;
        let walk = scheme.walk(Protected::unit_size(&PLAIN));
        assert!(attacked.contains(&walk), "{name}: {walk:?} was never attacked");
    }
    assert!(simulated > 120, "{simulated} schemes");
}
