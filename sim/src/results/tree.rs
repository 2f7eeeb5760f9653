//! Trees of counters: differences, sums to flat names.
//!
//! Every statistic is a counter that only grows, or an array of such (a histogram), in nested
//! objects. So a warm-up, a region of interest and a sample are each the difference of two
//! snapshots.

use serde_json::{Map, Value};

/// What was counted between two snapshots of the same machine.
///
/// # Errors
/// The name of a counter that shrank, or that only one of the two has: a defect of the code that
/// counts.
pub fn difference(later: &Value, earlier: &Value) -> Result<Value, Defect> {
    match (later, earlier) {
        (Value::Number(later), Value::Number(earlier)) => {
            let (later, earlier) = (later.as_u64(), earlier.as_u64());
            let passed = later.zip(earlier).and_then(|(later, earlier)| later.checked_sub(earlier));
            passed.map(Value::from).ok_or_else(Defect::here)
        }
        (Value::Array(later), Value::Array(earlier)) if later.len() == earlier.len() => {
            let each = later.iter().zip(earlier).enumerate();
            each.map(|(i, (l, e))| difference(l, e).map_err(|d| d.below(&i.to_string()))).collect()
        }
        (Value::Object(later), Value::Object(earlier)) if later.len() == earlier.len() => {
            let mut passed = Map::new();
            for (name, later) in later {
                let earlier = earlier.get(name).ok_or_else(|| Defect::here().below(name))?;
                let value = difference(later, earlier).map_err(|defect| defect.below(name))?;
                passed.insert(name.clone(), value);
            }
            Ok(Value::Object(passed))
        }
        // A part that this machine does not have.
        (Value::Null, Value::Null) => Ok(Value::Null),
        _ => Err(Defect::here()),
    }
}

/// Two parts of a run together: the inverse of [`difference`].
///
/// # Errors
/// The name of a counter that only one of the two has.
pub fn sum(one: &Value, other: &Value) -> Result<Value, Defect> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let sum =
                one.as_u64().zip(other.as_u64()).and_then(|(one, other)| one.checked_add(other));
            sum.map(Value::from).ok_or_else(Defect::here)
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let each = one.iter().zip(other).enumerate();
            each.map(|(i, (one, other))| sum(one, other).map_err(|d| d.below(&i.to_string())))
                .collect()
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            let mut together = Map::new();
            for (name, one) in one {
                let other = other.get(name).ok_or_else(|| Defect::here().below(name))?;
                let value = sum(one, other).map_err(|defect| defect.below(name))?;
                together.insert(name.clone(), value);
            }
            Ok(Value::Object(together))
        }
        (Value::Null, Value::Null) => Ok(Value::Null),
        _ => Err(Defect::here()),
    }
}

/// What parts of a run counted, each so many times, rounded to whole numbers. Null for no part.
///
/// # Errors
/// The name of a counter that only some of them have.
pub fn weighted(parts: &[(f64, &Value)]) -> Result<Value, Defect> {
    let Some((_, first)) = parts.first() else { return Ok(Value::Null) };
    match first {
        Value::Number(_) => {
            let each = parts.iter().map(|(times, part)| Some(times * part.as_u64()? as f64));
            let sum: f64 = each.sum::<Option<f64>>().ok_or_else(Defect::here)?;
            Ok(Value::from(sum.round() as u64))
        }
        Value::Array(items) => (0..items.len())
            .map(|at| of_each(parts, |part| part.get(at), &at.to_string()))
            .collect(),
        Value::Object(members) => {
            let member = |name: &String| {
                Ok((name.clone(), of_each(parts, |part| part.get(name.as_str()), name)?))
            };
            Ok(Value::Object(members.keys().map(member).collect::<Result<_, _>>()?))
        }
        Value::Null => Ok(Value::Null),
        _ => Err(Defect::here()),
    }
}

