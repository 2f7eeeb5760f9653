//! `--key-hiding`: where roots of page keys lie while none is derived from them.

use std::path::PathBuf;
use std::str::FromStr;

use casemate_keeper::config::KeyHiding;
use casemate_keeper::hiding::{ExposureResilient, tpm};

use crate::size::Size;

/// The memory that keys are spread over if none is said: it takes less than a millisecond to read,
/// and of one bit in 100,000 it has 80.
const USUAL_BYTES: usize = 1 << 20;

/// A value of `--key-hiding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hiding(pub KeyHiding);

impl FromStr for Hiding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match (name, value) {
            ("memfd-secret", None) => Ok(Hiding(KeyHiding::MemfdSecret)),
            ("tpm", Some("")) => Err("tpm: names no device; write tpm or tpm:/dev/tpmrm0".into()),
            ("tpm", device) => {
                Ok(Hiding(KeyHiding::Tpm(PathBuf::from(device.unwrap_or(tpm::DEVICE)))))
            }
            ("exposure-resilient", None) => Ok(Hiding(KeyHiding::ExposureResilient(USUAL_BYTES))),
            ("exposure-resilient", Some(size)) => spread_over(size),
            _ => Err(format!(
                "{text:?} is no hiding place; choose memfd-secret, tpm[:DEVICE] or \
                 exposure-resilient[:SIZE]"
            )),
        }
    }
}

fn spread_over(size: &str) -> Result<Hiding, String> {
    let bytes: Size = size.parse()?;
    let sizes = ExposureResilient::SIZES;
    match usize::try_from(bytes.0).ok().filter(|bytes| sizes.contains(bytes)) {
        Some(bytes) => Ok(Hiding(KeyHiding::ExposureResilient(bytes))),
        None => Err(format!("keys can be spread over 4K to 1G of memory, not over {size}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hiding_places_have_a_name_and_some_a_device_or_a_size() {
        let place = |text: &str| text.parse::<Hiding>().map(|hiding| hiding.0);
        assert_eq!(place("memfd-secret"), Ok(KeyHiding::MemfdSecret));
        assert_eq!(place("tpm"), Ok(KeyHiding::Tpm("/dev/tpmrm0".into())));
        assert_eq!(place("tpm:/run/a:b"), Ok(KeyHiding::Tpm("/run/a:b".into())));
        assert_eq!(place("exposure-resilient"), Ok(KeyHiding::ExposureResilient(1 << 20)));
        assert_eq!(place("exposure-resilient:64K"), Ok(KeyHiding::ExposureResilient(64 << 10)));
        for wrong in ["", "tpm:", "memfd-secret:1", "swap", "exposure-resilient:1K"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
        for wrong in ["exposure-resilient:2G", "exposure-resilient:", "exposure-resilient:12Q"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
