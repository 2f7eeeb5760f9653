//! AISE/BMT's Table 1, executed (`casemate seeds`).

use anyhow::Result;
use casemate_lab::virtual_memory::table_1::{Service, table_1 as execute};

use super::{Values, numbers, point, series};

/// For each kind of seeds: which services hold (1) and which do not (0), and blocks that are
/// encrypted anew where one has to be.
pub fn table_1() -> Result<Values> {
    let mut all = Vec::new();
    for row in execute()? {
        let holds = Service::ALL.map(|service| {
            point(
                format!("{} holds", service.name()),
                f64::from(u8::from(row.outcome(service).holds())),
            )
        });
        let again = Service::ALL.iter().filter_map(|service| {
            let careful = row.outcome(*service).careful?;
            let place = format!("{}: blocks encrypted anew", service.name());
            Some(point(place, careful.reencrypted_blocks as f64))
        });
        all.push(series(row.seeds, holds.into_iter().chain(again)));
    }
    Ok(numbers(all))
}
