//! A program that stands still for a moment: while it runs it takes room faster than room can be
//! made.
use super::others::Others;

/// Threads of a program that were asked to stop. Dropped, they go on; if that takes longer than a
/// second the program is killed, as it is if the thread that made this ends before
/// [`Hold::let_go`].
pub struct Hold(Others);

impl Hold {
    /// Asks those threads of process `pid` to stop that run or wait for a processor.
    #[must_use]
    pub fn running_threads(pid: i32) -> Hold {
        Hold(Others::stop_running(pid))
    }

    /// Asks thread `tid` of process `pid` to stop, if it runs.
    #[must_use]
    pub fn running_thread(pid: i32, tid: i32) -> Hold {
        Hold(Others::stop_one(pid, tid))
    }

    /// Whether no thread is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.held().is_empty()
    }

    /// Lets go the threads that have stopped. False while one has yet to stop before that can be
    /// done: call again.
    pub fn let_go(&mut self) -> bool {
        self.0.let_go()
    }
}
