//! Flags of `casemate run`.

use std::ffi::OsString;
use std::path::PathBuf;

use casemate_keeper::config::DEFAULT_NODE_CACHE_BYTES;
use casemate_keeper::{Bound, ClearSize, Config, OnViolation};
use clap::{Args, ValueEnum};

use crate::exit_codes;
use crate::output::JsonTo;
use crate::size::{Percent, Size};
use crate::time::Time;

use super::clear::ClearOrAuto;
use super::key_hiding::Hiding;
use super::policy;
use super::verification::{self, Every, Verifying};

/// `casemate run`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::HELP)]
pub struct RunArgs {
    /// Most plaintext to keep in memory: a size (64M, 1.5G) or a share of the program's memory
    /// (10%), 2M or more, or auto, which follows the working set from MIN, a size, to MAX [default:
    /// 25%, but at least 64M; on machines below 256M a quarter of the machine; auto: from that
    /// floor to that share]
    #[arg(long, value_name = "SIZE|PERCENT|auto[:MIN..MAX]", allow_negative_numbers = true)]
    pub clear: Option<ClearOrAuto>,
    /// When to begin to hold calls for more memory until that can be kept within --clear [default:
    /// strict up to 32M, else lazy]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub bound: Option<When>,
    /// Encrypt also what fits, once no thread has asked for it in this time (30s, 5m, 1h), as far
    /// as there is room for the ciphertext; every process is then under the pager from its start
    #[arg(long, value_name = "TIME")]
    pub idle: Option<Time>,
    /// TOML file with a part of --clear, or a time after which pages are idle, for the processes of
    /// single programs; then --bound is strict unless told otherwise
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Most ciphertext to keep in memory; needs --swap for what does not fit
    #[arg(long, value_name = "SIZE")]
    pub crypt_limit: Option<Size>,
    /// File to create for ciphertext that does not fit (must not exist; has no name once it is
    /// open)
    #[arg(long, value_name = "FILE")]
    pub swap: Option<PathBuf>,
    /// Trusted memory for verified tree nodes [default: 256K]
    #[arg(long, value_name = "SIZE")]
    pub node_cache: Option<Size>,
    /// What becomes of the program when its memory was tampered with
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Policy::Kill)]
    pub on_violation: Policy,
    /// Put one or two flipped bits of a stored page right, count them, and go on; without this,
    /// they are a violation
    #[arg(long)]
    pub heal: bool,
    /// Verify every stored page about once in this time (30s, 5m, 1h), also those that no thread
    /// asks for
    #[arg(long, value_name = "TIME")]
    pub scrub: Option<Time>,
    /// Where the roots of page keys lie while none is derived from them: in memory that the kernel
    /// does not map (memfd-secret), sealed by a TPM 2.0 (/dev/tpmrm0), or spread over so much
    /// memory (1M) that a few decayed bits lose them (exposure-resilient)
    #[arg(
        long,
        value_name = "memfd-secret|tpm[:DEVICE]|exposure-resilient[:SIZE]",
        default_value = "memfd-secret"
    )]
    pub key_hiding: Hiding,
    /// Give all pages new keys once in this time (10m, 1h), and destroy those before
    #[arg(long, value_name = "TIME")]
    pub rotate: Option<Time>,
    /// How records of pages are verified; a changed page is noticed before it is used either way
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Verifying::Tree)]
    pub verify: Verifying,
    /// With --verify log-hash, check once in this time (500ms, 10s), once so many pages have come
    /// back (10000), or at the end only (exit) [default: 1s]
    #[arg(long, value_name = "N|TIME|exit")]
    pub check_every: Option<Every>,
    /// With --verify log-hash, hold what the program writes to standard output and standard error
    /// until a check has passed
    #[arg(long)]
    pub hold_output: bool,
    /// File to create for a certificate of program, arguments, standard input, output and exit
    /// code, if the program ends and all checks passed; with --hold-output
    #[arg(long, value_name = "FILE")]
    pub certify: Option<PathBuf>,
    /// Private key of this processor, with which --certify signs
    #[arg(long, value_name = "PRIVATE-KEY")]
    pub certify_key: Option<PathBuf>,
    /// Let `casemate attack` reach this run's untrusted memory (a demonstration)
    #[arg(long)]
    pub attackable: bool,
    /// Run also what cannot be protected (setuid, 32-bit), without protection
    #[arg(long)]
    pub allow_unprotected: bool,
    /// End the run with 123 once less than this share of its memory is protected and 32 MiB or more
    /// are not, program text and libraries included (90%; 0 requires nothing)
    #[arg(long, value_name = "PERCENT")]
    pub require_protected: Option<Percent>,
    /// Report as JSON, on stderr or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
    /// No summary at the end and no notes
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// The policy on the Clear's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// From the program's first instruction
    Strict,
    /// Once the Clear is nearly full: a program that fits pays little, but a single call may pass
    /// the bound
    Lazy,
}

