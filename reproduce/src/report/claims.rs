//! Claims and what became of them, as tables.

use std::collections::BTreeMap;

use casemate_plot::{per_cent, reading};

use super::table::{NOTHING, lines};
use crate::data::{Basis, Claim, Experiment, Outcome, Paper, Verdict};

/// All verdicts, the best first.
pub const VERDICTS: [Verdict; 6] = [
    Verdict::Holds,
    Verdict::HoldsWeaker,
    Verdict::Undecided,
    Verdict::DoesNotHold,
    Verdict::ByConstruction,
    Verdict::NotMeasured,
];

/// A number in its unit, with half of its interval if that is known.
#[must_use]
pub fn amount(number: Option<f64>, half_width: Option<f64>, unit: &str) -> String {
    let Some(number) = number.filter(|number| number.is_finite()) else {
        return NOTHING.to_owned();
    };
    let beside = half_width.filter(|half| half.is_finite()).map(|half| match unit {
        "%" => per_cent(half / 100.0).trim_end_matches(" %").to_owned(),
        _ => reading(half),
    });
    let beside = beside.map_or(String::new(), |half| format!(" ±{half}"));
    let text = reading(number) + &beside;
    match unit {
        "%" if !beside.is_empty() => {
            format!("{}{beside} %", per_cent(number / 100.0).trim_end_matches(" %"))
        }
        "%" => per_cent(number / 100.0),
        "" => text,
        "x" => format!("{text}x"),
        unit if text == "1" => format!("{text} {}", unit.trim_end_matches('s')),
        unit => format!("{text} {unit}"),
    }
}

/// A number with the least and the greatest of its rounds, if it was measured; otherwise with half
/// of its interval.
#[must_use]
pub fn with_spread(
    number: Option<f64>,
    half_width: Option<f64>,
    range: Option<(f64, f64)>,
    unit: &str,
) -> String {
    let text = amount(number, half_width, unit);
    let Some((least, greatest)) = range else { return text };
    let [least, greatest] = [least, greatest].map(|end| amount(Some(end), None, unit));
    format!("{text} ({least} to {greatest})")
}

/// What a claim measured.
#[must_use]
pub fn ours(claim: &Claim) -> String {
    with_spread(claim.measured, claim.half_width, claim.range, &claim.unit)
}

/// What counts as agreement; an end that is nowhere is left out.
#[must_use]
pub fn between(range: (f64, f64), unit: &str) -> String {
    let end = |number: f64| amount(Some(number), None, unit);
    match (range.0.is_finite(), range.1.is_finite()) {
        (true, true) => format!("{} to {}", end(range.0), end(range.1)),
        (true, false) => format!("{} or more", end(range.0)),
        (false, true) => format!("{} or less", end(range.1)),
        (false, false) => NOTHING.to_owned(),
    }
}

/// How many claims of a kind have each verdict, in the order of [`VERDICTS`].
#[must_use]
pub fn counts(papers: &[&Paper], basis: Basis) -> [usize; 6] {
    let claims = || papers.iter().flat_map(|paper| &paper.claims);
    let of = |claim: &&Claim| claim.basis == basis;
    VERDICTS.map(|verdict| claims().filter(of).filter(|claim| claim.verdict == verdict).count())
}

/// The counts in words, a sentence for each kind of claims that there is: "3 simulated: 2 hold",
/// but as [`Verdict::words`] says it.
#[must_use]
pub fn counted(papers: &[&Paper]) -> String {
    let sentence = |(basis, name): (Basis, &str)| {
        let counts = counts(papers, basis);
        let all: usize = counts.iter().sum();
        let texts = VERDICTS.iter().zip(counts).filter(|(_, count)| *count > 0);
        let texts = texts.map(|(verdict, count)| format!("{count} {}", verdict.words()));
        (all > 0).then(|| format!("{all} {name}: {}.", texts.collect::<Vec<_>>().join(", ")))
    };
    let bases = [
        (Basis::Simulated, "simulated"),
        (Basis::Counted, "counted or done on bytes"),
        (Basis::Constructed, "that the machine was calibrated to"),
        (Basis::Measured, "of the machine at hand"),
    ];
    let sentences = bases.into_iter().filter_map(sentence).chain(experiments(papers));
    sentences.collect::<Vec<String>>().join(" ")
}

