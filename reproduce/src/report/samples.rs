//! A paper to test reports with.

use crate::data::{
    Basis, Chart, Claim, Evidence, Experiment, Figure, Outcome, Paper, Point, Range, Series,
    Verdict,
};
use crate::estimate::Estimate;

pub(crate) fn point(place: &str, value: Option<f64>, paper: Option<f64>) -> Point {
    Point { x: Some(1.5), paper, ..Point::of(place, value.map(Estimate::alone)) }
}

pub(crate) fn figure() -> Figure {
    let one = vec![
        point("gcc", Some(0.05), None),
        Point { half_width: Some(0.04), ..point("mcf", Some(0.3), Some(0.25)) },
        point("lbm", None, None),
    ];
    let two = vec![point("gcc", Some(0.02), None), point("mcf", Some(0.12), None)];
    Figure {
        id: "6".into(),
        title: "slow <& slower>".into(),
        source: "Figure 6".into(),
        note: "Read \"this\" <first>.".into(),
        chart: Chart::Bars,
        upright: "overhead".into(),
        level: "workload".into(),
        percent: true,
        level_percent: false,
        base: 0.0,
        series: vec![
            Series { name: "MT".into(), points: one },
            Series { name: "AISE|BMT".into(), points: two },
        ],
        ranges: vec![Range { name: "theirs".into(), x: (1.0, 2.0), y: (0.0, 0.2) }],
    }
}

fn claim(id: &str, paper: f64, measured: Option<f64>, verdict: Verdict) -> Claim {
    Claim {
        id: id.into(),
        place: "Section <6>".into(),
        what: format!("what {id} says & means"),
        unit: "%".into(),
        paper: Some(paper),
        basis: Basis::Simulated,
        measured,
        half_width: measured.map(|_| 0.25),
        range: None,
        holds: (1.0, 20.5),
        weaker: Some((0.5, 30.25)),
        why: format!("why {id}"),
        verdict,
        finding: format!("because of {id} <it>"),
        evidence: vec![Evidence {
            what: format!("misses of {id}"),
            unit: "x".into(),
            measured: Some(3.75),
            half_width: None,
        }],
        experiments: Vec::new(),
    }
}

fn experiment(id: &str, measured: f64, outcome: Outcome) -> Experiment {
    Experiment {
        id: id.into(),
        what: format!("without <{id}>"),
        unit: "%".into(),
        measured: Some(measured),
        half_width: Some(0.125),
        expected: (0.0, 4.5),
        why: format!("what {id} leaves"),
        outcome,
    }
}

/// With one claim of each verdict.
pub(crate) fn paper() -> Paper {
    Paper {
        slug: "sample".into(),
        name: "Somebody & Else 2007".into(),
        title: "On <things>".into(),
        machine: "A machine | with 1 MiB.".into(),
        remarks: vec!["Seventeen traces.".into(), "Took <long>.".into()],
        figures: vec![figure(), Figure { id: "t2".into(), chart: Chart::Table, ..figure() }],
        claims: vec![
            claim("average", 12.125, Some(12.625), Verdict::Holds),
            Claim {
                experiments: vec![experiment("cipher", 3.25, Outcome::Shows)],
                ..claim("worst", 25.75, Some(20.875), Verdict::HoldsWeaker)
            },
            claim("writes", 19.5, Some(20.375), Verdict::Undecided),
            Claim {
                experiments: vec![
                    experiment("cipher", 3.25, Outcome::Shows),
                    experiment("reach", 6.75, Outcome::DoesNotShow),
                ],
                ..claim("split", 8.5, Some(90.375), Verdict::DoesNotHold)
            },
            Claim {
                basis: Basis::Constructed,
                ..claim("bus", 14.125, Some(14.375), Verdict::ByConstruction)
            },
            claim("energy", 7.625, None, Verdict::NotMeasured),
        ],
        provenance: serde_json::json!({"version": "0.1.0", "traces": {"gcc": "<ab12>"}}),
    }
}
