//! What was read from untrusted memory and not yet verified.

/// A value from untrusted memory. It cannot be looked at: only a verification step inside the
/// engine opens it.
///
/// ```compile_fail
/// let line = casemate_engine::Unverified::from_untrusted([0u8; 128]);
/// let bytes: [u8; 128] = line.open(); // private: no MAC was compared
/// ```
#[must_use = "an unverified value is useless until it is verified"]
pub struct Unverified<T>(T);

impl<T> Unverified<T> {
    /// Marks a value as having come from untrusted memory.
    pub fn from_untrusted(value: T) -> Self {
        Self(value)
    }

    /// What a MAC is computed over. Only for verification steps.
    pub(crate) fn for_mac(&self) -> &T {
        &self.0
    }

    /// Opens the value. Only for verification steps, after the comparison.
    pub(crate) fn open(self) -> T {
        self.0
    }
}
