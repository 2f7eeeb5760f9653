//! Papers' reproductions as one page that needs nothing beside it: no script, no font, no file.

use casemate_plot::svg;

use super::claims::{
    VERDICTS, amount, between, counted, counts, ours, tried, untried, why_this_range,
};
use super::table::Table;
use crate::data::{Basis, Chart, Claim, Figure, Paper, Verdict};
use crate::draw::{heading, scene_without_title};

const CSS: &str = include_str!("page.css");

/// A page of papers: claims and verdicts of all of them first, then each with its figures.
#[must_use]
pub fn html(papers: &[&Paper]) -> String {
    let title = match papers {
        [one] => format!("{}, reproduced", one.name),
        _ => "Papers, reproduced".to_owned(),
    };
    let title = escaped(&title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    out += &summary(papers);
    papers.iter().for_each(|paper| out += &body(paper, papers.len() > 1));
    papers.iter().for_each(|paper| out += &provenance(paper));
    out + "</body>\n</html>\n"
}

/// All claims in a table, below how many of the simulated ones have which verdict; of those of the
/// machine at hand where none is simulated.
fn summary(papers: &[&Paper]) -> String {
    let mut out = format!("<p>{}</p>\n", escaped(&counted(papers)));
    out += "<ul class=\"counts\">\n";
    let simulated = counts(papers, Basis::Simulated);
    let is_any = simulated.iter().any(|count| *count > 0);
    let shown = if is_any { simulated } else { counts(papers, Basis::Measured) };
    for (verdict, count) in VERDICTS.into_iter().zip(shown) {
        let (class, words) = (class(verdict), verdict.words());
        out += &format!("<li class=\"v {class}\">{words}: {count}</li>\n");
    }
    out += "</ul>\n";
    for paper in papers.iter().filter(|paper| !paper.claims.is_empty()) {
        let name = if papers.len() > 1 {
            format!("<a href=\"#{}\">{}</a>", anchor(&paper.slug), escaped(&paper.name))
        } else {
            escaped(&paper.title)
        };
        out += &format!("<div class=\"wide\"><table>\n<caption>{name}</caption>\n");
        out += "<thead><tr><th>claim</th><th class=\"w\">where</th><th class=\"n\">paper</th><th class=\"n\">ours</th>\
                <th>verdict</th></tr></thead>\n<tbody>\n";
        paper.claims.iter().for_each(|claim| out += &claim_row(paper, claim));
        out += "</tbody></table></div>\n";
    }
    out
}

fn claim_row(paper: &Paper, claim: &Claim) -> String {
    format!(
        "<tr><td><a href=\"#{}\">{}</a></td><td class=\"w\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
        anchor(&format!("{}-{}", paper.slug, claim.id)),
        escaped(&claim.what),
        escaped(&claim.place),
        escaped(&amount(claim.paper, None, &claim.unit)),
        escaped(&ours(claim)),
        badge(claim.verdict)
    )
}

/// A paper's figures, remarks, and why its claims' verdicts are what they are.
fn body(paper: &Paper, named: bool) -> String {
    let mut out = format!("<section id=\"{}\">\n", anchor(&paper.slug));
    if named {
        out += &format!("<h2>{}</h2>\n<p>{}</p>\n", escaped(&paper.name), escaped(&paper.title));
    } else {
        out += "<h2>Figures</h2>\n";
    }
    out += &format!("<p class=\"about\">{}</p>\n", escaped(&paper.machine));
    paper.figures.iter().for_each(|figure| out += &drawn(&paper.slug, figure));
    if !paper.claims.is_empty() {
        out += &heading_of("Claims, explained", named);
        paper.claims.iter().for_each(|claim| out += &explained(paper, claim));
    }
    if !paper.remarks.is_empty() {
        out += &heading_of("Remarks", named);
        let items = paper.remarks.iter().map(|remark| format!("<li>{}</li>\n", escaped(remark)));
        out += &format!("<ul>\n{}</ul>\n", items.collect::<String>());
    }
    out + "</section>\n"
}

/// One level lower if the paper itself has a heading.
fn heading_of(words: &str, lower: bool) -> String {
    let level = if lower { "h3" } else { "h2" };
    format!("<{level}>{words}</{level}>\n")
}

fn explained(paper: &Paper, claim: &Claim) -> String {
    let id = anchor(&format!("{}-{}", paper.slug, claim.id));
    let mut out = format!("<div class=\"claim\" id=\"{id}\">\n");
    out += &format!("<p>{} <b>{}</b></p>\n", badge(claim.verdict), escaped(&claim.what));
    let ours = ours(claim);
    let paper = amount(claim.paper, None, &claim.unit);
    let mut ranges = format!("holds: {}", between(claim.holds, &claim.unit));
    if let Some(weaker) = claim.weaker {
        ranges += &format!("; holds weaker: {}", between(weaker, &claim.unit));
    }
    let numbers = format!("Paper ({}): {paper}. Ours: {ours}. Agreement: {ranges}.", claim.place);
    for sentence in [&numbers, &why_this_range(claim), &claim.finding] {
        if !sentence.is_empty() {
            out += &format!("<p>{}</p>\n", escaped(sentence));
        }
    }
    let evidence = claim.evidence.iter().map(|evidence| {
        let amount = amount(evidence.measured, evidence.half_width, &evidence.unit);
        format!("<li>{}: {}</li>\n", escaped(&evidence.what), escaped(&amount))
    });
    if !claim.evidence.is_empty() {
        out += &format!("<ul>\n{}</ul>\n", evidence.collect::<String>());
    }
    if !claim.experiments.is_empty() {
        let items =
            claim.experiments.iter().map(|one| format!("<li>{}</li>\n", escaped(&tried(one))));
        out += &format!("<p>Experiments:</p>\n<ul>\n{}</ul>\n", items.collect::<String>());
    }
    if let Some(sentence) = untried(claim) {
        out += &format!("<p>{sentence}</p>\n");
    }
    out + "</div>\n"
}

/// How a figure begins.
fn begin(slug: &str, figure: &Figure) -> String {
    format!("<figure id=\"{}\">\n", anchor(&format!("{slug}-figure-{}", figure.id)))
}

/// A page with a figure of a paper drawn anew; as it was if it does not show that figure.
#[must_use]
pub fn redrawn(page: &str, slug: &str, figure: &Figure) -> String {
    const END: &str = "</svg>\n";
    let unchanged = || page.to_owned();
    let Some(scene) = scene_without_title(figure) else { return unchanged() };
    let begin = begin(slug, figure);
    let Some((before, after)) = page.split_once(&begin) else { return unchanged() };
    let Some((_, after)) = after.split_once(END) else { return unchanged() };
    format!("{before}{begin}{}{after}", svg::svg(&scene))
}

/// A figure with its caption and its numbers; those of a table are not folded.
fn drawn(slug: &str, figure: &Figure) -> String {
    let mut out = begin(slug, figure);
    if let Some(scene) = scene_without_title(figure) {
        out += &svg::svg(&scene);
    }
    out += &format!("<figcaption><h3>{}</h3>\n", escaped(&heading(figure)));
    if !figure.note.is_empty() {
        out += &format!("<p>{}</p>\n", escaped(&figure.note));
    }
    out += "</figcaption>\n";
    let numbers = numbers(figure);
    out += &match figure.chart {
        Chart::Table => numbers,
        _ => format!("<details><summary>Numbers</summary>\n{numbers}</details>\n"),
    };
    out + "</figure>\n"
}

fn numbers(figure: &Figure) -> String {
    let table = Table::of(figure);
    let cells = |cells: &[String], tag: &str| -> String {
        let cell = |(i, cell): (usize, &String)| {
            let class = if i == 0 { "" } else { " class=\"n\"" };
            format!("<{tag}{class}>{}</{tag}>", escaped(cell))
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let names: Vec<String> = table.names().into_iter().map(str::to_owned).collect();
    let rows: String = table.readable().iter().map(|row| cells(row, "td")).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead>{}</thead>\n<tbody>\n{rows}</tbody></table></div>\n",
        cells(&names, "th")
    )
}

fn provenance(paper: &Paper) -> String {
    let text = serde_json::to_string_pretty(&paper.provenance).unwrap_or_default();
    format!(
        "<h2>Provenance: {}</h2>\n<details><summary>Everything the results depend on</summary>\n\
         <pre>{}</pre></details>\n",
        escaped(&paper.name),
        escaped(&text)
    )
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::HoldsWeaker => "weaker",
        Verdict::Undecided => "undecided",
        Verdict::DoesNotHold => "not",
        Verdict::ByConstruction => "given",
        Verdict::NotMeasured => "unknown",
    }
}

fn badge(verdict: Verdict) -> String {
    format!("<span class=\"v {}\">{}</span>", class(verdict), verdict.words())
}

/// What a link can name.
fn anchor(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    text.chars().map(plain).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() && c != '\n' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::paper;

    #[test]
    fn each_claim_has_its_verdict_in_words_and_colour() {
        let paper = paper();
        let page = html(&[&paper]);
        for claim in &paper.claims {
            let id = format!("<a href=\"#sample-{}\">", claim.id);
            let row = page.lines().find(|line| line.contains(&id)).expect("a row");
            let badge = format!("class=\"v {}\">{}<", class(claim.verdict), claim.verdict.words());
            assert!(row.contains(&badge), "{row}");
            assert!(page.contains(&format!("id=\"sample-{}\"", claim.id)));
        }
        let mut other = paper.clone();
        other.claims[5].verdict = Verdict::Holds;
        let other = html(&[&other]);
        assert!(page.contains(">holds: 1</li>") && !other.contains(">holds: 1</li>"));
        assert!(other.contains(">holds: 2</li>") && other.contains(">not measured: 0</li>"));
    }

    #[test]
    fn the_page_is_whole_and_everything_is_escaped() {
        let paper = paper();
        let mut second = paper.clone();
        second.slug = "second".into();
        for papers in [&[&paper][..], &[&paper, &second], &[]] {
            let page = html(papers);
            for tag in [
                "table", "figure", "details", "section", "div", "ul", "svg", "body", "p", "tr",
                "td",
            ] {
                let open = page.matches(&format!("<{tag}>")).count()
                    + page.matches(&format!("<{tag} ")).count();
                assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
            }
            for raw in ["<& slower", "<first>", "<ab12>", "<it>", "<long>", "<things>", "<6>"] {
                assert!(!page.contains(raw), "{raw}");
            }
            // Nothing is fetched, and nothing runs.
            for word in ["<script", "src=", "@import", "url(", "<link"] {
                assert!(!page.contains(word), "{word}");
            }
        }
        let page = html(&[&paper, &second]);
        for wanted in
            ["slow &lt;&amp; slower&gt;", "&lt;ab12&gt;", "href=\"#second\"", "id=\"second\""]
        {
            assert!(page.contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn a_figure_is_drawn_anew_where_it_was() {
        let paper = paper();
        let page = html(&[&paper]);
        let same = redrawn(&page, "sample", &paper.figures[0]);
        assert_eq!(same, page);
        let mut other = paper.figures[0].clone();
        other.series.truncate(1);
        let anew = redrawn(&page, "sample", &other);
        assert!(anew != page && anew.matches("<svg ").count() == 1);
        // Only the drawing is another.
        let around = |page: &str| {
            let (before, rest) = page.split_once("<svg ").expect("there is one");
            let (_, after) = rest.split_once("</svg>").expect("it ends");
            format!("{before}{after}")
        };
        assert_eq!(around(&anew), around(&page));
        // Nor is another paper's figure, or one that is a table.
        assert_eq!(redrawn(&page, "other", &other), page);
        assert_eq!(redrawn(&page, "sample", &paper.figures[1]), page);
    }

    #[test]
    fn drawings_and_numbers_are_in_the_page() {
        let page = html(&[&paper()]);
        // One of the two figures is a table.
        assert_eq!(page.matches("<svg ").count(), 1);
        assert_eq!(page.matches("<details><summary>Numbers").count(), 1);
        for wanted in ["30.0 ±4.0 %", "25.0 %", "MT (paper)", "90.4 ±0.25 %", "3.75x"] {
            assert!(page.contains(wanted), "{wanted}");
        }
        // What is missing is a dash.
        assert!(page.contains("<td>lbm</td><td class=\"n\">-</td>"));
    }
}
