//! Programs that run and are recorded: programs of Debian, and small ones in C that are compiled
//! here, under QEMU and Valgrind.

mod common;

use casemate_sim::trace::live::wire::Wire;
use casemate_sim::trace::live::{Ending, Live, Options, Which};
use casemate_sim::trace::{Branch, Extent, Instruction, Kind, Source};
use common::drain;
use common::tracers::{Program, there};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ffi::OsString;

fn options(program: &Program, with: Which) -> Options {
    let command = vec![program.0.clone().into_os_string()];
    Options { command, skip: 0, length: None, values: true, with: Some(with) }
}

fn run(options: &Options) -> (Vec<Instruction>, Ending) {
    let mut live = Live::start(options).expect("the program starts");
    let (all, ended) = drain(&mut live);
    ended.expect("the program is recorded");
    (all, live.ending().expect("it has ended"))
}

/// Writes known values to an array, reads them in another order, and ends with a code of its own.
const ARRAY: &str = r#"
#include <stdint.h>
#include <stdio.h>
static volatile uint64_t array[512];
int main(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 512; i++) array[i] = 0xabc0000000000000u + i * 0x10001u;
    for (uint64_t i = 0; i < 512; i++) sum += array[(i * 37) % 512];
    return sum == 0x123 ? 1 : 7;
}
"#;

/// The instructions that store what [`ARRAY`] stores, and those that load it.
fn find_array(all: &[Instruction]) -> (Vec<u64>, Vec<u64>) {
    let mut places = (Vec::new(), Vec::new());
    for reference in all.iter().flat_map(|instruction| &instruction.references) {
        let Some(value) = reference.value.filter(|value| value >> 52 == 0xabc) else { continue };
        if reference.size_bytes != 8 {
            continue;
        }
        let index = (value & 0xffff_ffff_ffff) / 0x10001;
        let base = reference.address.wrapping_sub(8 * index);
        let list = if reference.kind == Kind::Store { &mut places.0 } else { &mut places.1 };
        list.push(base);
    }
    places
}

#[test]
fn qemu_gives_every_reference_with_its_value() {
    if !there(Which::Qemu) {
        return;
    }
    let program = Program::new("array", ARRAY);
    let (all, ending) = run(&options(&program, Which::Qemu));
    assert!(matches!(ending, Ending::Exited(status) if status.code() == Some(7)), "{ending:?}");
    let (stored, loaded) = find_array(&all);
    // Every value stands at the place that the program gave it.
    assert_eq!((stored.len(), loaded.len()), (512, 512));
    assert!(stored.iter().chain(&loaded).all(|base| *base == stored[0]));
    let mut blind = options(&program, Which::Qemu);
    blind.values = false;
    let (blind, _) = run(&blind);
    assert!(blind.iter().all(|i| i.references.iter().all(|r| r.value.is_none())));
}

#[test]
fn an_instruction_is_followed_by_the_next_or_is_a_branch() {
    if !there(Which::Qemu) {
        return;
    }
    let (all, _) = run(&options(&Program::new("flow", ARRAY), Which::Qemu));
    assert_eq!(follows(&all), Ok(()));
    // The check can fail: an instruction that is left out is seen.
    let straight = all.windows(2).position(|pair| pair.iter().all(|i| i.branch == Branch::No));
    let straight = straight.expect("not all are branches");
    let mut broken = all;
    broken.remove(straight + 1);
    assert!(follows(&broken).is_err());
}

/// Control goes to the next address unless a branch was taken; a string instruction may repeat
/// itself.
fn follows(all: &[Instruction]) -> Result<(), String> {
    for (at, pair) in all.windows(2).enumerate() {
        let (one, next) = (&pair[0], &pair[1]);
        let falls_through = next.pc == one.pc + u64::from(one.length_bytes);
        if !falls_through && one.branch != Branch::Taken && next.pc != one.pc {
            return Err(format!("{at}: {one:x?}, then {next:x?}"));
        }
    }
    Ok(())
}

