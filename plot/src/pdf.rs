//! A scene as PDF: its SVG text, with the letters that it has of the font that is compiled in.
//! Texts stay texts, which can be searched, and equal drawings are equal files.

use std::io;

use svg2pdf::{ConversionOptions, PageOptions};

use super::png::tree;
use super::scene::Scene;

/// The bytes of a PDF file of one page, as large as the drawing.
///
/// # Errors
/// The drawing has no size.
pub fn pdf(scene: &Scene) -> io::Result<Vec<u8>> {
    let tree = tree(scene)?;
    let (options, page) = (ConversionOptions::default(), PageOptions::default());
    svg2pdf::to_pdf(&tree, options, page).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Anchor, Primitive};

    fn drawing() -> Scene {
        let (text, at, size) = ("overhead ±2 %".to_owned(), (20.0, 40.0), 17.0);
        let (anchor, degrees, halo) = (Anchor::Start, 0.0, true);
        let primitives = vec![Primitive::Text { at, text, size, anchor, degrees, halo }];
        Scene { width: 300.0, height: 120.0, primitives }
    }

    #[test]
    fn a_page_is_as_large_as_its_drawing_and_has_its_font() {
        let file = pdf(&drawing()).expect("it is drawn");
        assert!(file.starts_with(b"%PDF-"));
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("/MediaBox [0 0 300 120]"), "{text}");
        // The letters, and which they are: it can be searched.
        assert!(text.contains("/FontFile") && text.contains("/ToUnicode"), "{text}");
        assert!(!text.contains("/CreationDate"), "{text}");
        assert_eq!(pdf(&drawing()).expect("it is drawn again"), file);
    }

    #[test]
    fn a_drawing_without_size_is_refused_in_words() {
        let scene = Scene { width: 0.0, height: 0.0, primitives: Vec::new() };
        assert!(!pdf(&scene).expect_err("there is nothing").to_string().is_empty());
    }
}
