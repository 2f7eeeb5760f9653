//! Random processes beside plain maps that say what each of them should read.

use super::*;

/// What a process should see at a page: contents of its own, or those of a shared page.
#[derive(Clone)]
pub enum Expected {
    Own(BTreeMap<u64, Block>),
    Shared(usize),
}

/// The manager as it should be: maps, and nothing moves.
pub struct Model {
    pub pages: BTreeMap<(ProcessId, u64), Expected>,
    shared: Vec<BTreeMap<u64, Block>>,
    processes: Vec<ProcessId>,
    pub running: ProcessId,
}

impl Model {
    fn contents(&mut self, at: (ProcessId, u64)) -> &mut BTreeMap<u64, Block> {
        match self.pages.get_mut(&at).expect("it is mapped") {
            Expected::Own(contents) => contents,
            Expected::Shared(number) => &mut self.shared[*number],
        }
    }

    fn mapped(&self, process: ProcessId) -> Vec<u64> {
        let all = self.pages.range((process, 0)..=(process, u64::MAX));
        all.map(|((_, virtual_page), _)| *virtual_page).collect()
    }
}

/// What a run has gone through.
pub struct Run {
    pub memory: Memory,
    pub model: Model,
    pub random: Random,
    /// The page and block of the running process that it uses most.
    focus: (u64, u64),
    /// Virtual pages never used before, for schemes whose seeds would be used again.
    fresh_page: Option<u64>,
}

/// Everything that was read or answered and should not have been.
pub type Wrong = String;

impl Run {
    pub fn new(scheme: &Scheme, care: Care, seed: u64) -> Run {
        let memory = VirtualMemory::new(scheme, SparseMemory::default(), SIZE, care, &SECRET);
        let mut memory: Memory = memory.expect("the parts go together");
        memory.unit_mut().port_mut().log_seeds();
        let running = ProcessId(0);
        let model =
            Model { pages: BTreeMap::new(), shared: Vec::new(), processes: Vec::new(), running };
        let fresh_page = (scheme.encryption == table_1_encryptions()[4]).then_some(1000);
        let random = Random::new(seed);
        let mut run = Run { memory, model, random, focus: (0, 0), fresh_page };
        run.spawn();
        run
    }

    pub fn operations(&mut self, operations: u64) -> Result<(), Wrong> {
        for _ in 0..operations {
            match self.random.below(1000) {
                0..=9 => self.refocus(),
                10..=19 => self.switch()?,
                20..=25 => self.map()?,
                26..=29 => self.unmap()?,
                30..=31 => self.fork()?,
                32 => self.exit()?,
                33..=36 => self.share()?,
                37 => self.map_super_page()?,
                38..=45 => self.swap_out()?,
                46 => self.reencrypt()?,
                47 => said(self.memory.unit_mut().check())?,
                48 => said(self.memory.unit_mut().flush())?,
                _ => self.access()?,
            }
        }
        self.read_everything()
    }

    fn spawn(&mut self) {
        let process = self.memory.spawn();
        self.model.processes.push(process);
        self.model.running = process;
        self.memory.switch_to(process).expect("it was just made");
        self.map().expect("there is room for one page");
        self.refocus();
    }

    fn refocus(&mut self) {
        let mapped = self.model.mapped(self.model.running);
        if !mapped.is_empty() {
            self.focus = (*self.random.one_of(&mapped), self.random.below(64));
        }
    }

    fn switch(&mut self) -> Result<(), Wrong> {
        let process = *self.random.one_of(&self.model.processes);
        said(self.memory.switch_to(process))?;
        self.model.running = process;
        self.refocus();
        Ok(())
    }

    /// A place where a process has nothing mapped.
    fn free_page(&mut self, process: ProcessId) -> Option<u64> {
        if let Some(page) = &mut self.fresh_page {
            *page += 1;
            return Some(*page);
        }
        let page = self.random.below(40);
        (!self.model.pages.contains_key(&(process, page))).then_some(page)
    }

    fn any_page(&mut self) -> Option<(ProcessId, u64)> {
        let all: Vec<_> = self.model.pages.keys().copied().collect();
        (!all.is_empty()).then(|| *self.random.one_of(&all))
    }

    fn has_room_for(&self, pages: usize) -> bool {
        self.model.pages.len() + pages <= MOST_PAGES
    }

    fn map(&mut self) -> Result<(), Wrong> {
        let process = self.model.running;
        let Some(page) = self.free_page(process) else { return Ok(()) };
        if self.has_room_for(1) {
            said(self.memory.map(process, page))?;
            self.model.pages.insert((process, page), Expected::Own(BTreeMap::new()));
        }
        Ok(())
    }

    fn map_super_page(&mut self) -> Result<(), Wrong> {
        let process = self.model.running;
        let size_log2 = 1 + self.random.below(3) as u32;
        let pages = 1 << size_log2;
        let first = match &mut self.fresh_page {
            Some(page) => {
                let first = page.next_multiple_of(pages);
                *page = first + pages;
                first
            }
            None => self.random.below(40 / pages) * pages,
        };
        let all = first..first + pages;
        let free = all.clone().all(|page| !self.model.pages.contains_key(&(process, page)));
        if free && self.has_room_for(pages as usize) {
            said(self.memory.map_super_page(process, first, size_log2))?;
            for page in all {
                self.model.pages.insert((process, page), Expected::Own(BTreeMap::new()));
            }
        }
        Ok(())
    }

    fn unmap(&mut self) -> Result<(), Wrong> {
        let Some((process, page)) = self.any_page() else { return Ok(()) };
        said(self.memory.unmap(process, page))?;
        self.model.pages.remove(&(process, page));
        let gone = self.memory.switch_to(process).and_then(|()| self.memory.read(page, 0));
        let expected = Err(VmError::NotMapped { process, virtual_page: page });
        if gone != expected {
            return Err(format!("an unmapped page reads as {gone:?}"));
        }
        self.model.running = process;
        self.refocus();
        Ok(())
    }