/// [`weighted`] of what each part has at a place.
fn of_each<'a>(
    parts: &[(f64, &'a Value)],
    place: impl Fn(&'a Value) -> Option<&'a Value>,
    name: &str,
) -> Result<Value, Defect> {
    let each = parts.iter().map(|(times, part)| Some((*times, place(part)?)));
    let each: Vec<_> = each.collect::<Option<_>>().ok_or_else(|| Defect::here().below(name))?;
    weighted(&each).map_err(|defect| defect.below(name))
}

/// A counter that does not only grow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the statistic {path:?} is no counter that only grows; this is a defect of Casemate")]
pub struct Defect {
    path: String,
}

impl Defect {
    pub(super) fn here() -> Self {
        Defect { path: String::new() }
    }

    fn below(self, name: &str) -> Self {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{name}.{}", self.path) };
        Defect { path }
    }
}

/// The leaves of a tree with their names, joined by dots; places in arrays are numbers. In the
/// tree's order.
#[must_use]
pub fn flatten(tree: &Value) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    descend(tree, "", &|_| false, &mut leaves);
    leaves
}

/// As [`flatten`], but an array of counters (a histogram) is one leaf.
#[must_use]
pub fn columns(tree: &Value) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    descend(tree, "", &|items| items.iter().all(Value::is_u64), &mut leaves);
    leaves
}

fn descend(
    tree: &Value,
    path: &str,
    is_leaf: &impl Fn(&[Value]) -> bool,
    leaves: &mut Vec<(String, Value)>,
) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match tree {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| descend(value, &below(name), is_leaf, leaves));
        }
        Value::Array(items) if !is_leaf(items) => {
            let each = items.iter().enumerate();
            each.for_each(|(i, value)| descend(value, &below(&i.to_string()), is_leaf, leaves));
        }
        leaf => leaves.push((path.to_owned(), leaf.clone())),
    }
}

/// The leaf or the part of a tree that a dotted name leads to.
#[must_use]
pub fn part<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(tree, |tree, name| match tree {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        tree => tree.get(name),
    })
}

/// The counter that a dotted name leads to; 0 where the machine has none such (an L3 that is not
/// there). Executed by tests only.
#[must_use]
pub fn count(tree: &Value, path: &str) -> u64 {
    part(tree, path).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_taken_leaf_by_leaf() {
        let earlier = json!({"a": 1, "b": {"c": [1, 2, 3]}, "l3": null});
        let later = json!({"a": 5, "b": {"c": [1, 4, 9]}, "l3": null});
        let passed = json!({"a": 4, "b": {"c": [0, 2, 6]}, "l3": null});
        assert_eq!(difference(&later, &earlier), Ok(passed.clone()));
        assert_eq!(sum(&earlier, &passed), Ok(later));
        assert!(sum(&earlier, &json!({"a": 1})).is_err());
    }

    /// 0.5 times 3 and 1.5 times 5 are 9.
    #[test]
    fn weights_are_of_leaves() {
        let (one, other) = (json!({"a": [3, 0], "l3": null}), json!({"a": [5, 2], "l3": null}));
        let both = weighted(&[(0.5, &one), (1.5, &other)]);
        assert_eq!(both, Ok(json!({"a": [9, 3], "l3": null})));
        let lacks = weighted(&[(0.5, &one), (1.5, &json!({"a": [5]}))]);
        assert_eq!(lacks.map_err(|defect| defect.path), Err("a.1".into()));
    }

    #[test]
    fn what_shrinks_or_changes_its_shape_is_named() {
        let of = |later, earlier| difference(&later, &earlier).map_err(|defect| defect.path);
        assert_eq!(
            of(json!({"a": {"b": [5, 1]}}), json!({"a": {"b": [5, 2]}})),
            Err("a.b.1".into())
        );
        assert_eq!(of(json!({"a": 1}), json!({"b": 1})), Err("a".into()));
        assert_eq!(of(json!({"a": 1, "b": 2}), json!({"a": 1})), Err(String::new()));
        assert_eq!(of(json!({"a": 1.5}), json!({"a": 1.0})), Err("a".into()));
        assert_eq!(of(json!({"a": [1]}), json!({"a": [1, 2]})), Err("a".into()));
    }

    #[test]
    fn leaves_have_dotted_names_and_are_found_by_them() {
        let tree = json!({"a": {"b": [7, 8]}, "c": "x"});
        let names: Vec<_> = flatten(&tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a.b.0", "a.b.1", "c"]);
        for (name, value) in flatten(&tree) {
            assert_eq!(part(&tree, &name), Some(&value), "{name}");
        }
        assert_eq!(count(&tree, "a.b.1"), 8);
        assert_eq!(count(&tree, "a.x"), 0);
    }

    #[test]
    fn only_an_array_of_counters_is_one_column() {
        let tree = json!({"histogram": [7, 8], "cores": [{"x": 1}], "reals": [0.5], "none": []});
        let names: Vec<_> = columns(&tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["cores.0.x", "histogram", "none", "reals.0"]);
    }
}
