//! Tables that say what becomes of each key.

use super::convert::Kind;
use super::remark::Weight;

/// What becomes of a key of a group in a file of Janus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The key with its group: `general.ipv6`.
    pub(super) from: &'static str,
    pub(super) fate: Fate,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// It is this key of ours, named with its section: `media.ipv6`.
    Key(&'static str, Kind),
    /// It is not taken, with how much that matters and why. Nothing is said of the values that are named: they ask for
    /// what is always so.
    Left(Weight, &'static [&'static str], &'static str),
    /// It is looked at together with others.
    Elsewhere,
}

impl Rule {
    /// The group of Janus.
    pub(super) fn group(&self) -> &'static str {
        self.from.split_once('.').map_or("", |(group, _)| group)
    }

    /// The section and the key of ours that it names.
    pub(super) fn target(&self) -> Option<(&'static str, &'static str)> {
        match self.fate {
            Fate::Key(to, _) => to.rsplit_once('.'),
            _ => None,
        }
    }
}

/// A key that is taken.
pub(super) const fn take(from: &'static str, to: &'static str, kind: Kind) -> Rule {
    let fate = Fate::Key(to, kind);
    Rule { from, fate }
}

/// A key whose wish cannot be met, unless it has one of the values `harmless`.
pub(super) const fn missing(
    from: &'static str,
    harmless: &'static [&'static str],
    reason: &'static str,
) -> Rule {
    let fate = Fate::Left(Weight::Attention, harmless, reason);
    Rule { from, fate }
}

/// A key without a meaning here.
pub(super) const fn not_needed(from: &'static str, reason: &'static str) -> Rule {
    let fate = Fate::Left(Weight::NotNeeded, &[], reason);
    Rule { from, fate }
}

/// A key that code looks at.
pub(super) const fn elsewhere(from: &'static str) -> Rule {
    let fate = Fate::Elsewhere;
    Rule { from, fate }
}

/// The white space of JSON.
pub(super) const fn json(from: &'static str) -> Rule {
    let reason = "JSON is sent without white space, which programs that read it take no notice of";
    let fate = Fate::Left(Weight::NotNeeded, &["compact"], reason);
    Rule { from, fate }
}

/// Why a key or a group that nobody knows is not taken.
pub(super) const UNKNOWN: &str = "neither Janus 1.4 nor Portunus has this";

/// Why lists of addresses are not taken.
pub(super) const ACL: &str = "lists of allowed addresses are left to the firewall (nftables)";

/// Why the passphrase of a key is not taken.
pub(super) const PASSPHRASE: &str = "keys with a passphrase cannot be read: take it off, such as by \
     `openssl pkey -in key.pem -out plain.pem`, and name the new file";

/// Why ciphers are not taken.
pub(super) const CIPHERS: &str =
    "TLS 1.2 and 1.3 with secure ciphers only, which cannot be changed";
