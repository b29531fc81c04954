//! SRTP keys of a description (RFC 4568, RFC 7714 section 14.2).

use std::fmt;

use portunus_srtp::{KeyError, Opener, Profile, Sealer};
use smallvec::SmallVec;

/// A master key, its salt and its profile. Only the profile is shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SrtpKey {
    profile: Profile,
    key_and_salt: SmallVec<[u8; 64]>,
}

impl SrtpKey {
    /// Reads key and salt as in `a=crypto` after base64: 30 bytes with AES_CM, 28 with
    /// AEAD_AES_128_GCM, 44 with AEAD_AES_256_GCM.
    pub fn new(profile: Profile, key_and_salt: &[u8]) -> Result<Self, KeyError> {
        let (key, salt) = (profile.key_len(), profile.salt_len());
        if key_and_salt.len() != key + salt {
            let key = key_and_salt.len().min(key);
            let salt = key_and_salt.len() - key;
            return Err(KeyError::Length { key, salt });
        }
        Ok(Self {
            profile,
            key_and_salt: SmallVec::from_slice(key_and_salt),
        })
    }

    /// Generates a key.
    pub fn random(profile: Profile) -> Self {
        let len = profile.key_len() + profile.salt_len();
        Self {
            profile,
            key_and_salt: std::iter::repeat_with(rand::random).take(len).collect(),
        }
    }

    /// The profile that the key is for.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The key, followed by the salt.
    pub fn key_and_salt(&self) -> &[u8] {
        &self.key_and_salt
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let key = self.profile.key_len().min(self.key_and_salt.len());
        self.key_and_salt.split_at(key)
    }

    pub(crate) fn sealer(&self) -> Option<Sealer> {
        let (key, salt) = self.parts();
        Sealer::new(self.profile, key, salt).ok()
    }

    pub(crate) fn opener(&self) -> Option<Opener> {
        let (key, salt) = self.parts();
        Opener::new(self.profile, key, salt).ok()
    }
}

impl fmt::Debug for SrtpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrtpKey")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}
