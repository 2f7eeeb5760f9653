//! Letters as strokes of a pen, so that a picture needs no font of the system it is made on.
//!
//! A stroke is a list of points, a point two digits: *x* to the right and *y* down. Capitals are 6
//! high and stand on line 6, small letters begin on line 2, and descenders end on line 8.

/// Height of capitals.
pub const CAPITAL_HEIGHT: f64 = 6.0;
/// The height of capitals, as a part of the text's size.
pub const CAPITALS: f64 = 0.7;
/// How much narrower letters are drawn than these units say: digits are then as wide as Arial's.
pub const NARROW: f64 = 0.82;
/// Room between two letters.
const GAP: f64 = 1.8;
/// The width of a blank.
const BLANK: f64 = 2.0;
/// What stands for a character that is not here.
const UNKNOWN: &str = "00 40 46 06 00";

/// From `!` to `~`, in the order of ASCII.
const GLYPHS: [&str; 94] = [
    "00 04|06 06",
    "00 02|20 22",
    "11 15|31 35|02 42|04 44",
    "41 31 11 02 13 33 44 35 15 05|20 26",
    "40 06|00 10 11 01 00|35 45 46 36 35",
    "46 12 11 20 31 32 04 05 16 26 44",
    "00 02",
    "20 11 15 26",
    "00 11 15 06",
    "11 35|31 15|03 43",
    "21 25|03 43",
    "15 16 07",
    "03 33",
    "06 06",
    "40 06",
    "10 30 41 45 36 16 05 01 10",
    "11 20 26|16 36",
    "01 10 30 41 42 06 46",
    "01 10 30 41 42 33 13|33 44 45 36 16 05",
    "36 30 04 44",
    "40 00 03 12 32 43 45 36 16 05",
    "41 30 10 01 05 16 36 45 44 33 13 04",
    "00 40 16",
    "10 30 41 42 33 13 02 01 10|13 04 05 16 36 45 44 33",
    "05 16 36 45 41 30 10 01 02 13 33 42",
    "02 02|06 06",
    "12 12|15 16 07",
    "41 03 45",
    "02 42|04 44",
    "01 43 05",
    "01 10 30 41 42 23 24|26 26",
    "45 36 16 05 01 10 30 41 44 24 22 42",
    "06 20 46|14 34",
    "00 06 36 45 44 33 03|33 42 41 30 00",
    "41 30 10 01 05 16 36 45",
    "00 06 26 44 42 20 00",
    "40 00 06 46|03 33",
    "40 00 06|03 33",
    "41 30 10 01 05 16 36 45 43 23",
    "00 06|40 46|03 43",
    "00 20|10 16|06 26",
    "40 45 36 16 05",
    "00 06|40 04|13 46",
    "00 06 46",
    "06 00 23 40 46",
    "06 00 46 40",
    "10 30 41 45 36 16 05 01 10",
    "06 00 30 41 42 33 03",
    "10 30 41 45 36 16 05 01 10|24 46",
    "06 00 30 41 42 33 03|23 46",
    "41 30 10 01 02 13 33 44 45 36 16 05",
    "00 40|20 26",
    "00 05 16 36 45 40",
    "00 26 40",
    "00 16 22 36 40",
    "00 46|40 06",
    "00 23 40|23 26",
    "00 40 06 46",
    "20 00 06 26",
    "00 46",
    "00 20 26 06",
    "02 20 42",
    "07 47",
    "00 11",
    "12 32 43 46|44 14 05 16 36 45",
    "00 06|03 12 32 43 45 36 16 05",
    "43 32 12 03 05 16 36 45",
    "40 46|43 32 12 03 05 16 36 45",
    "04 44 43 32 12 03 05 16 36 45",
    "30 20 11 16|02 32",
    "42 47 38 18 07|43 32 12 03 05 16 36 45",
    "00 06|03 12 32 43 46",
    "02 06|00 00",
    "12 17 08|10 10",
    "00 06|32 04|13 36",
    "00 05 16",
    "02 06|03 12 23 26|23 32 43 46",
    "02 06|03 12 32 43 46",
    "12 32 43 45 36 16 05 03 12",
    "02 08|03 12 32 43 45 36 16 05",
    "42 48|43 32 12 03 05 16 36 45",
    "02 06|03 12 32",
    "42 12 03 14 34 45 36 06",
    "10 15 26 36|02 32",
    "02 05 16 36 45|42 46",
    "02 26 42",
    "02 16 23 36 42",
    "02 46|42 06",
    "02 26|42 26 18 08",
    "02 42 06 46",
    "20 11 12 03 14 15 26",
    "00 07",
    "00 11 12 23 14 15 06",
    "04 13 34 43",
];

