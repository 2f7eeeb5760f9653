//! What comes of attacks on pads, on operations under way and on ECC bits, by hand from the papers:
//! the promises of the matrix are held to it, and so are the strikes.

use casemate_lab::attack::governor::RESIDENCIES;
use casemate_lab::attack::selection::Selection;
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::{SCHEMES, by_name};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::seed::AddressUnit;

use crate::{cell_of, effort};

/// The columns.
const ATTACKS: [Attack; 11] = [
    Attack::FlipDataAndEcc,
    Attack::FlipDataAndEccMany,
    Attack::FlipParity,
    Attack::FlipDataAndParity,
    Attack::DropWrites,
    Attack::AnswerTwice,
    Attack::SpoofReencrypted,
    Attack::ReuseCounter,
    Attack::ReuseSequenceNumber,
    Attack::CollideSeeds,
    Attack::ResetGlobalCounter,
];

/// The rows, in the order of the catalogue.
///
/// - One bit of data and one of the MAC, or parity, are corrected, many are not (Delta/ECC, 3.3 and
///   3.4). Only its rows `...+ecc` have MACs in the ECC bits.
/// - A lost write is a replay. An addressed MAC does not see it (LHash, 4.1.2), trees do, a log
///   hash does when it is checked (4.2); each sees a second answer that it never wrote.
/// - Counters of 56 and 64 bits do not overflow: nothing is encrypted anew.
/// - A counter that was put back gives a pad twice (AISE/BMT, 4.1; OTP/SNC, 6) unless a tree covers
///   it (AISE/BMT, 5.2; OTP/SNC, 6), or a register has the next one (global counter, 4.1).
/// - Seeds that are put side by side never meet (AISE/BMT, 4.1), nor do OTP/SNC's with addresses
///   counted finely enough.
/// - The global page counter outlives a reboot (AISE/BMT, 4.3).
const LETTERS: [(&str, &str); 33] = [
    ("none", "----UU-----"),
    ("direct", "----UU-----"),
    ("direct-plain", "----UU-----"),
    ("xom-des", "----UU-----"),
    ("xom-3des", "----UU-----"),
    ("xom-aes256", "----UU-----"),
    ("otp-lru", "----UU--UH-"),
    ("otp-norepl", "----UU--UH-"),
    ("otp-aes", "----UU--UH-"),
    ("otp+chtree", "----DD--DH-"),
    ("counter", "----UU-U-H-"),
    ("aise", "----UUUU-HH"),
    ("direct+mac", "----UD-----"),
    ("mac", "----UD-----"),
    ("chtree", "----DD-----"),
    ("global64+mt", "----DD-D-HH"),
    ("aise+bmt", "----DDDD-HH"),
    ("mono56+bmt", "----DD-D-H-"),
    ("split+bmt", "----DDDD-H-"),
    ("delta+bmt", "----DDDD-H-"),
    ("dual+bmt", "----DDDD-H-"),
    ("mono56+ecc", "CDCCDD-D-H-"),
    ("delta+ecc", "CDCCDDDD-H-"),
    ("dual+ecc", "CDCCDDDD-H-"),
    ("aise+bmt-gmac", "----DDDD-HH"),
    ("sgx", "----DD-D-H-"),
    ("vault", "----DDDD-H-"),
    ("morphable", "----DDDD-H-"),
    ("lhash", "----LL-----"),
    ("lhash-rw", "----LL-----"),
    ("h-lhash", "----LL-----"),
    ("aise+lhash", "----LLLL-HH"),
    ("aise+h-lhash", "----LLLL-HH"),
];

#[test]
fn attacks_on_pads_and_operations_come_out_as_by_hand() {
    let selection = Selection {
        schemes: &SCHEMES,
        attacks: &ATTACKS,
        residencies: &RESIDENCIES,
        effort: effort(),
        seed: 5,
    };
    let cells = selection.run(|_| ()).expect("the parts go together");
    let mut wrong = Vec::new();
    for (row, (name, letters)) in cells.chunks(ATTACKS.len()).zip(LETTERS) {
        let came: String = row.iter().map(|cell| cell.outcome().letter()).collect();
        assert_eq!(row[0].named.name, name);
        if came != letters {
            wrong.push(format!("{name}: {letters} by hand, {came}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A global counter that an addressed MAC or nothing covers: the register counts on, whatever
/// memory says.
#[test]
fn a_value_that_was_put_back_is_not_counted_on_from_where_a_register_counts() {
    for name in ["global64/none", "global64/mac"] {
        let scheme = by_name(name).expect("parts are named").scheme;
        let tally = cell_of(&RESIDENCIES, &scheme, Attack::ReuseCounter, 6);
        assert_eq!((tally.harmless, tally.strikes()), (tally.epochs, tally.epochs), "{name}");
    }
}

/// OTP/SNC's equation 5 as it is printed adds a sequence number to an address in bytes: the line
/// with number 64 has the pad of the next one with number 0. Counted in the 2^13th part of a byte
/// they never meet.
#[test]
fn seeds_that_are_sums_of_bytes_meet() {
    for name in ["otp-lru", "otp-aes", "otp+chtree"] {
        let fine = by_name(name).expect("a row").scheme;
        let EncryptionKind::OneTimePad(kind) = fine.encryption else { panic!("{name}") };
        let kind = casemate_schemes::unit::encryption::OneTimePadKind {
            address_unit: AddressUnit::Byte,
            ..kind
        };
        let printed = Scheme { encryption: EncryptionKind::OneTimePad(kind), ..fine };
        let seen = |scheme| cell_of(&RESIDENCIES, scheme, Attack::CollideSeeds, 7);
        let (fine, printed) = (seen(&fine), seen(&printed));
        assert_eq!((fine.harmless, fine.undetected), (fine.epochs, 0), "{name}");
        assert_eq!((printed.harmless, printed.undetected), (0, printed.epochs), "{name}");
    }
}
