//! The paths in requests and in the configuration.

use std::path::{Component, Path, PathBuf};

use crate::FileError;

/// Returns the path with this name. Names that are empty, or contain `..` or NUL, are refused.
pub fn checked_path(name: &str) -> Result<PathBuf, FileError> {
    let path = Path::new(name);
    let climbs = path
        .components()
        .any(|component| component == Component::ParentDir);
    if name.is_empty() || name.contains('\0') || climbs {
        return Err(FileError::Path(name.to_owned()));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_go_up_are_refused() {
        for name in ["../a.opus", "a/../b.opus", "/x/..", "..", "", "a\0b"] {
            assert!(
                matches!(checked_path(name), Err(FileError::Path(_))),
                "{name:?}"
            );
        }
        for name in ["a.opus", "/srv/media/a..b.opus", "./a/.b.webm"] {
            assert!(checked_path(name).is_ok(), "{name}");
        }
    }
}
