//! All policies by name.

use crate::Policy;
use crate::ageing::Ageing;
use crate::arc::Arc;
use crate::clock::Clock;
use crate::clock_pro::ClockPro;
use crate::fifo::Fifo;
use crate::grace::{Grace, Length};
use crate::lru::Lru;
use crate::s3_fifo::S3Fifo;
use crate::s3_grace::S3Grace;
use crate::sieve::Sieve;
use crate::two_q::TwoQ;

/// What a policy has to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// Hard and soft faults, as any pager sees them.
    Faults,
    /// The accessed bits of the page table.
    Bits,
    /// Every reference. No pager sees them; such a policy is a yardstick.
    References,
}

/// A policy by its name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name, in small letters.
    pub name: &'static str,
    /// What it has to be shown.
    pub sees: Sees,
    /// Where it is from.
    pub source: &'static str,
    /// Makes one for so many pages.
    pub new: fn(usize) -> Box<dyn Policy>,
}

/// All of them.
pub const ALL: [Named; 12] = [
    Named {
        name: "fifo",
        sees: Sees::Faults,
        source: "the order of arrival",
        new: |_| Box::<Fifo>::default(),
    },
    Named {
        name: "grace",
        sees: Sees::Faults,
        source: "the keeper's: an eighth of memory waits unmapped, 512 pages at most",
        new: |capacity| Box::new(Grace::new(capacity, Length::Eighth)),
    },
    Named {
        name: "grace-paid",
        sees: Sees::Faults,
        source: "the same, as long as its soft faults take a quarter of the time of hard ones",
        new: |capacity| Box::new(Grace::new(capacity, Length::Paid)),
    },
    Named {
        name: "s3-grace",
        sees: Sees::Faults,
        source: "S3-FIFO, with soft faults in the place of accessed bits",
        new: |capacity| Box::new(S3Grace::new(capacity)),
    },
    Named {
        name: "clock",
        sees: Sees::Bits,
        source: "Corbato, 1968",
        new: |_| Box::<Clock>::default(),
    },
    Named {
        name: "sieve",
        sees: Sees::Bits,
        source: "Zhang et al., NSDI 2024",
        new: |_| Box::<Sieve>::default(),
    },
    Named {
        name: "s3-fifo",
        sees: Sees::Bits,
        source: "Yang et al., SOSP 2023, with one bit for its counts",
        new: |capacity| Box::new(S3Fifo::new(capacity)),
    },
    Named {
        name: "clock-pro",
        sees: Sees::Bits,
        source: "Jiang, Chen, Zhang, USENIX ATC 2005",
        new: |capacity| Box::new(ClockPro::new(capacity)),
    },
    Named {
        name: "ageing",
        sees: Sees::Bits,
        source: "Linux's multi-generational LRU: four generations, whole walks",
        new: |_| Box::<Ageing>::default(),
    },
    Named {
        name: "lru",
        sees: Sees::References,
        source: "the last reference",
        new: |_| Box::<Lru>::default(),
    },
    Named {
        name: "2q",
        sees: Sees::References,
        source: "Johnson, Shasha, VLDB 1994",
        new: |capacity| Box::new(TwoQ::new(capacity)),
    },
    Named {
        name: "arc",
        sees: Sees::References,
        source: "Megiddo, Modha, FAST 2003",
        new: |capacity| Box::new(Arc::new(capacity)),
    },
];

/// The policy of a name.
#[must_use]
pub fn by_name(name: &str) -> Option<Named> {
    ALL.into_iter().find(|named| named.name == name)
}
