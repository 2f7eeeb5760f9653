//! A scene as PNG: its SVG text, drawn with the font that is compiled in and no other, so that
//! equal drawings are equal files whatever the system has.

use std::io;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, PremultipliedColorU8, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use super::font::FONT;
use super::scene::Scene;
use super::svg::svg;

/// Pixels of a point.
const PIXELS: f32 = 2.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    Arc::new(fonts)
});

/// The SVG text of a scene, with the font that is compiled in.
///
/// # Errors
/// The drawing has no size.
pub(crate) fn tree(scene: &Scene) -> io::Result<Tree> {
    let options = Options { fontdb: FONTS.clone(), ..Options::default() };
    Tree::from_str(&svg(scene), &options).map_err(io::Error::other)
}

/// The bytes of a PNG file.
///
/// # Errors
/// The drawing has no size, or more pixels than there is memory for.
pub fn png(scene: &Scene) -> io::Result<Vec<u8>> {
    let tree = tree(scene)?;
    let pixels = |points: f64| (points as f32 * PIXELS).ceil() as u32;
    let (width, height) = (pixels(scene.width), pixels(scene.height));
    let mut picture = Pixmap::new(width, height).ok_or_else(|| {
        io::Error::other(format!("a drawing of {width} by {height} pixels is too large"))
    })?;
    resvg::render(&tree, Transform::from_scale(PIXELS, PIXELS), &mut picture.as_mut());
    encoded(&picture)
}

/// Without transparency, which a drawing on white has none of, and without filters: areas of one
/// colour are packed best as they are, to a fifth of what filters and speed make of them.
fn encoded(picture: &Pixmap) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut bytes, picture.width(), picture.height());
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_compression(::png::Compression::Best);
    encoder.set_filter(::png::FilterType::NoFilter);
    let colours = |pixel: &PremultipliedColorU8| [pixel.red(), pixel.green(), pixel.blue()];
    let pixels: Vec<u8> = picture.pixels().iter().flat_map(colours).collect();
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(&pixels).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Anchor, Primitive};

    fn picture(primitives: Vec<Primitive>) -> Pixmap {
        let scene = Scene { width: 40.0, height: 20.0, primitives };
        Pixmap::decode_png(&png(&scene).expect("it is drawn")).expect("it is one")
    }

    fn red(picture: &Pixmap, x: u32, y: u32) -> u8 {
        picture.pixel(x, y).expect("it is inside").red()
    }

    #[test]
    fn a_rectangle_is_where_it_was_put() {
        let [x, y, width, height] = [5.0, 4.0, 10.0, 6.0];
        let colour = [0, 0x80, 0];
        let picture = picture(vec![Primitive::Rectangle { x, y, width, height, colour }]);
        assert_eq!((picture.width(), picture.height()), (80, 40));
        // Two pixels for a point: from 10 to 30, and from 8 to 20.
        assert_eq!([red(&picture, 9, 8), red(&picture, 10, 7), red(&picture, 30, 19)], [0xff; 3]);
        assert_eq!([red(&picture, 10, 8), red(&picture, 29, 19)], [0; 2]);
    }

    #[test]
    fn letters_are_drawn_with_the_font_that_is_compiled_in() {
        let text = |text: &str| Primitive::Text {
            at: (2.0, 15.0),
            text: text.into(),
            size: 12.0,
            anchor: Anchor::Start,
            degrees: 0.0,
            halo: false,
        };
        let ink = |picture: &Pixmap| picture.pixels().iter().filter(|p| p.red() < 0x80).count();
        let (one, two) = (ink(&picture(vec![text("I")])), ink(&picture(vec![text("II")])));
        // An I of Roboto is about 8.5 points high and 1.2 wide; a point is four pixels.
        assert!((20..80).contains(&one), "{one}");
        assert!((2 * one - 6..=2 * one + 6).contains(&two), "{one} {two}");
    }

    #[test]
    fn a_drawing_without_size_is_refused_in_words() {
        let error = png(&Scene { width: 0.0, height: 5.0, primitives: Vec::new() }).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}
