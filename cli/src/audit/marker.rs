//! Bytes that are looked for.

use std::str::FromStr;

/// What is shorter stands in memory by chance.
const LEAST_BYTES: usize = 4;
/// A marker touches two pages at most.
pub const MOST_BYTES: usize = casemate_core::PAGE_BYTES;

/// Bytes that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// As it was given.
    pub text: String,
    bytes: Vec<u8>,
}

impl FromStr for Marker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = match text.strip_prefix("hex:") {
            Some(digits) => unhex(digits).ok_or_else(|| {
                format!("{text:?} has no even number of hexadecimal digits after hex:")
            })?,
            None => text.as_bytes().to_vec(),
        };
        if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes.len()) {
            return Err(format!(
                "{} bytes are no marker; give {LEAST_BYTES} to {MOST_BYTES}, as text or as \
                 hex:00ff…",
                bytes.len()
            ));
        }
        Ok(Marker { text: text.to_owned(), bytes })
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

impl Marker {
    /// How long it is, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Where in `bytes` it stands, overlaps included.
    pub fn places<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let last = (bytes.len() + 1).saturating_sub(self.bytes.len());
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(step) =
                bytes[at.min(last)..last].iter().position(|b| *b == self.bytes[0])
            {
                let place = at + step;
                at = place + 1;
                if bytes[place..].starts_with(&self.bytes) {
                    return Some(place);
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(text: &str) -> Marker {
        text.parse().expect(text)
    }

    #[test]
    fn text_and_hexadecimal_digits_are_understood() {
        assert_eq!(marker("secret").bytes, b"secret");
        assert_eq!(marker("hex:00ffA07b").bytes, [0, 255, 160, 123]);
        assert_eq!(marker("hexe:00").bytes, b"hexe:00");
    }

    #[test]
    fn what_is_no_marker_is_refused_in_a_sentence() {
        let long = "x".repeat(MOST_BYTES + 1);
        for wrong in
            ["", "abc", "hex:", "hex:001122", "hex:0011223", "hex:0011223g", "hex:€€", &long]
        {
            let error = wrong.parse::<Marker>().expect_err(wrong);
            assert!(error.contains("hex:"), "{error}");
        }
        assert_eq!(marker(&"x".repeat(MOST_BYTES)).len(), MOST_BYTES);
    }

    #[test]
    fn every_place_is_found() {
        let places = |text: &str, bytes: &[u8]| marker(text).places(bytes).collect::<Vec<_>>();
        assert_eq!(places("abab", b"abababab-aba"), [0, 2, 4]);
        assert_eq!(places("abab", b"-abab"), [1]);
        assert!(places("abab", b"aba").is_empty());
        assert!(places("abab", b"").is_empty());
        assert_eq!(places("hex:00000000", &[0; 6]), [0, 1, 2]);
    }
}
