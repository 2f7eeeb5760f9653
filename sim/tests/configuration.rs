//! Configurations: presets with their sources, layers over each other, and what is refused.

use casemate_sim::config::keys;
use casemate_sim::config::presets::PRESETS;
use casemate_sim::config::resolved::Resolved;
use casemate_sim::config::value::Value;
use casemate_sim::config::{Layer, Preset, machine, memory, protection};
use casemate_sim::machine::Timeline;
use casemate_sim::results::tree::flatten;

fn preset(name: &str) -> Resolved {
    let layer =
        Preset::of_name(name).and_then(|preset| preset.layer()).expect("the preset is whole");
    Resolved::new(&[layer]).expect("a preset says every key")
}

fn refusal(text: &str) -> String {
    Layer::read("my.toml", text).expect_err("it is refused").to_string()
}

#[test]
fn every_preset_says_every_key_and_where_its_value_comes_from() {
    for known in &PRESETS {
        let resolved = preset(known.name);
        resolved.check().unwrap_or_else(|error| panic!("{}: {error}", known.name));
        let values = known.text.lines().filter(|line| line.contains(" = "));
        let mut count = 0;
        for line in values {
            let (value, source) = line
                .split_once(" # ")
                .unwrap_or_else(|| panic!("{}: no source: {line}", known.name));
            assert!(value.contains(" = ") && source.len() > 3, "{}: {line}", known.name);
            count += 1;
        }
        assert_eq!(count, keys::paths().count(), "{}", known.name);
    }
}

#[test]
fn the_presets_are_the_papers_machines() {
    // AISE/BMT section 6, LHash Table 2, OTP/SNC section 5, Delta/ECC Table 1, typed from the
    // papers again.
    for (name, key, value) in [
        ("aise-bmt", "core.issue_width", 3),
        ("aise-bmt", "l2.size_bytes", 1 << 20),
        ("aise-bmt", "l2.ways", 8),
        // 200 cycles for a block: the first of four chunks, and three of 4 cycles each.
        ("aise-bmt", "memory.flat.first_chunk_cycles", 200 - 3 * 4),
        ("otp-snc", "l2.size_bytes", 256 << 10),
        ("otp-snc", "l2.block_bytes", 128),
        ("otp-snc", "memory.flat.first_chunk_cycles", 100),
        ("lhash", "core.window_entries", 128),
        ("lhash", "l1d.block_bytes", 32),
        ("lhash", "dtlb.miss_latency_cycles", 160),
        ("lhash", "memory.flat.chunk_cycles", 5),
        ("delta-ecc", "core.cores", 4),
        ("delta-ecc", "l3.size_bytes", 10 << 20),
        ("delta-ecc", "memory.ddr.channels", 4),
        ("aise-bmt", "protection.counters.size_bytes", 32 << 10),
        ("aise-bmt", "protection.timing.cipher_latency_cycles", 80),
        ("otp-snc", "protection.timing.cipher_latency_cycles", 50),
        ("otp-snc", "protection.sequence_numbers_bytes", 64 << 10),
        ("lhash", "protection.hash_buffer_blocks", 32),
        ("lhash", "protection.timing.mac_interval_cycles", 20),
        ("lhash", "protection.timing.log_hash_interval_cycles", 10),
        ("delta-ecc", "protection.on_chip_tree_bytes", 3072),
        ("delta-ecc", "protection.timing.counter_decode_cycles", 2),
        ("modern", "core.issue_width", 8),
        ("modern", "l2.size_bytes", 2 << 20),
    ] {
        assert_eq!(preset(name).number(key), value, "{name} {key}");
    }
}

#[test]
fn a_file_goes_over_a_preset_and_an_assignment_over_both() {
    let base = Preset::of_name("aise-bmt").and_then(|preset| preset.layer()).expect("it is whole");
    let file = Layer::read("f", "[l2]\nsize_bytes = \"2M\"\nways = 16\n").expect("it is right");
    let set = Layer::assignment("--set", "l2.size_bytes=4M").expect("it is right");
    let resolved = Resolved::new(&[base, file, set]).expect("every key has a value");
    assert_eq!(resolved.number("l2.size_bytes"), 4 << 20);
    assert_eq!(resolved.number("l2.ways"), 16);
    assert_eq!(resolved.number("l2.block_bytes"), 64);
}

