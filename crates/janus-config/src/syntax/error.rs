//! Places in files, and errors of files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file, as named by the caller.
    pub file: Arc<Path>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

impl Location {
    /// Returns the start of a file.
    pub fn start(file: &Path) -> Self {
        Location {
            file: file.into(),
            line: 1,
            column: 1,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// A file that cannot be read as a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct SyntaxError {
    /// The place where reading stopped.
    pub at: Location,
    /// The reason.
    pub problem: Problem,
}

/// The reason why a file cannot be read as a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another token is expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The expected token.
        expected: &'static str,
        /// The token found.
        found: String,
    },
    /// A string without its closing quote.
    #[error("this string has no closing quote")]
    OpenString,
    /// A comment without `*/`.
    #[error("this comment has no */ at its end")]
    OpenComment,
    /// A number that exceeds 64 bits, or has no digits.
    #[error("{0} is no number of 64 bits (text needs quotes)")]
    Number(String),
    /// A repeated name in a group.
    #[error("{name} is set twice: the first time in line {first}")]
    Duplicate {
        /// The name.
        name: String,
        /// The line of the first setting with this name.
        first: usize,
    },
    /// An array has values of different types.
    #[error(
        "expected {expected}, found {found}: all values of an array have one type; ( ) may mix"
    )]
    MixedArray {
        /// The type of the previous values.
        expected: &'static str,
        /// The type of this value.
        found: &'static str,
    },
    /// Groups, lists and arrays are nested too deeply.
    #[error("more than {0} groups and lists inside each other")]
    TooDeep(usize),
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// A file includes itself, directly or through others.
    #[error("{} includes itself", .0.display())]
    IncludeCycle(PathBuf),
    /// Includes are nested too deeply.
    #[error("more than {0} files include each other")]
    TooManyIncludes(usize),
    /// The file with its included files is too large.
    #[error("more than {} MiB with all included files", .0 >> 20)]
    TooLarge(usize),
    /// The file is not text.
    #[error("expected text in UTF-8")]
    NotText,
}
