//! Stops the threads of a program for a moment, while room is made that they would use at once.
use super::others::Others;

/// Threads of a program that were asked to stop. Dropping this resumes them; if that takes longer
/// than a second the program is killed. It is also killed if the thread that made this value ends
/// before [`Hold::let_go`].
pub struct Hold(Others);

impl Hold {
    /// Asks the threads of process `pid` that run or wait for a processor to stop.
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

    /// Resumes the threads that have stopped. False while a thread has not stopped yet and so
    /// cannot be resumed: call again.
    pub fn let_go(&mut self) -> bool {
        self.0.let_go()
    }
}
