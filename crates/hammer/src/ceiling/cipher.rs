//! Bare calls of the crypto library, with only the parts of SRTP that the packet's form requires.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;

use crate::traffic::Profile;

/// The key of one viewer.
#[derive(Debug)]
pub(super) enum Cipher {
    Gcm(Box<LessSafeKey>),
    Cm(Box<(EncryptingKey, hmac::Key)>),
}

impl Cipher {
    /// Makes the key of viewer `number`.
    pub(super) fn new(profile: Profile, number: u32) -> Result<Self, Unspecified> {
        let mut key = [0x5a; 16];
        if let Some(start) = key.first_chunk_mut() {
            *start = number.to_be_bytes();
        }
        Ok(match profile {
            Profile::Gcm => Cipher::Gcm(Box::new(LessSafeKey::new(UnboundKey::new(
                &AES_128_GCM,
                &key,
            )?))),
            Profile::Cm => {
                let encryption = EncryptingKey::ctr(UnboundCipherKey::new(&AES_128, &key)?)?;
                let authentication =
                    hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &[0xa5; 20]);
                Cipher::Cm(Box::new((encryption, authentication)))
            }
        })
    }

    /// Seals `payload` into `sealed`, which is longer by the tag. `header` is authenticated.
    pub(super) fn seal(
        &self,
        index: u64,
        header: &[u8],
        payload: &[u8],
        sealed: &mut [u8],
    ) -> Result<(), Unspecified> {
        match self {
            Cipher::Gcm(key) => {
                let [a, b, c, d, e, f, g, h] = index.to_be_bytes();
                let nonce = Nonce::assume_unique_for_key([0, 0, 0, 0, a, b, c, d, e, f, g, h]);
                // From the shared payload directly into the datagram.
                key.seal_in_place_scatter(nonce, Aad::from(header), &mut [], payload, sealed)
            }
            Cipher::Cm(keys) => {
                let (encryption, authentication) = &**keys;
                let (body, tag) = sealed
                    .split_at_mut_checked(payload.len())
                    .ok_or(Unspecified)?;
                body.copy_from_slice(payload);
                let iv = (u128::from(index) << 16).to_be_bytes();
                encryption
                    .less_safe_encrypt(body, EncryptionContext::Iv128(FixedLength::from(iv)))?;
                let mut context = hmac::Context::with_key(authentication);
                context.update(header);
                context.update(body);
                context.update(&[0; 4]);
                let sum = context.sign();
                tag.copy_from_slice(sum.as_ref().get(..tag.len()).ok_or(Unspecified)?);
                Ok(())
            }
        }
    }
}
