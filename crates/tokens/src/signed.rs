//! Tokens that list what they open, signed with a secret that their issuer and the server share.
//!
//! A token is `EXPIRY,REALM[,DESCRIPTOR…]:SIGNATURE`. It expires at EXPIRY, in seconds since 1970.
//! REALM is `janus` for the API, or the package name of a plugin. A DESCRIPTOR names what it opens
//! there; in the realm of the API, `right=NAME` gives a right. SIGNATURE is the HMAC-SHA1 of the
//! text before the colon, in base64.

use openssl::base64;
use openssl::hash::MessageDigest;
use openssl::memcmp;
use openssl::pkey::PKey;
use openssl::sign::Signer;

use crate::{Right, Rights, TokenFault};

/// The realm of the API itself.
pub(crate) const API: &str = "janus";

/// A token with a valid signature that has not expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignedToken<'a> {
    realm: &'a str,
    descriptors: &'a str,
}

impl<'a> SignedToken<'a> {
    /// Whether `token` looks like a signed one.
    pub(crate) fn is_like(token: &str) -> bool {
        token.contains(':') && token.contains(',')
    }

    /// Checks a token against the secret at `now`, in seconds since 1970.
    pub(crate) fn verify_at(token: &'a str, secret: &str, now: u64) -> Result<Self, TokenFault> {
        let malformed = TokenFault::Malformed("it is not EXPIRY,REALM:SIGNATURE");
        let (data, signature) = token.rsplit_once(':').ok_or(malformed)?;
        let (expiry, rest) = data.split_once(',').ok_or(malformed)?;
        let expiry = expiry.parse::<u64>().map_err(|_| malformed)?;
        let shown = base64::decode_block(signature).map_err(|_| malformed)?;
        let known = signature_of(data, secret).ok_or(TokenFault::Signature)?;
        if shown.len() != known.len() || !memcmp::eq(&shown, &known) {
            return Err(TokenFault::Signature);
        }
        if expiry <= now {
            return Err(TokenFault::Expired);
        }
        let (realm, descriptors) = rest.split_once(',').unwrap_or((rest, ""));
        Ok(SignedToken { realm, descriptors })
    }

    /// Whether it is for `realm`.
    pub(crate) fn is_for(&self, realm: &str) -> bool {
        self.realm == realm
    }

    /// Whether it opens `descriptor`.
    pub(crate) fn opens(&self, descriptor: &str) -> bool {
        self.descriptors.split(',').any(|known| known == descriptor)
    }
}

impl SignedToken<'_> {
    /// The rights that it gives.
    pub(crate) fn rights(&self) -> Rights {
        let rights = self.descriptors.split(',');
        let rights = rights.filter_map(|descriptor| descriptor.strip_prefix("right="));
        rights.filter_map(Right::from_name).collect()
    }
}

fn signature_of(data: &str, secret: &str) -> Option<Vec<u8>> {
    let key = PKey::hmac(secret.as_bytes()).ok()?;
    let mut signer = Signer::new(MessageDigest::sha1(), &key).ok()?;
    signer.sign_oneshot_to_vec(data.as_bytes()).ok()
}

/// Signs a token, for tests.
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test fails by a panic")]
pub(crate) fn sign(data: &str, secret: &str) -> String {
    let signature = signature_of(data, secret).expect("a signature");
    format!("{data}:{}", base64::encode_block(&signature))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn the_signature_is_that_of_others() {
        // openssl dgst -sha1 -hmac key -binary, of the data before the colon
        assert_eq!(
            sign("The quick brown fox jumps over the lazy dog", "key"),
            "The quick brown fox jumps over the lazy dog:3nybhbi3iqa8ino29wqQcBydtNk="
        );
    }

    #[test]
    fn a_token_opens_what_it_names_until_its_time_is_over() {
        let token = sign("1000,janus,janus.plugin.echotest,room=5", "s");
        let opened = SignedToken::verify_at(&token, "s", 999).unwrap();
        assert!(opened.is_for(API) && !opened.is_for("other"));
        assert!(opened.opens("room=5") && opened.opens("janus.plugin.echotest"));
        assert!(!opened.opens("room=55") && !opened.opens("janus"));
        let refused = |token: &str, secret, now| SignedToken::verify_at(token, secret, now).err();
        assert_eq!(refused(&token, "s", 1_000), Some(TokenFault::Expired));
        assert_eq!(refused(&token, "t", 999), Some(TokenFault::Signature));
        let other = token.replacen("room=5", "room=6", 1);
        assert_eq!(refused(&other, "s", 999), Some(TokenFault::Signature));
    }

    #[test]
    fn a_token_gives_the_rights_that_it_names() {
        let rights = |data: &str| {
            let token = sign(data, "s");
            SignedToken::verify_at(&token, "s", 0).unwrap().rights()
        };
        assert_eq!(
            rights("9,janus,right=record,p,right=x"),
            [Right::Record].into_iter().collect()
        );
        assert_eq!(rights("9,janus,record,right= forward"), Rights::NONE);
    }

    #[test]
    fn nonsense_opens_nothing() {
        for text in [
            "",
            ":",
            "1000:",
            "x,janus:AAAA",
            "1000,janus:%%%",
            "1000,janus",
        ] {
            assert!(SignedToken::verify_at(text, "s", 0).is_err(), "{text}");
        }
    }
}
