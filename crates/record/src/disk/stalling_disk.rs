//! A disk that tests can stall.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::lock;

/// A folder that counts as a disk, and whose writes can be stalled.
#[derive(Debug)]
pub struct StallingDisk {
    folder: PathBuf,
    held: Mutex<bool>,
    released: Condvar,
}

impl StallingDisk {
    /// Returns the disk of this folder, which must exist.
    pub fn new(folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            folder: folder.canonicalize().unwrap_or_else(|_| folder.to_owned()),
            held: Mutex::new(false),
            released: Condvar::new(),
        })
    }

    /// Stalls writes.
    pub fn stall(&self) {
        *lock(&self.held) = true;
    }

    /// Resumes writes.
    pub fn go_on(&self) {
        *lock(&self.held) = false;
        self.released.notify_all();
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn wait(&self) {
        let held = lock(&self.held);
        let released = self.released.wait_while(held, |held| *held);
        drop(released.unwrap_or_else(PoisonError::into_inner));
    }
}
