//! What can be wrong with the configuration of a machine. Every sentence names the parameter.

use casemate_schemes::nearest::meant;

/// Why a part of the machine cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too little.
    #[error("{parameter} is {value}; it must be at least {least}")]
    TooSmall {
        /// Which parameter.
        parameter: &'static str,
        /// Its value.
        value: u64,
        /// What it must be at least.
        least: u64,
    },
    /// Too much.
    #[error("{parameter} is {value}; it must be at most {most}")]
    TooLarge {
        /// Which parameter.
        parameter: &'static str,
        /// Its value.
        value: u64,
        /// What it can be at most.
        most: u64,
    },
    /// A number that indexes bits or levels of a tree.
    #[error("{parameter} is {value}; it must be a power of two")]
    NotAPowerOfTwo {
        /// Which parameter.
        parameter: &'static str,
        /// Its value.
        value: u64,
    },
    /// A whole that its parts do not fill.
    #[error("{parameter} is {value}; it must be a multiple of {unit}, {of}")]
    NotAMultiple {
        /// Which parameter.
        parameter: &'static str,
        /// Its value.
        value: u64,
        /// What it must be a multiple of.
        unit: u64,
        /// What the unit is: which parameters' product, for example.
        of: &'static str,
    },
    /// Something in a section of a configuration.
    #[error("{section}.{error}")]
    In {
        /// The section's key.
        section: &'static str,
        /// What is wrong there.
        error: Box<ConfigError>,
    },
    /// Parts that do not go together.
    #[error("{parameter} {problem}")]
    Unfitting {
        /// Which parameter.
        parameter: &'static str,
        /// What is wrong with it, a sentence without its subject.
        problem: &'static str,
    },
    /// A name that is none of the policies or presets.
    #[error(
        "{parameter} is \"{value}\"; it must be one of {known}{}",
        meant(value, known.split(", "))
    )]
    Unknown {
        /// Which parameter.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// The names there are.
        known: &'static str,
    },
}

impl ConfigError {
    /// The same, said of a parameter in a section.
    #[must_use]
    pub fn within_section(self, section: &'static str) -> ConfigError {
        ConfigError::In { section, error: Box::new(self) }
    }
}

/// Checks that a number is within bounds, both inclusive.
pub(crate) fn within(
    parameter: &'static str,
    value: u64,
    least: u64,
    most: u64,
) -> Result<(), ConfigError> {
    if value < least {
        return Err(ConfigError::TooSmall { parameter, value, least });
    }
    if value > most {
        return Err(ConfigError::TooLarge { parameter, value, most });
    }
    Ok(())
}

/// Checks that a number is a power of two.
pub(crate) fn power_of_two(parameter: &'static str, value: u64) -> Result<(), ConfigError> {
    if value.is_power_of_two() {
        Ok(())
    } else {
        Err(ConfigError::NotAPowerOfTwo { parameter, value })
    }
}
