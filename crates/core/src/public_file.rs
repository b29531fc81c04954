//! Files of plugins that HTTP serves.

use std::fmt;
use std::path::PathBuf;

/// Files of a plugin that HTTP serves.
pub trait PublicFiles: Send + Sync {
    /// Returns the file at a path of a request, which starts with a slash, or `None` if no such
    /// file is served. Does not access the disk. All files that it returns are public.
    fn find(&self, path: &str) -> Option<PublicFile>;
}

/// A public file. Finding its place may access the disk and block, so callers do it where they can
/// wait.
pub struct PublicFile(Box<dyn FnOnce() -> Option<PathBuf> + Send>);

impl PublicFile {
    /// The file at a path of the disk.
    pub fn at(path: PathBuf) -> Self {
        Self::sought(move || Some(path))
    }

    /// The file at the path that `find` returns. `find` may block.
    pub fn sought(find: impl FnOnce() -> Option<PathBuf> + Send + 'static) -> Self {
        PublicFile(Box::new(find))
    }

    /// Returns its path, or `None` if there is no such file. May block.
    pub fn locate(self) -> Option<PathBuf> {
        (self.0)()
    }
}

impl fmt::Debug for PublicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicFile")
    }
}
