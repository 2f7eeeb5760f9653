//! Figures read again from the tables that are published beside them, and drawn anew: nothing is
//! simulated.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use casemate_sim::experiment::store::replace;

use crate::data::{Chart, Figure, Point, Series};
use crate::papers::Folder;
use crate::report::html::redrawn;
use crate::report::table::{across_column, half_width_column, paper_column};
use crate::spec::{self, Spec};
use crate::{compute, files};

/// Draws a paper's figures in `OUT` anew: all that have their table there, or those that are named.
/// The short names of those that were drawn.
///
/// # Errors
/// There is no table, or one that says something else than its figure; or the system refuses.
pub fn redraw(out: &Path, paper: Folder, named: &[String]) -> Result<Vec<String>> {
    let (spec, _) = paper.read()?;
    let folder = files::results(out, paper.slug);
    let page_file = files::page(out);
    let mut page = fs::read_to_string(&page_file).ok();
    let mut drawn = Vec::new();
    for of in spec.figures.iter().filter(|of| of.chart != Chart::Table) {
        let is_named = named.is_empty() || named.contains(&of.id);
        if !is_named || !folder.join(files::table_name(&of.id)).exists() {
            continue;
        }
        let figure = read(&folder, &spec, of)?;
        files::write_drawing(&folder, &figure)?;
        page = page.map(|page| redrawn(&page, paper.slug, &figure));
        drawn.push(of.id.clone());
    }
    if let Some(page) = page {
        replace(&page_file, page.as_bytes())?;
    }
    Ok(drawn)
}

/// A figure with the values of its table.
///
/// # Errors
/// The table is not there, or it is no table of this figure.
pub fn read(folder: &Path, spec: &Spec, of: &spec::Figure) -> Result<Figure> {
    let path = folder.join(files::table_name(&of.id));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let figure = match &of.value {
        Some(value) => of.with(crate::metric::Metric::of_name(value)?.percent(), Vec::new()),
        // How its values are to be read is known to the function that computes it.
        None => {
            let needed = spec.figures.iter().filter(|other| of.needs.contains(&other.id));
            let others = needed.map(|other| read(folder, spec, other));
            compute::figure(of, &others.collect::<Result<Vec<Figure>>>()?)?
        }
    };
    filled(figure, of, &text).with_context(|| path.display().to_string())
}

/// A figure with the values of a table. What the paper says is what `figures.toml` says it does, or
/// else the table.
fn filled(mut figure: Figure, of: &spec::Figure, text: &str) -> Result<Figure> {
    let mut rows = rows(text)?.into_iter();
    let head = rows.next().context("it is empty")?;
    let rows: Vec<Vec<String>> = rows.collect();
    let column = |name: &str| head.iter().skip(1).position(|known| known == name).map(|at| at + 1);
    let beside =
        |name: &str| [across_column(name, &figure), paper_column(name), half_width_column(name)];
    let all_beside: Vec<String> = head.iter().skip(1).flat_map(|name| beside(name)).collect();
    let names = head.iter().skip(1).filter(|name| !all_beside.contains(name));
    let mut all = Vec::new();
    for name in names {
        let [across, paper, half] = beside(name).map(|beside| column(&beside));
        let value = column(name);
        let said = |place: &str| of.paper.get(name)?.get(place).copied();
        let mut points = Vec::new();
        for row in &rows {
            let number = |at: Option<usize>| match at.map(|at| row[at].as_str()) {
                None | Some("") => Ok(None),
                Some(cell) => cell
                    .parse()
                    .map(Some)
                    .with_context(|| format!("{name} of {}: {cell} is no number", row[0])),
            };
            let place = row[0].clone();
            let point = Point {
                x: number(across)?,
                value: number(value)?,
                half_width: number(half)?,
                moves: None,
                least: None,
                rounds: None,
                paper: said(&place).or(number(paper)?),
                place,
            };
            // Each dot of a scatter plot is of one series.
            if figure.chart != Chart::Scatter || point.value.is_some() {
                points.push(point);
            }
        }
        all.push(Series { name: name.clone(), points });
    }
    ensure!(!all.is_empty(), "there is no column of values");
    figure.series = all;
    Ok(figure)
}

