//! The adversary suite: memory is changed in every way, at random points of random traffic.
//!
//! A changed line that is used must raise a violation in the very call that uses it; no call may
//! ever hand out wrong data; after a violation nothing works any more; and nothing is raised
//! without an attack. The same suite then runs against variants with one check left out, and must
//! notice each of them: that is what shows that it can fail.

mod common;

use std::collections::BTreeMap;

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::geometry::{Geometry, LinePlace};
use casemate_core::{GlobalPageCounter, Lpid, Violation};
use casemate_pages::adversary::{HostileMemory, Image};
use casemate_pages::bytes::BytesPort;
use casemate_pages::directory_shape::{LINE_BYTES, SHAPE};
use casemate_pages::line_array::Lines;
use casemate_pages::page_directory::Directory;
use casemate_pages::page_protocol::{PagePort, fetch, page_out};
use casemate_pages::{KeySet, PAGE_BYTES, PageCipher, PageRecord, SpaceId, StorePlace, Tag};
use common::{Random, SeedOnFailure, seed};

type Page = [u8; PAGE_BYTES];

/// What the suite saw.
#[derive(Debug, Default)]
struct Findings {
    /// Violations, by the attack that raised them.
    detected: BTreeMap<&'static str, u64>,
    /// Attacks on lines that were not used before the round ended: nothing to detect.
    unused: u64,
    wrong_data: u64,
    /// A changed line was used, and the call that used it succeeded.
    missed: u64,
    /// A violation without an attack.
    false_alarms: u64,
    /// A call succeeded after a violation.
    alive_after_violation: u64,
}

struct World<C: Checks, const CHECK_TAGS: bool> {
    directory: Directory<BytesPort<HostileMemory, C>, Lines<HostileMemory, C>>,
    cipher: PageCipher,
    gpc: GlobalPageCounter,
    /// Untrusted: ciphertexts by place.
    store: BTreeMap<u64, Box<Page>>,
    /// The model: what each page holds, and its record.
    truth: BTreeMap<(SpaceId, u64), (u64, PageRecord)>,
}

const SPACES: [SpaceId; 2] = [SpaceId(1), SpaceId(77)];

impl<C: Checks, const CHECK_TAGS: bool> World<C, CHECK_TAGS> {
    fn new(node_cache_bytes: usize) -> Self {
        let keys = KeySet::from_master(&[9; 32]);
        let memory = HostileMemory::default();
        let mut directory = Directory::new(memory, &keys.directory, node_cache_bytes);
        for space in SPACES {
            directory.create_space(space).expect("untrusted memory is unchanged");
        }
        Self {
            directory,
            cipher: PageCipher::new(&keys.page),
            gpc: GlobalPageCounter::new(),
            store: BTreeMap::new(),
            truth: BTreeMap::new(),
        }
    }

    fn page(random: &mut Random) -> (SpaceId, u64) {
        let region = random.one_of(&[0, 0x7_ffff_ff00, 1 << 51]);
        (*random.one_of(&SPACES), region + random.below(40) * 3)
    }

    fn put(&mut self, page: (SpaceId, u64), stamp: u64) -> Result<(), Violation> {
        // Even pages keep their place, odd ones wander.
        let wandered = (1 << 60) + self.gpc.taken();
        let at = if page.1.is_multiple_of(2) { page.1 + 1 } else { wandered };
        let place = StorePlace(at ^ (u64::from(page.0.0) << 54));
        let cipher = self.store.entry(place.0).or_insert_with(|| Box::new([0; PAGE_BYTES]));
        let (mut plain, to) = ([stamp as u8; PAGE_BYTES], (place, &mut **cipher));
        let record = page_out(&mut self.directory, &self.cipher, &self.gpc, page, &mut plain, to)?;
        self.truth.insert(page, (stamp, record));
        Ok(())
    }

    /// Looks a page up and opens it. `Ok(false)`: wrong data.
    fn get_is_right(&mut self, page: (SpaceId, u64), and_open: bool) -> Result<bool, Violation> {
        let record = self.directory.lookup(page.0, page.1)?;
        let truth = self.truth.get(&page);
        if record != truth.map(|(_, record)| *record) {
            return Ok(false);
        }
        let (Some(record), Some((stamp, _)), true) = (record, truth, and_open) else {
            return Ok(true);
        };
        let mut plain = [0; PAGE_BYTES];
        let cipher = &self.store[&record.place.0];
        if CHECK_TAGS {
            let fetched = fetch(&self.cipher, &record, cipher, &mut plain);
            if let Err(violation) = fetched.open(&self.cipher) {
                assert_eq!(plain, [0; PAGE_BYTES], "a refused page is wiped");
                return Err(violation);
            }
        } else {
            // In counter mode, to encrypt again is to decrypt: a variant that ignores the tag.
            plain = **cipher;
            self.cipher.seal_in_place(record.lpid, &mut plain)?;
        }
        Ok(plain == [*stamp as u8; PAGE_BYTES])
    }

