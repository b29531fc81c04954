//! Facts of this process for metrics.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::time::SystemTime;

use super::Gateway;
use crate::info::VERSION;

/// The version of the build, and the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildFacts {
    /// The version, such as `1.2.3`.
    pub version: &'static str,
    /// The commit.
    pub commit: &'static str,
    /// When the process was started.
    pub started: SystemTime,
}

impl Gateway {
    /// Returns the version of the build, and the start of the process.
    pub fn build_facts(&self) -> BuildFacts {
        let context = self.context();
        BuildFacts {
            version: VERSION,
            commit: context.facts.commit,
            started: context.started_at,
        }
    }

    /// Sets when the certificate for `use_` expires, in seconds since 1970. `None` removes it.
    pub fn set_certificate_expiry(&self, use_: &'static str, expiry: Option<u64>) {
        let known = self.context().certificates.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        match expiry {
            Some(expiry) => drop(known.insert(use_, expiry)),
            None => drop(known.remove(use_)),
        }
    }

    /// Returns when certificates expire, in seconds since 1970, by their use.
    pub fn certificate_expiries(&self) -> BTreeMap<&'static str, u64> {
        let known = self.context().certificates.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The folder of recordings.
    pub fn recording_folder(&self) -> &Path {
        self.context().facts.recorder.folder()
    }

    /// Returns the statistics of each media worker in the last seconds.
    pub fn worker_stats(&self) -> Vec<portunus_media::WorkerStats> {
        self.context().media.worker_stats()
    }
}
