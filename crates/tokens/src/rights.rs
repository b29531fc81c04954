//! The rights of a request beyond a call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A right beyond a call: to the disk, to other machines, or past the limits for strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Create things that play files, connect to other servers, or outlive the server.
    Create,
    /// Write media to the disk.
    Record,
    /// Send media to other machines, and receive it from them.
    Forward,
    /// Use the server without the limits for strangers.
    Administer,
}

impl Right {
    /// All rights.
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

    /// Returns the right with this name.
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
    /// The rights of strangers.
    pub const NONE: Rights = Rights(0);

    /// The rights of operators.
    pub const ALL: Rights = Rights(
        Right::Create.bit() | Right::Record.bit() | Right::Forward.bit() | Right::Administer.bit(),
    );

    /// Whether the set contains this right.
    pub const fn may(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Returns a set with this right if `is_so`, else an empty set.
    pub const fn if_so(is_so: bool, right: Right) -> Rights {
        match is_so {
            true => Rights(right.bit()),
            false => Rights::NONE,
        }
    }

    /// Returns the rights of both sets.
    #[must_use]
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Checks that all of `needed` are in this set.
    pub fn check(self, needed: Rights) -> Result<(), Untrusted> {
        let missing = |right: &Right| needed.may(*right) && !self.may(*right);
        match Right::ALL.into_iter().find(missing) {
            Some(right) => Err(Untrusted(right)),
            None => Ok(()),
        }
    }
}

/// The error of a request whose client lacks a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} a trusted client: an admin key, the API secret, or a token with the right to {right}",
    what = needing(*.0),
    right = .0
)]
pub struct Untrusted(pub Right);

/// Describes what needs a right.
const fn needing(right: Right) -> &'static str {
    match right {
        Right::Create => {
            "files, RTSP servers, multicast groups, interfaces and what is permanent need"
        }
        Right::Record => "recording needs",
        Right::Forward => "forwarding media to other machines, and taking it from them, needs",
        Right::Administer => "this needs",
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

    #[test]
    fn a_refusal_says_what_is_needed() {
        assert_eq!(
            Untrusted(Right::Record).to_string(),
            "recording needs a trusted client: an admin key, the API secret, or a token with the right to record"
        );
    }
}
