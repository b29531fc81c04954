//! The list of revoked certificates, signed by the authority.
//!
//! It is written where the key of the authority is. Nodes pass it on, so it reaches all of them
//! without the bus, and nobody else can change it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::sign::{Signer, Verifier};
use openssl::x509::X509;
use serde::{Deserialize, Serialize};

use super::succession::is_successor;
use crate::id::NodeId;

/// The most certificates of a list, so that it fits into one frame. Expired ones are left out.
const MOST: usize = 250;

/// The longest text in bytes.
const LONGEST: usize = 62_000;

/// What precedes the list where it is signed, so that nothing else that the authority signs is one.
const PURPOSE: &[u8] = b"portunus revocations 1\n";

/// A revoked certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revoked {
    /// The name in it.
    pub(super) node: NodeId,
    /// Its SHA-256, in hexadecimal.
    pub(super) fingerprint: String,
    /// When it expires, in seconds since 1970.
    pub(super) until: u64,
}

/// The list, as it is signed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct List {
    /// A later list has a higher number.
    number: u64,
    revoked: Vec<Revoked>,
}

/// The list with its signature.
#[derive(Debug, Serialize, Deserialize)]
struct Signed {
    /// The list (JSON), in base64.
    list: String,
    /// The signature of the authority, in base64.
    signature: String,
    /// The certificate (PEM) of that authority by the one before, for nodes that know only the
    /// latter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// The certificates that are revoked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Revocations {
    list: List,
    fingerprints: BTreeSet<String>,
    /// The signed list, as nodes pass it on. Empty if nothing was ever revoked.
    text: Bytes,
}

/// A list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RevocationError {
    /// It is too long.
    #[error("a list of revoked certificates of {0} bytes, and 62,000 are allowed")]
    Long(usize),
    /// It is not the expected JSON.
    #[error("no list of revoked certificates: {0}")]
    Malformed(String),
    /// The authority of this cluster has not signed it.
    #[error("a list of revoked certificates is not signed by the authority of this cluster")]
    Signature,
    /// It is full.
    #[error("250 certificates are revoked and have not expired: make the cluster anew")]
    Full,
    /// The library cannot sign or verify.
    #[error(transparent)]
    Library(#[from] ErrorStack),
}

impl Revocations {
    /// Reads a signed list.
    pub(crate) fn read(text: &[u8], authorities: &[X509]) -> Result<Self, RevocationError> {
        if text.len() > LONGEST {
            return Err(RevocationError::Long(text.len()));
        }
        let malformed =
            |error: &dyn std::fmt::Display| RevocationError::Malformed(error.to_string());
        let signed: Signed = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
        let list = STANDARD
            .decode(&signed.list)
            .map_err(|error| malformed(&error))?;
        let signature = STANDARD.decode(&signed.signature);
        let signature = signature.map_err(|error| malformed(&error))?;
        let by = signed.by.as_deref();
        let by = by.map(|by| X509::from_pem(by.as_bytes())).transpose()?;
        let by = by.filter(|by| authorities.iter().any(|it| is_successor(by, it)));
        let mut is_signed = false;
        for authority in authorities.iter().chain(&by) {
            let key = authority.public_key()?;
            let mut verifier = Verifier::new(MessageDigest::sha256(), &key)?;
            verifier.update(PURPOSE)?;
            verifier.update(&list)?;
            // A signature that cannot be read is no signature either.
            is_signed |= verifier.verify(&signature).unwrap_or(false);
        }
        if !is_signed {
            return Err(RevocationError::Signature);
        }
        let list: List = serde_json::from_slice(&list).map_err(|error| malformed(&error))?;
        Ok(Self::of(list, Bytes::copy_from_slice(text)))
    }

