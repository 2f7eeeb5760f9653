//! The crate `casemate-schemes` once more, with the toys of `docs/design/extending.md` added to its
//! sources by `build.rs`: a counter organisation and an integrity scheme, each with all that the
//! document says a new one takes. `tests/toys.rs` runs and attacks them.

include!(concat!(env!("OUT_DIR"), "/schemes/lib.rs"));
