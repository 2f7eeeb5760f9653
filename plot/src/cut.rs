//! Which bars are broken, so that few high ones do not hide all others.

use super::Series;

/// What is broken is this many times as high as anything that is not.
const FAR: f64 = 6.0;
/// So many bars have to be whole, or there is nothing that the high ones hide.
const WHOLE: usize = 3;

/// The highest value that is drawn whole, if others are broken. Those are at few places, one in
/// five at most, and each of them is far above all that is whole.
pub fn highest_whole(series: &[Series], places: usize) -> Option<f64> {
    let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
    let positive = all.filter(|(_, value)| value.is_finite() && *value > 0.0);
    let mut heights: Vec<(&str, f64)> = positive.map(|(at, value)| (at.as_str(), *value)).collect();
    heights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = (places / 5).max(1);
    let mut at_places: Vec<&str> = Vec::new();
    let mut highest = None;
    for (i, two) in heights.windows(2).enumerate() {
        let ((place, high), (_, next)) = (two[0], two[1]);
        if !at_places.contains(&place) {
            at_places.push(place);
        }
        if at_places.len() > most || heights.len() - i <= WHOLE {
            break;
        }
        if high > FAR * next {
            highest = Some(next);
        }
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        let point = |(i, value): (usize, &f64)| (format!("p{i}"), *value);
        Series { points: values.iter().enumerate().map(point).collect(), ..Series::default() }
    }

    #[test]
    fn only_what_is_far_above_all_others_is_broken() {
        // 24.1 is; 1.2 is above the others and not far.
        let values = [24.1, 0.9, 1.2, 0.2, 0.5, 0.4];
        assert_eq!(highest_whole(&[series(&values)], 6), Some(1.2));
        // The second of the same place is judged for itself.
        let (one, two) = (series(&values), series(&[1.3, 0.1]));
        assert_eq!(highest_whole(&[one.clone(), two], 6), Some(1.3));
        // Two of one place that are both far above are both broken.
        assert_eq!(highest_whole(&[one, series(&[8.0])], 6), Some(1.2));
        // Six times as high is not far.
        assert_eq!(highest_whole(&[series(&[6.0, 1.0, 1.0, 1.0, 1.0])], 5), None);
        // Two of six places are too many, and of four values no three are left.
        assert_eq!(highest_whole(&[series(&[24.1, 24.0, 1.2, 0.2, 0.5, 0.4])], 6), None);
        assert_eq!(highest_whole(&[series(&[24.1, 1.0, 1.0])], 3), None);
        assert_eq!(highest_whole(&[series(&[24.1, 1.0, 1.0, 1.0])], 4), Some(1.0));
        assert_eq!(highest_whole(&[], 0), None);
    }
}
