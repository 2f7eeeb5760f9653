//! Results beside each other.

use serde_json::Value;

use super::tree::count;

/// The scheme that others are compared with.
pub const BASELINE: &str = "none";

/// How much longer a run took than the same run without protection: 0.12 is 12 %. `None` if that is
/// not among `others`.
#[must_use]
pub fn overhead(result: &Value, others: &[Value]) -> Option<f64> {
    let baseline =
        others.iter().find(|other| other["scheme"] == BASELINE && is_same_run(result, other))?;
    Some(against(result, baseline))
}

/// How much longer a run took than another one of the same instructions.
#[must_use]
pub fn against(result: &Value, baseline: &Value) -> f64 {
    let cycles = |result: &Value| count(result, "statistics.cycles") as f64;
    cycles(result) / cycles(baseline) - 1.0
}

/// Whether two results are of the same trace and machine, whatever the scheme.
#[must_use]
pub fn is_same_run(one: &Value, other: &Value) -> bool {
    let machine = |result: &Value| {
        let mut config = result["config"].clone();
        config["run"]["scheme"] = Value::Null;
        config
    };
    one["trace"] == other["trace"] && machine(one) == machine(other)
}
