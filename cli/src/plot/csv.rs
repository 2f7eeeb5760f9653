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

/// Its rows.
///
/// # Errors
/// A sentence that names the file and what is wrong in it.
pub fn rows(path: &Path) -> Result<Vec<Value>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::own(format!("{}: {error}", path.display())))?;
    parse(&text).map_err(|why| Failure::own(format!("{}: {why}", path.display())))
}

fn parse(text: &str) -> Result<Vec<Value>, String> {
    // Spreadsheets begin a file with a mark of its encoding.
    let text = text.trim_start_matches('\u{feff}');
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| error.to_string())?.clone();
    if columns.is_empty() {
        return Err("is empty; its first line is to name the columns".to_owned());
    }
    let rows: Result<Vec<Value>, String> =
        reader.records().map(|record| row(&columns, &record.map_err(|e| e.to_string())?)).collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err("has no line of values".to_owned()),
        rows => rows,
    }
}

fn row(columns: &StringRecord, values: &StringRecord) -> Result<Value, String> {
    if values.len() != columns.len() {
        let line = values.position().map_or(0, csv::Position::line);
        let (are, wanted) = (values.len(), columns.len());
        return Err(format!("line {line} has {are} values for {wanted} columns"));
    }
    let is_number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    let value = |text: &str| is_number(text).map_or_else(|| Value::from(text), Value::from);
    let all = columns.iter().zip(values).map(|(name, text)| (name.to_owned(), value(text)));
    Ok(Value::Object(all.collect::<Map<String, Value>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_numbers_and_words() {
        let rows = parse("mode,milliseconds,markers\nplain, 10,3\n\nidle,2.5,nan\n");
        let wanted = vec![
            json!({"mode": "plain", "milliseconds": 10.0, "markers": 3.0}),
            json!({"mode": "idle", "milliseconds": 2.5, "markers": "nan"}),
        ];
        assert_eq!(rows, Ok(wanted));
    }

    #[test]
    fn a_mark_of_the_encoding_is_no_part_of_a_name() {
        assert_eq!(parse("\u{feff}a,b\n1,2\n"), parse("a,b\n1,2\n"));
    }

    #[test]
    fn quoted_values_may_hold_commas_and_quotes() {
        let rows = parse("\"a, b\",c\n\"1\",\"x, \"\"y\"\"\"\n");
        assert_eq!(rows, Ok(vec![json!({"a, b": 1.0, "c": "x, \"y\""})]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("", "is empty"),
            ("a,b\n", "no line of values"),
            ("a,b\n1,2\n1\n", "line 3 has 1 values for 2 columns"),
            ("a,b\n\n1,2\n1,\"2\n3\",4\n", "line 4 has 3 values for 2 columns"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
