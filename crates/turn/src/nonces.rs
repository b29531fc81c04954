//! Nonces that the server can check without storing them.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::{constant_time, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The lifetime of a nonce in seconds. RFC 8656 section 5 recommends at most an hour.
const LIFETIME: u64 = 600;

/// The bytes of the HMAC in a nonce.
const TAG: usize = 12;

/// Makes and checks nonces. Each contains its expiry, and is valid for one client only.
#[derive(Debug)]
pub(crate) struct Nonces {
    key: hmac::Key,
}

impl Nonces {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        Nonces { key }
    }

    /// Makes a nonce for a client. `unix` is the time in seconds since 1970.
    pub(crate) fn make(&self, client: SocketAddr, unix: u64) -> String {
        let expiry = expiry_bytes(unix.saturating_add(LIFETIME));
        let mut nonce = expiry.to_vec();
        nonce.extend(self.tag(client, expiry));
        STANDARD_NO_PAD.encode(nonce)
    }

    /// Returns whether a nonce belongs to this client and is still valid.
    pub(crate) fn accepts(&self, nonce: &str, client: SocketAddr, unix: u64) -> bool {
        let Ok(bytes) = STANDARD_NO_PAD.decode(nonce) else {
            return false;
        };
        let Some((&expiry, tag)) = bytes.split_first_chunk::<4>() else {
            return false;
        };
        let is_ours = constant_time::verify_slices_are_equal(tag, &self.tag(client, expiry));
        is_ours.is_ok() && unix <= u64::from(u32::from_be_bytes(expiry))
    }

    fn tag(&self, client: SocketAddr, expiry: [u8; 4]) -> [u8; TAG] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&expiry);
        match client.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&client.port().to_be_bytes());
        let tag = context.sign();
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

/// The last second in 32 bits is in the year 2106.
fn expiry_bytes(unix: u64) -> [u8; 4] {
    u32::try_from(unix).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_nonce_is_good_for_its_client_until_it_expires() {
        let nonces = Nonces::new([7; 32]);
        let client = "192.0.2.1:1000".parse().unwrap();
        let nonce = nonces.make(client, 1_000);
        assert!(nonces.accepts(&nonce, client, 1_000 + LIFETIME));
        assert!(!nonces.accepts(&nonce, client, 1_001 + LIFETIME));
        assert!(!nonces.accepts(&nonce, "192.0.2.1:1001".parse().unwrap(), 1_000));
        assert!(!nonces.accepts(&nonce, "192.0.2.2:1000".parse().unwrap(), 1_000));
        assert!(!Nonces::new([8; 32]).accepts(&nonce, client, 1_000));
    }

    #[test]
    fn nonsense_is_no_nonce() {
        let nonces = Nonces::new([7; 32]);
        let client = "192.0.2.1:1000".parse().unwrap();
        let nonce = nonces.make(client, 1_000);
        for wrong in [
            "",
            "AAAA",
            "AAAAAA",
            "ä",
            &nonce[1..],
            &format!("{nonce}AA"),
        ] {
            assert!(!nonces.accepts(wrong, client, 1_000), "{wrong}");
        }
    }
}
