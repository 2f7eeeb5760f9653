//! Any bytes are a counter line of any organisation: read it whole, then count in it.
#![no_main]
use casemate_schemes::counters::{Increment, Organisation};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((line, writes)) = bytes.split_first_chunk::<64>() else { return };
    for organisation in Organisation::ALL {
        let mut line = *line;
        let mut lpid = u64::from_le_bytes(*line.first_chunk().expect("64 bytes"));
        let counters = |line: &[u8; 64]| -> Vec<u128> {
            (0..organisation.slots()).map(|slot| organisation.counter(line, slot)).collect()
        };
        for write in writes {
            let slot = usize::from(*write) % organisation.slots();
            let (before, old) = (line, counters(&line));
            let increment = organisation.increment(&mut line, slot, &mut || {
                lpid = lpid.checked_add(1)?;
                Some(lpid)
            });
            let new = counters(&line);
            let changed = match increment {
                Ok(Increment::Overflow(slots)) => slots,
                Ok(_) => slot..slot + 1,
                Err(_) => {
                    assert_eq!(line, before);
                    continue;
                }
            };
            assert!(changed.contains(&slot));
            for at in 0..old.len() {
                assert!(if changed.contains(&at) { new[at] > old[at] } else { new[at] == old[at] });
            }
        }
    }
});
