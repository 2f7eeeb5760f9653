//! What is known of one page while it is outside the Clear: a 32-byte record.

use casemate_core::Lpid;

/// An AES-GCM tag: the page's MAC over ciphertext and LPID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag(pub [u8; 16]);

/// Where the ciphertext lies. Opaque to the engine, and never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePlace(pub u64);

/// One page's entry in the page directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRecord {
    /// The seed under which the page is encrypted.
    pub lpid: Lpid,
    /// The tag that the ciphertext must match.
    pub tag: Tag,
    /// Where the ciphertext lies.
    pub place: StorePlace,
}

/// A verified line holds bytes that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedRecord;

impl PageRecord {
    /// Bytes of an encoded record: 0.78 % of the page that it describes.
    pub const BYTES: usize = 32;

    /// The record as bytes; an absent record is all zero.
    pub fn encode(record: Option<PageRecord>) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        if let Some(record) = record {
            bytes[..8].copy_from_slice(&record.lpid.0.to_le_bytes());
            bytes[8..24].copy_from_slice(&record.tag.0);
            bytes[24..].copy_from_slice(&record.place.0.to_le_bytes());
        }
        bytes
    }

    /// Reads a record back. A zero place with anything else beside it is malformed.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Option<PageRecord>, MalformedRecord> {
        let (lpid, rest) = bytes.split_first_chunk::<8>().ok_or(MalformedRecord)?;
        let (tag, rest) = rest.split_first_chunk::<16>().ok_or(MalformedRecord)?;
        let place = rest.first_chunk::<8>().ok_or(MalformedRecord)?;
        match u64::from_le_bytes(*place) {
            0 if bytes == &[0; Self::BYTES] => Ok(None),
            0 => Err(MalformedRecord),
            place => Ok(Some(PageRecord {
                lpid: Lpid(u64::from_le_bytes(*lpid)),
                tag: Tag(*tag),
                place: StorePlace(place),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_come_back(lpid: u64, tag: [u8; 16], place in 1u64..) {
            let (lpid, tag, place) = (Lpid(lpid), Tag(tag), StorePlace(place));
            let record = Some(PageRecord { lpid, tag, place });
            prop_assert_eq!(PageRecord::decode(&PageRecord::encode(record)), Ok(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_refused(bytes: [u8; PageRecord::BYTES]) {
            if let Ok(record) = PageRecord::decode(&bytes) {
                prop_assert_eq!(PageRecord::encode(record), bytes);
            }
        }

        #[test]
        fn a_zero_place_is_malformed(lpid in 1u64.., tag: [u8; 16]) {
            let record = PageRecord { lpid: Lpid(lpid), tag: Tag(tag), place: StorePlace(0) };
            prop_assert_eq!(
                PageRecord::decode(&PageRecord::encode(Some(record))),
                Err(MalformedRecord)
            );
        }
    }

    #[test]
    fn absent_is_all_zero() {
        assert_eq!(PageRecord::encode(None), [0; PageRecord::BYTES]);
        assert_eq!(PageRecord::decode(&[0; PageRecord::BYTES]), Ok(None));
    }
}
