//! `casemate-workload`: runs a kernel, or writes an input.

use std::process::ExitCode;

use casemate_workloads::kernels::{self, Kernel, Work};
use casemate_workloads::{inputs, size};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("casemate-workload: {what}\n\n{}", usage());
            ExitCode::from(2)
        }
    }
}

fn usage() -> String {
    let mut text =
        "usage: casemate-workload KERNEL [--size BYTES] [--rounds N] [--threads N] [--seed N]
       casemate-workload input KIND FILE [--size BYTES] [--seed N]

Sizes may end in K or M. A kernel prints a checksum of its results.

kernels:\n"
            .to_owned();
    for Kernel { name, about, default: (size, rounds), .. } in &kernels::KERNELS {
        let size = size >> 20;
        text += &format!("  {name:<17} {about} (--size {size}M --rounds {rounds})\n");
    }
    text += "\ninputs:\n";
    for input in &inputs::INPUTS {
        text += &format!("  {:<17} {}\n", input.name, input.about);
    }
    text
}

fn dispatch(words: &[String]) -> Result<(), String> {
    let (name, words) = words.split_first().ok_or("which kernel?")?;
    if name == "input" {
        return write_input(words);
    }
    let kernel = kernels::of_name(name).ok_or_else(|| format!("no kernel is called {name:?}"))?;
    let (size_bytes, rounds) = kernel.default;
    let mut work = Work { size_bytes, rounds, threads: 4, seed: 1 };
    options(
        words,
        &["--size", "--rounds", "--threads", "--seed"],
        |option, number| match option {
            "--size" => work.size_bytes = number,
            "--rounds" => work.rounds = number,
            "--threads" => work.threads = number.clamp(1, 64) as usize,
            _ => work.seed = number,
        },
    )?;
    println!("{:016x}", (kernel.run)(&work));
    Ok(())
}

fn write_input(words: &[String]) -> Result<(), String> {
    let [kind, file, words @ ..] = words else {
        return Err("which input, into which file?".into());
    };
    let input = inputs::of_name(kind).ok_or_else(|| format!("no input is called {kind:?}"))?;
    let (mut size_bytes, mut seed) = (1 << 20, 1);
    options(words, &["--size", "--seed"], |option, number| {
        *if option == "--size" { &mut size_bytes } else { &mut seed } = number;
    })?;
    let content = (input.make)(size_bytes, seed);
    std::fs::write(file, content).map_err(|error| format!("{file}: {error}"))
}

/// Options with a number each, among those that are known.
fn options(
    words: &[String],
    known: &[&str],
    mut take: impl FnMut(&str, u64),
) -> Result<(), String> {
    for pair in words.chunks(2) {
        let [option, word] = pair else { return Err(format!("{:?} of what?", pair[0])) };
        if !known.contains(&option.as_str()) {
            return Err(format!("{option:?} is no option here"));
        }
        take(option, size::of(word).ok_or_else(|| format!("{option} {word}: no number"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [
            &[][..],
            &["nothing"],
            &["join", "--size"],
            &["join", "--size", "x"],
            &["join", "--sise", "1"],
            &["input", "text"],
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(dispatch(&words).is_err(), "{words:?}");
        }
    }
}
