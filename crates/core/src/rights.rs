//! What a request may have the server do beyond a call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that reaches beyond a call: to the disk, to other machines, or past what strangers may take of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Make what plays files, what connects to other servers, and what outlives the server.
    Create,
    /// Write media to the disk.
    Record,
    /// Have media sent to other machines, and received from them.
    Forward,
    /// Use the server without the limits that strangers have.
    Administer,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 4] = [
        Right::Create,
        Right::Record,
        Right::Forward,
        Right::Administer,
    ];

    /// Its name in the configuration and in tokens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Right::Create => "create",
            Right::Record => "record",
            Right::Forward => "forward",
            Right::Administer => "administer",
        }
    }

    /// The right with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

impl Rights {
    /// Those of a stranger.
    pub const NONE: Rights = Rights(0);

    /// Those of whoever runs the server.
    pub const ALL: Rights = Rights(
        Right::Create.bit() | Right::Record.bit() | Right::Forward.bit() | Right::Administer.bit(),
    );

    /// Whether this right is among them.
    pub const fn may(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// This right, if that is so, else none.
    pub const fn if_so(is_so: bool, right: Right) -> Rights {
        match is_so {
            true => Rights(right.bit()),
            false => Rights::NONE,
        }
    }

    /// These and those of `other`.
    #[must_use]
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl From<Right> for Rights {
    fn from(right: Right) -> Self {
        Rights(right.bit())
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        let add = |set, right: Right| Rights(set | right.bit());
        rights
            .into_iter()
            .fold(Rights::NONE, |set, right| add(set.0, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let some: Rights = [Right::Record, Right::Forward].into_iter().collect();
        for right in Right::ALL {
            assert!(Rights::ALL.may(right) && !Rights::NONE.may(right));
            assert_eq!(
                some.may(right),
                matches!(right, Right::Record | Right::Forward)
            );
            assert_eq!(Right::from_name(right.as_str()), Some(right));
        }
        let all: Rights = Right::ALL.into_iter().collect();
        assert_eq!(all, Rights::ALL);
        assert_eq!(Right::from_name("Record"), None);
    }
}
