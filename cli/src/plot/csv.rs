//! Rows of a file of values with commas between them, as results: the first line names the columns.

use std::fs;
use std::path::Path;

use csv::StringRecord;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Whether a file is one of these, by its name.
pub fn is_one(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"))
}

/// Its rows. In the column of the values that are drawn there are only numbers.
///
/// # Errors
/// A sentence that names the file and what is wrong in it.
pub fn rows(path: &Path, drawn: Option<&str>) -> Result<Vec<Value>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let rows = text.and_then(|text| parse(&text, drawn));
    rows.map_err(|why| Failure::no(format!("{}: {why}", path.display())))
}

fn parse(text: &str, drawn: Option<&str>) -> Result<Vec<Value>, String> {
    // Spreadsheets begin a file with a mark of its encoding.
    let text = text.trim_start_matches('\u{feff}');
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| error.to_string())?.clone();
    if columns.is_empty() {
        return Err("is empty; its first line is to name the columns".to_owned());
    }
    if let Some(name) = twice(&columns) {
        return Err(format!("has two columns that are named {name}; give each its own name"));
    }
    let records = reader.records().map(|record| record.map_err(|error| error.to_string()));
    let rows: Result<Vec<Value>, String> =
        records.map(|record| row(&columns, &record?, drawn)).collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err("has no line of values".to_owned()),
        rows => rows,
    }
}

/// A name that two columns have. Spreadsheets end lines with columns that have none.
fn twice(columns: &StringRecord) -> Option<&str> {
    let names: Vec<&str> = columns.iter().filter(|name| !name.is_empty()).collect();
    (1..names.len()).find(|&n| names[..n].contains(&names[n])).map(|n| names[n])
}

fn row(
    columns: &StringRecord,
    values: &StringRecord,
    drawn: Option<&str>,
) -> Result<Value, String> {
    let line = values.position().map_or(0, csv::Position::line);
    if values.len() != columns.len() {
        let (are, wanted) = (values.len(), columns.len());
        return Err(format!("line {line} has {are} values for {wanted} columns"));
    }
    let is_number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    let value = |text: &str| is_number(text).map_or_else(|| Value::from(text), Value::from);
    let all = columns.iter().zip(values).map(|(name, text)| (name.to_owned(), value(text)));
    let all: Map<String, Value> = all.collect();
    match drawn.and_then(|name| Some((name, all.get(name)?.as_str()?))) {
        Some((name, text)) => Err(format!("line {line}: {name} is {text:?}, and no number")),
        None => Ok(Value::Object(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_numbers_and_words() {
        let text = "mode,milliseconds,markers\nplain, 10,3\n\nidle,2.5,nan\n";
        let rows = parse(text, Some("milliseconds"));
        let wanted = vec![
            json!({"mode": "plain", "milliseconds": 10.0, "markers": 3.0}),
            json!({"mode": "idle", "milliseconds": 2.5, "markers": "nan"}),
        ];
        assert_eq!(rows, Ok(wanted));
    }

    #[test]
    fn a_mark_of_the_encoding_is_no_part_of_a_name() {
        assert_eq!(parse("\u{feff}a,b\n1,2\n", None), parse("a,b\n1,2\n", None));
    }

    #[test]
    fn columns_without_a_name_are_no_two_of_one() {
        assert_eq!(parse("a,,\n1,2,3\n", Some("a")).map(|rows| rows.len()), Ok(1));
    }

    #[test]
    fn quoted_values_may_hold_commas_and_quotes() {
        let rows = parse("\"a, b\",c\n\"1\",\"x, \"\"y\"\"\"\n", None);
        assert_eq!(rows, Ok(vec![json!({"a, b": 1.0, "c": "x, \"y\""})]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("", "is empty"),
            ("a,b\n", "no line of values"),
            ("a,b\n1,2\n1\n", "line 3 has 1 values for 2 columns"),
            ("a,b\n\n1,2\n1,\"2\n3\",4\n", "line 4 has 3 values for 2 columns"),
            ("a,b, a\n1,2,3\n", "two columns that are named a;"),
            ("a,b\nx,2\ny,nan\n", "line 3: b is \"nan\", and no number"),
        ] {
            let error = parse(text, Some("b")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
