//! A figure's numbers in rows and columns.

use super::claims::with_spread;
use crate::data::{Chart, Figure, Point, Series};

/// What stands where there is no number.
pub const NOTHING: &str = "-";

/// A column: what it is of a series' points.
struct Column<'a> {
    name: String,
    series: &'a Series,
    pick: fn(&Point) -> Option<f64>,
    /// Whether it is on the upright axis.
    upright: bool,
    /// Whether it is half of the values' intervals, or an end of what rounds gave: people read
    /// these beside the values.
    half: bool,
}

/// The numbers of a figure: a row for each place, a column for each series, and one for what the
/// paper says of it.
pub struct Table<'a> {
    places: Vec<&'a str>,
    columns: Vec<Column<'a>>,
    first: &'a str,
    percent: bool,
}

impl<'a> Table<'a> {
    /// Of a figure, in its order.
    #[must_use]
    pub fn of(figure: &'a Figure) -> Self {
        let mut places: Vec<&str> = Vec::new();
        for point in figure.series.iter().flat_map(|series| &series.points) {
            if !places.contains(&point.place.as_str()) {
                places.push(&point.place);
            }
        }
        let mut columns = Vec::new();
        for series in &figure.series {
            let mut add = |name: String, pick: fn(&Point) -> Option<f64>, upright: bool| {
                // The values' own column is there even if it is empty.
                let values = upright && name == series.name;
                if values || series.points.iter().any(|point| pick(point).is_some()) {
                    columns.push(Column { name, series, pick, upright, half: false });
                }
            };
            if figure.chart == Chart::Scatter {
                add(across_column(&series.name, figure), |point| point.x, false);
            }
            add(series.name.clone(), |point| point.value, true);
            add(paper_column(&series.name), |point| point.paper, true);
            if series.points.iter().any(|point| point.half_width.is_some()) {
                let (name, pick) = (half_width_column(&series.name), half_width as fn(&Point) -> _);
                columns.push(Column { name, series, pick, upright: true, half: true });
            }
            if series.points.iter().any(|point| point.rounds.is_some()) {
                for (end, pick) in [("least", least as fn(&Point) -> _), ("greatest", greatest)] {
                    let name = format!("{} ({end})", series.name);
                    columns.push(Column { name, series, pick, upright: true, half: true });
                }
            }
        }
        // In a scatter plot places are names, and the level axis is a column.
        let first = if figure.chart == Chart::Scatter { "" } else { figure.level.as_str() };
        Table { places, columns, first, percent: figure.percent }
    }

    /// The names of the columns as people read them, that of the places first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.names_of(|column| !column.half)
    }

    fn names_of(&self, wanted: impl Fn(&Column) -> bool) -> Vec<&str> {
        let first = if self.first.is_empty() { "place" } else { self.first };
        let names = self.columns.iter().filter(|c| wanted(c)).map(|c| c.name.as_str());
        std::iter::once(first).chain(names).collect()
    }

    /// Each place with what `text` makes of its points in the columns that are wanted.
    fn rows(
        &self,
        wanted: impl Fn(&Column) -> bool,
        text: impl Fn(&Column, Option<&Point>) -> String,
    ) -> Vec<Vec<String>> {
        let row = |place: &&str| {
            let cells = self.columns.iter().filter(|column| wanted(column)).map(|column| {
                text(column, column.series.points.iter().find(|point| point.place == **place))
            });
            std::iter::once((*place).to_owned()).chain(cells).collect()
        };
        self.places.iter().map(row).collect()
    }

    /// As people read it: values with half of their intervals beside them.
    #[must_use]
    pub fn readable(&self) -> Vec<Vec<String>> {
        let text = |column: &Column, point: Option<&Point>| {
            let Some(value) = column.of(point) else { return NOTHING.to_owned() };
            let is_value = column.upright && column.name == column.series.name;
            let half = point.and_then(half_width).filter(|_| is_value);
            let unit = if self.percent && column.upright { "%" } else { "" };
            let range = point.and_then(range).filter(|_| is_value);
            let range = range.map(|(from, to)| (scaled(unit, from), scaled(unit, to)));
            let half = half.map(|half| scaled(unit, half));
            with_spread(Some(scaled(unit, value)), half, range, unit)
        };
        self.rows(|column| !column.half, text)
    }
}

