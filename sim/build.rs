//! Compiles QEMU's plugin (`plugin/`), which the library carries inside itself. QEMU admits a
//! plugin by the version of the interface that it names; there is one image for the old and one for the new.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Versions of the plugin interface: QEMU 4.2 to 8.1, and from 8.2 on.
const API_VERSIONS: [u32; 2] = [1, 2];

const SOURCES: [&str; 2] = ["plugin/casemate_trace.c", "plugin/changes.c"];

fn main() {
    println!("cargo::rerun-if-changed=plugin");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    for version in API_VERSIONS {
        let image = out.join(format!("casemate_trace_{version}.so"));
        let compiled = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"])
            .args(["-fvisibility=hidden", "-s", &format!("-DAPI_VERSION={version}"), "-o"])
            .arg(&image)
            .args(SOURCES)
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "{compiler} compiles {SOURCES:?}");
        assert!(fs::metadata(&image).is_ok_and(|file| file.len() > 0), "the image was written");
    }
}