#[test]
fn a_resolved_configuration_is_read_again_as_it_was() {
    for known in &PRESETS {
        let mut resolved = preset(known.name);
        let odd = Layer::assignment("--set", "l1d.replacement=random:7").expect("a policy");
        resolved = resolved.with(&odd).expect("every key has a value");
        let again = Layer::read("again", &resolved.toml()).expect("what we write, we read");
        assert_eq!(Resolved::new(&[again]).as_ref(), Ok(&resolved));
        let leaves = flatten(&resolved.json());
        let names: Vec<_> = leaves.iter().map(|(name, _)| name.clone()).collect();
        let mut known: Vec<_> = keys::paths().collect();
        known.sort();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(sorted, known);
    }
}

#[test]
fn unknown_keys_are_named_with_the_nearest_one() {
    let sentence = refusal("[l2]\nsize_byte = 5\n");
    assert_eq!(sentence, "my.toml: there is no key l2.size_byte (did you mean l2.size_bytes?)");
    assert!(refusal("[l4]\nways = 5\n").contains("l4"));
    let sentence = refusal("frobnicate = true\n");
    assert!(sentence.contains("there is no key frobnicate; the sections are "), "{sentence}");
    let sentence = refusal("[core]\nrubbish = 1\n");
    assert!(sentence.contains("no key core.rubbish; [core] has cores, "), "{sentence}");
    assert!(refusal("[memory.flta]\nbus_bytes = 8\n").contains("memory.flta"));
    let error = Layer::assignment("--set", "core.isue_width=3").expect_err("a slip").to_string();
    assert!(error.contains("core.issue_width"), "{error}");
    assert!(
        Layer::assignment("--set", "core.cores").expect_err("no value").to_string().contains('=')
    );
}

#[test]
fn impossible_values_are_named_with_what_is_expected() {
    for (text, key) in [
        ("[core]\ncores = 9\n", "core.cores"),
        ("[core]\ncores = -1\n", "core.cores"),
        ("[core]\ncores = 1.5\n", "core.cores"),
        ("[core]\ncores = \"two\"\n", "core.cores"),
        ("[core]\norder = \"sideways\"\n", "core.order"),
        ("[l2]\nsize_bytes = \"12Q\"\n", "l2.size_bytes"),
        ("[l2]\nways = \"half\"\n", "l2.ways"),
        ("[hierarchy]\nl2_shared = 1\n", "hierarchy.l2_shared"),
        ("[hierarchy]\nprefetcher = \"all\"\n", "hierarchy.prefetcher"),
        ("[hierarchy]\nprefetch_degree_lines = 0\n", "hierarchy.prefetch_degree_lines"),
        ("[core]\nmemory_ports = 65\n", "core.memory_ports"),
        ("[core]\nunits = \"two\"\n", "core.units"),
        ("[memory]\nkind = \"tape\"\n", "memory.kind"),
        ("l2 = 5\n", "l2"),
    ] {
        let sentence = refusal(text);
        assert!(sentence.starts_with("my.toml: ") && sentence.contains(key), "{text}: {sentence}");
    }
    // Where the parser stopped.
    assert!(refusal("[l2]\nways = \n").contains("line 2"), "{}", refusal("[l2]\nways = \n"));
}

