//! On which cores threads run.

use std::io;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// A core that is not there, or may not be used.
#[derive(Debug, thiserror::Error)]
#[error("core {core} cannot be used: {source}")]
pub struct CoreError {
    core: usize,
    source: io::Error,
}

/// Lets the calling thread, and what it starts, run on `core` only.
pub fn pin(core: usize) -> Result<(), CoreError> {
    pin_to(&[core]).map_err(|source| CoreError { core, source })
}

/// Lets the calling thread, and what it starts, run on `cores` only.
pub fn pin_to(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
