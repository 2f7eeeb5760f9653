//! A scene as SVG.

use std::fmt::Write;

use super::font::FAMILIES;
use super::scene::{Anchor, Colour, Point, Primitive, Scene};

/// Below letters, so that they can be read over lines.
const HALO: &str =
    " paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"3.5\" stroke-linejoin=\"round\"";

/// The text of an SVG file.
pub fn svg(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FAMILIES}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    scene.primitives.iter().for_each(|primitive| draw(primitive, &mut text));
    text + "</svg>\n"
}

fn draw(primitive: &Primitive, out: &mut String) {
    // Writing to a string does not fail.
    let _ = match primitive {
        Primitive::Rectangle { x, y, width, height, colour } => writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            number(*x),
            number(*y),
            number(*width),
            number(*height),
            hex(*colour)
        ),
        Primitive::Line { points, width, colour } => {
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
                list(points),
                hex(*colour),
                number(*width)
            )
        }
        Primitive::Strokes { segments, width, colour } => {
            let place = |at: &Point| format!("{} {}", number(at.0), number(at.1));
            let path = segments.iter().map(|(a, b)| format!("M{}L{}", place(a), place(b)));
            writeln!(
                out,
                "<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>",
                path.collect::<String>(),
                hex(*colour),
                number(*width)
            )
        }
        Primitive::Polygon { points, colour } => {
            writeln!(out, "<polygon points=\"{}\" fill=\"{}\"/>", list(points), hex(*colour))
        }
        Primitive::Dot { at, radius, colour } => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
            number(at.0),
            number(at.1),
            number(*radius),
            hex(*colour)
        ),
        Primitive::Text { at, text, size, anchor, degrees, halo } => {
            let (x, y) = (number(at.0), number(at.1));
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turned = if *degrees == 0.0 {
                String::new()
            } else {
                format!(" transform=\"rotate({} {x} {y})\"", number(-degrees))
            };
            let halo = if *halo { HALO } else { "" };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"#202020\"{halo}{turned}>{}</text>",
                number(*size),
                escaped(text)
            )
        }
    };
}

fn list(points: &[Point]) -> String {
    let places = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    places.collect::<Vec<String>>().join(" ")
}

/// At most two decimals, and none that are zero.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn hex(colour: Colour) -> String {
    let [red, green, blue] = colour;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_short() {
        let text = Primitive::Text {
            at: (1.0, 2.5),
            text: "a<b>&\u{7}".into(),
            size: 12.0,
            anchor: Anchor::End,
            degrees: 90.0,
            halo: false,
        };
        let scene = Scene { width: 10.0, height: 20.0, primitives: vec![text] };
        let svg = svg(&scene);
        assert!(svg.contains("a&lt;b&gt;&amp;</text>"), "{svg}");
        assert!(svg.contains("rotate(-90 1 2.5)"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