    /// Some random use. `Ok(false)`: wrong data.
    fn use_randomly(&mut self, random: &mut Random, write: bool) -> Result<bool, Violation> {
        let page = Self::page(random);
        match random.below(10) {
            0..4 if write => self.put(page, random.next()).map(|()| true),
            4 if write => {
                let old = self.directory.replace(page.0, page.1, None)?;
                Ok(old == self.truth.remove(&page).map(|(_, record)| record))
            }
            _ if random.one_in(30) => {
                let mut seen = BTreeMap::new();
                let each = &mut |vpn, record| {
                    seen.insert((page.0, vpn), record);
                };
                self.directory.for_each(page.0, 0, 1 << 52, each)?;
                let mine = self.truth.iter().filter(|((space, _), _)| *space == page.0);
                Ok(mine.map(|(at, (_, record))| (*at, *record)).eq(seen))
            }
            _ => {
                let open = random.one_in(4);
                self.get_is_right(page, open)
            }
        }
    }

    fn lies(&mut self) -> u64 {
        self.directory.memory_mut().lies
    }
}

const ATTACKS: [&str; 8] = [
    "flip",
    "splice",
    "replay a line",
    "replay a subtree",
    "roll back all",
    "zero",
    "flip page",
    "replay page",
];

/// Mounts one attack. Whether it changes anything that is used, the round will show.
fn attack<C: Checks, const T: bool>(
    world: &mut World<C, T>,
    random: &mut Random,
    name: &str,
    old: &(Image, BTreeMap<u64, Box<Page>>),
) {
    let memory = world.directory.memory_mut();
    let places: Vec<_> = memory.places().collect();
    if places.is_empty() {
        return;
    }
    let place = *random.one_of(&places);
    match name {
        "flip" => memory.flip(place, random.next() as usize),
        "splice" => {
            let level: Vec<_> = places.iter().filter(|p| p.level == place.level).collect();
            memory.splice(place, **random.one_of(&level));
        }
        "replay a line" => {
            let versions = memory.versions(place).to_vec();
            memory.tamper(place, random.one_of(&versions));
        }
        "replay a subtree" => {
            let top = SHAPE.ancestor(place, random.below(5).max(place.level.into()).min(11) as u8);
            let is_below =
                |p: LinePlace| p.level <= top.level && SHAPE.ancestor(p, top.level) == top;
            memory.roll_back(&old.0, is_below);
            world.store.extend(old.1.clone());
        }
        "roll back all" => {
            memory.roll_back(&old.0, |_| true);
            world.store.extend(old.1.clone());
        }
        "zero" => memory.tamper(place, &[0; LINE_BYTES]),
        "flip page" | "replay page" => {
            let pages: Vec<u64> = world.store.keys().copied().collect();
            for at in pages {
                if !random.one_in(4) {
                    continue;
                }
                let bit = random.below(8 * PAGE_BYTES as u64) as usize;
                let Some(page) = world.store.get_mut(&at) else { continue };
                match old.1.get(&at) {
                    Some(old) if name == "replay page" => *page = old.clone(),
                    _ => page[bit / 8] ^= 1 << (bit % 8),
                }
            }
        }
        other => unreachable!("{other}"),
    }
}