/// A character's strokes in these units, and its width with the gap behind it.
pub fn glyph(character: char) -> (Vec<Vec<(f64, f64)>>, f64) {
    if character.is_whitespace() {
        return (Vec::new(), BLANK + GAP);
    }
    let place = (plain(character) as usize).checked_sub('!' as usize);
    let text = place.and_then(|place| GLYPHS.get(place)).copied().unwrap_or(UNKNOWN);
    let strokes: Vec<Vec<(f64, f64)>> = text.split('|').map(points).collect();
    let width = strokes.iter().flatten().map(|(x, _)| *x).fold(0.0, f64::max);
    (strokes, width + GAP)
}

/// What looks like a character that is not here, and is.
fn plain(character: char) -> char {
    match character {
        '\u{d7}' => 'x',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        '\u{b5}' | '\u{3bc}' => 'u',
        other => other,
    }
}

/// How wide a text of a size is, in points, in a picture or a browser, whichever is wider.
pub fn points_wide(text: &str, size: f64) -> f64 {
    let picture = width(text).max(0.0) * NARROW * CAPITALS / CAPITAL_HEIGHT;
    picture.max(text.chars().map(browsers).sum()) * size
}

/// About how wide Arial's letters are, as a part of the text's size.
fn browsers(character: char) -> f64 {
    match character {
        'm' | 'M' | 'W' | '%' => 0.87,
        'w' | '+' | '=' | 'A'..='H' | 'J'..='Z' => 0.7,
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | ' '..='/' | ':' | ';' | '[' | ']' => 0.33,
        _ => 0.56,
    }
}

/// A text in lines that are no wider than this, if its words allow it.
pub fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|longer| points_wide(longer, size) <= most) {
            Some(longer) => *lines.last_mut().expect("it was just read") = longer,
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How wide a text is, in these units.
pub fn width(text: &str) -> f64 {
    text.chars().map(|character| glyph(character).1).sum::<f64>() - GAP
}

fn points(stroke: &str) -> Vec<(f64, f64)> {
    let digit = |byte: u8| f64::from(byte.saturating_sub(b'0'));
    let point = |pair: &str| match pair.as_bytes() {
        [x, y] => Some((digit(*x), digit(*y))),
        _ => None,
    };
    stroke.split(' ').filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_drawn_within_its_lines_and_like_no_other() {
        for (i, text) in GLYPHS.iter().enumerate() {
            for stroke in text.split('|') {
                let points = points(stroke);
                assert_eq!(points.len(), stroke.split(' ').count(), "{i}: {stroke}");
                assert!(points.iter().all(|(x, y)| *x <= 4.0 && *y <= 8.0), "{i}: {stroke}");
            }
        }
        // O and 0 alone look alike.
        let mut different: Vec<&str> = GLYPHS.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), GLYPHS.len() - 1);
        assert_eq!(glyph('é').0, glyph('\u{1F600}').0);
    }

    #[test]
    fn lines_break_between_words_only() {
        let most = points_wide("two words", 10.0);
        assert_eq!(
            wrapped("two words  and averylongwordindeed x", 10.0, most),
            ["two words", "and", "averylongwordindeed", "x"]
        );
        assert!(wrapped(" ", 10.0, most).is_empty());
    }

    #[test]
    fn widths_add_up() {
        // 'I' is 2 wide and 'l' 1; one gap is between them and none behind.
        assert_eq!(width("Il"), 2.0 + GAP + 1.0);
    }
}
