//! `casemate storage`: what each scheme costs in memory, beside what its paper says.

pub mod args;
mod faults;

use anyhow::Result;
use casemate_lab::storage::papers::{Figure, Table2Row, aise_bmt_table_2, other_figures};
use serde::Serialize;

use crate::output::{self, SCHEMA};

use args::StorageArgs;

#[derive(Serialize)]
struct Line {
    source: &'static str,
    what: String,
    unit: &'static str,
    paper: f64,
    counted: f64,
    difference: f64,
    agrees: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    assumption: &'static str,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    figures: Vec<Line>,
}

/// Prints the tables.
pub fn storage(args: &StorageArgs) -> Result<u8> {
    if !args.pages.is_empty() {
        return faults::faults(args);
    }
    let (table_2, others) = (aise_bmt_table_2()?, other_figures()?);
    match &args.json.to {
        Some(to) => {
            let cells = table_2.iter().flat_map(|row| {
                let name = format!("{}-bit MAC, {}: ", row.mac_bits, row.scheme);
                row.figures.iter().map(move |figure| line(&name, figure))
            });
            let figures = cells.chain(others.iter().map(|figure| line("", figure))).collect();
            output::json(to, &Report { schema: SCHEMA, figures })?;
        }
        None => output::stdout(&(table(&table_2) + &list(&others)))?,
    }
    Ok(0)
}

fn line(prefix: &str, figure: &Figure) -> Line {
    Line {
        source: figure.source,
        what: format!("{prefix}{}", figure.what),
        unit: figure.unit,
        paper: figure.paper,
        counted: figure.counted,
        difference: figure.counted - figure.paper,
        agrees: figure.agrees(),
        assumption: figure.assumption,
    }
}

/// AISE/BMT's Table 2, each cell as the paper has it and as it is counted.
fn table(rows: &[Table2Row]) -> String {
    let mut text = String::from("AISE/BMT, Table 2: per cent of memory, paper / counted\n\n");
    text += &format!("{:>4}  {:<12}", "MAC", "scheme");
    if let Some(row) = rows.first() {
        for figure in row.figures {
            text += &format!("  {:>17}", figure.what);
        }
    }
    text.push('\n');
    for row in rows {
        text += &format!("{:>4}  {:<12}", row.mac_bits, row.scheme);
        for figure in row.figures {
            let cell = format!("{:.2} / {:.2}", figure.paper, figure.counted);
            text += &format!("  {:>16}{}", cell, if figure.agrees() { ' ' } else { '!' });
        }
        text.push('\n');
    }
    text
}

fn list(figures: &[Figure]) -> String {
    let mut text = String::from("\nOther figures: paper, counted\n\n");
    for figure in figures {
        let what = format!("{}: {}", figure.source, figure.what);
        text +=
            &format!("{what:<72} {:>7} {:>9.3} {}\n", figure.paper, figure.counted, figure.unit);
        if !figure.assumption.is_empty() {
            text += &format!("    {}\n", figure.assumption);
        }
    }
    text
}
