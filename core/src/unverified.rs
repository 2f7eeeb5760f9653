//! What was read from untrusted memory and not yet verified.

/// A value from untrusted memory. It cannot be looked at: only a verification step opens it.
///
/// ```compile_fail
/// let line = casemate_core::Unverified::from_untrusted([0u8; 128]);
/// let bytes: [u8; 128] = line.open(); // not a verification step: no MAC was compared
/// ```
#[must_use = "an unverified value is useless until it is verified"]
pub struct Unverified<T>(T);

impl<T> Unverified<T> {
    /// Marks a value as having come from untrusted memory.
    pub fn from_untrusted(value: T) -> Self {
        Self(value)
    }
}

/// What a verification step does with an [`Unverified`] value. Code that brings this trait into
/// scope is a part of what has to be trusted; `core/tests/verification.rs` holds the list of it.
pub trait VerificationStep<T> {
    /// What a MAC is computed over.
    fn for_mac(&self) -> &T;

    /// Opens the value, after the comparison.
    fn open(self) -> T;
}

impl<T> VerificationStep<T> for Unverified<T> {
    fn for_mac(&self) -> &T {
        &self.0
    }

    fn open(self) -> T {
        self.0
    }
}
