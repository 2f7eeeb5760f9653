//! A scene as PNG: drawn by distance, so that edges are smooth, and packed with zlib.

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::font;
use super::scene::{Anchor, BLACK, Colour, Point, Primitive, Scene};

/// Pixels of a point.
const SCALE: f64 = 2.0;
/// The width of a letter's strokes, as a part of the text's size.
const STROKE: f64 = 0.1;

/// The bytes of a PNG file.
pub fn png(scene: &Scene) -> io::Result<Vec<u8>> {
    let mut picture = Picture::new(scene.width, scene.height);
    scene.primitives.iter().for_each(|primitive| picture.draw(primitive));
    picture.encode()
}

/// Pixels, from white.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Picture {
    fn new(width: f64, height: f64) -> Self {
        let (width, height) = ((width * SCALE).ceil() as usize, (height * SCALE).ceil() as usize);
        Picture { width, height, pixels: vec![[0xff; 3]; width * height] }
    }

    fn draw(&mut self, primitive: &Primitive) {
        match primitive {
            Primitive::Rectangle { x, y, width, height, colour } => {
                self.rectangle((*x, *y), (x + width, y + height), *colour);
            }
            Primitive::Line { points, width, colour } => self.pen(points, *width, *colour),
            Primitive::Strokes { segments, width, colour } => {
                segments.iter().for_each(|(from, to)| self.pen(&[*from, *to], *width, *colour));
            }
            Primitive::Polygon { points, colour } => self.polygon(points, *colour),
            Primitive::Dot { at, radius, colour } => self.pen(&[*at], 2.0 * radius, *colour),
            Primitive::Text { at, text, size, anchor, degrees } => {
                self.text(*at, text, *size, *anchor, *degrees);
            }
        }
    }

    /// Each pixel gets the part of the colour that the rectangle covers of it.
    fn rectangle(&mut self, from: Point, to: Point, colour: Colour) {
        let part = |pixel: usize, from: f64, to: f64| {
            let pixel = pixel as f64;
            ((to * SCALE).min(pixel + 1.0) - (from * SCALE).max(pixel)).clamp(0.0, 1.0)
        };
        for y in self.rows(from.1, to.1) {
            for x in self.columns(from.0, to.0) {
                self.blend(x, y, colour, part(x, from.0, to.0) * part(y, from.1, to.1));
            }
        }
    }

    /// Each pixel gets the part of the colour that its inner points are in the polygon.
    fn polygon(&mut self, points: &[Point], colour: Colour) {
        let ((left, right), (top, bottom)) = bounds(points, 1.0);
        for y in self.rows(top, bottom) {
            for x in self.columns(left, right) {
                let samples = (0..16).map(|i| (f64::from(i % 4), f64::from(i / 4)));
                let inner = samples.filter(|(right, down)| {
                    let x = (x as f64 + right / 4.0 + 0.125) / SCALE;
                    inside((x, (y as f64 + down / 4.0 + 0.125) / SCALE), points)
                });
                let part = inner.count() as f64 / 16.0;
                self.blend(x, y, colour, part);
            }
        }
    }

    /// A round pen of this width is led along the points.
    fn pen(&mut self, points: &[Point], width: f64, colour: Colour) {
        let half = width / 2.0;
        let ((left, right), (top, bottom)) = bounds(points, half + 1.0);
        for y in self.rows(top, bottom) {
            for x in self.columns(left, right) {
                let centre = ((x as f64 + 0.5) / SCALE, (y as f64 + 0.5) / SCALE);
                let away = distance(centre, points);
                self.blend(x, y, colour, ((half - away) * SCALE + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    fn text(&mut self, at: Point, text: &str, size: f64, anchor: Anchor, degrees: f64) {
        let unit = size * font::CAPITALS / font::CAPITAL_HEIGHT;
        let mut pen = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -font::width(text) / 2.0,
            Anchor::End => -font::width(text),
        };
        let (sine, cosine) = degrees.to_radians().sin_cos();
        for character in text.chars() {
            let (strokes, advance) = font::glyph(character);
            for stroke in strokes {
                let place = |(x, y): Point| {
                    let (x, y) =
                        ((pen + x) * unit * font::NARROW, (y - font::CAPITAL_HEIGHT) * unit);
                    (at.0 + x * cosine + y * sine, at.1 - x * sine + y * cosine)
                };
                let points: Vec<Point> = stroke.into_iter().map(place).collect();
                self.pen(&points, size * STROKE, BLACK);
            }
            pen += advance;
        }
    }

    fn rows(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        pixels(from, to, self.height)
    }

    fn columns(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        pixels(from, to, self.width)
    }

    fn blend(&mut self, x: usize, y: usize, colour: Colour, part: f64) {
        let pixel = &mut self.pixels[y * self.width + x];
        for (old, new) in pixel.iter_mut().zip(colour) {
            *old = (f64::from(*old) * (1.0 - part) + f64::from(new) * part).round() as u8;
        }
    }

    /// PNG, RGB with 8 bits each, no filter (W3C Recommendation, second edition).
    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        for row in self.pixels.chunks(self.width.max(1)) {
            packed.write_all(&[0])?;
            packed.write_all(row.as_flattened())?;
        }
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", header), (b"IDAT", packed.finish()?), (b"IEND", Vec::new())]
        {
            file.extend((data.len() as u32).to_be_bytes());
            let start = file.len();
            file.extend(kind);
            file.extend(data);
            let mut check = Crc::new();
            check.update(&file[start..]);
            file.extend(check.sum().to_be_bytes());
        }
        Ok(file)
    }
}

/// Pixels that a distance in points touches.
fn pixels(from: f64, to: f64, most: usize) -> std::ops::Range<usize> {
    let most = most as f64;
    let (from, to) =
        ((from * SCALE).floor().clamp(0.0, most), (to * SCALE).ceil().clamp(0.0, most));
    from as usize..to as usize
}

/// From left to right and from top to bottom, and some more.
fn bounds(points: &[Point], more: f64) -> (Point, Point) {
    let bound = |pick: fn(&Point) -> f64| {
        let all = points.iter().map(pick);
        let (least, most) = all.fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        (least - more, most + more)
    };
    (bound(|p| p.0), bound(|p| p.1))
}

/// Whether a line from the point to the right crosses a polygon's edge an odd number of times.
fn inside((x, y): Point, points: &[Point]) -> bool {
    let next = points.iter().cycle().skip(1);
    let crossed = points
        .iter()
        .zip(next)
        .filter(|(a, b)| (a.1 > y) != (b.1 > y) && x < (b.0 - a.0) * (y - a.1) / (b.1 - a.1) + a.0);
    crossed.count() % 2 == 1
}

/// From a point to a line through others.
fn distance(from: Point, points: &[Point]) -> f64 {
    let to_point = |p: Point| (p.0 - from.0).hypot(p.1 - from.1);
    let to_segment = |a: Point, b: Point| {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let squared = dx * dx + dy * dy;
        if squared == 0.0 {
            return to_point(a);
        }
        let along = (((from.0 - a.0) * dx + (from.1 - a.1) * dy) / squared).clamp(0.0, 1.0);
        to_point((a.0 + along * dx, a.1 + along * dy))
    };
    match points {
        [] => f64::MAX,
        [only] => to_point(*only),
        more => more.windows(2).map(|pair| to_segment(pair[0], pair[1])).fold(f64::MAX, f64::min),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    #[test]
    fn a_rectangle_covers_its_pixels_and_half_of_its_edges() {
        let primitive =
            Primitive::Rectangle { x: 1.0, y: 1.0, width: 1.25, height: 1.0, colour: [0; 3] };
        let mut picture = Picture::new(4.0, 4.0);
        picture.draw(&primitive);
        // Two pixels a point: columns 2 and 3 whole, 4 half; rows 2 and 3.
        let row: Vec<u8> = picture.pixels[2 * 8..3 * 8].iter().map(|pixel| pixel[0]).collect();
        assert_eq!(row, [255, 255, 0, 0, 128, 255, 255, 255]);
        assert!(picture.pixels[..16].iter().all(|pixel| *pixel == [255; 3]));
    }

    #[test]
    fn distances_are_to_the_nearest_part_of_a_line() {
        let line = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0)];
        assert_eq!(distance((2.0, 1.0), &line), 1.0);
        assert_eq!(distance((-3.0, 4.0), &line), 5.0);
        assert_eq!(distance((6.0, 2.0), &line), 2.0);
    }

    #[test]
    fn a_polygon_is_full_inside_and_half_along_its_slope() {
        let mut picture = Picture::new(4.0, 4.0);
        let points = vec![(0.0, 0.0), (4.0, 0.0), (0.0, 4.0)];
        picture.draw(&Primitive::Polygon { points, colour: [0; 3] });
        let at = |x: usize, y: usize| picture.pixels[y * 8 + x][0];
        assert_eq!((at(0, 0), at(6, 0), at(7, 7), at(7, 1)), (0, 0, 255, 255));
        // The slope halves the pixels on it.
        assert!((80..180).contains(&at(4, 3)), "{}", at(4, 3));
    }

    #[test]
    fn what_is_off_the_picture_is_left_out() {
        let mut picture = Picture::new(3.0, 3.0);
        picture.draw(&Primitive::Dot { at: (-50.0, 90.0), radius: 5.0, colour: [0; 3] });
        picture.draw(&Primitive::Line { points: Vec::new(), width: 1.0, colour: [0; 3] });
        assert!(picture.pixels.iter().all(|pixel| *pixel == [255; 3]));
    }

    #[test]
    fn the_file_holds_the_pixels() {
        let primitives = vec![Primitive::Rectangle {
            x: 0.0,
            y: 0.0,
            width: 0.5,
            height: 0.5,
            colour: [1, 2, 3],
        }];
        let file = png(&Scene { width: 1.0, height: 1.0, primitives }).expect("a vector takes it");
        // Signature, then a header of 13 bytes with length, kind and check, then the data's length.
        let at = 8 + 12 + 13;
        let length =
            u32::from_be_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize;
        let mut raw = Vec::new();
        ZlibDecoder::new(&file[at + 8..at + 8 + length])
            .read_to_end(&mut raw)
            .expect("zlib reads it");
        assert_eq!(raw, [0, 1, 2, 3, 255, 255, 255, 0, 255, 255, 255, 255, 255, 255]);
        assert_eq!(&file[16..24], [0, 0, 0, 2, 0, 0, 0, 2]);
    }
}
