//! The matrix with lines of 128 and 256 bytes: of each family of schemes one, and the same
//! promises.

use casemate_lab::attack::governor::RESIDENCIES;
use casemate_lab::attack::selection::Selection;
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::{NamedScheme, by_name};
use casemate_schemes::unit::Scheme;

use crate::effort;

/// With the blocks of a line that a row is attacked with.
const ROWS: [(&str, &[u64]); 11] = [
    ("none", &[2]),
    ("direct", &[4]),
    ("otp-lru", &[2, 4]),
    ("otp+chtree", &[2, 4]),
    ("mac", &[2, 4]),
    ("chtree", &[2, 4]),
    ("global64+mt", &[2]),
    ("delta+bmt", &[2]),
    ("mono56+bmt", &[4]),
    ("lhash", &[2, 4]),
    ("h-lhash", &[2, 4]),
];

#[test]
fn larger_lines_keep_the_same_promises() {
    let rows = ROWS.iter().flat_map(|(name, sizes)| {
        let named = by_name(name).expect("a row of the catalogue");
        sizes.iter().map(move |line_blocks| NamedScheme {
            name: format!("{name}, {line_blocks} blocks").into(),
            scheme: Scheme { line_blocks: *line_blocks, ..named.scheme },
            ..named.clone()
        })
    });
    let rows: Vec<_> = rows.collect();
    // Pages on disk are moved in blocks of 64 bytes.
    let attacks: Vec<_> = Attack::ALL.into_iter().filter(|attack| !attack.needs_paging()).collect();
    let mut wrong = Vec::new();
    for residency in RESIDENCIES {
        let selection = Selection {
            schemes: &rows,
            attacks: &attacks,
            residencies: &[residency],
            effort: effort(),
            seed: 11,
        };
        let cells = selection.run(|_| ()).expect("the parts go together");
        wrong.extend(cells.iter().filter(|cell| !cell.kept()).map(|cell| {
            let what = format!("{} {} {residency:?}", cell.named.name, cell.attack.name());
            format!("{what}: {:?}, but {:?}", cell.promise, cell.tally)
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
