//! Rows of a file of values with commas between them, as results: the first line names the columns.

use std::fs;
use std::path::Path;

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
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (_, head) = lines.next().ok_or("is empty; its first line is to name the columns")?;
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    if head.contains('"') {
        return Err("has quoted values, which are not read".to_owned());
    }
    let rows: Result<Vec<Value>, String> = lines
        .map(|(n, line)| row(&columns, line).map_err(|why| format!("line {n} {why}")))
        .collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err("has no line of values".to_owned()),
        rows => rows,
    }
}

fn row(columns: &[&str], line: &str) -> Result<Value, String> {
    let values: Vec<&str> = line.split(',').map(str::trim).collect();
    if line.contains('"') {
        return Err("has quoted values, which are not read".to_owned());
    }
    if values.len() != columns.len() {
        return Err(format!("has {} values for {} columns", values.len(), columns.len()));
    }
    let is_number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    let value = |text: &str| is_number(text).map_or_else(|| Value::from(text), Value::from);
    let all = columns.iter().zip(values).map(|(name, text)| ((*name).to_owned(), value(text)));
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
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("", "is empty"),
            ("a,b\n", "no line of values"),
            ("a,b\n1,2\n1\n", "line 3 has 1 values for 2 columns"),
            ("a,b\n1,\"2\"\n", "line 2 has quoted values"),
            ("a,\"b\"\n1,2\n", "has quoted values"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
