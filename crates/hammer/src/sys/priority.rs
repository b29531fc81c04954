//! Threads that go first.

/// Lets the calling thread run before all ordinary ones of its core as soon as it has something to do
/// (SCHED_FIFO); says whether it may.
pub fn run_first() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads `parameters` only; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
