//! Finds free places for labels beside dots.

use super::scene::Point;

/// From the upper left to the lower right corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The upper left corner.
    pub from: Point,
    /// The lower right corner.
    pub to: Point,
}

impl Area {
    /// Around a point.
    pub fn around((x, y): Point, half: f64) -> Self {
        Area { from: (x - half, y - half), to: (x + half, y + half) }
    }

    /// How much two areas share.
    pub fn shared(&self, other: &Area) -> f64 {
        let side = |a: (f64, f64), b: (f64, f64)| (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        side((self.from.0, self.to.0), (other.from.0, other.to.0))
            * side((self.from.1, self.to.1), (other.from.1, other.to.1))
    }

    /// Its point that is nearest to another.
    pub fn nearest(&self, (x, y): Point) -> Point {
        (x.clamp(self.from.0, self.to.0), y.clamp(self.from.1, self.to.1))
    }

    fn size(&self) -> f64 {
        (self.to.0 - self.from.0) * (self.to.1 - self.from.1)
    }
}

/// How often each label's place is looked for.
const ROUNDS: usize = 4;

/// Where the labels of dots go: each where it covers least of what is there already, the nearest of
/// equals. Labels are as wide as `widths` say and as high as `height`.
pub fn find(
    dots: &[Point],
    widths: &[f64],
    height: f64,
    taken: &[Area],
    frame: &Area,
) -> Vec<Area> {
    let mut taken: Vec<Area> = taken.to_vec();
    taken.extend(dots.iter().map(|dot| Area::around(*dot, 6.0)));
    // Those with many neighbours have least choice.
    let near = |dot: &Point| {
        dots.iter().filter(|other| (other.0 - dot.0).hypot(other.1 - dot.1) < 60.0).count()
    };
    let mut order: Vec<usize> = (0..dots.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(near(&dots[*i])));
    let mut found: Vec<Option<Area>> = vec![None; dots.len()];
    // Several rounds: the first labels were placed before it was known where the others would be.
    for i in order.repeat(ROUNDS) {
        found[i] = None;
        let cost = |(rank, area): &(usize, Area)| {
            let outside = area.size() - area.shared(frame);
            let others = taken.iter().chain(found.iter().flatten());
            others.map(|other| other.shared(area)).sum::<f64>()
                + 20.0 * outside
                + 100.0 * passed(dots[i], area, dots) as f64
                + *rank as f64 * 2.0
        };
        let all = candidates(dots[i], widths[i], height).into_iter().enumerate();
        let best = all.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        found[i] = best.map(|(_, area)| area);
    }
    found.into_iter().flatten().collect()
}

/// How many other dots a line from a dot to its label would touch.
fn passed(from: Point, label: &Area, dots: &[Point]) -> usize {
    let to = label.nearest(from);
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1.0);
    let touched = |dot: &&Point| {
        let (u, v) = (dot.0 - from.0, dot.1 - from.1);
        let (along, across) = ((u * x + v * y) / length, (u * y - v * x) / length);
        (0.0..=length).contains(&along) && across.abs() < 6.0 && **dot != from
    };
    dots.iter().filter(touched).count()
}

/// Places around a dot, the best first.
fn candidates((x, y): Point, width: f64, height: f64) -> Vec<Area> {
    let mut all = Vec::new();
    for away in [8.0, 16.0, 26.0, 38.0] {
        let (half, up) = (width / 2.0, height / 2.0);
        let level = [(x + away, y - up), (x - away - width, y - up)];
        let upright = [(x - half, y - away - height), (x - half, y + away)];
        let slope = away * 0.7;
        let corners = [
            (x + slope, y - slope - height),
            (x + slope, y + slope),
            (x - slope - width, y - slope - height),
            (x - slope - width, y + slope),
        ];
        let places = level.into_iter().chain(upright).chain(corners);
        all.extend(places.map(|from| Area { from, to: (from.0 + width, from.1 + height) }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_neighbours_do_not_cover_each_other_and_stay_in_the_frame() {
        let dots = [(10.0, 50.0), (14.0, 52.0), (18.0, 48.0), (190.0, 50.0), (100.0, 3.0)];
        let frame = Area { from: (0.0, 0.0), to: (200.0, 100.0) };
        let areas = find(&dots, &[40.0; 5], 12.0, &[], &frame);
        for (i, area) in areas.iter().enumerate() {
            assert!((area.shared(&frame) - area.size()).abs() < 1e-9, "{area:?}");
            assert!(areas[..i].iter().all(|other| area.shared(other) == 0.0), "{areas:?}");
        }
        // A line from the first to its label would touch the second.
        assert_eq!(passed((10.0, 10.0), &Area::around((50.0, 50.0), 5.0), &[(20.0, 21.0)]), 1);
        assert_eq!(passed((10.0, 10.0), &Area::around((50.0, 50.0), 5.0), &[(20.0, 40.0)]), 0);
        // With nothing around it, a label is to the right.
        assert_eq!(find(&[(50.0, 50.0)], &[40.0], 12.0, &[], &frame)[0].from, (58.0, 44.0));
    }
}
