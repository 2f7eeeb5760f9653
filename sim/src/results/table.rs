//! Results as rows and columns: one row for a run or a sample, one column for a leaf of its tree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::columns;

/// A leaf of a tree in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The row has no such leaf, or it is null.
    Empty,
    /// A counter, or a number of the configuration.
    Count(u64),
    /// A ratio.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Text(String),
    /// Counters: a histogram.
    List(Vec<u64>),
}

/// What all cells of a column are, but for empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Counters.
    Count,
    /// Ratios.
    Real,
    /// Yes or no.
    Flag,
    /// Lists of counters.
    List,
    /// Names; a column of several types is written as text.
    Text,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The leaf's dotted name.
    pub name: String,
    /// What its cells are.
    pub kind: Type,
    /// One for each row.
    pub cells: Vec<Cell>,
}

/// Rows and columns. Columns are in the order in which rows first had them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns, all of the same length.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: usize,
}

impl Table {
    /// A row for each tree.
    #[must_use]
    pub fn of<'a>(trees: impl IntoIterator<Item = &'a Value>) -> Self {
        Table::of_rows(trees.into_iter().map(columns))
    }

    /// A row for each list of leaves with their columns' names.
    #[must_use]
    pub fn of_rows(rows: impl IntoIterator<Item = Vec<(String, Value)>>) -> Self {
        let mut table = Table::default();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for row in rows {
            for (name, leaf) in row {
                let place = *places.entry(name).or_insert_with_key(|name| {
                    let cells = vec![Cell::Empty; table.rows];
                    let name = name.clone();
                    table.columns.push(Column { name, kind: Type::Text, cells });
                    table.columns.len() - 1
                });
                table.columns[place].cells.push(cell(&leaf));
            }
            table.rows += 1;
            table
                .columns
                .iter_mut()
                .for_each(|column| column.cells.resize(table.rows, Cell::Empty));
        }
        table.columns.iter_mut().for_each(Column::settle);
        table
    }

    /// As CSV (RFC 4180, but lines end as Unix has it): a header, then the rows.
    #[must_use]
    pub fn csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        let mut text = names.join(",") + "\n";
        for row in 0..self.rows {
            let cells: Vec<String> =
                self.columns.iter().map(|c| quoted(&c.cells[row].text())).collect();
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }
}

impl Column {
    /// Finds the type that all cells have, and makes them have it.
    fn settle(&mut self) {
        let is = |test: fn(&Cell) -> bool| self.cells.iter().all(|c| *c == Cell::Empty || test(c));
        self.kind = if is(|cell| matches!(cell, Cell::Count(_))) {
            Type::Count
        } else if is(|cell| matches!(cell, Cell::Real(_))) {
            Type::Real
        } else if is(|cell| matches!(cell, Cell::Flag(_))) {
            Type::Flag
        } else if is(|cell| matches!(cell, Cell::List(_))) {
            Type::List
        } else {
            Type::Text
        };
        if self.kind == Type::Text {
            for cell in &mut self.cells {
                if *cell != Cell::Empty {
                    *cell = Cell::Text(cell.text());
                }
            }
        }
    }
}

impl Cell {
    /// As text; a number and a list as JSON has them.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(real) => Value::from(*real).to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Text(text) => text.clone(),
            Cell::List(counts) => Value::from(counts.clone()).to_string(),
        }
    }
}

fn cell(leaf: &Value) -> Cell {
    match leaf {
        Value::Bool(flag) => Cell::Flag(*flag),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Cell::Count(count),
            (None, Some(real)) => Cell::Real(real),
            (None, None) => Cell::Empty,
        },
        Value::Array(items) => Cell::List(items.iter().filter_map(Value::as_u64).collect()),
        Value::Null | Value::Object(_) => Cell::Empty,
    }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_different_shapes_leave_cells_empty() {
        let table =
            Table::of([&json!({"a": 1, "b": {"c": 0.5}}), &json!({"a": 2, "d": "x,\"y\""})]);
        // Worked out by hand: b.c only in the first row, d only in the second.
        assert_eq!(table.csv(), "a,b.c,d\n1,0.5,\n2,,\"x,\"\"y\"\"\"\n");
        let kinds: Vec<_> = table.columns.iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [Type::Count, Type::Real, Type::Text]);
    }

    #[test]
    fn a_column_of_several_types_is_text() {
        let table = Table::of([&json!({"a": 1}), &json!({"a": true}), &json!({"a": null})]);
        let column = &table.columns[0];
        assert_eq!(column.kind, Type::Text);
        assert_eq!(column.cells, [Cell::Text("1".into()), Cell::Text("true".into()), Cell::Empty]);
    }
}