/// The cells of a table, as [`crate::report::csv`] writes it (RFC 4180), all rows equally long.
pub(crate) fn rows(text: &str) -> Result<Vec<Vec<String>>> {
    let is_whole = text.is_empty() || text.ends_with('\n');
    ensure!(is_whole, "it ends in the middle of line {}", text.lines().count());
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.has_headers(false).flexible(true).from_reader(text.as_bytes());
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let columns = records.first().map_or(0, csv::StringRecord::len);
    if let Some(odd) = records.iter().find(|record| record.len() != columns) {
        let line = odd.position().map_or(0, csv::Position::line);
        bail!("line {line} has {} cells, and the first has {columns}", odd.len());
    }
    Ok(records.iter().map(|record| record.iter().map(str::to_owned).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::scene;
    use crate::papers::PAPERS;
    use crate::report::csv;
    use crate::report::samples::{figure, point};

    fn spec_of(paper: &str) -> spec::Figure {
        let text = format!("id = '6'\ntitle = 't'\nchart = 'bars'\nvalue = 'overhead'\n{paper}");
        toml::from_str(&text).expect("it is right")
    }

    /// A picture of the table is the picture of the figure, whatever its form.
    #[test]
    fn a_table_is_drawn_as_its_figure_is() {
        for chart in [Chart::Bars, Chart::Lines, Chart::Scatter] {
            let mut figure = Figure { chart, ..figure() };
            figure.series[0].points.push(point("a, \"b\"", Some(0.125), None));
            let read = filled(figure.clone(), &spec_of(""), &csv(&figure)).expect("it can be read");
            assert_eq!(scene(&read), scene(&figure), "{chart:?}");
            // It is read, and not left as it was.
            let other = csv(&figure).replace("0.05", "0.06");
            let other = filled(figure.clone(), &spec_of(""), &other).expect("it can be read");
            assert_ne!(scene(&other), scene(&figure), "{chart:?}");
        }
    }

    #[test]
    fn what_the_paper_says_is_what_figures_toml_says() {
        let spec = spec_of("[paper]\nMT = { gcc = 0.5 }\n");
        let figure = filled(figure(), &spec, &csv(&figure())).expect("it can be read");
        let papers: Vec<Option<f64>> = figure.series[0].points.iter().map(|p| p.paper).collect();
        assert_eq!(papers, [Some(0.5), Some(0.25), None]);
        assert_eq!(figure.series[0].points[1].half_width, Some(0.04));
    }

    #[test]
    fn what_is_no_table_is_refused_in_words() {
        let refused = |text: &str| {
            let error = filled(figure(), &spec_of(""), text).expect_err("it is wrong");
            format!("{error:#}")
        };
        assert!(refused("").contains("empty"));
        assert!(refused("workload\ngcc\n").contains("no column"));
        assert!(refused("w,MT\ngcc\n").contains("line 2 has 1 cells, and the first has 2"));
        assert!(refused("w,MT\ngcc,0.5").contains("in the middle of line 2"));
        assert!(refused("w,MT\ngcc,\"0.5\n").contains("is no number"));
        assert!(refused("w,MT\ngcc,much\n").contains("MT of gcc: much is no number"));
    }

    /// Every table that is published can be drawn, and none of its values is lost on the way.
    #[test]
    fn published_tables_are_read_whole() {
        let out = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../papers"));
        for paper in PAPERS {
            let (spec, _) = paper.read().expect("it can be read");
            let folder = files::results(out, paper.slug);
            let mut count = 0;
            for of in spec.figures.iter().filter(|of| of.chart != Chart::Table) {
                let Ok(text) = fs::read_to_string(folder.join(files::table_name(&of.id))) else {
                    continue;
                };
                let figure = read(&folder, &spec, of).unwrap_or_else(|e| panic!("{e:#}"));
                assert!(scene(&figure).is_some(), "{}: {}", paper.slug, of.id);
                let mut of_table = Figure { ..figure.clone() };
                for point in of_table.series.iter_mut().flat_map(|series| &mut series.points) {
                    // The table may be older than what figures.toml says of the paper.
                    point.paper = None;
                }
                let (again, text) = (csv(&of_table), text);
                let values = |text: &str| -> usize {
                    let cells = rows(text).expect("a table");
                    let paper = |name: &String| name.ends_with(" (paper)");
                    let columns: Vec<usize> =
                        (1..cells[0].len()).filter(|at| !paper(&cells[0][*at])).collect();
                    let filled = |row: &Vec<String>| {
                        columns.iter().filter(|at| !row[**at].is_empty()).count()
                    };
                    cells[1..].iter().map(filled).sum()
                };
                assert_eq!(values(&again), values(&text), "{}: {}", paper.slug, of.id);
                count += 1;
            }
            assert!(count > 0, "{}", paper.slug);
        }
    }
}
