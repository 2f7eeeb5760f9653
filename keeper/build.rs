//! Compiles the agent (`agent/blob`) into a flat, position-independent image that the keeper
//! carries inside itself, so that the `casemate` binary needs no other file.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let agent = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../agent");
    let out = PathBuf::from(variable("OUT_DIR"));
    println!("cargo::rerun-if-changed={}", agent.join("blob").display());
    println!("cargo::rerun-if-changed={}", agent.join("src").display());
    println!("cargo::rerun-if-changed=build.rs");

    let elf = out.join("agent.elf");
    compile(&agent, &elf);
    let bytes = fs::read(&elf).expect("the agent was just written");
    let (image, got) = flatten(&bytes);
    fs::write(out.join("agent.bin"), image).expect("OUT_DIR is writable");
    fs::write(out.join("agent_got.rs"), format!("&{got:?}")).expect("OUT_DIR is writable");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn compile(agent: &Path, elf: &Path) {
    let script = agent.join("blob/link.ld");
    let status = Command::new(variable("RUSTC"))
        .args(["--edition=2024", "--crate-type=bin", "--crate-name=casemate_agent_blob"])
        .args(["--target", &variable("TARGET")])
        .args(["-Copt-level=2", "-Cpanic=abort", "-Crelocation-model=pic", "-Cstrip=symbols"])
        .args(["-Ccodegen-units=1", "-Cforce-unwind-tables=no"])
        .args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles", "-Clink-arg=-static"])
        .args(["-Clink-arg=-no-pie", "-Clink-arg=-Wl,--build-id=none"])
        .arg(format!("-Clink-arg=-Wl,-T,{}", script.display()))
        .arg("-o")
        .arg(elf)
        .arg(agent.join("blob/main.rs"))
        .env_remove("RUSTFLAGS")
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "the agent did not compile");
}

/// The image's bytes, from the entry on, and the offsets of its GOT words.
fn flatten(elf: &[u8]) -> (Vec<u8>, Vec<usize>) {
    assert_eq!(elf.get(..6), Some(&b"\x7fELF\x02\x01"[..]), "the agent is a little-endian ELF64");
    assert_eq!(word(elf, 24, 8), 0, "the entry is the first byte");
    let (headers, count) = (word(elf, 40, 8), word(elf, 60, 2));
    let (mut image, mut got) = (Vec::new(), Vec::new());
    for i in 0..count {
        let header = headers + i * 64;
        let (kind, flags) = (word(elf, header + 4, 4), word(elf, header + 8, 8));
        let (address, at, size) =
            (word(elf, header + 16, 8), word(elf, header + 24, 8), word(elf, header + 32, 8));
        // SHF_ALLOC: what lies in memory.
        if flags & 2 == 0 || size == 0 {
            continue;
        }
        assert_eq!(kind, 1, "only program bits lie in memory");
        image.resize(image.len().max(address + size), 0);
        image[address..address + size].copy_from_slice(&elf[at..at + size]);
        // SHF_WRITE: the GOT, as the linker script admits nothing else.
        if flags & 1 != 0 {
            got.extend((address..address + size).step_by(8));
        }
    }
    assert!(!image.is_empty() && image.len() < 64 * 1024, "the agent is small and not empty");
    (image, got)
}

fn word(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}