/// How many experiments there are, each counted once, and what became of them; none if there are
/// none.
fn experiments(papers: &[&Paper]) -> Option<String> {
    let of = |paper: &Paper| -> BTreeMap<String, Outcome> {
        let all = paper.claims.iter().flat_map(|claim| &claim.experiments);
        all.map(|experiment| (experiment.id.clone(), experiment.outcome)).collect()
    };
    let outcomes: Vec<Outcome> = papers.iter().flat_map(|paper| of(paper).into_values()).collect();
    let texts = [Outcome::Shows, Outcome::Undecided, Outcome::DoesNotShow, Outcome::NotRun]
        .map(|outcome| (outcome, outcomes.iter().filter(|of| **of == outcome).count()));
    let texts = texts.into_iter().filter(|(_, count)| *count > 0);
    let texts = texts.map(|(outcome, count)| format!("{count} {}", outcome.words()));
    let texts = texts.collect::<Vec<_>>().join(", ");
    (!outcomes.is_empty()).then(|| format!("{} experiments on causes: {texts}.", outcomes.len()))
}

/// What an experiment says of a claim's cause.
pub(super) fn tried(experiment: &Experiment) -> String {
    let Experiment { id, what, unit, expected, why, .. } = experiment;
    let measured = amount(experiment.measured, experiment.half_width, unit);
    let expected = between(*expected, unit);
    let words = experiment.outcome.words();
    format!("{id}: {what}: {measured}; expected {expected} ({why}): {words}")
}

/// Why there is nothing that shows a claim's cause, where something has to.
pub(super) fn untried(claim: &Claim) -> Option<&'static str> {
    let needs_one = matches!(claim.verdict, Verdict::HoldsWeaker | Verdict::DoesNotHold)
        && claim.basis == Basis::Simulated
        && !claim.finding.is_empty();
    (needs_one && claim.experiments.is_empty()).then_some("No experiment shows the cause.")
}

/// For the terminal: a line for each claim, in columns, and the counts below.
#[must_use]
pub fn claims_text(papers: &[&Paper]) -> String {
    let head = ["paper", "claim", "paper's value", "ours", "verdict"].map(str::to_owned);
    let mut rows = vec![head];
    for paper in papers {
        rows.extend(paper.claims.iter().map(|claim| {
            [
                paper.slug.clone(),
                claim.id.clone(),
                amount(claim.paper, None, &claim.unit),
                ours(claim),
                claim.verdict.words().to_owned(),
            ]
        }));
    }
    let letters = |text: &String| text.chars().count();
    let widths: Vec<usize> =
        (0..5).map(|i| rows.iter().map(|row| letters(&row[i])).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for [paper, claim, value, ours, verdict] in &rows {
        let (a, b, c, d) = (widths[0], widths[1], widths[2], widths[3]);
        text += &format!("{paper:a$}  {claim:b$}  {value:>c$}  {ours:>d$}  {verdict}\n");
    }
    text + &counted(papers) + "\n"
}

/// A row for each claim, with all digits.
#[must_use]
pub fn claims_csv(papers: &[&Paper]) -> String {
    let head = [
        "paper",
        "claim",
        "place",
        "what",
        "unit",
        "basis",
        "paper_value",
        "measured",
        "half_width",
        "least",
        "greatest",
        "holds_from",
        "holds_to",
        "weaker_from",
        "weaker_to",
        "verdict",
        "finding",
        "experiments",
    ];
    let rows = papers.iter().flat_map(|paper| paper.claims.iter().map(|c| row(&paper.slug, c)));
    lines(std::iter::once(head.map(str::to_owned).to_vec()).chain(rows))
}

fn row(paper: &str, claim: &Claim) -> Vec<String> {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map_or(String::new(), |value| value.to_string())
    };
    vec![
        paper.to_owned(),
        claim.id.clone(),
        claim.place.clone(),
        claim.what.clone(),
        claim.unit.clone(),
        basis(claim).to_owned(),
        number(claim.paper),
        number(claim.measured),
        number(claim.half_width),
        number(claim.range.map(|range| range.0)),
        number(claim.range.map(|range| range.1)),
        number(Some(claim.holds.0)),
        number(Some(claim.holds.1)),
        number(claim.weaker.map(|weaker| weaker.0)),
        number(claim.weaker.map(|weaker| weaker.1)),
        claim.verdict.words().to_owned(),
        claim.finding.clone(),
        claim.experiments.iter().map(outcome).collect::<Vec<_>>().join("; "),
    ]
}

fn outcome(experiment: &Experiment) -> String {
    format!("{}: {}", experiment.id, experiment.outcome.words())
}

