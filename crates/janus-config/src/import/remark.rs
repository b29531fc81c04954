//! Remarks on settings that were not taken from Janus's files.

use std::fmt;

use crate::Location;

/// The importance of a setting that was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The server will behave differently, which somebody has to check.
    Attention,
    /// The setting has no meaning here, or its effect is always on.
    NotNeeded,
}

/// A setting that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The place of the setting.
    pub at: Location,
    /// The name of the setting with its group. Empty for a whole file.
    pub key: String,
    /// The importance.
    pub weight: Weight,
    /// The reason why it was not taken, and the alternative.
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
    /// Returns the place and the key, each followed by a colon.
    pub(super) fn place(&self) -> String {
        let Location { file, line, .. } = &self.at;
        let key = match self.key.as_str() {
            "" => String::new(),
            key => format!("{key}: "),
        };
        format!("{}:{line}: {key}", file.display())
    }
}
