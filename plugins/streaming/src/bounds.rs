//! The files and servers that mountpoints may use.

use std::path::PathBuf;
use std::sync::Arc;

use portunus_core::Networks;
use portunus_files::{FileError, Folders, checked_path};
use portunus_rtsp::Allowed;

/// The files and servers that a mountpoint may use.
#[derive(Debug, Clone)]
pub(crate) enum Bounds {
    /// All of them, for a mountpoint of the configuration.
    Anywhere,
    /// Those that the configuration permits to requests.
    Within(Arc<Places>),
}

/// The files and networks that requests may use.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) folders: Folders,
    pub(crate) networks: Networks,
}

impl Bounds {
    /// Returns the path of a named file, if it is permitted. It blocks.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, FileError> {
        match self {
            Bounds::Anywhere => checked_path(name),
            Bounds::Within(places) => places.folders.find(name),
        }
    }

    /// Returns the addresses to which it may connect. `None` means all.
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
