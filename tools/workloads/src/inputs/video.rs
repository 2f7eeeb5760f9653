//! Video: a textured ground that moves, discs that cross it, noise. YUV4MPEG2, 4:2:0.

use crate::random::Random;

const WIDTH: usize = 320;
const HEIGHT: usize = 192;
const FRAME_BYTES: u64 = (WIDTH * HEIGHT * 3 / 2) as u64;
const DISCS: usize = 6;

/// Frames of about so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut video = format!("YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg\n").into_bytes();
    let discs: Vec<[usize; 5]> = (0..DISCS)
        .map(|_| [WIDTH, HEIGHT, 9, 7, 200].map(|bound| 1 + random.index(bound)))
        .collect();
    for frame in 0..(size_bytes / FRAME_BYTES).max(1) as usize {
        video.extend(b"FRAME\n");
        for y in 0..HEIGHT {
            for x in 0..WIDTH {
                let ground = 60 + ((x + 2 * frame) / 8 % 8 * 9) + ((y + frame) / 8 % 8 * 7);
                let lit = discs.iter().find(|disc| is_inside(disc, frame, x, y));
                let noise = random.index(7);
                video.push((lit.map_or(ground, |disc| 40 + disc[4]).min(240) + noise) as u8);
            }
        }
        for plane in 0..2 {
            let colours = (0..HEIGHT / 2).flat_map(|y| (0..WIDTH / 2).map(move |x| (x, y)));
            video.extend(colours.map(|(x, y)| (110 + (x + y * plane + frame) / 16 % 32) as u8));
        }
    }
    video
}

/// Whether a disc (place, speed, grey) covers a dot in this frame.
fn is_inside(disc: &[usize; 5], frame: usize, x: usize, y: usize) -> bool {
    let [start_x, start_y, speed_x, speed_y, grey] = *disc;
    let centre_x = (start_x + frame * speed_x) % WIDTH;
    let centre_y = (start_y + frame * speed_y) % HEIGHT;
    let radius = 10 + grey % 24;
    let (dx, dy) = (x.abs_diff(centre_x), y.abs_diff(centre_y));
    dx * dx + dy * dy < radius * radius
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_and_move() {
        let video = make(3 * FRAME_BYTES, 1);
        let head = video.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
        let frame = 6 + FRAME_BYTES as usize;
        assert_eq!(video.len(), head + 3 * frame);
        let frames: Vec<&[u8]> = video[head..].chunks(frame).collect();
        assert!(frames.iter().all(|frame| frame.starts_with(b"FRAME\n")));
        assert_ne!(frames[0], frames[1]);
    }
}
