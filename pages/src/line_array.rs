//! What the page directory lies in: an array of lines in untrusted memory, whose honesty is
//! verified by a tree at once, or by a log hash from time to time.

use crate::bytes::BytesPort;
use crate::directory_shape::{ARITY, DirectoryPort, Line};
use crate::logged_lines::LoggedLines;
use casemate_core::UntrustedMemory;
use casemate_core::checks::Checks;
use casemate_core::geometry::{LinePlace, levels_above};
use casemate_core::hash_tree::HashTree;
use casemate_core::port::{Carry, Port};
use casemate_core::violation::Violation;

/// An array of lines that are zero at first.
pub trait LineArray<P: Port> {
    /// A line, and when it is there for a request that knew its index at `from`.
    ///
    /// # Errors
    /// What does not verify.
    fn read(&mut self, index: u64, from: P::Moment) -> Result<(&P::Line, P::Moment), Violation>;

    /// Changes a line by something that is ready at `from`.
    ///
    /// # Errors
    /// What does not verify.
    fn amend(
        &mut self,
        index: u64,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation>;

    /// From now on there are at least so many lines.
    ///
    /// # Errors
    /// [`Violation::TimeStampsExhausted`].
    fn extend(&mut self, lines: u64) -> Result<(), Violation>;

    /// Verifies what was read since the last check, as far as that was not done at once. How many
    /// lines were read for it.
    ///
    /// # Errors
    /// [`Violation::LogMismatch`], and what does not verify.
    fn check(&mut self) -> Result<u64, Violation>;

    /// Writes every dirty line back to untrusted memory.
    ///
    /// # Errors
    /// What does not verify.
    fn flush(&mut self) -> Result<(), Violation>;

    /// Writes everything back, so that what is used next is fetched.
    ///
    /// # Errors
    /// What does not verify.
    fn flush_and_forget(&mut self) -> Result<(), Violation>;

    /// Remembers that a line made no sense: from now on every call fails.
    fn poison(&mut self, violation: Violation) -> Violation;

    /// Fails if an earlier violation was found.
    ///
    /// # Errors
    /// [`Violation::Poisoned`].
    fn check_not_poisoned(&self) -> Result<(), Violation>;

    /// The port.
    fn port_mut(&mut self) -> &mut P;

    /// Bytes of trusted memory beside the array itself.
    fn trusted_bytes(&self) -> usize;

    /// Lines of untrusted memory beside so many of the array.
    fn lines_beside(&self, lines: u64) -> u64;
}

impl<P: DirectoryPort> LineArray<P> for HashTree<P> {
    #[inline]
    fn read(&mut self, index: u64, from: P::Moment) -> Result<(&P::Line, P::Moment), Violation> {
        self.read(index, from)
    }

    #[inline]
    fn amend(
        &mut self,
        index: u64,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.amend(index, from, change)
    }

    /// A tree of any capacity is there from the beginning.
    fn extend(&mut self, _: u64) -> Result<(), Violation> {
        Ok(())
    }

    /// Everything was verified when it was read.
    fn check(&mut self) -> Result<u64, Violation> {
        LineArray::check_not_poisoned(self).map(|()| 0)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.flush()
    }

    fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.flush_and_forget()
    }

    fn poison(&mut self, violation: Violation) -> Violation {
        self.poison(violation)
    }

    #[inline]
    fn check_not_poisoned(&self) -> Result<(), Violation> {
        self.check_not_poisoned()
    }

    #[inline]
    fn port_mut(&mut self) -> &mut P {
        self.port_mut()
    }

    fn trusted_bytes(&self) -> usize {
        self.trusted_bytes()
    }

    /// The nodes above them.
    fn lines_beside(&self, lines: u64) -> u64 {
        levels_above(lines, |_| ARITY).sum()
    }
}

/// The array of a directory on bytes, of one kind or the other.
pub enum Lines<M: UntrustedMemory<LinePlace, Line>, C: Checks> {
    /// Verified by a Bonsai tree.
    Tree(HashTree<BytesPort<M, C>>),
    /// Verified by a log hash.
    Logged(LoggedLines<M, C>),
}

/// Calls the same method on whichever array it is.
macro_rules! with_lines {
    ($lines:expr, $array:ident => $call:expr) => {
        match $lines {
            Lines::Tree($array) => $call,
            Lines::Logged($array) => $call,
        }
    };
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> LineArray<BytesPort<M, C>> for Lines<M, C> {
    #[inline]
    fn read(&mut self, index: u64, from: Moment<M, C>) -> Result<(&Line, Moment<M, C>), Violation> {
        with_lines!(self, array => LineArray::read(array, index, from))
    }

    #[inline]
    fn amend(
        &mut self,
        index: u64,
        from: Moment<M, C>,
        change: impl FnOnce(&mut Line),
    ) -> Result<Moment<M, C>, Violation> {
        with_lines!(self, array => LineArray::amend(array, index, from, change))
    }

    fn extend(&mut self, lines: u64) -> Result<(), Violation> {
        with_lines!(self, array => LineArray::extend(array, lines))
    }

    fn check(&mut self) -> Result<u64, Violation> {
        with_lines!(self, array => LineArray::check(array))
    }

    fn flush(&mut self) -> Result<(), Violation> {
        with_lines!(self, array => LineArray::flush(array))
    }

    fn flush_and_forget(&mut self) -> Result<(), Violation> {
        with_lines!(self, array => LineArray::flush_and_forget(array))
    }

    fn poison(&mut self, violation: Violation) -> Violation {
        with_lines!(self, array => LineArray::poison(array, violation))
    }

    #[inline]
    fn check_not_poisoned(&self) -> Result<(), Violation> {
        with_lines!(self, array => LineArray::check_not_poisoned(array))
    }

    #[inline]
    fn port_mut(&mut self) -> &mut BytesPort<M, C> {
        with_lines!(self, array => LineArray::port_mut(array))
    }

    fn trusted_bytes(&self) -> usize {
        with_lines!(self, array => LineArray::trusted_bytes(array))
    }

    fn lines_beside(&self, lines: u64) -> u64 {
        with_lines!(self, array => LineArray::lines_beside(array, lines))
    }
}

type Moment<M, C> = <BytesPort<M, C> as Carry>::Moment;
