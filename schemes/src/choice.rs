//! Schemes as users ask for them: by name, or all; and what is said of a name that no scheme has.

use crate::catalogue::{ENCRYPTIONS, INTEGRITIES, NamedScheme, SCHEMES, by_name};
use crate::nearest::meant;
use crate::unit::scheme::SchemeError;

/// The word for all schemes that have a name of their own.
pub const ALL: &str = "all";

/// No scheme has this name, and it does not name two parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheme {name}{}; there are {}", likely(name), known())]
pub struct UnknownScheme {
    /// The name that was given.
    pub name: String,
}

/// Why these schemes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A name is unknown.
    #[error(transparent)]
    Unknown(#[from] UnknownScheme),
    /// Parts that are named do not go together.
    #[error("the parts of {name} do not go together: {error}")]
    Apart {
        /// The scheme's name.
        name: String,
        /// Why.
        error: SchemeError,
    },
}

/// The scheme of this name, as [`by_name`] finds it.
///
/// # Errors
/// There is none.
pub fn named(name: &str) -> Result<NamedScheme, UnknownScheme> {
    by_name(name).ok_or_else(|| UnknownScheme { name: name.to_owned() })
}

/// The schemes of these names, each once and in this order; [`ALL`] stands for all that have a name
/// of their own. The parts of each go together.
///
/// # Errors
/// A name is unknown, or its parts do not go together.
pub fn chosen<S: AsRef<str>>(names: &[S]) -> Result<Vec<NamedScheme>, ChoiceError> {
    let mut chosen: Vec<NamedScheme> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        let more = if name == ALL { SCHEMES.to_vec() } else { vec![whole(name)?] };
        for scheme in more {
            if chosen.iter().all(|known| known.name != scheme.name) {
                chosen.push(scheme);
            }
        }
    }
    Ok(chosen)
}

/// The scheme of this name, if its parts go together.
fn whole(name: &str) -> Result<NamedScheme, ChoiceError> {
    let found = named(name)?;
    let apart = |error| ChoiceError::Apart { name: name.to_owned(), error };
    found.scheme.check().map_err(apart)?;
    Ok(found)
}

/// Which name may have been meant: a scheme's, or that of two parts if two are named.
fn likely(name: &str) -> String {
    let parts = ENCRYPTIONS.iter().flat_map(|(encryption, _)| {
        INTEGRITIES.iter().map(move |(integrity, _)| format!("{encryption}/{integrity}"))
    });
    let composed: Vec<String> = if name.contains('/') { parts.collect() } else { Vec::new() };
    let names = SCHEMES.iter().map(|named| &*named.name);
    meant(name, names.chain(composed.iter().map(String::as_str)))
}

/// All names.
fn known() -> String {
    let names: Vec<&str> = SCHEMES.iter().map(|named| &*named.name).collect();
    format!(
        "{ALL}, {}, or ENCRYPTION/INTEGRITY, with one of {} and one of {}",
        names.join(", "),
        ENCRYPTIONS.map(|(name, _)| name).join(", "),
        INTEGRITIES.map(|(name, _)| name).join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_by_the_nearest_and_by_all() {
        let error = chosen(&["sgx", "lhahs"]).expect_err("no scheme has that name").to_string();
        assert!(error.starts_with("there is no scheme lhahs (did you mean lhash?);"), "{error}");
        assert!(SCHEMES.iter().all(|named| error.contains(&*named.name)), "{error}");
        let error = named("aise/bnt").expect_err("no part has that name").to_string();
        assert!(error.contains("did you mean aise/bmt?"), "{error}");
    }

    #[test]
    fn a_scheme_is_chosen_once_and_parts_that_go_apart_are_not() {
        let names: Vec<_> = SCHEMES.iter().map(|named| &named.name).collect();
        let sgx_first = chosen(&["sgx", ALL, "sgx"]).expect("all of them are there");
        assert_eq!(sgx_first.len(), names.len());
        assert_eq!(sgx_first[0].name, "sgx");
        let error = chosen(&["none/bmt"]).expect_err("it has no counters").to_string();
        assert!(error.starts_with("the parts of none/bmt do not go together"), "{error}");
    }
}
