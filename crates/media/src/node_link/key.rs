//! The keys of a node link.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portunus_srtp::{Opener, Profile, Sealer};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The cipher of node links.
const PROFILE: Profile = Profile::AeadAes128Gcm;
/// The lengths of the master key and of the salt, in bytes.
const LENGTHS: (usize, usize) = (PROFILE.key_len(), PROFILE.salt_len());

/// The master key (16 bytes) and salt (12 bytes) of one direction of a node link, for
/// AEAD_AES_128_GCM. `Debug` does not show it. In messages it is base64.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeLinkKey([u8; LENGTHS.0 + LENGTHS.1]);

impl NodeLinkKey {
    /// Generates a key.
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// Returns a key with these bytes.
    pub const fn from_bytes(bytes: [u8; LENGTHS.0 + LENGTHS.1]) -> Self {
        Self(bytes)
    }

    pub(crate) fn sealer(&self) -> Option<Sealer> {
        let (key, salt) = self.0.split_at_checked(LENGTHS.0)?;
        Sealer::new(PROFILE, key, salt).ok()
    }

    pub(crate) fn opener(&self) -> Option<Opener> {
        let (key, salt) = self.0.split_at_checked(LENGTHS.0)?;
        Opener::new(PROFILE, key, salt).ok()
    }
}

impl fmt::Debug for NodeLinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLinkKey").finish_non_exhaustive()
    }
}

impl Serialize for NodeLinkKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for NodeLinkKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let bytes = bytes.try_into();
        let wrong = |_| D::Error::custom("a key and its salt should have 28 bytes");
        bytes.map(Self).map_err(wrong)
    }
}
