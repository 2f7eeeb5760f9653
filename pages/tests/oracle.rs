//! Random operations on the page directory, against a model that is too simple to be wrong.

mod common;

use casemate_core::UntrustedMemory;
use casemate_core::geometry::LinePlace;
use casemate_core::{Refusal, Violation};
use casemate_pages::bytes::BytesPort;
use casemate_pages::directory_shape::Line;
use casemate_pages::{HeapMemory, KeySet, PageDirectory, PageRecord, SpaceId, Verification};
use common::{Model, PageRandom, Random, SeedOnFailure, seed};

fn sorted(mut records: Vec<PageRecord>) -> Vec<PageRecord> {
    records.sort_by_key(|record| (record.lpid, record.place));
    records
}

/// One random operation on both; panics where they differ.
fn step<M: UntrustedMemory<LinePlace, Line>>(
    random: &mut Random,
    directory: &mut PageDirectory<M>,
    model: &mut Model,
) -> Result<(), Violation> {
    let space = SpaceId(random.below(5) as u32 * 0x1357_9bd1);
    let known = model.spaces.contains(&space.0);
    let unknown = Err(Violation::Refused(Refusal::UnknownSpace(space.0)));
    match random.below(10_000) {
        0..4_500 => {
            let vpn = random.vpn();
            match directory.lookup(space, vpn) {
                answer if !known => assert_eq!(answer, unknown),
                answer => assert_eq!(answer?, model.records.get(&(space.0, vpn)).copied()),
            }
        }
        4_500..9_700 => {
            let vpn = random.vpn();
            let record = (!random.one_in(3)).then(|| random.record());
            match directory.replace(space, vpn, record) {
                answer if !known => assert_eq!(answer, unknown),
                answer => assert_eq!(answer?, model.replace(space, vpn, record)),
            }
        }
        9_700..9_790 => {
            let answer = directory.create_space(space);
            if known {
                assert_eq!(answer, Err(Refusal::SpaceExists(space.0).into()));
            } else {
                answer?;
                model.spaces.insert(space.0);
            }
        }
        9_790..9_800 if known => {
            let child = SpaceId(random.below(5) as u32 * 0x1357_9bd1);
            let mut seen = Vec::new();
            let answer = directory.fork(space, child, &mut |record| seen.push(record));
            if model.spaces.contains(&child.0) {
                assert_eq!(answer, Err(Refusal::SpaceExists(child.0).into()));
            } else {
                answer?;
                model.spaces.insert(child.0);
                let records = model.range(space, 0, 1 << 52);
                for (vpn, record) in &records {
                    model.records.insert((child.0, *vpn), *record);
                }
                let copied: Vec<_> = records.into_iter().map(|(_, record)| record).collect();
                assert_eq!(sorted(seen), sorted(copied));
            }
        }
        9_800..9_850 if known => {
            let first = random.vpn();
            let pages = match random.below(3) {
                0 => random.below(20),
                1 => random.below(1_000),
                _ => 1 << 40,
            };
            let pages = pages.min((1 << 52) - first);
            let mut seen = Vec::new();
            directory.remove_range(space, first, pages, &mut |record| seen.push(record))?;
            assert_eq!(seen, model.remove_range(space, first, pages));
        }
        9_850..9_900 if known => {
            let pages = 1 + random.below(400);
            let from = random.vpn().min((1 << 52) - pages);
            let aligned = random.one_in(2);
            let to = 0x1_0000_0000 + random.below(4) * 512 + from % 128;
            let to = if aligned { to } else { to + random.below(128) };
            let answer = directory.move_range(space, from, to, pages);
            if from < to + pages && to < from + pages {
                assert_eq!(answer, Err(Refusal::RangesOverlap.into()));
            } else if let Some((vpn, _)) = model.range(space, to, pages).first() {
                assert_eq!(answer, Err(Refusal::DestinationOccupied(*vpn).into()));
                directory.remove_range(space, to, pages, &mut |_| {})?;
                model.remove_range(space, to, pages);
            } else {
                answer?;
                for (vpn, record) in model.range(space, from, pages) {
                    model.records.remove(&(space.0, vpn));
                    model.records.insert((space.0, vpn - from + to), record);
                }
            }
        }
        9_900..9_950 if known => {
            let first = random.vpn();
            let pages = random.below(1 << 36).min((1 << 52) - first);
            let mut seen = Vec::new();
            directory.for_each(space, first, pages, &mut |vpn, record| seen.push((vpn, record)))?;
            assert_eq!(seen, model.range(space, first, pages));
        }
        9_960..9_990 if known => {
            let (first, most) = (random.vpn(), random.below(300) as usize);
            let mut seen = Vec::new();
            directory.records_from(space, first, most, &mut seen)?;
            let mut all = model.range(space, first, (1 << 52) - first);
            all.truncate(most);
            assert_eq!(seen, all);
        }
        9_950..9_955 if known => {
            let mut seen = Vec::new();
            directory.drop_space(space, &mut |record| seen.push(record))?;
            assert_eq!(seen, model.remove_range(space, 0, 1 << 52));
            model.spaces.remove(&space.0);
        }
        9_990..9_995 => directory.flush()?,
        9_995..9_998 => drop(directory.check()?),
        _ => {}
    }
    Ok(())
}

fn oracle(how: Verification, default_seed: u64, operations: u64, cache_bytes: usize) {
    let seed = seed(default_seed);
    let _print = SeedOnFailure(seed);
    let mut random = Random::new(seed);
    let keys = KeySet::from_master(&[3; 32]);
    let port = BytesPort::new(HeapMemory::new(), &keys.directory);
    let mut directory = PageDirectory::verified_by(how, port, cache_bytes);
    let mut model = Model::default();
    let empty = directory.metadata_bytes();
    let trusted = directory.trusted_bytes();
    for _ in 0..operations {
        step(&mut random, &mut directory, &mut model).expect("untrusted memory is unchanged");
    }
    directory.flush_and_forget().expect("untrusted memory is unchanged");
    for ((space, vpn), record) in &model.records {
        assert_eq!(directory.lookup(SpaceId(*space), *vpn), Ok(Some(*record)));
    }
    assert_eq!(directory.trusted_bytes(), trusted, "trusted state is constant");
    for space in model.spaces {
        directory.drop_space(SpaceId(space), &mut |_| {}).expect("untrusted memory is unchanged");
    }
    assert_eq!(directory.metadata_bytes(), empty, "every table was freed");
}

#[test]
fn sixteen_nodes() {
    oracle(Verification::Tree, 1, 300_000, 0);
}

#[test]
fn twenty_nodes() {
    oracle(Verification::Tree, 2, 250_000, 20 * 153);
}

#[test]
fn a_hundred_nodes() {
    oracle(Verification::Tree, 3, 250_000, 16 << 10);
}

#[test]
fn the_default_cache() {
    oracle(Verification::Tree, 4, 300_000, 256 << 10);
}

#[test]
fn sixteen_lines_of_a_log() {
    oracle(Verification::LogHash, 5, 300_000, 0);
}

#[test]
fn a_log_with_the_default_cache() {
    oracle(Verification::LogHash, 6, 300_000, 256 << 10);
}