/// The policy on integrity violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Kill every process of the run
    Kill,
    /// Send SIGBUS to each thread that touches the page
    Sigbus,
}

/// The least that the trusted node cache may be.
const NODE_CACHE_FLOOR: u64 = 16 * 1024;
/// The most: trusted memory is small by design.
const NODE_CACHE_CEILING: u64 = 1 << 30;

impl RunArgs {
    /// The share of memory that must be protected; 0: none.
    #[must_use]
    pub fn required_percent(&self) -> u8 {
        self.require_protected.map_or(0, |percent| percent.0)
    }

    /// The keeper's configuration.
    ///
    /// # Errors
    /// A sentence about flags that do not go together.
    pub fn config(&self) -> Result<Config, String> {
        let node_cache = self.node_cache.map_or(DEFAULT_NODE_CACHE_BYTES as u64, |size| size.0);
        if !(NODE_CACHE_FLOOR..=NODE_CACHE_CEILING).contains(&node_cache) {
            return Err(format!(
                "--node-cache is {node_cache} bytes; choose from 16K to 1G (256K is the default)"
            ));
        }
        if let Some(idle) = self.idle.filter(|idle| idle.0 < Config::LEAST_IDLE) {
            return Err(format!("--idle is {} ms; choose 1s or more", idle.0.as_millis()));
        }
        if let Some(scrub) = self.scrub.filter(|scrub| scrub.0 < Config::LEAST_SCRUB) {
            return Err(format!("--scrub is {} ms; choose 1s or more", scrub.0.as_millis()));
        }
        if let Some(rotate) = self.rotate.filter(|rotate| rotate.0 < Config::LEAST_ROTATE) {
            return Err(format!("--rotate is {} ms; choose 1s or more", rotate.0.as_millis()));
        }
        if self.command.first().is_some_and(|name| name.is_empty()) {
            return Err("the command is an empty string; name a program after --".to_owned());
        }
        Ok(Config {
            clear: match self.clear {
                Some(ClearOrAuto::Fixed(clear)) => clear.0,
                _ => ClearSize::default(),
            },
            auto: match self.clear {
                Some(ClearOrAuto::Auto(auto)) => Some(auto),
                _ => None,
            },
            bound: self.bound.map(|when| match when {
                When::Strict => Bound::Strict,
                When::Lazy => Bound::Lazy,
            }),
            idle: self.idle.map(|time| time.0),
            programs: self.policy.as_deref().map_or(Ok(Vec::new()), policy::read)?,
            crypt_limit_bytes: self.crypt_limit.map(|size| size.0),
            swap: self.swap.clone(),
            node_cache_bytes: node_cache as usize,
            on_violation: match self.on_violation {
                Policy::Kill => OnViolation::Kill,
                Policy::Sigbus => OnViolation::Sigbus,
            },
            heal: self.heal,
            scrub: self.scrub.map(|time| time.0),
            key_hiding: self.key_hiding.0.clone(),
            rotate: self.rotate.map(|time| time.0),
            log_hash: verification::log_hash(self.verify, self.check_every, self.hold_output)?,
            hold_output: self.hold_output,
            hash_output: self.certify.is_some(),
            attackable: self.attackable,
            allow_unprotected: self.allow_unprotected,
            required_percent: self.required_percent(),
            command: self.command.clone(),
        })
    }
}
