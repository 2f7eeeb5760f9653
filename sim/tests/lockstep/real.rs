//! Real programs under QEMU. `CASEMATE_SOAK` makes it all schemes and more loads.

use crate::common::tracers::there;
use casemate_schemes::catalogue::{NamedScheme, SCHEMES, by_name};
use casemate_sim::lockstep::{Lockstep, LockstepConfig};
use casemate_sim::trace::live::{Live, Options, Which};
use casemate_sim::trace::{Instruction, Source};
use std::ffi::OsString;

#[test]
fn gzip_finds_what_it_stored() {
    let gzip =
        ["/bin/gzip", "/usr/bin/gzip"].into_iter().find(|p| std::path::Path::new(p).exists());
    let Some(gzip) = gzip.filter(|_| there(Which::Qemu)) else {
        eprintln!("SKIPPED: no gzip or no QEMU here");
        return;
    };
    let soak = std::env::var_os("CASEMATE_SOAK").is_some();
    let named = |name| by_name(name).expect("it has this name");
    let few = || ["aise+bmt", "chtree", "sgx", "aise+lhash"].map(named).to_vec();
    let schemes: Vec<NamedScheme> = if soak { SCHEMES.to_vec() } else { few() };
    let loads = if soak { 10_000_000 } else { 1_000_000 };
    // Itself: a file that is here and not small. It is replaced by what it is compressed to.
    let input = std::env::temp_dir().join(format!("casemate-gzip-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().expect("this test has a file"), &input).expect("a copy");
    let arguments = [gzip.into(), OsString::from("-9f"), input.clone().into_os_string()];
    let command = arguments.to_vec();
    let options = Options { command, skip: 0, length: None, values: true, with: Some(Which::Qemu) };
    let config = LockstepConfig { frames: 4096, ..LockstepConfig::default() };
    let mut machines: Vec<_> = schemes
        .iter()
        .map(|named| (named, Lockstep::new(&named.scheme, &config).expect("it can be built")))
        .collect();
    let mut live = Live::start(&options).expect("the program starts");
    let mut record = Instruction::default();
    while live.next(&mut record).expect("it is recorded") {
        for (named, machine) in &mut machines {
            let equal = machine.step(&record);
            assert_eq!(equal, Ok(()), "{}", named.name);
        }
        if machines[0].1.compared().loads >= loads {
            break;
        }
    }
    drop(live);
    let _ = (std::fs::remove_file(&input), std::fs::remove_file(input.with_extension("gz")));
    for (named, machine) in &mut machines {
        assert_eq!(machine.check(), Ok(()), "{}", named.name);
        let compared = machine.compared();
        assert!(compared.loads >= loads && compared.unknown_loads == 0, "{compared:?}");
        // Its tables exceed the cache of 1,024 lines, so that its blocks come through the unit
        // again and again.
        assert!(compared.fetched_blocks > 2 * 1024, "{}: {compared:?}", named.name);
        assert!(compared.adopted_bytes < compared.bytes / 5, "{}: {compared:?}", named.name);
    }
}
