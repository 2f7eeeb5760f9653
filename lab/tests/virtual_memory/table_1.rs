//! Table 1, in every cell that can be executed.

use super::*;

/// AISE/BMT, Table 1 and section 4.2, in every cell that can be executed.
#[test]
fn table_1_comes_out_as_the_paper_says() {
    let rows = table_1().expect("no service fails");
    let names = |row: &Row| row.seeds.split([',', ':']).next().expect("a name").to_owned();
    let holding = |row: &Row, service| row.outcome(service).holds();
    for row in &rows {
        assert!(row.agrees(), "{row:?}");
        for service in Service::ALL {
            let outcome = row.outcome(service);
            assert!(outcome.careful.is_none_or(|careful| careful.right), "{row:?} {service:?}");
            // What holds needs no encryption.
            let paid = outcome.careful.is_some_and(|careful| careful.reencrypted_blocks > 0);
            assert!(!(outcome.holds() && paid), "{row:?} {service:?}");
        }
        let [global, physical, plain_virtual, process, aise] =
            ["global counter", "physical address", "virtual address", "process", "AISE"]
                .map(|name| names(row) == name);
        assert!(global || physical || plain_virtual || process || aise, "{row:?}");
        let is_virtual = plain_virtual || process;
        for service in [Service::Ipc, Service::Fork, Service::SharedLibraries] {
            assert_eq!(holding(row, service), !is_virtual, "{row:?} {service:?}");
        }
        assert_eq!(row.outcome(Service::Ipc).careful.is_none(), is_virtual, "{row:?}");
        assert_eq!(holding(row, Service::Swap), !physical, "{row:?}");
        // Seeds of different processes are the same, unless the process is in them.
        assert_eq!(holding(row, Service::Isolation), !plain_virtual, "{row:?}");
        // And then its number must not be used again.
        assert_eq!(holding(row, Service::ProcessAgain), !is_virtual, "{row:?}");
        // A page of 64 blocks but for the one that is written, or all of memory and the disk.
        let blocks = row.overflow.map(|overflow| overflow.reencrypted_blocks);
        let stands_in = row.overflow_stands_in.is_some();
        match (aise, stands_in) {
            (true, _) => assert_eq!(blocks, Some(63)),
            (_, true) => assert!(blocks >= Some(16 * 64), "{row:?}"),
            _ => assert_eq!(blocks, None),
        }
    }
    // Section 4.2: ciphertext of physical seeds that is moved to disk gives pads away.
    let physical = rows.iter().find(|row| names(row) == "physical address").expect("a row");
    assert!(physical.outcome(Service::Swap).as_it_is.pads_used_twice > 0);
    assert!(!physical.outcome(Service::Swap).as_it_is.right);
}
