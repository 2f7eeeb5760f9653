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

    /// With so much around it, at its sides and above and below.
    fn grown(&self, (across, up): (f64, f64)) -> Self {
        let from = (self.from.0 - across, self.from.1 - up);
        Area { from, to: (self.to.0 + across, self.to.1 + up) }
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

    /// Whether a line passes through it.
    fn is_crossed(&self, (from, to): (Point, Point)) -> bool {
        let ((left, top), (right, bottom)) = (self.from, self.to);
        let diagonals = [(self.from, self.to), ((left, bottom), (right, top))];
        diagonals.into_iter().any(|diagonal| cross((from, to), diagonal))
    }

    fn size(&self) -> f64 {
        (self.to.0 - self.from.0) * (self.to.1 - self.from.1)
    }
}

/// What is there before labels are.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// What a name would hide, or could be taken for a part of.
    pub marks: Vec<Area>,
    /// Lines, over which a name can be read.
    pub lines: Vec<Area>,
}

/// How far from its dot a label may be, in points.
const DISTANCES: [f64; 3] = [8.0, 14.0, 22.0];
/// Farther away for crowds, in this many directions.
const FAR: [f64; 11] = [22.0, 32.0, 44.0, 58.0, 76.0, 98.0, 124.0, 154.0, 188.0, 226.0, 268.0];
const DIRECTIONS: u32 = 32;
/// Names that are nearer to each other, at their sides or above and below, would be read as one.
const APART: (f64, f64) = (6.0, 1.0);
/// A label that is farther away has a line to its dot.
const LINE: f64 = 12.0;
/// Half of a dot's width, with some room around it.
const DOT: f64 = 6.5;
/// What it costs to touch a name or a dot at all, beside how much of it is covered.
const TOUCHED: f64 = 1000.0;
/// What it costs to cross a line or a name with a line.
const CROSSED: f64 = 800.0;
/// And a dot, whose line it would seem to be.
const DOT_CROSSED: f64 = 900.0;
/// What it costs to be next to another dot and farther from one's own.
const MISTAKEN: f64 = 250.0;
/// As far is next to it, in points.
const NEXT_TO: f64 = 16.0;
/// Arrangements that are made, of which the best is taken.
const ATTEMPTS: u64 = 4;
/// Changes that are tried for each label.
const TRIALS: usize = 8000;
/// How much worse the first of them may be; the last have to be better.
const WORSE: f64 = 1500.0;

/// A place for a label, with the line to it.
struct Choice {
    area: Area,
    line: Option<(Point, Point)>,
    /// What it costs wherever other labels are.
    alone: f64,
}

/// Where the labels of dots go: so that together they cover and cross least of what is there, and
/// are near. `sizes` are labels' widths and heights.
pub fn find(dots: &[Point], sizes: &[(f64, f64)], taken: &Taken, frame: &Area) -> Vec<Area> {
    let choice = |dot: Point, area: Area| Choice {
        area,
        line: line(dot, &area),
        alone: alone(dot, &area, dots, taken, frame),
    };
    let of_dot = |(dot, size): (&Point, &(f64, f64))| {
        candidates(*dot, *size).into_iter().map(|area| choice(*dot, area)).collect()
    };
    let choices: Vec<Vec<Choice>> = dots.iter().zip(sizes).map(of_dot).collect();
    let attempts = (1..=ATTEMPTS).map(|seed| attempt(&choices, seed));
    let best = attempts.min_by(|a, b| total(&choices, a).total_cmp(&total(&choices, b)));
    best.unwrap_or_default().iter().zip(&choices).map(|(at, all)| all[*at].area).collect()
}

/// How many faults an arrangement has: names over each other, over dots or over marks, and lines to
/// them that cross each other, names or dots.
pub fn faults(dots: &[Point], labels: &[Area], taken: &Taken) -> usize {
    let lines: Vec<Option<(Point, Point)>> =
        dots.iter().zip(labels).map(|(dot, label)| line(*dot, label)).collect();
    let mut faults = 0;
    for (i, label) in labels.iter().enumerate() {
        let on_dot = |other: &&Point| Area::around(**other, DOT).shared(label) > 0.0;
        faults += dots.iter().filter(on_dot).count();
        faults += taken.marks.iter().filter(|mark| mark.shared(label) > 0.0).count();
        faults += labels[..i].iter().filter(|other| other.shared(label) > 0.0).count();
        let Some(ours) = lines[i] else { continue };
        let other_dots = dots.iter().filter(|other| **other != dots[i]);
        faults += other_dots.filter(|other| is_on(ours, **other)).count();
        let others = labels.iter().enumerate().filter(|(other, _)| *other != i);
        faults += others.filter(|(_, other)| other.is_crossed(ours)).count();
        faults += lines[..i].iter().flatten().filter(|other| cross(ours, **other)).count();
    }
    faults
}

