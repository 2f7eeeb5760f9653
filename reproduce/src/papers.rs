//! The papers, compiled in.

use anyhow::{Context, Result, bail, ensure};
use casemate_schemes::nearest::meant;

use crate::cell;
use crate::claims::Claims;
use crate::measured;
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

/// Those that are simulated, in the order in which they appeared; ours is the last.
pub const PAPERS: [Folder; 5] = [
    folder!("otp-snc"),
    folder!("lhash"),
    folder!("aise-bmt"),
    folder!("delta-ecc"),
    folder!("modern"),
];

/// Those that are measured on the machine at hand. Their results are of that machine and that hour,
/// and need its privileges, so they are not among all.
pub const MEASURED: [Folder; 1] = [folder!("cryptkeeper")];

/// A paper that is measured, if that is its name.
#[must_use]
pub fn measured(name: &str) -> Option<Folder> {
    MEASURED.into_iter().find(|paper| paper.slug == name)
}

/// The simulated papers that a user means: one by its name, or all.
///
/// # Errors
/// There is none of that name.
pub fn of_name(name: &str) -> Result<Vec<Folder>> {
    if name == "all" {
        return Ok(PAPERS.to_vec());
    }
    let found: Vec<Folder> = PAPERS.iter().filter(|paper| paper.slug == name).copied().collect();
    if found.is_empty() {
        let known: Vec<&str> = PAPERS.iter().chain(&MEASURED).map(|paper| paper.slug).collect();
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
        for (who, cell) in claims.cells() {
            let figure = spec.figures.iter().find(|figure| figure.id == cell.figure);
            let Some(figure) = figure else {
                bail!("{name}: {who}: there is no figure {}", cell.figure);
            };
            let id = &figure.id;
            let is_known = figure.compute.is_some()
                || figure.series.iter().any(|series| series.name == cell.series);
            ensure!(is_known, "{name}: {who}: figure {id} has no {}", cell.series);
            for place in cell.among.iter().chain(Some(&cell.at)) {
                let is_known = cell::is_of_all(place) || spec.has_place(figure, place);
                ensure!(is_known, "{name}: {who}: figure {id} has no {place}");
            }
        }
        Ok((spec, claims))
    }

    /// What is measured for it, and what it claims.
    ///
    /// # Errors
    /// A file is wrong, or they contradict each other.
    pub fn read_measured(&self) -> Result<(measured::spec::Spec, Claims)> {
        let name = format!("papers/{}/figures.toml", self.slug);
        let spec = measured::spec::Spec::read(&name, self.figures)?;
        let name = format!("papers/{}/claims.toml", self.slug);
        let claims = Claims::read(&name, self.claims)?;
        spec.check_claims(&claims).with_context(|| name)?;
        Ok((spec, claims))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Basis, Verdict};
    use crate::plan::Wanted;
    use crate::published;
    use casemate_sim::config::presets::PRESETS;

    /// A verdict of the last full run.
    struct Judged {
        slug: &'static str,
        id: String,
        basis: Basis,
        verdict: String,
    }

    /// Rows of a table of claims, the head first.
    fn rows(text: &str) -> impl Iterator<Item = Vec<String>> {
        published::rows(text).expect("a table").into_iter()
    }

    /// All of them. A claim that is stated no longer was of a simulated figure.
    fn judged() -> Vec<Judged> {
        let mut lines = rows(include_str!("../../papers/claims.csv"));
        let head = lines.next().expect("a head");
        let column = |name: &str| head.iter().position(|known| known == name).expect("a column");
        let (paper, claim, verdict) = (column("paper"), column("claim"), column("verdict"));
        let read: Vec<_> =
            PAPERS.iter().map(|paper| (paper.slug, paper.read().expect("it is right"))).collect();
        lines
            .map(|row| {
                let of = read.iter().find(|(slug, _)| *slug == row[paper]);
                let (slug, (spec, claims)) = of.expect("a paper");
                let stated = claims.claims.iter().find(|stated| stated.id == row[claim]);
                let basis = stated.map_or(Basis::Simulated, |stated| {
                    stated.basis(|figure| spec.is_counted(figure))
                });
                Judged { slug, id: row[claim].clone(), basis, verdict: row[verdict].clone() }
            })
            .collect()
    }

    /// README counts what the last full run found, of simulated claims apart from others.
    #[test]
    fn readme_counts_the_claims_of_the_results() {
        let judged = judged();
        let count = |slug: &str, basis: Basis, verdict: &str| {
            let is_it = |of: &&Judged| {
                (slug.is_empty() || of.slug == slug) && of.basis == basis && of.verdict == verdict
            };
            judged.iter().filter(is_it).count()
        };
        let verdicts = ["holds", "holds weaker", "undecided", "does not hold here"];
        let of = |slug: &str, basis: Basis| verdicts.map(|verdict| count(slug, basis, verdict));
        let (simulated, counted) = (of("", Basis::Simulated), of("", Basis::Counted));
        let constructed = count("", Basis::Constructed, "by construction");
        let all: usize = simulated.iter().chain(&counted).sum();
        assert_eq!(all + constructed, judged.len(), "some were not measured, or not calibrated");
        let [holds, weaker, undecided, fails] = simulated;
        let (all, of_counted): (usize, usize) = (simulated.iter().sum(), counted.iter().sum());
        let sentences = [
            format!(
                "Of {all} simulated claims {holds} hold, {weaker} hold weaker, {undecided} are \
                 undecided and {fails} do not hold here"
            ),
            format!("Of {of_counted} that are counted {} hold", counted[0]),
            format!("{constructed} more is by construction"),
        ];
        for document in [include_str!("../../README.md"), include_str!("../../docs/simulator.md")] {
            let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
            for sentence in &sentences {
                assert!(words.contains(sentence), "a document does not say: {sentence}");
            }
            for paper in PAPERS.iter().filter(|paper| paper.slug != "modern") {
                let [holds, weaker, undecided, fails] = of(paper.slug, Basis::Simulated);
                let [counted, ..] = of(paper.slug, Basis::Counted);
                let all = holds + weaker + undecided + fails;
                let row = format!(
                    "/{}/results/report.md) | {all} | {holds} | {weaker} | {undecided} | {fails} \
                     | {counted} |",
                    paper.slug
                );
                assert!(document.contains(&row), "a document has no row: {row}");
            }
        }
    }

    /// A verdict counts if the interval is within the range, so there is none without one.
    #[test]
    fn every_simulated_claim_has_an_interval() {
        let mut rows = rows(include_str!("../../papers/claims.csv"));
        let head = rows.next().expect("a head");
        let column = |name: &str| head.iter().position(|known| known == name).expect("a column");
        let [claim, basis, half_width] = ["claim", "basis", "half_width"].map(column);
        let simulated: Vec<_> = rows.filter(|row| row[basis] == "simulated").collect();
        assert!(simulated.len() > 100);
        for row in simulated {
            assert!(!row[half_width].is_empty(), "{} has none", row[claim]);
        }
    }

    /// README counts what the last measurements found, too.
    #[test]
    fn readme_counts_the_claims_that_were_measured() {
        let mut rows = rows(include_str!("../../papers/cryptkeeper/results/claims.csv"));
        let head = rows.next().expect("a head");
        let column = head.iter().position(|name| name == "verdict").expect("a column");
        let verdicts: Vec<String> = rows.map(|row| row[column].clone()).collect();
        let count = |verdict: &str| verdicts.iter().filter(|found| *found == verdict).count();
        let [holds, weaker, undecided, fails, not] =
            ["holds", "holds weaker", "undecided", "does not hold here", "not measured"].map(count);
        let all = holds + weaker + undecided + fails;
        assert_eq!(all + not, verdicts.len());
        let sentence = format!(
            "Of {all} claims of Cryptkeeper that are measured on a machine {holds} hold, {weaker} \
             hold weaker, {undecided} are undecided and {fails} do not hold here; {not} more could \
             not be measured"
        );
        for document in [include_str!("../../README.md"), include_str!("../../docs/simulator.md")] {
            let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&sentence), "a document does not say: {sentence}");
        }
    }

    /// Claims that have no verdict yet, and verdicts on what is claimed no longer: the log of
    /// changes names them.
    #[test]
    fn claims_that_differ_from_the_results_are_logged() {
        let (judged, log) = (judged(), include_str!("../../papers/CHANGES.md"));
        let is_logged = |id: &str| log.contains(&format!("`{id}`"));
        for paper in PAPERS {
            let (_, claims) = paper.read().expect("it is right");
            let stated: Vec<&str> = claims.claims.iter().map(|claim| &*claim.id).collect();
            let found = judged.iter().filter(|of| of.slug == paper.slug);
            let found: Vec<&str> = found.map(|of| &*of.id).collect();
            let new = stated.iter().filter(|id| !found.contains(id));
            let old = found.iter().filter(|id| !stated.contains(id));
            for id in new.chain(old) {
                assert!(is_logged(id), "{}: claim {id} is neither run nor logged", paper.slug);
            }
        }
    }

    /// What a finding says of such a claim is an argument; an experiment shows it, or that it is
    /// wrong.
    #[test]
    fn what_does_not_hold_or_holds_weaker_has_an_experiment() {
        let words = [Verdict::HoldsWeaker, Verdict::DoesNotHold].map(Verdict::words);
        let judged = judged().into_iter().filter(|of| words.contains(&&*of.verdict));
        for of in judged.filter(|of| of.basis == Basis::Simulated) {
            let paper = PAPERS.iter().find(|paper| paper.slug == of.slug).expect("a paper");
            let (_, claims) = paper.read().expect("it is right");
            let stated = claims.claims.iter().find(|stated| stated.id == of.id);
            let is_tried = stated.is_none_or(|stated| !stated.experiments.is_empty());
            assert!(is_tried, "{}: claim {}: no experiment shows the cause", of.slug, of.id);
        }
    }

    /// Means that findings speak of are not of programs that only an experiment runs.
    #[test]
    fn what_is_apart_is_only_where_it_is_named() {
        for paper in PAPERS {
            let (spec, _) = paper.read().expect("it is right");
            let apart = spec.workloads.iter().filter(|workload| workload.apart);
            for workload in apart {
                for figure in spec.figures.iter().filter(|figure| figure.workloads.is_empty()) {
                    assert!(!figure.has(workload), "{}: figure {}", paper.slug, figure.id);
                }
                let is_named = spec.figures.iter().any(|figure| figure.has(workload));
                assert!(is_named, "{}: no figure names {}", paper.slug, workload.name);
            }
        }
    }

    #[test]
    fn every_figure_is_in_its_papers_readme() {
        let ids = |paper: &Folder| -> Vec<String> {
            if measured(paper.slug).is_some() {
                let (spec, _) = paper.read_measured().expect("it can be read");
                return spec.figures.into_iter().map(|figure| figure.id).collect();
            }
            let (spec, _) = paper.read().expect("it can be read");
            spec.figures.into_iter().map(|figure| figure.id).collect()
        };
        for paper in PAPERS.iter().chain(&MEASURED) {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../papers/");
            let readme = std::fs::read_to_string(format!("{folder}{}/README.md", paper.slug));
            let readme = readme.expect("each paper has one");
            for id in ids(paper) {
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
