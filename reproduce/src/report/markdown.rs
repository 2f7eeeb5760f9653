//! A paper's reproduction as Markdown, with drawings beside it.

use super::claims::{amount, between, counted, ours, tried, untried, why_this_range};
use super::table::Table;
use crate::data::{Chart, Claim, Figure, Paper};
use crate::draw::heading;

/// The name of the file with a figure's drawing, without its ending.
#[must_use]
pub fn drawing_name(figure: &Figure) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("figure-{}", figure.id.chars().map(plain).collect::<String>())
}

/// A paper's reproduction. Drawings are linked as `figure-ID.svg` in the same folder.
#[must_use]
pub fn markdown(paper: &Paper) -> String {
    let mut out = format!("# {}\n\n", plain(&paper.name));
    out += &format!("*{}*\n\n{}\n\n", plain(&paper.title), plain(&paper.machine));
    out += "## Claims\n\n";
    out += &format!("{}\n\n", counted(&[paper]));
    let rows = paper.claims.iter().map(|claim| {
        vec![
            plain(&claim.what),
            plain(&claim.place),
            plain(&amount(claim.paper, None, &claim.unit)),
            plain(&ours(claim)),
            plain(&between(claim.holds, &claim.unit)),
            format!("**{}**", claim.verdict.words()),
        ]
    });
    let names = ["claim", "where", "paper", "ours", "agreement", "verdict"];
    out += &table(names.map(str::to_owned).to_vec(), rows, &[2, 3]);
    paper.claims.iter().for_each(|claim| out += &explained(claim));
    out += "\n## Figures\n\n";
    paper.figures.iter().for_each(|figure| out += &drawn(figure));
    if !paper.remarks.is_empty() {
        out += "## Remarks\n\n";
        paper.remarks.iter().for_each(|remark| out += &format!("- {}\n", plain(remark)));
        out += "\n";
    }
    let provenance = serde_json::to_string_pretty(&paper.provenance).unwrap_or_default();
    out + &format!("## Provenance\n\n```json\n{provenance}\n```\n")
}

/// Why a claim's verdict is what it is.
fn explained(claim: &Claim) -> String {
    let mut out = format!("\n### {}: {}\n\n", plain(&claim.id), claim.verdict.words());
    for sentence in [&why_this_range(claim), &claim.finding] {
        if !sentence.is_empty() {
            out += &format!("{}\n\n", plain(sentence));
        }
    }
    for evidence in &claim.evidence {
        let amount = amount(evidence.measured, evidence.half_width, &evidence.unit);
        out += &format!("- {}: {amount}\n", plain(&evidence.what));
    }
    if !claim.experiments.is_empty() {
        out += "\nExperiments:\n\n";
    }
    for experiment in &claim.experiments {
        out += &format!("- {}\n", plain(&tried(experiment)));
    }
    if let Some(sentence) = untried(claim) {
        out += &format!("\n{sentence}\n");
    }
    out
}

fn drawn(figure: &Figure) -> String {
    let mut out = format!("### {}\n\n", plain(&heading(figure)));
    if figure.chart != Chart::Table {
        let title = plain(&figure.title);
        out += &format!("![{title}]({}.svg)\n\n", drawing_name(figure));
    }
    if !figure.note.is_empty() {
        out += &format!("{}\n\n", plain(&figure.note));
    }
    let numbers = Table::of(figure);
    let names: Vec<String> = numbers.names().into_iter().map(plain).collect();
    let right: Vec<usize> = (1..names.len()).collect();
    let cells = |row: Vec<String>| row.iter().map(|cell| plain(cell)).collect();
    out + &table(names, numbers.readable().into_iter().map(cells), &right) + "\n"
}

/// A table of Markdown; columns of numbers are aligned to the right.
fn table(names: Vec<String>, rows: impl Iterator<Item = Vec<String>>, right: &[usize]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |i: usize| if right.contains(&i) { "---:" } else { "---" }.to_owned();
    let rules = (0..names.len()).map(rule).collect();
    line(names) + &line(rules) + &rows.map(line).collect::<String>()
}

/// Text that Markdown does not take for its own.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
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
    fn every_claim_figure_and_remark_is_there() {
        let paper = paper();
        let text = markdown(&paper);
        for claim in &paper.claims {
            let row = text.lines().find(|line| line.contains(&plain(&claim.what))).expect("a row");
            assert!(row.ends_with(&format!("**{}** |", claim.verdict.words())), "{row}");
            assert!(text.contains(&plain(&claim.finding)) && text.contains(&claim.why));
            for experiment in &claim.experiments {
                assert!(text.contains(&plain(&tried(experiment))), "{text}");
            }
        }
        for wanted in
            ["12.1 %", "90.4 ±0.25 %", "3.75x", "5.0 %", "figure-6.svg", "Took &lt;long&gt;."]
        {
            assert!(text.contains(wanted), "{wanted}");
        }
        // A table has no drawing.
        assert!(!text.contains("figure-t2.svg"));
        assert!(text.contains("\"version\": \"0.1.0\""));
    }

    #[test]
    fn tables_keep_their_columns() {
        let text = markdown(&paper());
        let mut cells = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                cells = 0;
                continue;
            }
            let now = line.replace("\\|", "").matches('|').count();
            assert!(cells == 0 || cells == now, "{line}");
            cells = now;
        }
    }
}
