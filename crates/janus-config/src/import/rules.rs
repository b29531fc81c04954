//! Tables with the translation of each key.

use super::convert::Kind;
use super::remark::Weight;

/// The translation of a key in a file of Janus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The key with its group: `general.ipv6`.
    pub(super) from: &'static str,
    pub(super) fate: Fate,
}

/// The translation of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// It becomes this key, named with its section: `media.ipv6`.
    Key(&'static str, Kind),
    /// It is not taken: the importance, the harmless values, and the reason. Harmless values ask
    /// for something that is always on, and cause no remark.
    Left(Weight, &'static [&'static str], &'static str),
    /// It is translated by code, together with others.
    Elsewhere,
}

impl Rule {
    /// Returns the group of Janus.
    pub(super) fn group(&self) -> &'static str {
        self.from.split_once('.').map_or("", |(group, _)| group)
    }

    /// Returns the section and the key of Portunus.
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

/// A key that cannot be taken, unless it has one of the values `harmless`.
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

/// A key that is translated by code.
pub(super) const fn elsewhere(from: &'static str) -> Rule {
    let fate = Fate::Elsewhere;
    Rule { from, fate }
}

/// The whitespace of JSON.
pub(super) const fn json(from: &'static str) -> Rule {
    let reason = "JSON is sent without white space, which programs that read it take no notice of";
    let fate = Fate::Left(Weight::NotNeeded, &["compact"], reason);
    Rule { from, fate }
}

/// The reason why an unknown key or group is not taken.
pub(super) const UNKNOWN: &str = "neither Janus 1.4 nor Portunus has this";

/// The reason why lists of addresses are not taken.
pub(super) const ACL: &str = "lists of allowed addresses are left to the firewall (nftables)";

/// The reason why the passphrase of a key is not taken.
pub(super) const PASSPHRASE: &str = "keys with a passphrase cannot be read: take it off, such as by \
     `openssl pkey -in key.pem -out plain.pem`, and name the new file";

/// The reason why ciphers are not taken.
pub(super) const CIPHERS: &str =
    "TLS 1.2 and 1.3 with secure ciphers only, which cannot be changed";
