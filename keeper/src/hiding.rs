//! Where the roots of a run's page keys lie while no key is derived from them (Cryptkeeper,
//! section VI-D).
//!
//! Keys of segments in use are in secret memory; the root from which the others can be derived is
//! needed for microseconds only, when a segment comes into use again. Between these moments it is
//! hidden.

mod exposure_resilient;
pub mod tpm;

use crate::config::KeyHiding;
use std::io;

pub use exposure_resilient::ExposureResilient;

/// Bytes that are hidden: the root of the epoch before, and of this one.
pub const SECRET_BYTES: usize = 64;

/// A place for a secret that is seldom needed.
pub trait Hideaway: Send {
    /// Hides a secret, instead of the one before, which is destroyed. The caller wipes its own
    /// copy.
    ///
    /// # Errors
    /// What could not be done. The secret before may be lost then.
    fn hide(&mut self, secret: &[u8; SECRET_BYTES]) -> io::Result<()>;

    /// Copies the hidden secret to `secret`, which is in secret memory. It stays hidden as well.
    ///
    /// # Errors
    /// What could not be done. What `secret` holds then is of no use.
    fn reveal(&mut self, secret: &mut [u8; SECRET_BYTES]) -> io::Result<()>;

    /// The memory without which [`reveal`](Self::reveal) cannot find the secret. A lock encrypts it
    /// where it lies; it is as before when anything else is called.
    fn memory(&mut self) -> &mut [u8];
}

/// The place that was chosen; none: roots stay in secret memory as they are.
///
/// # Errors
/// There is none such on this machine.
pub fn place(chosen: &KeyHiding) -> io::Result<Option<Box<dyn Hideaway>>> {
    match chosen {
        KeyHiding::MemfdSecret => Ok(None),
        KeyHiding::ExposureResilient(bytes) => Ok(Some(Box::new(ExposureResilient::new(*bytes)?))),
        KeyHiding::Tpm(path) => Ok(Some(Box::new(tpm::Tpm::open(path)?))),
    }
}
