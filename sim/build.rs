//! Two things. Tells the simulator what code it is, so that a result is found again only by the
//! code that computed it. And compiles QEMU's plugin (`plugin/`), which the library carries inside
//! itself. QEMU admits a plugin by the version of the interface that it names; there is one image
//! for the old and one for the new.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Versions of the plugin interface: QEMU 4.2 to 8.1, and from 8.2 on.
const API_VERSIONS: [u32; 2] = [1, 2];

const PLUGIN: [&str; 2] = ["plugin/casemate_trace.c", "plugin/changes.c"];
/// What results depend on: the protocols and the machine around them.
const SOURCES: [&str; 3] = ["../core/src", "../schemes/src", "src"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=CASEMATE_SOURCES={:032x}", hash_of_sources());
    compile_plugin();
}

fn compile_plugin() {
    println!("cargo::rerun-if-changed=plugin");
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    for version in API_VERSIONS {
        let image = out.join(format!("casemate_trace_{version}.so"));
        let compiled = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"])
            .args(["-fvisibility=hidden", "-s", &format!("-DAPI_VERSION={version}"), "-o"])
            .arg(&image)
            .args(PLUGIN)
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "{compiler} compiles {PLUGIN:?}");
        assert!(fs::metadata(&image).is_ok_and(|file| file.len() > 0), "the image was written");
    }
}

/// FNV-1a, 128 bits, of names and contents: against accidents, which is all that is to be feared
/// here.
fn hash_of_sources() -> u128 {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for path in files {
        let name = path.to_string_lossy().into_owned();
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        for byte in name.bytes().chain([0]).chain(text) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
    hash
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}
