//! What there is before the program begins: keys, the stores, and the pager over them.

use super::internal;
use crate::adversary;
use crate::config::{Config, KeyHiding};
use crate::hiding::{self, Hideaway};
use crate::metadata::MappedMetadata;
use crate::outcome::Ending;
use crate::pager::healing::{Healing, PhysicalAddress};
use crate::pager::{Pager, Stop};
use crate::secret::MemoryKind;
use crate::secrets;
use crate::store::{PageStore, StoreConfig};
use crate::sys::pagemap;
use crate::sys::shortage::{self, Spare};
use casemate_pages::Verification;
use std::sync::Arc;

/// What is opened while the keeper still has the capabilities that it was started with.
pub(super) struct Privileged {
    physical_address: Option<PhysicalAddress>,
    hideaway: Option<Box<dyn Hideaway>>,
}

impl Privileged {
    pub fn take(config: &Config) -> Result<Self, Ending> {
        let physical_address = config.heal.then(pagemap::physical_addresses).flatten();
        let hideaway = hiding::place(&config.key_hiding)
            .map_err(|error| cannot_hide(&config.key_hiding, error))?;
        Ok(Privileged { physical_address, hideaway })
    }
}

/// The pager, and what is told of its keys.
pub(super) struct Prepared {
    pub pager: Arc<Pager>,
    pub trusted_bytes: u64,
    pub key_memory: MemoryKind,
}

impl Prepared {
    pub fn new(config: &Config, privileged: Privileged) -> Result<Self, Ending> {
        let Privileged { physical_address, hideaway } = privileged;
        let secrets =
            secrets::make(hideaway).map_err(|error| cannot_hide(&config.key_hiding, error))?;
        let store = PageStore::new(StoreConfig {
            crypt_limit_bytes: config.crypt_limit_bytes,
            swap: config.swap.clone(),
            attackable: config.attackable,
            verified_later: config.log_hash.is_some(),
        })
        .map_err(|e| Ending::StoreFailed { what: e.to_string() })?;
        let metadata =
            MappedMetadata::new(config.attackable).map_err(internal("reserving metadata"))?;
        let view = metadata.share().map_err(internal("sharing metadata"))?;
        let state = metadata.state();
        let how = config.log_hash.map_or(Verification::Tree, |_| Verification::LogHash);
        let directory = secrets.directory(how, metadata, config.node_cache_bytes);
        let trusted_bytes = directory.trusted_bytes() + secrets.bytes();
        let (cipher, key_memory) = secrets.into_cipher();
        let pager = Pager::new(config, cipher, directory, state, store);
        let mut pager = pager.map_err(internal("preparing the pager"))?;
        if config.heal {
            pager.healing = Healing::with(physical_address);
        }
        let pager = Arc::new(pager);
        let spare = Spare::set_aside().map_err(internal("setting descriptors aside"))?;
        let ending = Arc::clone(&pager);
        shortage::ends_the_run(spare, move |what| ending.stop(Stop::Internal(what)));
        if let Some(view) = view {
            adversary::serve(&pager, view).map_err(internal("opening the stores to attacks"))?;
        }
        Ok(Prepared { pager, trusted_bytes, key_memory })
    }
}

fn cannot_hide(chosen: &KeyHiding, error: std::io::Error) -> Ending {
    let place = match chosen {
        KeyHiding::MemfdSecret => return internal("making keys")(error),
        KeyHiding::Tpm(path) => format!("{}: ", path.display()),
        KeyHiding::ExposureResilient(_) => String::new(),
    };
    let what = format!("keys cannot be hidden there: {place}{error}; choose another --key-hiding");
    Ending::KeeperFailed { what }
}