fn run<C: Checks, const CHECK_TAGS: bool>(default_seed: u64, rounds: u64) -> Findings {
    let seed = seed(default_seed);
    let _print = SeedOnFailure(seed);
    let mut random = Random::new(seed);
    let mut findings = Findings::default();
    let mut world = World::<C, CHECK_TAGS>::new(0);
    let mut old = (world.directory.memory_mut().image(), BTreeMap::new());
    let shipped = C::VERIFY_LEAVES && C::VERIFY_NODES && C::UPDATE_PARENT && C::POISON;

    'rounds: for _ in 0..rounds {
        // Traffic without interference. Now and then the adversary takes a copy of everything.
        for _ in 0..random.below(60) {
            match world.use_randomly(&mut random, true) {
                Ok(right) => findings.wrong_data += u64::from(!right),
                Err(_) => {
                    findings.false_alarms += 1;
                    world = World::new(0);
                    continue 'rounds;
                }
            }
        }
        if random.one_in(3) {
            old = (world.directory.memory_mut().image(), world.store.clone());
        }
        // Half of the time, everything is in untrusted memory when the attack comes.
        if random.one_in(2) && world.directory.flush_and_forget().is_err() {
            findings.false_alarms += 1;
            world = World::new(0);
            continue;
        }
        let name = *random.one_of(&ATTACKS);
        attack(&mut world, &mut random, name, &old);

        // Everything is used, in random order, with writes between (which only the sound
        // protocol is asked to survive).
        for _ in 0..300 {
            let before = world.lies();
            let outcome = world.use_randomly(&mut random, shipped);
            let lied = world.lies() > before;
            match outcome {
                Ok(right) => {
                    findings.wrong_data += u64::from(!right);
                    findings.missed += u64::from(lied);
                }
                Err(violation) => {
                    *findings.detected.entry(name).or_default() += 1;
                    if !matches!(violation, Violation::PageTag { .. }) {
                        findings.false_alarms += u64::from(!lied);
                        findings.alive_after_violation +=
                            u64::from(answers(&mut world, &mut random));
                    }
                    break;
                }
            }
        }
        let untouched = world.lies() == 0;
        findings.unused += u64::from(untouched && !name.contains("page"));
        // The world goes on only if nothing in it was changed that could be used later.
        let store_is_whole = matches!(name, "flip" | "splice" | "replay a line" | "zero");
        if untouched && store_is_whole {
            world.directory.memory_mut().make_good();
        } else {
            world = World::new(if random.one_in(4) { 64 << 10 } else { 0 });
            old = (world.directory.memory_mut().image(), BTreeMap::new());
        }
    }
    println!("{findings:?}");
    findings
}

/// Whether any call still succeeds.
fn answers<C: Checks, const T: bool>(world: &mut World<C, T>, random: &mut Random) -> bool {
    let (space, vpn) = World::<C, T>::page(random);
    let record = PageRecord { lpid: Lpid(1), tag: Tag([0; 16]), place: StorePlace(1) };
    let directory = &mut world.directory;
    let calls = [
        directory.lookup(space, vpn).is_ok(),
        directory.replace(space, vpn, Some(record)).is_ok(),
        directory.create_space(SpaceId(5)).is_ok(),
        directory.fork(SPACES[0], SpaceId(6), &mut |_| {}).is_ok(),
        directory.for_each(space, 0, 1 << 30, &mut |_, _| {}).is_ok(),
        directory.remove_range(space, 0, 1, &mut |_| {}).is_ok(),
        directory.move_range(space, 0, 1 << 20, 1).is_ok(),
        directory.drop_space(space, &mut |_| {}).is_ok(),
        directory.flush().is_ok(),
    ];
    calls.contains(&true)
}

#[test]
fn the_shipped_protocol_holds() {
    let findings = run::<AllChecks, true>(11, 3_000);
    assert_eq!(findings.wrong_data, 0);
    assert_eq!(findings.missed, 0);
    assert_eq!(findings.false_alarms, 0);
    assert_eq!(findings.alive_after_violation, 0);
    for attack in ATTACKS {
        let detected = findings.detected.get(attack).copied().unwrap_or(0);
        assert!(detected > 20, "{attack} was hardly ever used: {detected}");
    }
}

#[test]
fn canary_unverified_leaves_give_wrong_data() {
    let findings = run::<broken::LeavesUnverified, true>(12, 500);
    assert!(findings.wrong_data > 0 && findings.missed > 0);
}

#[test]
fn canary_unverified_nodes_give_wrong_data() {
    let findings = run::<broken::NodesUnverified, true>(13, 1_500);
    assert!(findings.wrong_data > 0 && findings.missed > 0);
}

#[test]
fn canary_parents_not_updated_are_noticed() {
    let findings = run::<broken::ParentNotUpdated, true>(14, 200);
    assert!(findings.wrong_data > 0 || findings.false_alarms > 0);
}

#[test]
fn canary_calls_after_a_violation_are_noticed() {
    let findings = run::<broken::NotPoisoned, true>(15, 500);
    assert!(findings.alive_after_violation > 0);
}

#[test]
fn canary_ignored_tags_give_wrong_data() {
    let findings = run::<AllChecks, false>(16, 500);
    assert!(findings.wrong_data > 0);
}
