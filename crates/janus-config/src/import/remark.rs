//! What was not taken from Janus's files.

use std::fmt;

use crate::Location;

/// How much it matters that a setting was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The server will behave differently: somebody has to look at it.
    Attention,
    /// The setting has no meaning here, or what it asks for is always so.
    NotNeeded,
}

/// A setting that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Where it is.
    pub at: Location,
    /// Its name with that of its group; empty for a whole file.
    pub key: String,
    /// How much that matters.
    pub weight: Weight,
    /// Why it was not taken, and what to do instead.
    pub reason: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needless = match self.weight {
            Weight::Attention => "",
            Weight::NotNeeded => "not needed: ",
        };
        write!(f, "{}{needless}{}", self.place(), self.reason)
    }
}

impl Remark {
    /// Where it is and which key it is about, with a colon after each.
    pub(super) fn place(&self) -> String {
        let Location { file, line, .. } = &self.at;
        let key = match self.key.as_str() {
            "" => String::new(),
            key => format!("{key}: "),
        };
        format!("{}:{line}: {key}", file.display())
    }
}