#[test]
fn loads_give_what_was_stored() {
    if !there(Which::Qemu) {
        return;
    }
    let (all, _) = run(&options(&Program::new("shadow", ARRAY), Which::Qemu));
    let (checked, wrong) = compare_with_shadow(&all);
    assert!(checked > 2000, "{checked} bytes were stored and loaded again");
    assert_eq!(wrong, 0, "of {checked}");
    // The check can fail: one value that is changed is seen.
    let mut broken = all;
    let (_, loaded) = find_array(&broken);
    let target = loaded[0];
    let load = broken.iter_mut().flat_map(|i| &mut i.references).find(|r| {
        r.kind == Kind::Load && (target..target + 4096).contains(&r.address) && r.value.is_some()
    });
    let load = load.expect("the array is loaded from");
    load.value = load.value.map(|value| value ^ 1);
    assert_eq!(compare_with_shadow(&broken).1, 1);
}

/// Bytes that were stored and loaded again, and how many of them were not the same. The kernel
/// writes too: what a system call may have changed is not known, so a system call forgets
/// everything.
fn compare_with_shadow(all: &[Instruction]) -> (u64, u64) {
    let mut shadow: HashMap<u64, u8> = HashMap::new();
    let (mut checked, mut wrong) = (0, 0);
    for pair in all.windows(2) {
        for reference in &pair[0].references {
            let Some(value) = reference.value else { continue };
            for (i, byte) in
                value.to_le_bytes()[..usize::from(reference.size_bytes)].iter().enumerate()
            {
                let address = reference.address + i as u64;
                if reference.kind == Kind::Load {
                    let known = shadow.insert(address, *byte);
                    checked += u64::from(known.is_some());
                    wrong += u64::from(known.is_some_and(|known| known != *byte));
                } else {
                    shadow.insert(address, *byte);
                }
            }
        }
        let is_syscall = pair[0].length_bytes == 2
            && pair[0].branch == Branch::No
            && pair[0].references.is_empty()
            && pair[0].registers.written.contains(&2)
            && pair[0].registers.written.contains(&12);
        if is_syscall {
            shadow.clear();
        }
    }
    (checked, wrong)
}

#[test]
fn skip_and_length_cut_a_window_out() {
    for which in [Which::Qemu, Which::Valgrind] {
        if !there(which) {
            continue;
        }
        let program = Program::new(&format!("window-{which:?}"), ARRAY);
        let mut wanted = options(&program, which);
        let pcs = |all: &[Instruction]| all.iter().map(|i| i.pc & 0xfff).collect::<Vec<_>>();
        let (all, _) = run(&wanted);
        (wanted.skip, wanted.length) = (501, Some(300));
        let (window, ending) = run(&wanted);
        assert_eq!(ending, Ending::Stopped, "{which:?}");
        // Where things lie in memory may differ from run to run, but not within a page.
        assert_eq!(pcs(&window), pcs(&all[501..801]), "{which:?}");
        (wanted.skip, wanted.length) = (u64::MAX, None);
        let (nothing, ending) = run(&wanted);
        assert!(nothing.is_empty() && matches!(ending, Ending::Exited(_)), "{which:?}");
    }
}

