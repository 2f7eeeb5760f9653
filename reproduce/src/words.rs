//! Schemes as a drawing names them: as the papers write them, and not as keys of the command line.

use casemate_schemes::catalogue::by_name;

/// Parts of names that are not just written in capitals.
const PARTS: [(&str, &str); 21] = [
    ("lhash", "LHash"),
    ("h-lhash", "H-LHash"),
    ("lhash-rw", "LHash-RW"),
    ("chtree", "CHTree"),
    ("delta", "Delta"),
    ("dual", "Dual length"),
    ("split", "Split"),
    ("mono56", "56-bit"),
    ("global64", "Global"),
    ("counter", "Counters"),
    ("direct", "Direct"),
    ("direct-plain", "Direct (no address)"),
    ("xom-des", "XOM DES"),
    ("xom-3des", "XOM 3DES"),
    ("xom-aes256", "XOM AES-256"),
    ("otp", "OTP"),
    ("otp-lru", "OTP LRU"),
    ("otp-norepl", "OTP no-repl."),
    ("otp-aes", "OTP AES"),
    ("morphable", "Morphable"),
    ("bmt-gmac", "BMT GMAC"),
];

/// A scheme's name in words; any other name as it is.
#[must_use]
pub fn scheme(name: &str) -> String {
    // A name with a capital is one that a paper's figure has.
    if name.chars().any(char::is_uppercase) || by_name(name).is_none() {
        return name.to_owned();
    }
    let part = |part: &str| {
        let known = PARTS.iter().find(|(key, _)| *key == part);
        known.map_or_else(|| part.to_uppercase(), |(_, words)| (*words).to_owned())
    };
    name.split('+').map(part).collect::<Vec<String>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_schemes::catalogue::SCHEMES;

    #[test]
    fn schemes_are_named_as_papers_write_them() {
        let names = [
            ("aise+bmt", "AISE+BMT"),
            ("aise+h-lhash", "AISE+H-LHash"),
            ("delta+ecc", "Delta+ECC"),
            ("xom-3des", "XOM 3DES"),
            ("sgx", "SGX"),
            // No scheme, or already in words.
            ("gzip", "gzip"),
            ("MAC in ECC", "MAC in ECC"),
            ("ours", "ours"),
        ];
        for (name, words) in names {
            assert_eq!(scheme(name), words);
        }
    }

    #[test]
    fn no_two_schemes_have_the_same_words() {
        let mut words: Vec<String> = SCHEMES.iter().map(|named| scheme(&named.name)).collect();
        words.sort();
        words.dedup();
        assert_eq!(words.len(), SCHEMES.len());
    }
}