/// The column of a series' places on the level axis of a scatter plot.
pub(crate) fn across_column(series: &str, figure: &Figure) -> String {
    format!("{series} ({})", figure.level)
}

/// The column of what the paper says of a series.
pub(crate) fn paper_column(series: &str) -> String {
    format!("{series} (paper)")
}

/// The column of halves of intervals.
pub(crate) fn half_width_column(series: &str) -> String {
    format!("{series} (±)")
}

impl Column<'_> {
    fn of(&self, point: Option<&Point>) -> Option<f64> {
        point.and_then(self.pick).filter(|value| value.is_finite())
    }
}

fn half_width(point: &Point) -> Option<f64> {
    point.half_width
}

/// The least and the greatest of what was measured.
fn range(point: &Point) -> Option<(f64, f64)> {
    point.estimate()?.range()
}

fn least(point: &Point) -> Option<f64> {
    range(point).map(|range| range.0)
}

fn greatest(point: &Point) -> Option<f64> {
    range(point).map(|range| range.1)
}

fn scaled(unit: &str, share: f64) -> f64 {
    if unit == "%" { share * 100.0 } else { share }
}

/// The numbers of a figure, all their digits, shares as shares of one.
#[must_use]
pub fn csv(figure: &Figure) -> String {
    let table = Table::of(figure);
    let names = table.names_of(|_| true).into_iter().map(str::to_owned).collect();
    let exact = |column: &Column, point: Option<&Point>| {
        column.of(point).map_or(String::new(), |value| value.to_string())
    };
    lines(std::iter::once(names).chain(table.rows(|_| true, exact)))
}

/// Rows as CSV (RFC 4180, but lines end as everywhere else here).
pub(crate) fn lines(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.for_each(|cells| writer.write_record(cells).expect("rows are equally long"));
    let bytes = writer.into_inner().expect("memory takes all of it");
    String::from_utf8(bytes).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::figure;

    #[test]
    fn every_value_is_in_its_row_and_column() {
        let figure = figure();
        let text = csv(&figure);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0], ["workload", "MT", "MT (paper)", "MT (±)", "AISE|BMT"]);
        for (column, series) in [(1, &figure.series[0]), (4, &figure.series[1])] {
            for point in &series.points {
                let row = rows.iter().find(|row| row[0] == point.place).expect("a row");
                let cell = row[column].parse().ok();
                assert_eq!(cell, point.value, "{text}");
            }
        }
        // The paper's number stands beside ours, and nothing where it says none.
        assert_eq!((rows[2][0], rows[2][2], rows[1][2]), ("mcf", "0.25", ""));
        // Half of the interval too; people read it beside the value.
        assert_eq!((rows[2][3], rows[1][3]), ("0.04", ""));
        let readable = Table::of(&figure).readable();
        assert_eq!(readable[1], ["mcf", "30.0 ±4.0 %", "25.0 %", "12.0 %"]);
    }

    #[test]
    fn a_scatter_plots_places_are_a_column() {
        let figure = Figure { chart: Chart::Scatter, ..figure() };
        let text = csv(&figure);
        assert!(text.starts_with(
            "place,MT (workload),MT,MT (paper),MT (±),AISE|BMT (workload),AISE|BMT\n"
        ));
        assert!(text.contains("gcc,1.5,0.05,,,1.5,0.02\n"), "{text}");
        // Shares are per cent for people, places are not.
        assert_eq!(Table::of(&figure).readable()[0], ["gcc", "1.5", "5.0 %", "-", "1.5", "2.0 %"]);
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let row = vec!["a,b".to_owned(), "say \"x\"".to_owned(), "two\nlines".to_owned()];
        assert_eq!(lines([row].into_iter()), "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n");
    }
}