    fn fork(&mut self) -> Result<(), Wrong> {
        let parent = *self.random.one_of(&self.model.processes);
        let pages = self.model.mapped(parent);
        if !self.has_room_for(pages.len()) || self.model.processes.len() == MOST_PROCESSES {
            return Ok(());
        }
        let child = self.memory.fork(parent).map_err(|error| error.to_string())?;
        for page in pages {
            let inherited = self.model.pages[&(parent, page)].clone();
            self.model.pages.insert((child, page), inherited);
        }
        self.model.processes.push(child);
        Ok(())
    }

    fn exit(&mut self) -> Result<(), Wrong> {
        let number = self.random.below(self.model.processes.len() as u64) as usize;
        let process = self.model.processes.swap_remove(number);
        said(self.memory.exit(process))?;
        self.model.pages.retain(|(other, _), _| *other != process);
        if self.model.processes.is_empty() {
            self.spawn();
        }
        self.switch()
    }

    fn share(&mut self) -> Result<(), Wrong> {
        let Some(from) = self.any_page() else { return Ok(()) };
        let to = *self.random.one_of(&self.model.processes);
        let Some(to_page) = self.free_page(to) else { return Ok(()) };
        if !self.has_room_for(1) || from == (to, to_page) {
            return Ok(());
        }
        let copied = self.random.one_in(2);
        let sharing = if copied { Sharing::CopyOnWrite } else { Sharing::Shared };
        match self.memory.share(from, (to, to_page), sharing) {
            Err(VmError::CannotShare) if !copied => return Ok(()),
            answer => said(answer)?,
        }
        let contents = self.model.contents(from).clone();
        let seen = match (&self.model.pages[&from], copied) {
            (_, true) => Expected::Own(contents),
            (Expected::Shared(number), false) => Expected::Shared(*number),
            (Expected::Own(_), false) => {
                self.model.shared.push(contents);
                Expected::Shared(self.model.shared.len() - 1)
            }
        };
        if !copied {
            self.model.pages.insert(from, seen.clone());
        }
        self.model.pages.insert((to, to_page), seen);
        Ok(())
    }

    fn swap_out(&mut self) -> Result<(), Wrong> {
        let Some((process, page)) = self.any_page() else { return Ok(()) };
        said(self.memory.swap_out(process, page))?;
        let on_disk = self.memory.slot(process, page).map(|slot| slot.is_some());
        if on_disk == Ok(true) { Ok(()) } else { Err("a page did not leave".to_owned()) }
    }

    fn reencrypt(&mut self) -> Result<(), Wrong> {
        let Some((process, page)) = self.any_page() else { return Ok(()) };
        said(self.memory.reencrypt(process, page))
    }

    fn access(&mut self) -> Result<(), Wrong> {
        let mapped = self.model.mapped(self.model.running);
        if mapped.is_empty() {
            return self.map();
        }
        let (page, block) = match self.random.below(64) {
            0 => (*self.random.one_of(&mapped), self.random.below(64)),
            1..=15 => (self.focus.0, self.random.below(64)),
            _ => self.focus,
        };
        if !mapped.contains(&page) {
            self.refocus();
            return Ok(());
        }
        if self.random.one_in(2) {
            return self.read((self.model.running, page), block);
        }
        let mut contents = [0; 64];
        for word in contents.chunks_exact_mut(8) {
            word.copy_from_slice(&self.random.next().to_le_bytes());
        }
        said(self.memory.write(page, block, &contents))?;
        self.model.contents((self.model.running, page)).insert(block, contents);
        Ok(())
    }

    fn read(&mut self, at: (ProcessId, u64), block: u64) -> Result<(), Wrong> {
        let expected = self.model.contents(at).get(&block).copied().unwrap_or([0; 64]);
        let read = self.memory.read(at.1, block).map_err(|error| error.to_string())?;
        if read == expected { Ok(()) } else { Err(format!("block {block} of {at:?} is wrong")) }
    }

    pub fn read_everything(&mut self) -> Result<(), Wrong> {
        for at in self.model.pages.keys().copied().collect::<Vec<_>>() {
            let (frame, slot) = (self.memory.resident(at.0, at.1), self.memory.slot(at.0, at.1));
            match (frame, slot) {
                (Ok(Some(_)), Ok(None)) | (Ok(None), Ok(Some(_))) => {}
                places => return Err(format!("{at:?} is not in one place: {places:?}")),
            }
            said(self.memory.switch_to(at.0))?;
            (0..64).try_for_each(|block| self.read(at, block))?;
        }
        self.model.running = *self.model.processes.first().expect("one is always left");
        said(self.memory.switch_to(self.model.running))?;
        said(self.memory.unit_mut().check())
    }

    /// Pads that were used before, among all that were made.
    pub fn pads_used_twice(&mut self) -> usize {
        let log = self.memory.unit_mut().port_mut().used_seeds().log.clone();
        let mut log = log.expect("it was asked for");
        let all = log.len();
        log.sort_unstable();
        log.dedup();
        all - log.len()
    }

    /// Whether seeds forbid sharing, found by trying.
    pub fn memory_names_virtual_pages(&mut self) -> bool {
        let [one, two] = [self.memory.spawn(), self.memory.spawn()];
        self.memory.map(one, 1).expect("there is room");
        let shared = self.memory.share((one, 1), (two, 2), Sharing::Shared);
        shared == Err(VmError::CannotShare)
    }
}

pub fn said<E: ToString>(answer: Result<(), E>) -> Result<(), Wrong> {
    answer.map_err(|error| error.to_string())
}
