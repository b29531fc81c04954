//! The ciphers: AES-GCM (RFC 7714) and AES counter mode with HMAC-SHA1 (RFC 3711 section 4).

use aws_lc_rs::cipher::{self, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;

use portunus_rtp::Ssrc;

use crate::derive::SessionKeys;
use crate::error::Refused;
use crate::sys::{self, GcmKey};
use crate::{KeyError, Profile};

/// An expanded session key with its salt.
pub(crate) enum Transform {
    Gcm {
        key: GcmKey,
        salt: [u8; 12],
    },
    /// Boxed, so that the far more frequent GCM does not pay for its 1.7 KiB.
    Cm(Box<CounterMode>),
}

/// The keys of AES counter mode with HMAC-SHA1.
pub(crate) struct CounterMode {
    key: EncryptingKey,
    auth: hmac::Key,
    salt: [u8; 14],
}

/// The parts of a packet for both ciphers.
pub(crate) struct Packet<'a> {
    pub(crate) ssrc: Ssrc,
    /// The packet index: 48 bits (SRTP) or 31 bits (SRTCP).
    pub(crate) index: u64,
    /// The unencrypted bytes before the payload.
    pub(crate) header: &'a [u8],
    /// The bytes to encrypt in place.
    pub(crate) payload: &'a mut [u8],
    /// The data that GCM authenticates besides the payload.
    pub(crate) aad: &'a [u8],
    /// The data that HMAC-SHA1 authenticates after the payload: the roll-over counter or the SRTCP
    /// index.
    pub(crate) trailer: [u8; 4],
}

impl Transform {
    pub(crate) fn new(profile: Profile, keys: &SessionKeys) -> Result<Self, KeyError> {
        let cipher = keys
            .cipher
            .get(..profile.key_len())
            .ok_or(KeyError::Refused)?;
        match profile {
            Profile::AeadAes128Gcm | Profile::AeadAes256Gcm => {
                let [salt @ .., _, _] = keys.salt;
                let key = GcmKey::new(cipher).map_err(|Refused| KeyError::Refused)?;
                Ok(Transform::Gcm { key, salt })
            }
            Profile::Aes128CmSha1_80 | Profile::Aes128CmSha1_32 => {
                let key = UnboundCipherKey::new(&cipher::AES_128, cipher)
                    .and_then(EncryptingKey::ctr)
                    .map_err(|_| KeyError::Refused)?;
                let auth = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &keys.auth);
                Ok(Transform::Cm(Box::new(CounterMode {
                    key,
                    auth,
                    salt: keys.salt,
                })))
            }
        }
    }

    /// Encrypts the payload and writes its authentication tag to `tag`. A `tail`, which only GCM
    /// supports, is encrypted to the place before the tag.
    pub(crate) fn seal(
        &self,
        packet: Packet<'_>,
        tail: &[u8],
        tag: &mut [u8],
    ) -> Result<(), Refused> {
        match self {
            Transform::Gcm { key, salt } => {
                let nonce = gcm_nonce(*salt, packet.ssrc, packet.index);
                key.seal(&nonce, packet.aad, packet.payload, tail, tag)
            }
            Transform::Cm(keys) => {
                let CounterMode { key, auth, salt } = &**keys;
                counter_mode(key, *salt, packet.ssrc, packet.index, packet.payload)?;
                let sum = sha1(auth, [packet.header, packet.payload, &packet.trailer]);
                put(tag, sum.as_ref())
            }
        }
    }

    /// Prefetches the key for the next packet.
    #[inline]
    pub(crate) fn fetch(&self) {
        match self {
            Transform::Gcm { key, .. } => key.fetch(),
            Transform::Cm(keys) => sys::fetch(&**keys),
        }
    }

    /// Checks `tag` and decrypts the payload. A payload that is not authentic is undefined.
    pub(crate) fn open(&self, packet: Packet<'_>, tag: &[u8]) -> Result<(), Refused> {
        match self {
            Transform::Gcm { key, salt } => {
                let nonce = gcm_nonce(*salt, packet.ssrc, packet.index);
                key.open(&nonce, packet.aad, packet.payload, tag)
            }
            Transform::Cm(keys) => {
                let CounterMode { key, auth, salt } = &**keys;
                let sum = sha1(auth, [packet.header, packet.payload, &packet.trailer]);
                let expected = sum.as_ref().get(..tag.len()).ok_or(Refused)?;
                verify_slices_are_equal(expected, tag).map_err(|_| Refused)?;
                counter_mode(key, *salt, packet.ssrc, packet.index, packet.payload)
            }
        }
    }
}

/// Copies the leading bytes of `sum` that fit `tag`.
fn put(tag: &mut [u8], sum: &[u8]) -> Result<(), Refused> {
    tag.copy_from_slice(sum.get(..tag.len()).ok_or(Refused)?);
    Ok(())
}

/// Returns the nonce (RFC 7714 sections 8.1 and 9.1, which place SSRC and index alike).
fn gcm_nonce(salt: [u8; 12], ssrc: Ssrc, index: u64) -> [u8; 12] {
    let mask = (u128::from(ssrc.0) << 48) | u128::from(index & 0xFFFF_FFFF_FFFF);
    let [_, _, _, _, mask @ ..] = mask.to_be_bytes();
    let mut nonce = salt;
    for (byte, mask) in nonce.iter_mut().zip(mask) {
        *byte ^= mask;
    }
    nonce
}

/// Encrypts or decrypts (RFC 3711 section 4.1.1).
fn counter_mode(
    key: &EncryptingKey,
    salt: [u8; 14],
    ssrc: Ssrc,
    index: u64,
    payload: &mut [u8],
) -> Result<(), Refused> {
    let mask = (u128::from(ssrc.0) << 64) | (u128::from(index & 0xFFFF_FFFF_FFFF) << 16);
    let mut iv = mask.to_be_bytes();
    for (byte, salt) in iv.iter_mut().zip(salt) {
        *byte ^= salt;
    }
    let context = EncryptionContext::Iv128(FixedLength::from(iv));
    key.less_safe_encrypt(payload, context)
        .map(drop)
        .map_err(|_| Refused)
}

fn sha1(key: &hmac::Key, parts: [&[u8]; 3]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    context.sign()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use crate::tests::hex;

    /// RFC 3711 appendix B.2.
    #[test]
    fn the_keystream_of_rfc_3711() {
        let key = hex("2B7E151628AED2A6ABF7158809CF4F3C");
        let key =
            EncryptingKey::ctr(UnboundCipherKey::new(&cipher::AES_128, &key).unwrap()).unwrap();
        let salt = hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD").try_into().unwrap();
        let mut stream = vec![0; 1_044_512];
        counter_mode(&key, salt, Ssrc(0), 0, &mut stream).unwrap();
        let head = "E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB\
                    41E95B3BB0A2E8DD477901E4FCA894C0";
        let tail = "EC8CDF7398607CB0F2D21675EA9EA1E4362B7C3C6773516318A077D7FC5073AE\
                    6A2CC3787889374FBEB4C81B17BA6C44";
        assert_eq!(stream[..48], hex(head));
        assert_eq!(stream[stream.len() - 48..], hex(tail));
    }
}