/// An arrangement, as the number of each label's choice.
fn attempt(choices: &[Vec<Choice>], seed: u64) -> Vec<usize> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut at: Vec<usize> = choices.iter().map(|all| least(all.iter().map(|c| c.alone))).collect();
    let trials = TRIALS * choices.len();
    for trial in 0..trials {
        let i = random.below(choices.len());
        let choice = random.below(choices[i].len());
        // At first what is worse is taken too, since the way to what is better leads over it.
        let left = 1.0 - trial as f64 / trials as f64;
        let worse = WORSE * left * left * left;
        if cost(choices, &at, i, choice) < cost(choices, &at, i, at[i]) + worse {
            at[i] = choice;
        }
    }
    // From there to where no label alone can be better.
    for i in (0..choices.len()).collect::<Vec<usize>>().repeat(4) {
        at[i] = least((0..choices[i].len()).map(|choice| cost(choices, &at, i, choice)));
    }
    at
}

/// What a choice costs for one label while the others are where they are.
fn cost(choices: &[Vec<Choice>], at: &[usize], i: usize, choice: usize) -> f64 {
    let ours = &choices[i][choice];
    let others = (0..at.len()).filter(|other| *other != i);
    ours.alone + others.map(|other| together(ours, &choices[other][at[other]])).sum::<f64>()
}

fn total(choices: &[Vec<Choice>], at: &[usize]) -> f64 {
    (0..at.len()).map(|i| cost(choices, at, i, at[i])).sum()
}

/// The number of the least of these.
fn least(costs: impl Iterator<Item = f64>) -> usize {
    costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
}

/// Marsaglia's xorshift: equal drawings are equal, so its seed is fixed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

/// What a label's place costs whatever the others' are.
fn alone(dot: Point, label: &Area, dots: &[Point], taken: &Taken, frame: &Area) -> f64 {
    // A name over a line can be read; one over a dot hides it.
    let lines = taken.lines.iter().map(|other| other.shared(label)).sum::<f64>();
    let spots = dots.iter().map(|other| touched(Area::around(*other, DOT).shared(label)));
    let marks = taken.marks.iter().map(|other| touched(other.shared(label)));
    let ours = line(dot, label);
    let over_mark = |mark: &&Area| ours.is_some_and(|ours| mark.is_crossed(ours));
    let own = between(label.nearest(dot), dot);
    let seems = |other: &&Point| between(label.nearest(**other), **other) < own.min(NEXT_TO);
    let is_crossed =
        |other: &&Point| ours.is_some_and(|ours| **other != dot && is_on(ours, **other));
    0.5 * lines
        + spots.sum::<f64>()
        + marks.sum::<f64>()
        + CROSSED * taken.marks.iter().filter(over_mark).count() as f64
        + 20.0 * (label.size() - label.shared(frame))
        + DOT_CROSSED * dots.iter().filter(is_crossed).count() as f64
        + MISTAKEN * dots.iter().filter(seems).count() as f64
        + 3.0 * own
}

/// What two labels cost each other.
fn together(a: &Choice, b: &Choice) -> f64 {
    let over = |area: &Area, line: Option<(Point, Point)>| {
        f64::from(u8::from(line.is_some_and(|line| area.is_crossed(line))))
    };
    let both = a.line.zip(b.line).is_some_and(|(ours, theirs)| cross(ours, theirs));
    let crossings = over(&a.area, b.line) + over(&b.area, a.line) + f64::from(u8::from(both));
    touched(a.area.grown(APART).shared(&b.area)) + CROSSED * crossings
}

fn touched(shared: f64) -> f64 {
    if shared > 0.0 { TOUCHED + shared } else { 0.0 }
}

fn between(a: Point, b: Point) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// The line from a dot's edge to its label, if the label is not beside it.
pub fn line(dot: Point, label: &Area) -> Option<(Point, Point)> {
    let to = label.nearest(dot);
    let length = between(dot, to);
    let edge = |from: f64, to: f64| from + (to - from) * DOT / length;
    (length > LINE).then(|| ((edge(dot.0, to.0), edge(dot.1, to.1)), to))
}

/// Whether a line passes over a dot.
fn is_on((from, to): (Point, Point), dot: Point) -> bool {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1.0);
    let (u, v) = (dot.0 - from.0, dot.1 - from.1);
    let (along, across) = ((u * x + v * y) / length, (u * y - v * x) / length);
    (0.0..=length).contains(&along) && across.abs() < DOT
}

