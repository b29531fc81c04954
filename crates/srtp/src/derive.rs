//! Key derivation (RFC 3711 section 4.3, RFC 7714 section 11).

use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

use crate::{KeyError, Profile};

/// Length of an HMAC-SHA1 key, in bytes.
pub(crate) const AUTH_KEY_LEN: usize = 20;

/// The purpose of session keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Rtp,
    Rtcp,
}

/// The session keys of one direction and purpose. Only the first `key_len` and `salt_len` bytes
/// count.
pub(crate) struct SessionKeys {
    pub(crate) cipher: [u8; 32],
    pub(crate) auth: [u8; AUTH_KEY_LEN],
    pub(crate) salt: [u8; 14],
}

impl SessionKeys {
    /// Derives the keys for `r#use`. The key derivation rate is zero, as in DTLS-SRTP.
    pub(crate) fn derive(
        profile: Profile,
        master_key: &[u8],
        master_salt: &[u8],
        r#use: Use,
    ) -> Result<Self, KeyError> {
        let (cipher_label, auth_label, salt_label) = match r#use {
            Use::Rtp => (0, 1, 2),
            Use::Rtcp => (3, 4, 5),
        };
        let prf = Prf::new(profile, master_key, master_salt)?;
        let mut keys = SessionKeys {
            cipher: [0; 32],
            auth: [0; AUTH_KEY_LEN],
            salt: [0; 14],
        };
        prf.fill(cipher_label, &mut keys.cipher)?;
        prf.fill(auth_label, &mut keys.auth)?;
        prf.fill(salt_label, &mut keys.salt)?;
        Ok(keys)
    }
}

/// AES in counter mode as a pseudo-random function (RFC 3711 section 4.3.3).
struct Prf {
    key: EncryptingKey,
    salt: [u8; 16],
}

impl Prf {
    fn new(profile: Profile, master_key: &[u8], master_salt: &[u8]) -> Result<Self, KeyError> {
        let length = KeyError::Length {
            key: master_key.len(),
            salt: master_salt.len(),
        };
        if master_key.len() != profile.key_len() || master_salt.len() != profile.salt_len() {
            return Err(length);
        }
        let algorithm = match profile {
            Profile::AeadAes128Gcm | Profile::Aes128CmSha1_80 | Profile::Aes128CmSha1_32 => {
                &AES_128
            }
            Profile::AeadAes256Gcm => &AES_256,
        };
        let key = UnboundCipherKey::new(algorithm, master_key)
            .and_then(EncryptingKey::ctr)
            .map_err(|_| KeyError::Refused)?;
        // A salt of 96 bits is padded with zeros on the right (RFC 7714 section 11).
        let mut salt = [0; 16];
        salt.get_mut(..master_salt.len())
            .ok_or(length)?
            .copy_from_slice(master_salt);
        Ok(Self { key, salt })
    }

    fn fill(&self, label: u8, out: &mut [u8]) -> Result<(), KeyError> {
        let mut iv = self.salt;
        iv[7] ^= label;
        out.fill(0);
        self.key
            .less_safe_encrypt(out, EncryptionContext::Iv128(FixedLength::from(iv)))
            .map(drop)
            .map_err(|_| KeyError::Refused)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::tests::hex;

    /// RFC 3711 appendix B.3.
    #[test]
    fn the_vectors_of_rfc_3711() {
        let keys = SessionKeys::derive(
            Profile::Aes128CmSha1_80,
            &hex("E1F97A0D3E018BE0D64FA32C06DE4139"),
            &hex("0EC675AD498AFEEBB6960B3AABE6"),
            Use::Rtp,
        )
        .unwrap();
        assert_eq!(
            keys.cipher.first_chunk::<16>().unwrap(),
            &*hex("C61E7A93744F39EE10734AFE3FF7A087")
        );
        assert_eq!(keys.salt.to_vec(), hex("30CBBC08863D8C85D49DB34A9AE1"));
        assert_eq!(
            keys.auth.to_vec(),
            hex("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4")
        );
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        for (key, salt) in [(0, 0), (16, 14), (32, 12), (15, 12)] {
            let keys = SessionKeys::derive(
                Profile::AeadAes128Gcm,
                &vec![0; key],
                &vec![0; salt],
                Use::Rtp,
            );
            assert_eq!(keys.err(), Some(KeyError::Length { key, salt }));
        }
    }
}
