//! Pages that forks share: one page of RAM that several spaces have, until one of them stores to
//! it. It counts once.
//!
//! All of them have it write-protected (SPEC section 7), so the first store of each raises a fault,
//! before the kernel makes the copy. From then on that space has a page of its own.

/// A page of RAM that several spaces have, or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareId(usize);

/// Which spaces have a shared page beside the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// No other any more.
    None,
    /// Spaces that have agents: all of them can give it up.
    Armed,
    /// Also one without an agent, from which nothing can be taken.
    Unarmed,
}

#[derive(Debug, Default)]
struct Share {
    spaces: u32,
    /// So many of them have no agent.
    unarmed: u32,
}

/// All shared pages of a run.
#[derive(Debug, Default)]
pub struct SharedPages {
    shares: Vec<Share>,
    free: Vec<usize>,
}

impl SharedPages {
    /// A forked child, which has no agent, shares a page: one that is shared already, or one that
    /// was its parent's own.
    pub fn join(&mut self, shared: Option<ShareId>, is_parent_armed: bool) -> ShareId {
        let id = shared.unwrap_or_else(|| {
            let share = Share { spaces: 1, unarmed: u32::from(!is_parent_armed) };
            let index = self.free.pop().unwrap_or(self.shares.len());
            match self.shares.get_mut(index) {
                Some(unused) => *unused = share,
                None => self.shares.push(share),
            }
            ShareId(index)
        });
        self.shares[id.0].spaces += 1;
        self.shares[id.0].unarmed += 1;
        id
    }

    /// A space has the page no more, or a copy of its own. Whether others have it still.
    pub fn leave(&mut self, id: ShareId, is_armed: bool) -> bool {
        let share = &mut self.shares[id.0];
        share.spaces -= 1;
        share.unarmed -= u32::from(!is_armed);
        if share.spaces == 0 {
            self.free.push(id.0);
        }
        share.spaces > 0
    }

    /// A space that shares the page got an agent.
    pub fn armed(&mut self, id: ShareId) {
        self.shares[id.0].unarmed -= 1;
    }

    /// Which spaces have the page beside an armed one that asks.
    pub fn others(&self, id: ShareId) -> Others {
        match &self.shares[id.0] {
            Share { spaces: 1, .. } => Others::None,
            Share { unarmed: 0, .. } => Others::Armed,
            _ => Others::Unarmed,
        }
    }

    /// Whether there may be any.
    pub fn any(&self) -> bool {
        self.shares.len() > self.free.len()
    }

    /// Whether more than one space has the page.
    pub fn is_shared(&self, id: ShareId) -> bool {
        self.shares[id.0].spaces > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shared_until_all_but_one_have_left() {
        let mut pages = SharedPages::default();
        let id = pages.join(None, true);
        assert_eq!(pages.others(id), Others::Unarmed);
        pages.armed(id);
        assert_eq!(pages.others(id), Others::Armed);
        assert_eq!(pages.join(Some(id), true), id);
        assert_eq!(pages.others(id), Others::Unarmed);
        assert!(pages.leave(id, false) && pages.leave(id, true));
        assert_eq!(pages.others(id), Others::None);
        assert!(!pages.leave(id, true));
        // The place is used again.
        assert_eq!(pages.join(None, false), id);
        assert!(pages.leave(id, false));
        assert_eq!(pages.others(id), Others::None);
    }
}
