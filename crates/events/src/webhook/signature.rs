//! Signed bodies: a backend can check that events come from this server and are not old.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::sign::Signer;

/// The header with the signature.
pub(super) const HEADER: &str = "x-portunus-signature";

/// Signs by HMAC-SHA256.
pub(super) struct Signatures(PKey<Private>);

impl Signatures {
    pub(super) fn new(secret: &str) -> Result<Self, ErrorStack> {
        PKey::hmac(secret.as_bytes()).map(Signatures)
    }

    /// Returns the header for a body that is sent now.
    pub(super) fn of(&self, body: &[u8]) -> Result<String, ErrorStack> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        self.at(since.unwrap_or_default().as_secs(), body)
    }

    /// Returns `t=SECONDS,v1=HEX`. It signs the seconds, a dot and the body.
    fn at(&self, seconds: u64, body: &[u8]) -> Result<String, ErrorStack> {
        let mut signer = Signer::new(MessageDigest::sha256(), &self.0)?;
        signer.update(format!("{seconds}.").as_bytes())?;
        signer.update(body)?;
        let mut value = format!("t={seconds},v1=");
        for byte in signer.sign_to_vec()? {
            // Text can always be written to.
            let _ = write!(value, "{byte:02x}");
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn is_what_others_compute() {
        let signatures = Signatures::new("s3cret").unwrap();
        // printf '%s' '1700000000.[{"type":1}]' | openssl dgst -sha256 -hmac s3cret
        let expected =
            "t=1700000000,v1=8fe8cfb9bd94945bc2ac84fe7acd98001f216213b5ce915aa91fc925bf6859d1";
        assert_eq!(
            signatures.at(1_700_000_000, br#"[{"type":1}]"#).unwrap(),
            expected
        );
    }
}