/// What its number comes from, in a word.
fn basis(claim: &Claim) -> &'static str {
    match claim.basis {
        Basis::Simulated => "simulated",
        Basis::Counted => "counted",
        Basis::Constructed => "constructed",
        Basis::Measured => "measured",
    }
}

/// Why what counts as agreement does; empty if nothing is said.
pub(super) fn why_this_range(claim: &Claim) -> String {
    if claim.why.is_empty() { String::new() } else { format!("Why that range: {}.", claim.why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::paper;

    #[test]
    fn lines_are_aligned_and_each_claim_has_its_verdict() {
        let paper = paper();
        let text = claims_text(&[&paper]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 1 + paper.claims.len() + 1);
        let column = rows[0].find("verdict").expect("the head names it");
        for (claim, row) in paper.claims.iter().zip(&rows[1..]) {
            let verdict: String = row.chars().skip(column).collect();
            assert_eq!(verdict, claim.verdict.words(), "{text}");
            assert!(row.contains(&claim.id));
        }
        // One of each, and what was not measured is a dash.
        assert_eq!(
            *rows.last().expect("the counts"),
            "5 simulated: 1 holds, 1 holds weaker, 1 undecided, 1 does not hold here, 1 not \
             measured. 1 that the machine was calibrated to: 1 by construction. 2 experiments on \
             causes: 1 shows it, 1 does not show it."
        );
        assert!(rows[6].contains("  -  not measured"), "{text}");
        assert!(rows[1].contains("12.6 ±0.25 %"), "{text}");
        let mut other = paper.clone();
        other.claims[0].verdict = Verdict::DoesNotHold;
        assert_ne!(claims_text(&[&other]), text);
        assert_eq!(counts(&[&other, &paper], Basis::Simulated), [1, 2, 2, 3, 0, 2]);
        assert_eq!(counts(&[&other, &paper], Basis::Constructed), [0, 0, 0, 0, 2, 0]);
        assert_eq!(counts(&[&paper], Basis::Counted), [0; 6]);
    }

    #[test]
    fn what_has_no_experiment_says_so_if_it_needs_one() {
        let [holds, weaker, _, fails, ..] = &paper().claims[..] else { panic!("five claims") };
        let needs =
            |claim: &Claim| untried(&Claim { experiments: Vec::new(), ..claim.clone() }).is_some();
        assert!(!needs(holds) && needs(weaker) && needs(fails));
        assert!(untried(weaker).is_none());
        assert!(!needs(&Claim { basis: Basis::Measured, ..fails.clone() }));
        assert_eq!(
            tried(&fails.experiments[1]),
            "reach: without <reach>: 6.8 ±0.12 %; expected 0 % to 4.5 % (what reach leaves): \
             does not show it"
        );
    }

    #[test]
    fn the_table_of_claims_has_each_number() {
        let paper = paper();
        let text = claims_csv(&[&paper]);
        for claim in &paper.claims {
            let row = text.lines().find(|line| line.contains(&claim.id)).expect("a row");
            assert!(row.contains(claim.verdict.words()), "{row}");
            let paper = claim.paper.expect("each of these has one");
            assert!(row.contains(&format!(",{paper},")), "{row}");
            let measured = claim.measured.map_or(String::new(), |value| value.to_string());
            assert!(row.contains(&format!(",{measured},")), "{row}");
        }
        let columns = text.lines().next().map(|head| head.split(',').count());
        assert_eq!(columns, Some(18));
    }

    #[test]
    fn amounts_read_well() {
        let texts = [
            (Some(12.9), "%", "12.9 %"),
            (Some(1.47), "x", "1.47x"),
            (Some(0.5), "", "0.5"),
            (Some(40.0), "%", "40.0 %"),
            (Some(312.0), "%", "312 %"),
            (Some(7.0), "KiB", "7 KiB"),
            (Some(f64::NAN), "%", "-"),
            (None, "x", "-"),
        ];
        for (number, unit, text) in texts {
            assert_eq!(amount(number, None, unit), text);
        }
        assert_eq!(amount(Some(12.9), Some(0.31), "%"), "12.9 ±0.31 %");
        assert_eq!(amount(Some(1.47), Some(0.25), "x"), "1.47 ±0.25x");
        assert_eq!(amount(Some(7.0), Some(1.0), "KiB"), "7 ±1 KiB");
        assert_eq!(between((1.0, 2.5), "x"), "1x to 2.5x");
        assert_eq!(between((f64::NEG_INFINITY, 3.0), "%"), "3.0 % or less");
        assert_eq!(between((3.0, f64::INFINITY), "%"), "3.0 % or more");
    }
}
