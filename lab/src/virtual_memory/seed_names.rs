//! Which of a page's names its ciphertext depends on, and so what cannot be done with it as it is
//! (AISE/BMT, section 4.2).

use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::seed::SeedScheme;

/// The names that go into a page's ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedNames {
    /// The frame: a page that comes back to another one has to be encrypted anew.
    pub frame: bool,
    /// The virtual page, or that and the process: the page cannot be read under another name.
    pub virtual_page: bool,
}

impl SeedNames {
    /// Those of an encryption.
    pub fn of(encryption: EncryptionKind) -> SeedNames {
        let (frame, virtual_page) = match encryption {
            EncryptionKind::None | EncryptionKind::GlobalCounter { .. } => (false, false),
            EncryptionKind::OneTimePad(_) => (false, true),
            EncryptionKind::Direct { addressed } => (addressed, false),
            EncryptionKind::CounterMode { seeds, .. } => match seeds {
                SeedScheme::GlobalCounter | SeedScheme::LogicalPage => (false, false),
                SeedScheme::PhysicalAddress => (true, false),
                SeedScheme::VirtualAddress | SeedScheme::ProcessAndVirtualAddress => (false, true),
            },
        };
        SeedNames { frame, virtual_page }
    }
}
