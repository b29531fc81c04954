//! Pinning of threads to cores.

use std::io;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// A core that does not exist, or may not be used.
#[derive(Debug, thiserror::Error)]
#[error("core {core} cannot be used: {source}")]
pub struct CoreError {
    core: usize,
    source: io::Error,
}

/// Pins the calling thread, and threads that it starts, to `core`.
pub fn pin(core: usize) -> Result<(), CoreError> {
    pin_to(&[core]).map_err(|source| CoreError { core, source })
}

/// Pins the calling thread, and threads that it starts, to `cores`.
pub fn pin_to(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