#[test]
fn values_that_do_not_go_together_are_named() {
    for (assignments, words) in [
        (&["l2.size_bytes=100000"][..], "l2.size_bytes"),
        (&["l2.block_bytes=48"], "l2.block_bytes"),
        (&["l1d.replacement=mru"], "mru"),
        (&["memory.kind=ddr", "memory.ddr.write_low=32"], "memory.ddr.write_low"),
        (&["core.branch_predictor_entries=1000"], "core.branch_predictor_entries"),
        (&["hierarchy.prefetch_table_entries=1000"], "prefetch_table_entries"),
        (&["memory.flat.chunk_cycles=500"], "memory.flat.first_chunk_cycles"),
        (&["core.cores=2", "hierarchy.l2_shared=false"], "l2_shared"),
        (&["protection.counters.held_in=nowhere"], "protection.counters.held_in"),
        (&["protection.sequence_numbers_ways=7"], "protection.sequence_numbers_bytes"),
        (&["protection.line_bytes=96"], "protection.line_bytes is 96; it must be a power of two"),
        (&["protection.line_bytes=128"], "protection.line_bytes is 128; it must be at most 64"),
        (&["protection.time_stamp_cache_ways=7"], "protection.time_stamp_cache_blocks"),
        (&["protection.time_stamp_cache_ways=33"], "protection.time_stamp_cache_ways"),
    ] {
        let mut resolved = preset("aise-bmt");
        for text in assignments {
            let layer = Layer::assignment("--set", text).expect("the key takes it");
            resolved = resolved.with(&layer).expect("every key has a value");
        }
        let sentence = resolved.check().expect_err("it is impossible").to_string();
        assert!(sentence.contains(words), "{assignments:?}: {sentence}");
    }
}

#[test]
fn every_key_of_the_machine_changes_the_machine() {
    // A key that nothing reads would be a flag that does nothing.
    let base = preset("delta-ecc")
        .with(&Layer::assignment("--set", "l1d.replacement=random").expect("a policy"));
    let base = base.expect("every key has a value");
    let built = |config: &Resolved| {
        let described =
            |timeline: Timeline| (format!("{:?}", timeline.memory()), timeline.controller_cycles());
        let memory = memory::timeline(config).map(described);
        (machine::processor(config), memory, protection::protection(config))
    };
    for path in keys::paths() {
        // What the driver reads.
        if path.starts_with("run.") && path != "run.seed" {
            continue;
        }
        let value = match (path.as_str(), base.value(&path)) {
            ("memory.kind", _) => "flat".to_owned(),
            ("memory.ddr.standard", _) => "ddr4-2400".to_owned(),
            ("memory.ddr.mapping", _) => "spread".to_owned(),
            ("memory.ddr.scheduler", _) => "fcfs".to_owned(),
            ("core.order", _) => "in-order".to_owned(),
            ("core.branch_predictor", _) => "bimodal".to_owned(),
            ("hierarchy.prefetcher", _) => "stride".to_owned(),
            ("hierarchy.prefetch_table_entries", _) => "512".to_owned(),
            ("core.branch_predictor_entries", Some(Value::Number(number))) => {
                (number * 2).to_string()
            }
            ("core.units", _) => "ideal".to_owned(),
            ("protection.verification", _) => "precise".to_owned(),
            ("protection.sequence_numbers_ways", _) => "32".to_owned(),
            ("protection.sequence_numbers_enter", _) => "first-touch".to_owned(),
            ("protection.time_stamp_cache_ways", _) => "4".to_owned(),
            ("protection.line_bytes", _) => "128".to_owned(),
            ("protection.snc_on_switch", _) => "tag".to_owned(),
            ("protection.plaintext_pages", _) => "1000-1fff".to_owned(),
            ("protection.instruction_pages", _) => "constant-seeds".to_owned(),
            ("protection.counters.held_in", _) => "last-level".to_owned(),
            (path, _) if path.ends_with("held_in") => "own".to_owned(),
            (_, Some(Value::Flag(flag))) => (!flag).to_string(),
            (_, Some(Value::Text(_))) => "fifo".to_owned(),
            (_, Some(Value::Number(number))) if path.ends_with("block_bytes") => {
                (number * 2).to_string()
            }
            (_, Some(Value::Number(number))) if path.ends_with("size_bytes") => {
                (number * 2).to_string()
            }
            (_, Some(Value::Number(number))) if path.ends_with("ways") => (number * 2).to_string(),
            (_, Some(Value::Number(number))) => (number + 1).to_string(),
            (_, None) => panic!("{path} has no value"),
        };
        let mut from = base.clone();
        if path.starts_with("memory.flat") {
            let flat = Layer::assignment("--set", "memory.kind=flat").expect("a kind");
            from = from.with(&flat).expect("every key has a value");
        }
        let over =
            Layer::assignment("--set", &format!("{path}={value}")).expect("the key takes it");
        let changed = from.with(&over).expect("every key has a value");
        assert_ne!(built(&changed), built(&from), "{path}={value} changes nothing");
    }
}
