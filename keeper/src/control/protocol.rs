//! What is said at the door: one message each way, JSON.

use crate::config::ClearSize;
use crate::lock::{Hex, LockKey, Offer};
use serde::{Deserialize, Serialize};

/// The version of what is said. Another one is refused, with this number.
pub const VERSION: u32 = 1;
/// The longest message.
pub const MOST_BYTES: usize = 1024;

/// A request with its version, as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope<T> {
    /// [`VERSION`].
    pub version: u32,
    /// What is asked.
    pub request: T,
}

/// What is asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Another size of the Clear.
    SetClear(WantedSize),
    /// New keys for all pages that are stored.
    Rotate,
    /// To stop the program and leave nothing of it, and no key, that can be read without the
    /// private half of this.
    Lock(LockKey),
    /// What the run is locked under.
    AskOffer,
    /// To go on, by the sealing key of its offer.
    Unlock(Hex<32>),
}

/// A size that a caller wants, not checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WantedSize {
    /// As [`ClearSize::Bytes`].
    Bytes(u64),
    /// As [`ClearSize::percent`].
    Percent(u8),
}

impl WantedSize {
    /// The size, if a run could have begun with it.
    pub(super) fn checked(self) -> Result<ClearSize, Refusal> {
        match self {
            WantedSize::Bytes(bytes) if bytes >= ClearSize::FLOOR_BYTES => {
                Ok(ClearSize::Bytes(bytes))
            }
            WantedSize::Bytes(_) => Err(Refusal::TooSmall),
            WantedSize::Percent(percent @ 1..=100) => Ok(ClearSize::percent(percent)),
            WantedSize::Percent(_) => Err(Refusal::Malformed),
        }
    }
}

impl From<ClearSize> for WantedSize {
    fn from(size: ClearSize) -> Self {
        match size {
            ClearSize::Bytes(bytes) => WantedSize::Bytes(bytes),
            ClearSize::Percent(share) => WantedSize::Percent(share.percent),
        }
    }
}

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The size is in force: no more is in plaintext, and no more will be.
    Set {
        /// The bound; of a percentage, what it comes to now.
        clear_bytes: u64,
        /// The bound before.
        before_bytes: u64,
        /// Plaintext at that moment.
        plaintext_bytes: u64,
        /// How long it took, in milliseconds.
        elapsed_ms: f64,
    },
    /// Too much stayed in plaintext for too long. The old size is in force.
    NotReached {
        /// The bound in force.
        clear_bytes: u64,
        /// Plaintext at that moment.
        plaintext_bytes: u64,
    },
    /// All that was stored has new keys, and those before are destroyed.
    Rotated {
        /// Pages that were sealed anew.
        resealed_pages: u64,
        /// How long it took, in milliseconds.
        elapsed_ms: f64,
    },
    /// The run is locked.
    Locked {
        /// Private anonymous memory that can be read still: pinned, or of processes that cannot be
        /// protected.
        plaintext_bytes: u64,
        /// Other memory of the program that can be read: of files, and shared.
        outside_bytes: u64,
        /// Threads that stand still.
        threads: u64,
        /// Those of them whose registers stay with the kernel, since they do not leave a call.
        threads_in_calls: u64,
        /// How long it took, in milliseconds.
        elapsed_ms: f64,
    },
    /// The run could not be locked, and goes on.
    NotLocked(Obstacle),
    /// What a locked run is locked under.
    Offered(Offer),
    /// The run goes on.
    Unlocked {
        /// How long it took, in milliseconds.
        elapsed_ms: f64,
    },
    /// Nothing was changed.
    Refused(Refusal),
}