    /// Returns this list with further certificates and without those that have expired, signed. `by`
    /// is the certificate (PEM) of the authority by the one before, if there is one.
    pub(super) fn with(
        &self,
        more: Vec<Revoked>,
        now: u64,
        key: &PKey<Private>,
        by: Option<String>,
    ) -> Result<Self, RevocationError> {
        let kept = self.list.revoked.iter().filter(|it| it.until > now);
        let kept = kept.filter(|it| more.iter().all(|new| new.fingerprint != it.fingerprint));
        let mut revoked: Vec<Revoked> = kept.cloned().collect();
        revoked.extend(more);
        if revoked.len() > MOST {
            return Err(RevocationError::Full);
        }
        let list = List {
            // After the loss of a list the next one is later all the same.
            number: now.max(self.list.number.saturating_add(1)),
            revoked,
        };
        let malformed = |error: serde_json::Error| RevocationError::Malformed(error.to_string());
        let bytes = serde_json::to_vec(&list).map_err(malformed)?;
        let mut signer = Signer::new(MessageDigest::sha256(), key)?;
        signer.update(PURPOSE)?;
        signer.update(&bytes)?;
        let signed = Signed {
            list: STANDARD.encode(&bytes),
            signature: STANDARD.encode(signer.sign_to_vec()?),
            by,
        };
        let text = serde_json::to_vec(&signed).map_err(malformed)?;
        Ok(Self::of(list, text.into()))
    }

    fn of(list: List, text: Bytes) -> Self {
        let fingerprints = list.revoked.iter().map(|it| it.fingerprint.clone());
        Self {
            fingerprints: fingerprints.collect(),
            list,
            text,
        }
    }

    /// Returns whether the certificate with this fingerprint is revoked.
    pub(crate) fn has(&self, fingerprint: &str) -> bool {
        self.fingerprints.contains(fingerprint)
    }

    /// Returns whether it is later than another list.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        self.list.number > other.list.number
    }

    /// Returns the signed list, or `None` if nothing was ever revoked.
    pub(crate) fn text(&self) -> Option<Bytes> {
        (!self.text.is_empty()).then(|| self.text.clone())
    }

    /// Returns the number of revoked certificates.
    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::super::issue::Authority;
    use super::*;

    fn revoked(fingerprint: &str, until: u64) -> Revoked {
        Revoked {
            node: NodeId::new("b").unwrap(),
            fingerprint: fingerprint.to_owned(),
            until,
        }
    }

    #[test]
    fn only_the_authority_makes_a_list_and_a_later_one_replaces_it() {
        let [ours, other] = [(); 2].map(|()| Authority::make().unwrap());
        let none = Revocations::default();
        assert!(none.text().is_none());
        let first = none.with(vec![revoked("aa", 2_000)], 1_000, ours.key(), None);
        let first = first.unwrap();
        let text = first.text().unwrap();
        let read = Revocations::read(&text, std::slice::from_ref(ours.certificate())).unwrap();
        assert!(read.has("aa") && !read.has("bb") && read.is_after(&none));
        let foreign = Revocations::read(&text, std::slice::from_ref(other.certificate()));
        assert!(matches!(foreign, Err(RevocationError::Signature)));
        // The clock may have gone back, and a certificate is named twice.
        let more = vec![revoked("aa", 2_000), revoked("bb", 3_000)];
        let second = read.with(more, 900, ours.key(), None).unwrap();
        assert!(second.is_after(&first) && second.has("bb"));
        assert_eq!(second.len(), 2);
        // Expired ones are left out.
        let third = second.with(Vec::new(), 2_500, ours.key(), None).unwrap();
        assert!(third.has("bb") && !third.has("aa"));
    }

    #[test]
    fn a_full_list_fits_into_a_frame_and_malformed_ones_are_refused() {
        let authority = Authority::make().unwrap();
        let name = NodeId::new(&"n".repeat(63)).unwrap();
        let many = |count: usize| {
            let all = (0..count).map(|number| Revoked {
                node: name.clone(),
                fingerprint: format!("{number:064x}"),
                until: 4_000_000_000,
            });
            Revocations::default().with(all.collect(), 1_800_000_000, authority.key(), None)
        };
        let full = many(MOST).unwrap();
        let text = full.text().unwrap();
        assert!(text.len() <= LONGEST, "{}", text.len());
        assert!(Revocations::read(&text, std::slice::from_ref(authority.certificate())).is_ok());
        assert!(matches!(many(MOST + 1), Err(RevocationError::Full)));
        for wrong in [
            &b""[..],
            b"{}",
            br#"{"list":"!","signature":""}"#,
            br#"{"list":"e30=","signature":"e30="}"#,
            &vec![b' '; LONGEST + 1],
        ] {
            assert!(
                Revocations::read(wrong, std::slice::from_ref(authority.certificate())).is_err()
            );
        }
    }
}
