//! The commands. Parser, help, man pages and completions all come from here; each command's flags
//! lie beside it.

use clap::{Parser, Subcommand};

use crate::advise::args::AdviseArgs;
use crate::attack::args::AttackArgs;
use crate::audit::args::AuditArgs;
use crate::bench::args::BenchArgs;
use crate::bench::load::LoadArgs;
use crate::bench::memeater::program::ProgramArgs;
use crate::certified::args::{CertifyArgs, VerifyCertificateArgs};
use crate::completions::args::CompletionsArgs;
use crate::distribution::args::{OpenImageArgs, ProcessorKeyArgs, SealImageArgs};
use crate::doctor::args::DoctorArgs;
use crate::dram::args::DramArgs;
use crate::exit_codes;
use crate::exposure::args::ExposureArgs;
use crate::lock::args::LockArgs;
use crate::man::args::ManArgs;
use crate::man::tables::TablesArgs;
use crate::plot::args::PlotArgs;
use crate::reproduce::args::ReproduceArgs;
use crate::run::args::RunArgs;
use crate::seeds::args::SeedsArgs;
use crate::set::args::SetArgs;
use crate::setup::args::SetupArgs;
use crate::sim::args::SimArgs;
use crate::storage::args::StorageArgs;
use crate::trace::args::TraceArgs;
use crate::unlock::args::UnlockArgs;

/// Keeps a program's memory encrypted and tamper-evident, all but a bounded working set.
#[derive(Debug, Parser)]
#[command(name = "casemate", version, arg_required_else_help = true, after_help = exit_codes::HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program with its memory encrypted and verified
    Run(RunArgs),
    /// Change a run while it goes on: how much plaintext it may keep, or its keys
    Set(SetArgs),
    /// Stop a run's program, and leave nothing of it, and no key, that can be read without a
    /// passphrase
    Lock(LockArgs),
    /// Let a locked run go on, by its passphrase
    Unlock(UnlockArgs),
    /// Look at a run as one who dumps all of its memory: how much is readable, markers, AES keys
    Audit(AuditArgs),
    /// Say whether this machine and user can protect programs, and what to do if not
    Doctor(DoctorArgs),
    /// Let ordinary users run protected programs (needs root)
    Setup(SetupArgs),
    /// Attack a live run's untrusted memory (--pid), or the engine's schemes one by one (--scheme)
    Attack(AttackArgs),
    /// Print what each scheme costs in memory, beside what its paper says
    Storage(StorageArgs),
    /// Print which services of an operating system each kind of seeds can live with, as executed
    Seeds(SeedsArgs),
    /// Say whether keys are recovered from memory that decayed when its power was cut
    Exposure(ExposureArgs),
    /// Measure, beside what it is compared with
    Bench(BenchArgs),
    /// Say how large a program's Clear should be: runs it once under QEMU, some 100 times slower
    Advise(AdviseArgs),
    /// Record, convert and look at traces of programs' memory references
    Trace(TraceArgs),
    /// Run traces on simulated machines, with and without protection, and compare
    Sim(SimArgs),
    /// Replay timed requests on the DDR model alone: latencies, rows, bandwidth, energy
    Dram(DramArgs),
    /// Draw results of `sim` as bars or lines, in SVG, PNG or PDF
    Plot(PlotArgs),
    /// Reproduce the papers' figures and claims on our workloads, with a verdict on every
    /// claim
    Reproduce(ReproduceArgs),
    /// Make a processor's key pair: FILE for the processor alone, FILE.pub for everybody
    ProcessorKey(ProcessorKeyArgs),
    /// Encrypt a program so that one processor alone can run it
    SealImage(SealImageArgs),
    /// Run a sealed program on the processor that it was sealed for, or write it out
    OpenImage(OpenImageArgs),
    /// Run a small program in untrusted memory, and certify its result unless the memory was
    /// tampered with
    Certify(CertifyArgs),
    /// Say what a certificate proves
    VerifyCertificate(VerifyCertificateArgs),
    /// Print a manual page, or write all of them
    Man(ManArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// The program that `bench pager` measures
    #[command(hide = true)]
    BenchLoad(LoadArgs),
    /// The program that `bench memeater` measures
    #[command(hide = true)]
    BenchMemeater(ProgramArgs),
    /// Write what documents say of commands
    #[command(hide = true)]
    #[command(name = "command-tables")]
    Tables(TablesArgs),
}