#[test]
fn threads_are_told_apart() {
    if !there(Which::Qemu) {
        return;
    }
    let source = r#"
#include <pthread.h>
static void *work(void *to) { volatile long *at = to; for (long i = 0; i < 1000; i++) *at = i; return 0; }
int main(void)
{
    pthread_t threads[3];
    static long places[3][64];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, places[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;
    let (all, ending) = run(&options(&Program::new("threads", source), Which::Qemu));
    assert!(matches!(ending, Ending::Exited(status) if status.success()), "{ending:?}");
    // A thousand stores to one place, by one thread each; a number may be used again when its
    // thread has ended.
    let mut stores: HashMap<(u32, u64), u64> = HashMap::new();
    for instruction in &all {
        for reference in instruction.references.iter().filter(|r| r.kind == Kind::Store) {
            *stores.entry((instruction.thread, reference.address)).or_default() += 1;
        }
    }
    let workers = stores.iter().filter(|((thread, _), n)| *thread > 0 && **n == 1000).count();
    assert_eq!(workers, 3);
    for thread in 0..=3 {
        let own: Vec<_> = all.iter().filter(|i| i.thread == thread).cloned().collect();
        if thread == 0 {
            assert_eq!(follows(&own), Ok(()));
        }
    }
}

#[test]
fn valgrind_gives_the_same_references_as_qemu() {
    if !there(Which::Qemu) || !there(Which::Valgrind) {
        return;
    }
    let program = Program::new("both", ARRAY);
    let (qemu, _) = run(&options(&program, Which::Qemu));
    let (valgrind, ending) = run(&options(&program, Which::Valgrind));
    assert!(matches!(ending, Ending::Exited(status) if status.code() == Some(7)), "{ending:?}");
    // The program's own loop, which both must see: 512 stores in steps of 8, by one instruction.
    let longest = |all: &[Instruction]| {
        let mut by_pc: HashMap<u64, Vec<u64>> = HashMap::new();
        for instruction in all {
            for reference in instruction.references.iter().filter(|r| r.kind == Kind::Store) {
                by_pc.entry(instruction.pc).or_default().push(reference.address);
            }
        }
        let steps =
            |list: &Vec<u64>| list.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == 8);
        by_pc.values().filter(|list| list.len() == 512 && steps(list)).count()
    };
    assert_eq!((longest(&qemu), longest(&valgrind)), (1, 1));
}

#[test]
fn what_cannot_be_recorded_is_refused_with_a_sentence() {
    let start = |name: &str| {
        let command = vec![OsString::from(name)];
        let options = Options { command, skip: 0, length: None, values: true, with: None };
        Live::start(&options).err().expect("it cannot be recorded").to_string()
    };
    let script = std::env::temp_dir().join(format!("casemate-live-script-{}", std::process::id()));
    std::fs::write(&script, "#!/bin/sh\n").expect("a file for the test");
    assert!(start(&script.display().to_string()).contains("interpreter"));
    let _ = std::fs::remove_file(&script);
    assert!(start("/etc/passwd").contains("no 64-bit x86 program"));
    assert!(start("no-such-program-anywhere").contains("no such program"));
    assert!(start("/no/such/file").contains("cannot be read"));
    assert!(start("").contains("no such program"));
}

#[test]
fn a_program_that_replaces_itself_is_recorded_so_far() {
    if !there(Which::Qemu) {
        return;
    }
    let source = "#include <unistd.h>\nint main(void) { execl(\"/bin/true\", \"true\", (char *)0); return 9; }";
    let (all, ending) = run(&options(&Program::new("exec", source), Which::Qemu));
    assert!(all.len() > 1000, "{}", all.len());
    assert!(matches!(ending, Ending::BrokeOff(status) if status.success()), "{ending:?}");
}

#[test]
fn a_recording_that_breaks_off_says_so_and_keeps_what_came() {
    if !there(Which::Qemu) {
        return;
    }
    // Long enough that the plugin has written more than one buffer, which ends wherever it ends.
    let work = "for (volatile long i = 0; i < 200000; i++) {}";
    for (name, end) in
        [("killed", "kill(getpid(), 9);"), ("closed", "for (int i = 3; i < 4096; i++) close(i);")]
    {
        let source = format!(
            "#include <signal.h>\n#include <unistd.h>\nint main(void) {{ {work} {end} {work} return 0; }}"
        );
        let (all, ending) = run(&options(&Program::new(name, &source), Which::Qemu));
        assert!(all.len() > 500_000, "{name}: {}", all.len());
        assert!(matches!(ending, Ending::BrokeOff(_)), "{name}: {ending:?}");
    }
}

#[test]
fn a_reader_that_is_slow_or_leaves_holds_or_ends_the_program() {
    if !there(Which::Qemu) {
        return;
    }
    let source = "int main(void) { for (volatile long i = 0;; i++) {} }";
    let program = Program::new("endless", source);
    let mut live = Live::start(&options(&program, Which::Qemu)).expect("the program starts");
    let mut record = Instruction::default();
    for _ in 0..1_000_000 {
        assert!(live.next(&mut record).expect("it goes on for ever"));
    }
    let name = program.0.file_name().expect("it has a name").to_owned();
    drop(live);
    // Nothing of it is left.
    let left = std::fs::read_dir("/proc").expect("/proc is mounted").flatten().any(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&*name.to_string_lossy())
    });
    assert!(!left);
}

