//! The one font of drawings, and how wide its letters are.

use std::sync::LazyLock;

use ttf_parser::Face;

/// The file, a part of Roboto; `plot/font/README.md` says which, and under which licence.
pub const FONT: &[u8] = include_bytes!("../font/Roboto-Latin.ttf");
/// What an SVG file asks for: that font, or one whose letters are about as wide.
pub const FAMILIES: &str = "Roboto, Arial, Helvetica, sans-serif";
/// How much wider than ours the letters of those others may be.
const OTHERS: f64 = 1.02;

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT, 0).expect("the font that is compiled in is one"));

/// How wide a text of a size is, in points, whichever font of [`FAMILIES`] a browser has.
pub fn points_wide(text: &str, size: f64) -> f64 {
    let units: f64 = text.chars().map(units_wide).sum();
    units / f64::from(FACE.units_per_em()) * size * OTHERS
}

/// The advance of a letter, or of the box that stands for one that the font has not.
fn units_wide(character: char) -> f64 {
    let glyph = FACE.glyph_index(character).unwrap_or_default();
    f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that titles, numbers and labels are made of.
    #[test]
    fn the_font_has_the_letters_that_are_needed() {
        let letters = (' '..='~').chain("±×µ≈≤≥–—…°²³⁴⁵⁶⁷⁸⁹⁰¹éüß".chars());
        let missing: Vec<char> =
            letters.filter(|letter| FACE.glyph_index(*letter).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
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

    /// Roboto's digits are 1151 of 2048 units wide, all alike; a text is as wide as its letters.
    #[test]
    fn widths_are_the_fonts() {
        let digit = 1151.0 / 2048.0 * 10.0 * OTHERS;
        assert!((points_wide("1", 10.0) - digit).abs() < 1e-9, "{}", points_wide("1", 10.0));
        assert!((points_wide("8888", 10.0) - 4.0 * digit).abs() < 1e-9);
        // A box, and not nothing.
        assert!(points_wide("\u{1F600}", 10.0) > 1.0);
    }
}
