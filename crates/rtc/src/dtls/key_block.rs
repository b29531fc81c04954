//! The keys of the DTLS 1.2 record layer (RFC 5246 sections 5 and 6.3, RFC 5288).

use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384};
use openssl::ssl::SslRef;

use super::randoms::Randoms;

/// The largest key block: two AES-256 keys and two implicit nonces of 4 bytes.
const MAX_BLOCK: usize = 2 * 32 + 2 * 4;

/// The keys of one direction.
#[derive(Clone, Copy)]
pub(crate) struct DirectionKeys {
    pub(crate) key: [u8; 32],
    /// The used bytes of `key`: 16 or 32.
    pub(crate) key_len: usize,
    /// The implicit part of the nonce.
    pub(crate) iv: [u8; 4],
}

/// The keys of both directions.
pub(crate) struct KeyBlock {
    pub(crate) client: DirectionKeys,
    pub(crate) server: DirectionKeys,
}

/// The result of a handshake, from which all keys are derived.
pub(crate) struct Secrets {
    hash: hmac::Algorithm,
    /// The bytes of the suite's AES key.
    key_len: usize,
    master: [u8; 48],
    server_random: [u8; 32],
    client_random: [u8; 32],
}

impl Secrets {
    /// Takes the secrets from AWS-LC. Returns `None` for a suite without AES-GCM.
    pub(super) fn of(ssl: &SslRef, randoms: &Randoms) -> Option<Self> {
        let name = ssl.current_cipher()?.name();
        let (hash, key_len) = if name.ends_with("AES128-GCM-SHA256") {
            (HMAC_SHA256, 16)
        } else if name.ends_with("AES256-GCM-SHA384") {
            (HMAC_SHA384, 32)
        } else {
            return None;
        };
        let mut secrets = Self {
            hash,
            key_len,
            master: [0; 48],
            server_random: randoms.server?,
            client_random: randoms.client?,
        };
        let len = ssl.session()?.master_key(&mut secrets.master);
        (len == secrets.master.len()).then_some(secrets)
    }

    /// Returns the keys of the record layer.
    pub(crate) fn key_block(&self) -> Option<KeyBlock> {
        let key_len = self.key_len;
        let mut block = [0; MAX_BLOCK];
        let block = block.get_mut(..2 * key_len + 8)?;
        let seed = [&self.server_random[..], &self.client_random[..]];
        prf(self.hash, &self.master, b"key expansion", seed, block);
        let (keys, ivs) = block.split_at(2 * key_len);
        let (client_iv, server_iv) = ivs.split_first_chunk::<4>()?;
        let (client, server) = keys.split_at(key_len);
        let direction = |key: &[u8], iv: [u8; 4]| {
            let mut padded = [0; 32];
            padded.get_mut(..key_len)?.copy_from_slice(key);
            Some(DirectionKeys {
                key: padded,
                key_len,
                iv,
            })
        };
        Some(KeyBlock {
            client: direction(client, *client_iv)?,
            server: direction(server, *server_iv.first_chunk()?)?,
        })
    }
}

/// The pseudo-random function of TLS 1.2.
fn prf(
    hash: hmac::Algorithm,
    secret: &[u8],
    label: &[u8],
    [first, second]: [&[u8]; 2],
    out: &mut [u8],
) {
    let key = hmac::Key::new(hash, secret);
    let sign = |parts: &[&[u8]]| {
        let mut context = hmac::Context::with_key(&key);
        for part in parts {
            context.update(part);
        }
        context.sign()
    };
    let mut a = sign(&[label, first, second]);
    for chunk in out.chunks_mut(hash.digest_algorithm().output_len()) {
        let block = sign(&[a.as_ref(), label, first, second]);
        for (byte, value) in chunk.iter_mut().zip(block.as_ref()) {
            *byte = *value;
        }
        a = sign(&[a.as_ref()]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    /// The SHA-256 test vector of the TLS working group's list for the PRF of TLS 1.2.
    #[test]
    fn the_prf_of_tls_1_2() {
        let hex = |s: &str| -> Vec<u8> {
            (0..s.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap())
                .collect()
        };
        let mut out = [0; 100];
        prf(
            HMAC_SHA256,
            &hex("9bbe436ba940f017b17652849a71db35"),
            b"test label",
            [&hex("a0ba9f936cda3118"), &hex("27a6f796ffd5198c")],
            &mut out,
        );
        let expected = "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a\
                        6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab\
                        4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701\
                        87347b66";
        assert_eq!(out.to_vec(), hex(expected));
    }
}
