//! Bars of error: how far an interval reaches, with a cap at both ends.

use super::frame::Frame;
use super::scene::{Colour, Primitive};

/// Half of a cap.
pub const CAP: f64 = 4.0;
const PEN: f64 = 1.2;

/// Draws the interval of a value at a place of the level axis. What is outside of the frame is not
/// drawn, and an end there has no cap.
pub fn draw(frame: &mut Frame, x: f64, (least, most): (f64, f64), room: f64, colour: Colour) {
    let (top, bottom) = (frame.top, frame.bottom());
    let (from, to) = (frame.y(most), frame.y(least));
    if from > bottom || to < top {
        return;
    }
    let cap = CAP.min(room / 2.0);
    let mut segments = vec![((x, from.max(top)), (x, to.min(bottom)))];
    let inside = [from, to].into_iter().filter(|end| (top..=bottom).contains(end));
    segments.extend(inside.map(|end| ((x - cap, end), (x + cap, end))));
    frame.primitives.push(Primitive::Strokes { segments, width: PEN, colour });
}
