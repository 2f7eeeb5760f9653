//! `casemate`: keeps a program's memory encrypted and tamper-evident. This is the command line.

mod advise;
mod args;
mod attack;
mod audit;
mod bench;
mod certified;
mod completions;
mod count;
mod distribution;
mod doctor;
mod door;
mod dram;
mod exit_codes;
mod exposure;
mod failure;
mod lock;
mod man;
mod out;
mod output;
mod passphrase;
mod pid;
mod plot;
mod progress;
mod refused;
mod reproduce;
mod run;
mod seeds;
mod set;
mod setup;
mod sim;
mod size;
mod storage;
mod sys;
mod time;
mod trace;
mod unlock;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Cli, Command};
use bench::args::BenchWhat;
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return ExitCode::from(refused::refused(refusal)),
    };
    match dispatch(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::stderr(&format!("casemate: {}\n", failure::sentence(&error)));
            let code = error.downcast_ref::<Failure>().map(|failure| failure.code);
            ExitCode::from(code.unwrap_or(match cli.command {
                // An answer of theirs has the other code.
                Command::Run(_) | Command::OpenImage(_) | Command::Audit(_) => {
                    exit_codes::OWN_ERROR
                }
                _ => exit_codes::NO,
            }))
        }
    }
}

fn dispatch(cli: &Cli) -> Result<u8> {
    match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Set(args) => set::set(args),
        Command::Lock(args) => lock::lock(args),
        Command::Unlock(args) => unlock::unlock(args),
        Command::Audit(args) => audit::audit(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Setup(args) => setup::setup(args),
        Command::Attack(args) => attack::attack(args),
        Command::Storage(args) => storage::storage(args),
        Command::Seeds(args) => seeds::seeds(args),
        Command::Exposure(args) => exposure::exposure(args),
        Command::Bench(args) => match &args.what {
            BenchWhat::Pager(args) => bench::pager(args),
            BenchWhat::Programs(args) => bench::programs::programs(args),
            BenchWhat::Memeater(args) => bench::memeater::memeater(args),
            BenchWhat::Schemes(args) => bench::schemes::schemes(args),
            BenchWhat::Sim(args) => bench::sim::sim(args),
            BenchWhat::Accuracy(args) => bench::accuracy::accuracy(args),
        },
        Command::Advise(args) => advise::advise(args),
        Command::Trace(args) => trace::trace(args),
        Command::Sim(args) => sim::sim(args),
        Command::Dram(args) => dram::dram(args),
        Command::Plot(args) => plot::plot(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::ProcessorKey(args) => distribution::processor_key(args),
        Command::SealImage(args) => distribution::seal_image(args),
        Command::OpenImage(args) => distribution::open_image(args),
        Command::Certify(args) => certified::certify(args),
        Command::VerifyCertificate(args) => certified::verify(args),
        Command::Man(args) => man::man(args),
        Command::Completions(args) => completions::completions(args),
        Command::BenchLoad(args) => bench::load::main(args),
        Command::BenchMemeater(args) => bench::memeater::program::main(args),
        Command::Tables(args) => man::tables::tables(args),
    }
}
