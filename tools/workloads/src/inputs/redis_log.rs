//! Redis's append-only file: commands as clients send them. The server executes them when it
//! starts; the last one ends it.

use crate::random::Random;

/// About so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut log = Vec::new();
    put(&mut log, &["SELECT", "0"]);
    let keys = (size_bytes / 128).max(16);
    while (log.len() as u64) < size_bytes {
        let key = random.below(keys);
        let key = |kind: &str| format!("{kind}:{key:012}");
        let number = random.below(100_000).to_string();
        match random.below(8) {
            0 | 1 => {
                let length = 16 + random.index(100);
                put(&mut log, &["SET", &key("text"), &"xyz".repeat(length)[..length]]);
            }
            2 | 3 => put(&mut log, &["GET", &key("text")]),
            4 => put(&mut log, &["INCRBY", &key("count"), &number]),
            5 => put(
                &mut log,
                &["ZADD", &format!("rank:{}", random.below(100)), &number, &key("member")],
            ),
            6 => put(&mut log, &["LPUSH", &format!("list:{}", random.below(1000)), &number]),
            _ => put(
                &mut log,
                &["HSET", &format!("hash:{}", random.below(1000)), &key("field"), &number],
            ),
        }
    }
    put(&mut log, &["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]);
    log
}

/// About so many bytes of SETs and nothing else, of random keys: for every two SETs there is one
/// key, so that most of the later ones write over an older value, of another length.
#[must_use]
pub fn sets(size_bytes: u64, seed: u64) -> Vec<u8> {
    const SET_BYTES: u64 = 250;
    let mut random = Random::new(seed);
    let mut log = Vec::new();
    put(&mut log, &["SELECT", "0"]);
    let keys = (size_bytes / SET_BYTES / 2).max(1);
    let text = "0123456789abcdef".repeat(300 / 16 + 1);
    while (log.len() as u64) < size_bytes {
        let key = format!("key:{:012}", random.below(keys));
        put(&mut log, &["SET", &key, &text[..100 + random.index(200)]]);
    }
    put(&mut log, &["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]);
    log
}

fn put(log: &mut Vec<u8>, words: &[&str]) {
    log.extend(format!("*{}\r\n", words.len()).bytes());
    words.iter().for_each(|word| log.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_redis_reads_it() {
        let mut log = Vec::new();
        put(&mut log, &["GET", "ab"]);
        assert_eq!(log, b"*2\r\n$3\r\nGET\r\n$2\r\nab\r\n");
        assert!(make(10_000, 1).ends_with(b"FORCE\r\n"));
    }

    #[test]
    fn keys_are_set_about_twice_each() {
        let log = String::from_utf8(sets(1 << 20, 1)).expect("ASCII");
        let keys: Vec<&str> = log.lines().filter(|line| line.starts_with("key:")).collect();
        let different: std::collections::BTreeSet<&str> = keys.iter().copied().collect();
        // Twice as many draws as keys leave 1 / e^2 of the keys unset.
        let part = different.len() as f64 / (keys.len() as f64 / 2.0);
        assert!((0.82..0.91).contains(&part), "{part} of {}", keys.len());
    }
}
