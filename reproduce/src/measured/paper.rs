//! Figures and claims of what was measured.

use casemate_sim::results::provenance::Casemate;
use serde_json::json;

use super::spec::{self, Spec};
use super::{Measurements, Session};
use crate::claims::Claims;
use crate::data::{Basis, Claim, Figure, Paper, Point, Series};
use crate::estimate::Estimate;

/// The paper with what was measured: the figures of these names and the claims about them, or all
/// if there are none.
#[must_use]
pub fn paper(
    slug: &str,
    (spec, claims): (&Spec, &Claims),
    measured: &Measurements,
    named: &[String],
) -> Paper {
    let figures: Vec<Figure> =
        spec.wanted(named).map(|figure| assembled(spec, figure, measured)).collect();
    let judge = |claim| judged(claim, &figures, measured.quick);
    let claims = claims.of_figures(named).map(judge).collect();
    Paper {
        slug: slug.to_owned(),
        name: spec.name.clone(),
        title: spec.title.clone(),
        machine: spec.machine.clone(),
        remarks: remarks(measured),
        claims,
        figures,
        provenance: json!({
            "casemate": Casemate::this(),
            "quick": measured.quick,
            "sessions": measured.sessions,
        }),
    }
}

/// A figure with its values; what was not measured has none.
fn assembled(spec: &Spec, figure: &spec::Figure, measured: &Measurements) -> Figure {
    let places = spec.benchmark_of(figure).map(spec::Benchmark::places).unwrap_or_default();
    let series = figure.series.iter().map(|series| {
        let paper = |place: &String| figure.paper.get(&series.name)?.get(place).copied();
        let point = |place: &String| Point {
            paper: paper(place),
            ..Point::of(place, value(figure, measured, place, &series.system))
        };
        Series { name: series.name.clone(), points: places.iter().map(point).collect() }
    });
    Figure {
        id: figure.id.clone(),
        title: figure.title.clone(),
        source: figure.source.clone(),
        note: figure.note.clone(),
        chart: figure.chart,
        upright: figure.upright.clone(),
        level: figure.level.clone(),
        percent: figure.percent,
        level_percent: false,
        base: 0.0,
        series: series.collect(),
        ranges: Vec::new(),
    }
}

fn value(
    figure: &spec::Figure,
    measured: &Measurements,
    place: &str,
    system: &str,
) -> Option<Estimate> {
    let sum = |system: &str| {
        let one = |quantity: &String| {
            let rounds = measured.rounds((&figure.benchmark, place, system, quantity))?;
            Estimate::of_rounds(rounds.to_vec())
        };
        let all: Vec<Estimate> = figure.quantity.iter().map(one).collect::<Option<_>>()?;
        Some(Estimate::mean_of(&all)?.scaled(all.len() as f64, 0.0))
    };
    let mut value = sum(system)?;
    if let Some(system) = &figure.minus {
        value = value.minus(&sum(system)?);
    }
    if let Some(system) = &figure.over {
        value = value.over(&sum(system)?)?;
    }
    Some(if figure.percent { value.scaled(1.0, -1.0) } else { value })
}

fn judged(claim: &crate::claims::Stated, figures: &[Figure], quick: bool) -> Claim {
    let mut claim = Claim { basis: Basis::Measured, ..claim.judge(figures, |_| false) };
    if quick && claim.measured.is_some() {
        // It explains what a full run measured.
        claim.finding.clear();
        claim.evidence.clear();
    }
    claim
}

