//! Programs that try to break the pager. Each checks itself: it prints `ok NAME` and ends with 0,
//! or says what was wrong and ends with 1.
//!
//! ```text
//! casemate-traps list
//! casemate-traps NAME [--mib N] [--seed S] …
//! ```

mod awaited;
mod generations;
mod glutton;
mod marker;
mod memeater;
mod oracle;
mod phases;
mod support;
mod sweeper;
mod takeover;
mod traps;

use std::process::ExitCode;
use support::{Options, Verdict};

const USAGE: &str = "usage: casemate-traps list | exit CODE | NAME [--mib N] [--seed S] [--depth N] \
    [--file PATH] [--accesses N] [--threads N] [--canary] [--huge] [--fork-every N] \
    [--without drop,move,fork] [--marker HEX] [--mode WORD] [--seconds N]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = words.first().map(String::as_str) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match name {
        "list" => {
            traps::ALL.iter().for_each(|(name, _)| println!("{name}"));
            return ExitCode::SUCCESS;
        }
        "exit" => {
            let code = words.get(1).and_then(|code| code.parse().ok());
            return ExitCode::from(code.unwrap_or(2));
        }
        _ => {}
    }
    let options = match parse(&words[1..]) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(name, &options) {
        Some(Ok(())) => {
            println!("ok {name}");
            ExitCode::SUCCESS
        }
        Some(Err(trouble)) => {
            eprintln!("wrong: {name}: {trouble}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("there is no trap named {name}; `casemate-traps list` names them");
            ExitCode::from(2)
        }
    }
}

fn run(name: &str, options: &Options) -> Option<Verdict> {
    if let Err(trouble) = awaited::pager() {
        return Some(Err(trouble));
    }
    Some(match name {
        "oracle" => oracle::oracle(options),
        "marker" => marker::marker(options),
        "glutton" => glutton::glutton(options),
        "phases" => phases::phases(options),
        "memeater" => memeater::memeater(options),
        "generations" => generations::generations(options),
        "sweeper" => sweeper::sweeper(options),
        "takeover" => takeover::takeover(options),
        "takeover-in-sandbox" => takeover::takeover_in_sandbox(options),
        _ => traps::ALL.iter().find(|(known, _)| *known == name)?.1(options),
    })
}

fn parse(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        mib: 48,
        seed: 1,
        accesses: 10_000_000,
        threads: 4,
        fork_every: oracle::FORK_EVERY,
        without: String::new(),
        canary: false,
        huge: false,
        mode: "plain".to_owned(),
        marker: [0; 16],
        seconds: 60,
        file: None,
        depth: 8,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--canary" {
            options.canary = true;
            continue;
        }
        if word == "--huge" {
            options.huge = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|e| format!("{word} {value}: {e}"));
        match word.as_str() {
            "--mib" => options.mib = number()? as usize,
            "--seed" => options.seed = number()?,
            "--accesses" => options.accesses = number()?,
            "--threads" => options.threads = (number()? as usize).max(1),
            "--fork-every" => options.fork_every = number()?.max(1),
            "--seconds" => options.seconds = number()?,
            "--depth" => options.depth = number()? as usize,
            "--without" => options.without.clone_from(value),
            "--mode" => options.mode.clone_from(value),
            "--file" => options.file = Some(value.into()),
            "--marker" => options.marker = marker::parse_hex(value)?,
            _ => return Err(format!("{word}: unknown option")),
        }
    }
    if options.mib == 0 {
        return Err("--mib must not be 0".into());
    }
    Ok(options)
}
