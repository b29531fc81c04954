//! How far mountpoints may reach: which files they may play, and which servers they may pull from.

use std::path::PathBuf;
use std::sync::Arc;

use portunus_core::Networks;
use portunus_files::{FileError, Folders, checked_path};
use portunus_rtsp::Allowed;

/// How far a mountpoint may reach.
#[derive(Debug, Clone)]
pub(crate) enum Bounds {
    /// Anywhere: it is in the configuration.
    Anywhere,
    /// Where the configuration says that requests may.
    Within(Arc<Places>),
}

/// Where requests may reach.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) folders: Folders,
    pub(crate) networks: Networks,
}

impl Bounds {
    /// Where the file is that a mountpoint names. It blocks.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, FileError> {
        match self {
            Bounds::Anywhere => checked_path(name),
            Bounds::Within(places) => places.folders.find(name),
        }
    }

    /// The addresses that may be connected to; none: all.
    pub(crate) fn addresses(&self) -> Option<Allowed> {
        match self {
            Bounds::Anywhere => None,
            Bounds::Within(places) => {
                let places = places.clone();
                Some(Allowed::by(move |address| places.networks.allow(address)))
            }
        }
    }
}