fn remarks(measured: &Measurements) -> Vec<String> {
    let session = |session: &Session| {
        let [before, after] = session.load;
        format!(
            "Benchmarks {}: measured on {}, {}, {} rounds of everything in turns. Processes that \
             wanted to run (load average of a minute): {before:.1} at the beginning, {after:.1} at \
             the end.",
            session.benchmarks.join(", "),
            session.date,
            session.machine,
            session.rounds
        )
    };
    let mut remarks: Vec<String> = measured.sessions.iter().map(session).collect();
    remarks.push(
        "Values are medians of the rounds, with least and greatest. Ratios, sums and differences \
         are taken within a round. Bars of error are the median's interval of 95 %, by ranks (of 15 \
         rounds, from the fourth to the twelfth), and a claim is undecided if that has two verdicts."
            .to_owned(),
    );
    if measured.quick {
        let quick = "With --quick: few places and rounds. It shows that all works, and no more.";
        remarks.push(quick.to_owned());
    }
    remarks.extend(measured.sessions.iter().flat_map(|session| session.notes.clone()));
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Verdict;
    use crate::measured::Measured;
    use crate::papers::MEASURED;

    const SPEC: &str = r#"
        name = "Test"
        title = ""
        machine = ""
        rounds = 6
        quick_rounds = 1
        [[benchmark]]
        kind = "memeater"
        id = "m"
        mode = "stripe"
        clears = ["4M"]
        pages = [10, 20]
        quick_pages = [10]
        systems = ["plain", "casemate"]
        [[figure]]
        id = "both"
        title = ""
        chart = "lines"
        benchmark = "m"
        quantity = ["write", "read"]
        over = "plain"
        upright = ""
        level = ""
        series = [{ name = "ours", system = "casemate" }]
        [[figure]]
        id = "more"
        title = ""
        chart = "bars"
        benchmark = "m"
        quantity = ["read"]
        over = "plain"
        percent = true
        upright = ""
        level = ""
        series = [{ name = "ours", system = "casemate" }]
        [[figure]]
        id = "added"
        title = ""
        chart = "table"
        benchmark = "m"
        quantity = ["read"]
        minus = "plain"
        upright = ""
        level = ""
        series = [{ name = "ours", system = "casemate" }]
    "#;

    /// Six rounds at two places. At 10 pages a read takes 2 to 7 µs for plain's 1, a write 3 for
    /// plain's 1; at 20 pages reads take 20 and writes 4, for 2 and 2.
    fn measured() -> Measurements {
        let cell = |place: &str, system: &str, quantity: &str, rounds: [f64; 6]| Measured {
            benchmark: "m".to_owned(),
            place: place.to_owned(),
            system: system.to_owned(),
            quantity: quantity.to_owned(),
            rounds: rounds.to_vec(),
        };
        let rising = [2.0, 7.0, 3.0, 4.0, 6.0, 5.0];
        Measurements {
            quick: false,
            sessions: vec![Session {
                notes: vec!["zram: not measured: it needs root".to_owned()],
                ..Session::default()
            }],
            cells: vec![
                cell("10", "plain", "read", [1.0; 6]),
                cell("10", "plain", "write", [1.0; 6]),
                cell("10", "casemate", "read", rising),
                cell("10", "casemate", "write", [3.0; 6]),
                cell("20", "plain", "read", [2.0; 6]),
                cell("20", "plain", "write", [2.0; 6]),
                cell("20", "casemate", "read", [20.0; 6]),
                cell("20", "casemate", "write", [4.0; 6]),
            ],
        }
    }

    fn claims(rest: &str) -> Claims {
        let head = "[[claim]]\nid = 'c'\nplace = ''\nwhat = ''\nunit = 'x'\n";
        Claims::read("test", &format!("{head}{rest}")).expect("it is right")
    }

    fn judge(rest: &str, measured: &Measurements) -> Claim {
        let spec = Spec::read("test", SPEC).expect("it is right");
        paper("test", (&spec, &claims(rest)), measured, &[]).claims.remove(0)
    }

    /// Sums of a read and a write, over plain's: (2 to 7 and 3) over 2 are 2.5 to 5, in the middle
    /// 3.75; 24 over 4 are 6.
    #[test]
    fn figures_are_medians_of_what_rounds_gave() {
        let spec = Spec::read("test", SPEC).expect("it is right");
        let paper = paper("test", (&spec, &Claims::default()), &measured(), &[]);
        let found = |figure: usize, point: usize| {
            let point = &paper.figures[figure].series[0].points[point];
            (point.value, point.estimate().and_then(|value| value.range()))
        };
        assert_eq!(found(0, 0), (Some(3.75), Some((2.5, 5.0))));
        assert_eq!(found(0, 1), (Some(6.0), Some((6.0, 6.0))));
        // 4.5 times as much is 350 % more.
        assert_eq!(found(1, 0), (Some(3.5), Some((1.0, 6.0))));
        assert_eq!(found(2, 1), (Some(18.0), Some((18.0, 18.0))));
        assert!(paper.remarks.iter().any(|remark| remark.contains("needs root")));
    }

    #[test]
    fn verdicts_are_those_of_all_rounds() {
        let verdict = |holds: &str, at: &str| {
            let measure = format!("measure = {{ figure = 'both', series = 'ours', at = {at} }}");
            let rest = format!("why = 'y'\nholds = {holds}\nweaker = [1, 9]\n{measure}");
            let claim = judge(&rest, &measured());
            (claim.verdict, claim.measured, claim.range, claim.basis)
        };
        let of = |verdict, value, range| (verdict, Some(value), Some(range), Basis::Measured);
        let range = (2.5, 5.0);
        assert_eq!(verdict("[2, 5]", "'10'"), of(Verdict::Holds, 3.75, range));
        assert_eq!(verdict("[5.5, 6]", "'10'"), of(Verdict::HoldsWeaker, 3.75, range));
        // One round of six is beyond 4.9.
        assert_eq!(verdict("[2, 4.9]", "'10'"), of(Verdict::Undecided, 3.75, range));
        // The means of both places: 4.25 to 5.5, in the middle 4.875.
        assert_eq!(verdict("[4, 6]", "'mean'"), of(Verdict::Holds, 4.875, (4.25, 5.5)));
        let among = "'max', among = ['10']";
        assert_eq!(verdict("[2, 5]", among), of(Verdict::Holds, 3.75, range));
        assert_eq!(verdict("[7, 8]", "'20'"), of(Verdict::HoldsWeaker, 6.0, (6.0, 6.0)));
    }

    /// The canary: were everything said to hold, this would.
    #[test]
    fn what_is_far_from_its_range_does_not_hold() {
        let rest = "why = 'y'\nfinding = 'f'\npaper = 61\nholds = [60, 62]\nmeasure = { figure = \
                    'both', series = 'ours', at = '20' }";
        let claim = judge(rest, &measured());
        assert_eq!((claim.verdict, claim.finding.as_str()), (Verdict::DoesNotHold, "f"));
    }

    #[test]
    fn what_was_not_measured_has_no_verdict_and_no_number() {
        let measure = "why = 'y'\nholds = [0, 9]\nmeasure = { figure = 'both', series = 'ours', \
                       at = '10' }";
        let mut without = measured();
        without.cells.retain(|cell| cell.system != "plain");
        let claim = judge(measure, &without);
        assert_eq!((claim.verdict, claim.measured), (Verdict::NotMeasured, None));
        let claim = judge("not_measured = 'no browser'", &measured());
        assert_eq!((claim.verdict, claim.finding.as_str()), (Verdict::NotMeasured, "no browser"));
        // A quick run has no findings, but the reason stands.
        let quick = Measurements { quick: true, ..measured() };
        assert_eq!(judge("not_measured = 'no browser'", &quick).finding, "no browser");
        assert_eq!(judge(&format!("finding = 'f'\n{measure}"), &quick).finding, "");
        for wrong in ["", &format!("not_measured = ''\n{measure}")] {
            let head = "[[claim]]\nid = 'c'\nplace = ''\nwhat = ''\nunit = 'x'\n";
            assert!(Claims::read("test", &format!("{head}{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_published_is_what_its_measurements_say() {
        let out = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../papers"));
        for folder in MEASURED {
            let (spec, claims) = folder.read_measured().expect("it is right");
            let results = crate::files::results(out, folder.slug);
            let file = |name: &str| std::fs::read_to_string(results.join(name)).expect(name);
            let measured =
                serde_json::from_str(&file(crate::files::MEASUREMENTS)).expect("a run's results");
            let paper = paper(folder.slug, (&spec, &claims), &measured, &[]);
            assert_eq!(file("claims.csv"), crate::report::claims_csv(&[&paper]));
            for figure in &paper.figures {
                let table = file(&crate::files::table_name(&figure.id));
                assert_eq!(table, crate::report::csv(figure), "{}", figure.id);
            }
        }
    }
}
