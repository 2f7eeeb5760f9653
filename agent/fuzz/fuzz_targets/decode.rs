//! Any bytes: the first 8 say how large the stagings are, the rest are ops.
#![no_main]
use casemate_agent::{Limits, OP_BYTES, Op, STAGING_PAGES, validate};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((sizes, ops)) = bytes.split_at_checked(8) else { return };
    let mut limits = Limits::default();
    for (pages, size) in limits.stagings.iter_mut().zip(sizes) {
        *pages = u64::from(*size) % (STAGING_PAGES + 1);
    }
    for bytes in ops.as_chunks::<OP_BYTES>().0 {
        let op = Op::decode(bytes);
        assert_eq!(op.encode(), *bytes);
        if let Ok(action) = validate(&op, &limits) {
            let is_remap = matches!(action, casemate_agent::Action::Remap { .. });
            let result = if is_remap { op.result } else { 0 };
            assert_eq!(Op::from(action), Op { result, ..op });
        }
    }
});
