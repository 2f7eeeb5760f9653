//! The papers, compiled in.

use anyhow::{Result, bail, ensure};
use casemate_schemes::nearest::meant;

use crate::claims::Claims;
use crate::spec::Spec;

/// A paper's folder.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// Its name in `papers/`.
    pub slug: &'static str,
    figures: &'static str,
    claims: &'static str,
}

macro_rules! folder {
    ($slug:literal) => {
        Folder {
            slug: $slug,
            figures: include_str!(concat!("../../papers/", $slug, "/figures.toml")),
            claims: include_str!(concat!("../../papers/", $slug, "/claims.toml")),
        }
    };
}

/// All of them, in the order in which they appeared; ours is the last.
pub const PAPERS: [Folder; 5] = [
    folder!("otp-snc"),
    folder!("lhash"),
    folder!("aise-bmt"),
    folder!("delta-ecc"),
    folder!("modern"),
];

/// The papers that a user means: one by its name, or all.
///
/// # Errors
/// There is none of that name.
pub fn of_name(name: &str) -> Result<Vec<Folder>> {
    if name == "all" {
        return Ok(PAPERS.to_vec());
    }
    let found: Vec<Folder> = PAPERS.iter().filter(|paper| paper.slug == name).copied().collect();
    if found.is_empty() {
        let known: Vec<&str> = PAPERS.iter().map(|paper| paper.slug).collect();
        let meant = meant(name, known.iter().copied());
        bail!("there is no paper {name}{meant}; there are {}, and all", known.join(", "));
    }
    Ok(found)
}

impl Folder {
    /// What is run for it, and what it claims.
    ///
    /// # Errors
    /// A file is wrong, or they contradict each other.
    pub fn read(&self) -> Result<(Spec, Claims)> {
        let spec = Spec::read(&format!("papers/{}/figures.toml", self.slug), self.figures)?;
        let name = format!("papers/{}/claims.toml", self.slug);
        let claims = Claims::read(&name, self.claims)?;
        for (id, cell) in claims.cells() {
            let figure = spec.figures.iter().find(|figure| figure.id == cell.figure);
            let Some(figure) = figure else {
                bail!("{name}: claim {id}: there is no figure {}", cell.figure);
            };
            let known = figure.compute.is_some()
                || figure.series.iter().any(|series| series.name == cell.series);
            ensure!(known, "{name}: claim {id}: figure {} has no {}", figure.id, cell.series);
        }
        Ok((spec, claims))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Wanted;
    use casemate_sim::config::presets::PRESETS;

    /// README counts what the last full run found, of simulated claims apart from others.
    #[test]
    fn readme_counts_the_claims_of_the_results() {
        let found = include_str!("../../papers/claims.csv");
        let count = |slug: &str, basis: &str, verdict: &str| {
            let of = |line: &&str| {
                line.starts_with(slug)
                    && line.contains(&format!(",{basis},"))
                    && line.contains(&format!(",{verdict},"))
            };
            found.lines().filter(of).count()
        };
        let verdicts = ["holds", "holds weaker", "undecided", "does not hold here"];
        let of = |slug: &str, basis: &str| verdicts.map(|verdict| count(slug, basis, verdict));
        assert_eq!(count("", "", "not measured"), 0, "the results are not of a full run");
        let simulated = of("", "simulated");
        let (counted, constructed) =
            (of("", "counted"), count("", "constructed", "by construction"));
        let stated: Vec<_> = PAPERS
            .iter()
            .flat_map(|p| p.read().map_or(Vec::new(), |(_, all)| all.claims))
            .collect();
        let calibrated = stated.iter().filter(|claim| claim.by_construction).count();
        assert_eq!(constructed, calibrated, "a calibration does not hold any more");
        let all: usize = simulated.iter().chain(&counted).sum();
        assert_eq!(all + calibrated, stated.len(), "claims were added since the results were made");
        let [holds, weaker, undecided, fails] = simulated;
        let [counted_holds, counted_others @ ..] = counted;
        let (all, other) = (simulated.iter().sum::<usize>(), counted_others.iter().sum::<usize>());
        let sentences = [
            format!(
                "Of {all} simulated claims {holds} hold, {weaker} hold weaker, {undecided} are \
                 undecided and {fails} do not hold here"
            ),
            format!("Of {} that are counted {counted_holds} hold", counted_holds + other),
            format!("{calibrated} more is by construction"),
        ];
        for document in [include_str!("../../README.md"), include_str!("../../docs/simulator.md")] {
            let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
            for sentence in &sentences {
                assert!(words.contains(sentence), "a document does not say: {sentence}");
            }
        }
        for paper in PAPERS.iter().filter(|paper| paper.slug != "modern") {
            let [holds, weaker, undecided, fails] = of(paper.slug, "simulated");
            let [counted, ..] = of(paper.slug, "counted");
            let all = holds + weaker + undecided + fails;
            let row = format!(
                "/{}/results/report.md) | {all} | {holds} | {weaker} | {undecided} | {fails} | \
                 {counted} |",
                paper.slug
            );
            assert!(include_str!("../../README.md").contains(&row), "README has no row: {row}");
        }
    }

    #[test]
    fn every_figure_is_in_its_papers_readme() {
        for paper in PAPERS {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../papers/");
            let readme = std::fs::read_to_string(format!("{folder}{}/README.md", paper.slug));
            let readme = readme.expect("each paper has one");
            let (spec, _) = paper.read().expect("it can be read");
            for id in spec.figures.iter().map(|figure| &figure.id) {
                // Those whose number is the paper's may be one of a range, or stand in a sentence.
                let is_ours = !id.starts_with(|c: char| c.is_ascii_digit()) || id.contains('-');
                let named = readme.contains(&format!("`{id}`"));
                assert!(named || !is_ours, "{}: README does not name figure {id}", paper.slug);
            }
        }
    }

    #[test]
    fn todays_machine_has_every_scheme() {
        let modern = of_name("modern").expect("it is there")[0];
        let (spec, _) = modern.read().expect("it can be read");
        for id in ["overheads", "traffic", "pollution"] {
            let figure = spec.figures.iter().find(|figure| figure.id == id).expect(id);
            let missing = |scheme: &str| !figure.series.iter().any(|s| s.scheme == scheme);
            for named in casemate_schemes::catalogue::SCHEMES.iter() {
                // The baseline is what others are compared with.
                assert!(named.name == "none" || !missing(&named.name), "{id}: {}", named.name);
            }
        }
    }

    /// Each lists what it compiles in; a machine without claims, or the other way round, is one
    /// that was forgotten.
    #[test]
    fn every_paper_has_its_machine_and_every_machine_its_paper() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        let papers = sorted(PAPERS.iter().map(|paper| paper.slug).collect());
        let machines = sorted(PRESETS.iter().map(|preset| preset.name).collect());
        assert_eq!(papers, machines);
    }

    #[test]
    fn all_papers_can_be_read_and_planned() {
        for paper in PAPERS {
            let (spec, _) = paper.read().unwrap_or_else(|error| panic!("{error:#}"));
            for quick in [false, true] {
                let plan = spec.plan(&Wanted { quick, figures: Vec::new() });
                let plan = plan.unwrap_or_else(|error| panic!("{}: {error:#}", paper.slug));
                assert!(!plan.runs.is_empty(), "{}", paper.slug);
            }
        }
        assert!(of_name("nobody").is_err());
    }
}
