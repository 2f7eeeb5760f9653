//! Bytes that are written as hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// So many bytes; two digits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> Hex<N> {
    /// Of exactly `2 * N` digits, of either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        let digits = text.as_bytes();
        if digits.len() != 2 * N {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Hex(bytes))
    }
}

impl<const N: usize> std::fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Hex::parse(&text).ok_or_else(|| D::Error::custom(format!("not {} digits", 2 * N)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_they_are_written_and_nothing_else_is() {
        let bytes = Hex([0x00, 0x7f, 0xab]);
        assert_eq!(bytes.to_string(), "007fab");
        assert_eq!(Hex::parse("007FaB"), Some(bytes));
        for text in ["", "007fa", "007fab0", "00 fab", "+07fab", "00é"] {
            assert_eq!(Hex::<3>::parse(text), None, "{text}");
        }
    }
}
