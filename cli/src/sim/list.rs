//! `casemate sim --list`: presets, schemes and keys.

use anyhow::Result;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES};
use casemate_sim::config::keys::SECTIONS;
use casemate_sim::config::presets::PRESETS;
use casemate_sim::config::value::{Kind, human};
use casemate_sim::config::{Resolved, value::Value as KeyValue};
use serde_json::json;

use super::args::SimArgs;
use super::machine;
use crate::output::{self, SCHEMA};

/// Prints all names, with the values that the preset and the file give.
pub fn list(args: &SimArgs) -> Result<u8> {
    let resolved = machine::base(&args.preset, args.config.as_deref())?;
    match &args.json.to {
        Some(to) => output::json(to, &as_json(&resolved))?,
        None => output::stdout(&text(args, &resolved))?,
    }
    Ok(0)
}

fn text(args: &SimArgs, resolved: &Resolved) -> String {
    let mut text = String::from("Presets (--preset):\n");
    for preset in &PRESETS {
        text += &format!("  {:<14} {}\n", preset.name, preset.meaning);
    }
    text += "\nSchemes (--scheme):\n";
    for named in &SCHEMES {
        text += &format!("  {:<14} {}\n", named.name, named.source);
    }
    let names = |parts: Vec<&str>| parts.join(", ");
    text += &format!(
        "  or ENCRYPTION/INTEGRITY, with one of {}\n  and one of {}\n",
        names(ENCRYPTIONS.iter().map(|(name, _)| *name).collect()),
        names(INTEGRITIES.iter().map(|(name, _)| *name).collect())
    );
    text += &format!("\nKeys (--config, --set), with the values of preset {}:\n", args.preset);
    for section in &SECTIONS {
        text += &format!("\n[{}] {}\n", section.name, section.meaning);
        for key in section.keys {
            let value = resolved.value(&format!("{}.{}", section.name, key.name));
            let value = value.map_or(String::new(), |value| shown(key.kind, value));
            text += &format!("  {:<26} {value:<16} {}: {}\n", key.name, key.meaning, key.kind);
        }
    }
    text
}

fn shown(kind: Kind, value: &KeyValue) -> String {
    match (kind, value) {
        (Kind::Size(..), KeyValue::Number(bytes)) => human(*bytes),
        (_, value) => value.to_string(),
    }
}

fn as_json(resolved: &Resolved) -> serde_json::Value {
    let key = |section: &str, key: &casemate_sim::config::keys::Key| {
        let path = format!("{section}.{}", key.name);
        let value = resolved.value(&path).map(serde_json::Value::from);
        json!({"key": path, "value": value, "type": key.kind.to_string(), "meaning": key.meaning})
    };
    let keys: Vec<_> =
        SECTIONS.iter().flat_map(|s| s.keys.iter().map(|k| key(s.name, k))).collect();
    let presets: Vec<_> =
        PRESETS.iter().map(|p| json!({"name": p.name, "meaning": p.meaning})).collect();
    let schemes: Vec<_> =
        SCHEMES.iter().map(|s| json!({"name": s.name, "source": s.source})).collect();
    let of = |names: &[&str]| json!(names);
    json!({
        "schema": SCHEMA,
        "presets": presets,
        "schemes": schemes,
        "encryptions": of(&ENCRYPTIONS.map(|(name, _)| name)),
        "integrities": of(&INTEGRITIES.map(|(name, _)| name)),
        "keys": keys,
    })
}
