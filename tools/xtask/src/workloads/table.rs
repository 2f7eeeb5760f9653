//! What misses in a last level of 1 MiB, as a table for `tools/workloads/README.md`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use casemate_workloads::programs::{Program, trace};
use serde::Deserialize;

/// Instructions before anything is counted.
const WARMUP: u64 = 10_000_000;

/// Of `casemate trace caches --json`.
#[derive(Deserialize)]
struct Report {
    instructions: u64,
    first_level_mpki: Option<f64>,
    last_level_mpki: Option<f64>,
    store_share: Option<f64>,
    write_back_share: Option<f64>,
    instruction_footprint_bytes: u64,
    data_footprint_bytes: u64,
}

/// Prints it, of what is recorded.
pub fn print(folder: &Path, programs: &[&Program]) -> Result<()> {
    crate::cargo::cargo(&["build", "--release", "-p", "casemate"], &[])?;
    println!(
        "| program | what | threads | instructions | L1 misses | last-level misses | stores | write-backs | code | data |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for program in programs {
        let trace = trace(folder, &program.name);
        if !trace.exists() {
            eprintln!("{}: not recorded; cargo xtask workloads record {0}", program.name);
            continue;
        }
        println!("{}", row(program, &survey(program, &trace)?));
    }
    Ok(())
}

fn survey(program: &Program, trace: &Path) -> Result<Report> {
    let mut command = Command::new(crate::root().join("target/release/casemate"));
    command.args(["trace", "caches", "--json"]).arg("--warmup").arg(WARMUP.to_string());
    command.arg("--cores").arg(program.threads.to_string()).arg(trace);
    let output = command.output().context("casemate does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", program.name);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn row(program: &Program, report: &Report) -> String {
    let number = |number: Option<f64>| number.map_or("-".to_owned(), |n| format!("{n:.2}"));
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{:.0} %", 100.0 * s));
    let size = |bytes: u64| {
        let kib = bytes >> 10;
        if kib < 10_000 { format!("{kib} KiB") } else { format!("{} MiB", kib >> 10) }
    };
    format!(
        "| {} | {} | {} | {:.0} M | {} | {} | {} | {} | {} | {} |",
        program.name,
        program.about,
        program.threads,
        report.instructions as f64 / 1e6,
        number(report.first_level_mpki),
        number(report.last_level_mpki),
        percent(report.store_share),
        percent(report.write_back_share),
        size(report.instruction_footprint_bytes),
        size(report.data_footprint_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_counted() {
        let program = Program {
            name: "a".into(),
            about: "b".into(),
            package: None,
            run: vec!["c".into()],
            threads: 4,
            skip: 0,
            length: 1,
        };
        let report = Report {
            instructions: 40_000_000,
            first_level_mpki: Some(12.25),
            last_level_mpki: Some(0.5),
            store_share: Some(0.25),
            write_back_share: None,
            instruction_footprint_bytes: 64 << 10,
            data_footprint_bytes: 20 << 20,
        };
        let expected = "| a | b | 4 | 40 M | 12.25 | 0.50 | 25 % | - | 64 KiB | 20 MiB |";
        assert_eq!(row(&program, &report), expected);
    }
}
