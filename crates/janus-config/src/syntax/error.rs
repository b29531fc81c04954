//! Where something is in a file, and what is wrong with a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Location {
    /// The start of a file.
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
    /// Where reading stopped.
    pub at: Location,
    /// Why.
    pub problem: Problem,
}

/// Why a file cannot be read as a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// A string without its closing quote.
    #[error("this string has no closing quote")]
    OpenString,
    /// A comment without `*/`.
    #[error("this comment has no */ at its end")]
    OpenComment,
    /// A number that 64 bits do not hold, or that has no digits.
    #[error("{0} is no number of 64 bits (text needs quotes)")]
    Number(String),
    /// Two settings of a group have one name.
    #[error("{name} is set twice: the first time in line {first}")]
    Duplicate {
        /// The name.
        name: String,
        /// The line of the first one.
        first: usize,
    },
    /// An array holds values of different types.
    #[error(
        "expected {expected}, found {found}: all values of an array have one type; ( ) may mix"
    )]
    MixedArray {
        /// The type of the values before.
        expected: &'static str,
        /// The type of this one.
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
        /// The error of the system.
        reason: String,
    },
    /// A file includes itself, directly or through others.
    #[error("{} includes itself", .0.display())]
    IncludeCycle(PathBuf),
    /// Includes are nested too deeply.
    #[error("more than {0} files include each other")]
    TooManyIncludes(usize),
    /// The file and what it includes are too large.
    #[error("more than {} MiB with all included files", .0 >> 20)]
    TooLarge(usize),
    /// The file is not text.
    #[error("expected text in UTF-8")]
    NotText,
}