/// Why a run could not be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// A process had no agent within the time that is allowed.
    Agents,
    /// Threads cannot be traced, or there are too many.
    Threads,
    /// Pages did not leave the Clear, though they should: the Crypt is full, perhaps.
    Pages,
    /// A thread of the keeper did not come to rest.
    Keeper,
    /// Output of the program is held in plaintext until a check passes.
    Output,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It is no request.
    Malformed,
    /// It is of another version than this.
    Version(u32),
    /// The run is another user's.
    OtherUser,
    /// The caller is a process of the run itself.
    Inside,
    /// It cannot be told whether the caller is.
    PerhapsInside,
    /// Less than [`ClearSize::FLOOR_BYTES`].
    TooSmall,
    /// Keys are rotated already, since another asked for that.
    Rotating,
    /// A page did not verify, and the run goes on (`--on-violation sigbus`): no key can be given
    /// up.
    Violated,
    /// The keeper has no memory or threads left for that.
    Exhausted,
    /// The run is locked.
    Locked,
    /// The run is not locked.
    NotLocked,
    /// The sealing key is another's.
    WrongKey,
    /// The public key is none.
    NoPublicKey,
    /// The run is ending.
    Ending,
}

/// The request in a message.
pub(super) fn understand(message: &[u8]) -> Result<Request, Refusal> {
    // What a later version asks may be anything.
    let envelope: Envelope<serde_json::Value> =
        serde_json::from_slice(message).map_err(|_| Refusal::Malformed)?;
    if envelope.version != VERSION {
        return Err(Refusal::Version(VERSION));
    }
    serde_json::from_value(envelope.request).map_err(|_| Refusal::Malformed)
}

/// A reply as it is sent.
pub(super) fn written(reply: &Reply) -> Vec<u8> {
    // Cannot fail: there are numbers and names in it only.
    serde_json::to_vec(reply).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_understood_as_it_was_meant() {
        let request = Request::SetClear(WantedSize::Bytes(32 << 20));
        let message = serde_json::to_vec(&Envelope { version: VERSION, request }).expect("JSON");
        assert_eq!(
            String::from_utf8_lossy(&message),
            r#"{"version":1,"request":{"set-clear":{"bytes":33554432}}}"#
        );
        assert_eq!(understand(&message), Ok(request));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let nested = "[".repeat(MOST_BYTES);
        for text in [
            "",
            "set",
            "{}",
            "\0\u{ff}",
            nested.as_str(),
            r#"{"version":1}"#,
            r#"{"version":1,"request":{"set-clear":{"bytes":-1}}}"#,
            r#"{"version":1,"request":{"set-clear":{"bytes":1e99}}}"#,
            r#"{"version":1,"request":{"set-clear":{"percent":256}}}"#,
            r#"{"version":1,"request":{"set-swap":{"bytes":1}}}"#,
            r#"{"version":1,"request":{"set-clear":{"bytes":1}},"more":2}"#,
            r#"{"version":1,"request":{"set-clear":{"bytes":1,"percent":2}}}"#,
        ] {
            assert_eq!(understand(text.as_bytes()), Err(Refusal::Malformed), "{text}");
        }
    }

    #[test]
    fn another_version_is_told_ours_whatever_it_asks() {
        for text in [r#"{"version":2,"request":7}"#, r#"{"version":0,"request":{"set-clear":[]}}"#]
        {
            assert_eq!(understand(text.as_bytes()), Err(Refusal::Version(1)), "{text}");
        }
    }

    #[test]
    fn a_size_is_wanted_as_a_run_could_begin_with() {
        let least = ClearSize::FLOOR_BYTES;
        assert_eq!(WantedSize::Bytes(least).checked(), Ok(ClearSize::Bytes(least)));
        assert_eq!(WantedSize::Bytes(least - 1).checked(), Err(Refusal::TooSmall));
        for (percent, is_one) in [(0, false), (1, true), (100, true), (101, false)] {
            assert_eq!(WantedSize::Percent(percent).checked().is_ok(), is_one, "{percent}");
        }
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        for reply in [
            Reply::NotReached { clear_bytes: 1, plaintext_bytes: 2 },
            Reply::Rotated { resealed_pages: 3, elapsed_ms: 1.5 },
            Reply::Refused(Refusal::Inside),
            Reply::Refused(Refusal::Version(VERSION)),
        ] {
            assert_eq!(serde_json::from_slice::<Reply>(&written(&reply)).expect("JSON"), reply);
        }
    }
}
