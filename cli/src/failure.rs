//! An error that a user sees: one sentence, and the code that the process ends with.

use std::fmt;

use casemate_schemes::choice::ChoiceError;

use crate::exit_codes;

/// What happened, to what, and what to do about it; with the exit code it deserves.
#[derive(Debug)]
pub struct Failure {
    /// The code that the process ends with.
    pub code: u8,
    sentence: String,
}

impl Failure {
    /// A failure with a code of its own.
    pub fn new(code: u8, sentence: impl Into<String>) -> Self {
        Failure { code, sentence: sentence.into() }
    }

    /// The answer of a command other than `run` is no.
    pub fn no(sentence: impl Into<String>) -> Self {
        Failure::new(exit_codes::NO, sentence)
    }

    /// An error of Casemate's own.
    pub fn own(sentence: impl Into<String>) -> Self {
        Failure::new(exit_codes::OWN_ERROR, sentence)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}

impl From<ChoiceError> for Failure {
    fn from(error: ChoiceError) -> Self {
        Failure::own(error.to_string())
    }
}

/// An error with its causes, as one sentence. Errors of libraries often end with what their cause
/// says; that is said once.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_sim::trace::TraceError;
    use std::io;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let error = TraceError::from(io::Error::other("it is a directory"));
        let error = anyhow::Error::from(error).context("/tmp");
        assert_eq!(
            sentence(&error),
            "/tmp: the trace cannot be read or written: it is a directory"
        );
        let error = anyhow::Error::from(io::Error::other("it is a directory")).context("/tmp");
        assert_eq!(sentence(&error), "/tmp: it is a directory");
    }
}
