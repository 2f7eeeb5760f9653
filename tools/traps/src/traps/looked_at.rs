//! What others read in `/proc` about a program lies in the program's own memory, on its stack, and
//! may be out.

use crate::support::{Ballast, Options, Region, Trouble, Verdict, in_child};

/// `/proc/PID/cmdline` and `environ` of this process and of a child, when everything is cold.
pub fn proc_cmdline(options: &Options) -> Verdict {
    let own = read("self")?;
    if own.iter().any(|text| text.is_empty()) {
        return Err("no arguments or no environment to look at: the trap tries nothing".into());
    }
    let region = Region::map(options.pages() / 2, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    for round in 0..6 {
        region.fill(round);
        ballast.squeeze()?;
        region.check(round)?;
        expect("its own", &own, &read("self")?)?;
    }
    let parent = std::process::id().to_string();
    in_child(|| {
        ballast.squeeze()?;
        expect("its parent's", &own, &read(&parent)?)?;
        expect("a child's own", &own, &read("self")?)
    })?
    .wait()
}

fn read(who: &str) -> Result<[Vec<u8>; 2], Trouble> {
    let file = |name: &str| {
        std::fs::read(format!("/proc/{who}/{name}"))
            .map_err(|e| Trouble(format!("/proc/{who}/{name}: {e}")))
    };
    Ok([file("cmdline")?, file("environ")?])
}

fn expect(whose: &str, right: &[Vec<u8>; 2], got: &[Vec<u8>; 2]) -> Verdict {
    for (what, right, got) in [("cmdline", &right[0], &got[0]), ("environ", &right[1], &got[1])] {
        if right != got {
            return Err(Trouble(format!(
                "{whose} {what}: {} bytes, of which {} are zero; {} before",
                got.len(),
                got.iter().filter(|byte| **byte == 0).count(),
                right.len()
            )));
        }
    }
    Ok(())
}
