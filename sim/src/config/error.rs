//! What can be wrong with a configuration file, an override or a preset's name.

use super::simpoints::SimPointsError;
use crate::machine::ConfigError;
use casemate_schemes::nearest::suggestion;

/// Why a configuration is refused. Every sentence names the key, and where it was said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The text is no TOML.
    #[error("{origin}: {sentence}")]
    Syntax {
        /// The file, the preset or the option.
        origin: String,
        /// The parser's sentence.
        sentence: String,
    },
    /// There is no such key.
    #[error("{origin}: there is no key {key}{}", suggestion(Some(nearest)))]
    UnknownKey {
        /// The file, the preset or the option.
        origin: String,
        /// The key that was given.
        key: String,
        /// The key that is most like it.
        nearest: String,
    },
    /// There is no such key, and none that is like it.
    #[error("{origin}: there is no key {key}; {known}")]
    NothingLikeKey {
        /// The file, the preset or the option.
        origin: String,
        /// The key that was given.
        key: String,
        /// Which keys there are, or sections.
        known: String,
    },
    /// The value is of another type, or out of bounds.
    #[error("{origin}: {key} is {found}; it must be {expected}")]
    WrongValue {
        /// The file, the preset or the option.
        origin: String,
        /// The key.
        key: String,
        /// The value as it was written.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// An override without `=`.
    #[error("{text:?} is no override; write SECTION.KEY=VALUE, for example l2.size_bytes=2M")]
    NoAssignment {
        /// What was given.
        text: String,
    },
    /// There is no such preset.
    #[error("there is no preset {name:?}{}; there are {known}", suggestion(nearest.as_deref()))]
    UnknownPreset {
        /// The name that was given.
        name: String,
        /// The name that is most like it, if any is.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// A section is not what the part that it is for takes.
    #[error("[{section}] {sentence}")]
    Section {
        /// The section of the file.
        section: String,
        /// What the part says; it names the key.
        sentence: String,
    },
    /// The windows that are measured are no list of them.
    #[error("run.sample_points: {0}")]
    SimPoints(#[from] SimPointsError),
    /// Which windows are measured is said in two ways.
    #[error(
        "run.sample_windows and run.sample_points both say which windows are measured; leave one out"
    )]
    WindowsSaidTwice,
    /// Values that are right alone do not go together, or a part of the machine refuses one.
    #[error("{refusal}")]
    Refused {
        /// What the part says; it names the key.
        refusal: ConfigError,
    },
}