#[test]
fn words_that_break_off_anywhere_are_an_end() {
    // Greeting; block 0 of one instruction, add rax, rbx; it begins; a load of eight bytes with its
    // value; the kernel changes 16 bytes; end.
    let load = 0x1000 << 16 | 3 << 3 | 1 << 6;
    let changed = 22 | 1 << 16;
    let words =
        [2 | 2 << 16, 6, 1, 0x40_0000, 3, 0xd8_0148, 0, 1, load, 42, changed, 0x2000, 16, 14];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    for length in 0..=bytes.len() {
        let (all, ended) = drain(&mut Wire::new(&bytes[..length], 0));
        assert!(ended.is_ok(), "cut at {length}: {ended:?}");
        assert_eq!(all.len(), usize::from(length >= 8 * 8), "cut at {length}");
        let value = all.first().and_then(|i| i.references.first()).and_then(|r| r.value);
        assert_eq!(value, (length >= 10 * 8).then_some(42), "cut at {length}");
        let extent = all.first().and_then(|i| i.changed.first().copied());
        let whole = Extent { address: 0x2000, size_bytes: 16 };
        assert_eq!(extent, (length >= 13 * 8).then_some(whole), "cut at {length}");
    }
}

#[test]
fn a_handler_that_begins_has_changed_everything() {
    // Two blocks of one instruction, at 0x40_0000 and at 0x50_0000; the second is a handler from
    // its second time on.
    let block = |number: u64, pc| [6 | number << 16, 1, pc, 3, 0xd8_0148, 0];
    let words = [&[2 | 2 << 16][..], &block(0, 0x40_0000), &block(1, 0x50_0000)].concat();
    let (one, two) = (1, 1 | 1 << 16);
    let words = [&words[..], &[one, two, one, 26 | 0x50_0000 << 16, two, one, 14]].concat();
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    let (all, ended) = drain(&mut Wire::new(&bytes[..], 0));
    ended.expect("the words are whole");
    let changed: Vec<_> = all.iter().map(|i| (i.pc, i.changed.clone())).collect();
    let (one, two, nothing) = (0x40_0000, 0x50_0000, Vec::new);
    let everything = vec![Extent::EVERYTHING];
    let expected =
        [(one, nothing()), (two, nothing()), (one, everything), (two, nothing()), (one, nothing())];
    assert_eq!(changed, expected);
}

proptest! {
    #[test]
    fn any_words_end_in_instructions_or_a_sentence(words: Vec<(u64, bool)>) {
        // Half of the words are near those that mean something.
        let word = |&(word, near): &(u64, bool)| if near { word & 0x7_00ff } else { word };
        let mut bytes: Vec<u8> = (2_u64 | 2 << 16).to_le_bytes().to_vec();
        bytes.extend([6_u64, 1, 0x40_0000, 3, 0xd8_0148, 0].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(words.iter().flat_map(|w| word(w).to_le_bytes()));
        let (all, _) = drain(&mut Wire::new(&bytes[..], 0));
        prop_assert!(all.len() <= words.len());
    }
}
