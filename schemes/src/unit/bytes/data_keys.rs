//! The keys that data goes through the cipher under.

use super::super::port::DataKey;
use super::{UnitSecret, derive_for};
use crate::primitives::{BlockCipher, CipherKind, KeyLength};

/// Key derivation labels. What is encrypted directly is the program's to choose; under the key of
/// the pads it could choose a seed, and read the pad of another block in memory. So each use has a
/// key of its own.
const PAD: &str = "casemate unit cipher";
const DIRECT: &str = "casemate unit direct";
const TWEAK: &str = "casemate unit tweak";

/// The ciphers of one owner, expanded.
pub(super) struct DataKeys {
    /// Encrypts seeds.
    pub pad: BlockCipher,
    /// Encrypts contents.
    pub direct: BlockCipher,
    /// Encrypts addresses that are mixed into contents.
    pub tweak: BlockCipher,
    owner: DataKey,
    epoch: u64,
}

impl DataKeys {
    pub fn new(
        kind: CipherKind,
        secret: &UnitSecret,
        owner: DataKey,
        epoch: u64,
    ) -> Result<Self, KeyLength> {
        let cipher = |label| {
            let key = derive_for(secret, label, epoch, owner_bytes(owner).as_slice());
            BlockCipher::new(kind, &key[..kind.key_bytes()])
        };
        Ok(Self { pad: cipher(PAD)?, direct: cipher(DIRECT)?, tweak: cipher(TWEAK)?, owner, epoch })
    }

    /// The keys of another owner or another time, for the same cipher.
    pub fn renewed(&self, secret: &UnitSecret, owner: DataKey, epoch: u64) -> Self {
        Self::new(self.pad.kind(), secret, owner, epoch)
            .expect("the same kind of cipher takes a key of the same length again")
    }

    pub fn owner(&self) -> DataKey {
        self.owner
    }

    /// A number that no other key of this unit has: 4 bits kind of owner, 32 owner, 28 epoch.
    pub fn number(&self) -> u64 {
        let owner = match self.owner {
            DataKey::Unit => 0,
            DataKey::Compartment(id) => 1 << 32 | u64::from(id),
            DataKey::Instructions(id) => 2 << 32 | u64::from(id),
        };
        owner << 28 | self.epoch
    }
}

/// What a key is derived from beside secret and epoch.
fn owner_bytes(owner: DataKey) -> Vec<u8> {
    let (kind, id) = match owner {
        DataKey::Unit => return Vec::new(),
        DataKey::Compartment(id) => (1, id),
        DataKey::Instructions(id) => (2, id),
    };
    [&[kind], id.to_le_bytes().as_slice()].concat()
}