/// Whether two lines have a point in common; those that only touch have none.
fn cross((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    let side = |p: Point, q: Point, r: Point| {
        ((q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0)).signum()
    };
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}

/// Places around a dot, the best first.
fn candidates((x, y): Point, (width, height): (f64, f64)) -> Vec<Area> {
    let (half, up) = (width / 2.0, height / 2.0);
    let mut all = Vec::new();
    for away in DISTANCES {
        let slope = away * 0.7;
        let places = [
            (x + away, y - up),
            (x - away - width, y - up),
            (x - half, y - away - height),
            (x - half, y + away),
            (x + slope, y - slope - height),
            (x + slope, y + slope),
            (x - slope - width, y - slope - height),
            (x - slope - width, y + slope),
            (x - width * 0.2, y - away - height),
            (x - width * 0.2, y + away),
            (x - width * 0.8, y - away - height),
            (x - width * 0.8, y + away),
            (x + away, y - up - away * 0.4),
            (x + away, y - up + away * 0.4),
            (x - away - width, y - up - away * 0.4),
            (x - away - width, y - up + away * 0.4),
        ];
        all.extend(places.map(|from| Area { from, to: (from.0 + width, from.1 + height) }));
    }
    for away in FAR {
        for direction in 0..DIRECTIONS {
            let angle = f64::from(direction) * std::f64::consts::TAU / f64::from(DIRECTIONS);
            let (sine, cosine) = angle.sin_cos();
            let (to_x, to_y) = (x + away * cosine, y + away * sine);
            // Where its nearest side or corner is.
            let left = to_x - width * (1.0 - (cosine * 1.5).clamp(-1.0, 1.0)) / 2.0;
            let top = to_y - height * (1.0 - (sine * 1.5).clamp(-1.0, 1.0)) / 2.0;
            all.push(Area { from: (left, top), to: (left + width, top + height) });
        }
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
        let areas = find(&dots, &[(40.0, 12.0); 5], &Taken::default(), &frame);
        for (i, area) in areas.iter().enumerate() {
            assert!((area.shared(&frame) - area.size()).abs() < 1e-9, "{area:?}");
            assert!(areas[..i].iter().all(|other| area.shared(other) == 0.0), "{areas:?}");
        }
        // With nothing around it, a label is to the right.
        let alone = find(&[(50.0, 50.0)], &[(40.0, 12.0)], &Taken::default(), &frame);
        assert_eq!(alone[0].from, (58.0, 44.0));
    }

    /// Twenty dots in a corner, with names as long as those of schemes.
    #[test]
    fn labels_of_a_crowd_are_far_away_and_have_no_fault() {
        let mut random = Random(7);
        let mut number = |most: usize| random.below(most) as f64;
        let dots: Vec<Point> = (0..20).map(|_| (20.0 + number(200), 240.0 + number(200))).collect();
        let sizes: Vec<(f64, f64)> = (0..20).map(|_| (40.0 + number(70), 15.5)).collect();
        let frame = Area { from: (0.0, 0.0), to: (440.0, 460.0) };
        let taken = Taken::default();
        let areas = find(&dots, &sizes, &taken, &frame);
        assert_eq!(faults(&dots, &areas, &taken), 0, "{dots:?} {areas:?}");
        let is_inside = |area: &Area| (area.shared(&frame) - area.size()).abs() < 1e-6;
        assert!(areas.iter().all(is_inside), "{areas:?}");
        // A line over a name, two lines over each other, a name on a dot, and a mark below a name.
        let place = |x: f64, y: f64| Area::around((x, y), 5.0);
        let count = |dots: &[Point], labels: &[Area]| faults(dots, labels, &taken);
        assert_eq!(
            count(&[(0.0, 50.0), (50.0, 70.0)], &[place(100.0, 50.0), place(50.0, 50.0)]),
            1
        );
        assert_eq!(count(&[(0.0, 0.0), (0.0, 50.0)], &[place(50.0, 50.0), place(50.0, 0.0)]), 1);
        assert_eq!(count(&[(0.0, 0.0), (50.0, 0.0)], &[place(12.0, 0.0), place(55.0, 0.0)]), 1);
        let marks = Taken { marks: vec![place(12.0, 0.0)], ..Taken::default() };
        assert_eq!(faults(&[(0.0, 0.0)], &[place(12.0, 0.0)], &marks), 1);
    }

    #[test]
    fn lines_to_labels_cross_what_is_in_their_way() {
        // From (10, 10) to a label whose nearest corner is at (45, 45).
        let (dot, label) = ((10.0, 10.0), Area::around((50.0, 50.0), 5.0));
        let frame = Area { from: (0.0, 0.0), to: (200.0, 100.0) };
        let over = |other: Point| {
            let of = |dots: &[Point]| alone(dot, &label, dots, &Taken::default(), &frame);
            of(&[dot, other]) - of(&[dot])
        };
        assert_eq!((over((20.0, 21.0)), over((20.0, 40.0))), (DOT_CROSSED, 0.0));
        // A name in the way; and one whose own line is across ours.
        let choice = |dot: Point, area: Area| Choice { area, line: line(dot, &area), alone: 0.0 };
        let with = |other: Point, name: Point| {
            together(&choice(dot, label), &choice(other, Area::around(name, 5.0)))
        };
        assert_eq!(with((30.0, 22.0), (30.0, 30.0)), CROSSED);
        assert_eq!(with((20.0, 40.0), (45.0, 15.0)), CROSSED);
        assert_eq!(with((80.0, 80.0), (95.0, 80.0)), 0.0);
        // Of two names 9 of 100 square points are the same; with six beside each and one above and
        // below it is 9 * 4.
        assert_eq!(with((53.0, 53.0), (57.0, 57.0)), TOUCHED + 36.0);
        // Four points are between these two: they would be read as one.
        assert_eq!(with((64.0, 50.0), (64.0, 50.0)), TOUCHED + 2.0 * 10.0);
        // Beside its dot a label needs no line.
        assert_eq!(line((10.0, 10.0), &Area::around((25.0, 10.0), 5.0)), None);
    }
}
