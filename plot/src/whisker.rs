//! Bars of error: how far an interval reaches, with a cap at both ends.

use super::frame::Frame;
use super::scene::{BLACK, Colour, Point, Primitive, WHITE};

/// Half of a cap.
pub const CAP: f64 = 4.0;
const PEN: f64 = 1.2;
/// On both sides of the pen, so that a dark bar does not hide it.
const EDGE: f64 = 0.6;

/// Draws the interval of a value at a place of the level axis. What is outside of the frame is not
/// drawn, and an end there has no cap. A cap takes six tenths of the room at most.
pub fn draw(frame: &mut Frame, x: f64, (least, most): (f64, f64), room: f64, colour: Colour) {
    let (top, bottom) = (frame.top, frame.bottom());
    let (from, to) = (frame.y(most), frame.y(least));
    if from > bottom || to < top {
        return;
    }
    // Those of neighbours do not touch.
    let cap = CAP.min(room * 0.3);
    let mut segments = vec![((x, from.max(top)), (x, to.min(bottom)))];
    let axis = frame.heights.least..=frame.heights.most;
    let inside = [least, most].into_iter().filter(|end| axis.contains(end));
    let caps: Vec<f64> = inside.map(|end| frame.y(end)).collect();
    segments.extend(caps.into_iter().map(|end| ((x - cap, end), (x + cap, end))));
    let below =
        Primitive::Strokes { segments: segments.clone(), width: PEN + 2.0 * EDGE, colour: WHITE };
    frame.primitives.push(below);
    frame.primitives.push(Primitive::Strokes { segments, width: PEN, colour });
}

/// The same in a legend, around a point.
pub fn mark((x, y): Point, half: f64, primitives: &mut Vec<Primitive>) {
    let segments = vec![
        ((x, y - half), (x, y + half)),
        ((x - CAP, y - half), (x + CAP, y - half)),
        ((x - CAP, y + half), (x + CAP, y + half)),
    ];
    primitives.push(Primitive::Strokes { segments, width: PEN, colour: BLACK });
}
