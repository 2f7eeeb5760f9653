//! Configurations: what is impossible is named, and what is written is read again.

use crate::machine::{cache, small};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::machine::cache::{Replacement, Ways};
use casemate_sim::machine::core::Order;

fn sentence(change: impl FnOnce(&mut ProcessorConfig)) -> String {
    let mut config = small();
    change(&mut config);
    config.validate().err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn the_key_is_named() {
    assert_eq!(sentence(|_| {}), "");
    assert_eq!(sentence(|c| c.core.cores = 9), "core.cores is 9; it must be at most 8");
    assert_eq!(
        sentence(|c| c.core.issue_width = 0),
        "core.issue_width is 0; it must be at least 1"
    );
    assert_eq!(
        sentence(|c| c.hierarchy.l2.size_bytes = 1000),
        "l2.size_bytes is 1000; it must be a multiple of 256, the product of ways and block_bytes"
    );
    assert_eq!(
        sentence(|c| c.hierarchy.l1d.mshr_registers = 0),
        "l1d.mshr_registers is 0; it must be at least 1"
    );
    assert_eq!(
        sentence(|c| c.hierarchy.l2.block_bytes = 32),
        "l2.block_bytes is 32; it must be at least 64"
    );
    assert_eq!(
        sentence(|c| (c.hierarchy.dtlb.entries, c.hierarchy.dtlb.ways) = (6, Ways::Set(4))),
        "dtlb.entries is 6; it must be a multiple of 4, ways"
    );
    assert_eq!(
        sentence(|c| c.hierarchy.memory_bytes = 5000),
        "memory_bytes is 5000; it must be a multiple of 4096, the bytes of a page"
    );
    assert_eq!(
        sentence(|c| (c.core.cores, c.hierarchy.l2_shared) = (2, false)),
        "l2_shared is false, so several cores need an l3 that they share"
    );
    assert_eq!(
        sentence(|c| {
            (c.core.cores, c.hierarchy.l2_shared) = (2, false);
            c.hierarchy.l3 = Some(cache(256, 4, 30));
        }),
        ""
    );
}

#[test]
fn what_is_written_is_read_again() {
    let mut config = small();
    config.core.order = Order::InOrderBlocking;
    config.hierarchy.l2.replacement = Replacement::Random { seed: 7 };
    config.hierarchy.l2.ways = Ways::Full;
    config.hierarchy.l3 = Some(cache(256, 4, 30));
    let written = serde_json::to_string(&config).expect("writes");
    assert!(written.contains("\"in-order-blocking\""), "{written}");
    assert!(written.contains("\"random:7\"") && written.contains("\"full\""), "{written}");
    assert_eq!(serde_json::from_str::<ProcessorConfig>(&written).expect("reads"), config);
    let more = written.replacen("{", "{\"colour\":1,", 1);
    let error = serde_json::from_str::<ProcessorConfig>(&more).expect_err("unknown");
    assert!(error.to_string().contains("colour"), "{error}");
    let less = written.replace("\"full\"", "\"half\"");
    let error = serde_json::from_str::<ProcessorConfig>(&less).expect_err("no ways");
    assert!(error.to_string().contains("a number of ways or \"full\""), "{error}");
}
