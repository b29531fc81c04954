//! A new authority in place of the one before, while nodes trust both.
//!
//! The key of the new authority has a certificate of its own, and one by the authority before, in
//! `cross.pem`. What it issues comes with the latter, so nodes that know only the authority before
//! take it, too. A node that renews its certificate gets the certificates of both.

use std::fs;
use std::io;
use std::path::PathBuf;

use openssl::x509::X509;

use super::issue::Authority;
use super::{AuthorityError, Folder, read, roots, write_private, write_whole};

impl Folder {
    /// Makes a new authority. Nodes trust both from their next renewal on.
    pub fn renew_authority(&self) -> Result<(), AuthorityError> {
        let before = self.authority()?;
        if self.authorities()?.len() > 1 {
            return Err(AuthorityError::Renewing(self.ca_path()));
        }
        let new = Authority::make()?;
        let cross = before.certify(&new)?;
        let mut both = new.certificate_pem()?;
        both.extend(before.certificate_pem()?);
        // For people, if something goes wrong.
        write_private(&self.0.join("ca.key.before"), &before.key_pem()?)?;
        write_whole(&self.cross_path(), &cross)?;
        write_whole(&self.ca_path(), &both)?;
        write_whole(&self.0.join("ca.key"), &new.key_pem()?)
    }

    /// Forgets the authority before. Nodes do so with their next renewal.
    pub fn forget_authority(&self) -> Result<(), AuthorityError> {
        self.authority()?;
        let all = self.authorities()?;
        let (Some(first), true) = (all.first(), all.len() > 1) else {
            return Err(AuthorityError::NotRenewing(self.ca_path()));
        };
        write_whole(&self.ca_path(), &first.to_pem()?)?;
        for path in [self.cross_path(), self.0.join("ca.key.before")] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(AuthorityError::File { path, error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the authorities that this node trusts, the present one first.
    pub(super) fn authorities(&self) -> Result<Vec<X509>, AuthorityError> {
        Ok(X509::stack_from_pem(&self.authorities_pem()?)?)
    }

    /// Returns the same as a PEM text.
    pub(crate) fn authorities_pem(&self) -> Result<Vec<u8>, AuthorityError> {
        read(&self.ca_path())
    }

    /// Takes the authorities that the issuing node trusts.
    pub(crate) fn trust(&self, authorities: &[u8]) -> Result<(), AuthorityError> {
        let path = self.ca_path();
        roots(authorities).map_err(|reason| AuthorityError::Content {
            path: path.clone(),
            reason,
        })?;
        match read(&path)? == authorities {
            true => Ok(()),
            false => write_whole(&path, authorities),
        }
    }

    /// Returns the certificate of the present authority by the one before, or `None` if nodes trust
    /// one authority only.
    pub(super) fn cross(&self) -> Result<Option<Vec<u8>>, AuthorityError> {
        match fs::read(self.cross_path()) {
            Ok(cross) => Ok(Some(cross)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuthorityError::File {
                path: self.cross_path(),
                error,
            }),
        }
    }

    /// Adds the certificate of the present authority by the one before to one that it has issued.
    pub(super) fn chained(&self, mut certificate: Vec<u8>) -> Result<Vec<u8>, AuthorityError> {
        certificate.extend(self.cross()?.unwrap_or_default());
        Ok(certificate)
    }

    fn ca_path(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    fn cross_path(&self) -> PathBuf {
        self.0.join("cross.pem")
    }
}

/// Returns whether `authority` has certified `other` as its successor. It certifies nodes by other
/// names.
pub(super) fn is_successor(other: &X509, authority: &X509) -> bool {
    let name = |of: &X509| of.subject_name().to_der().ok();
    let is_authority = name(other).is_some() && name(other) == name(authority);
    let key = authority.public_key();
    is_authority && key.is_ok_and(|key| other.verify(&key).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::authority::Request;
    use crate::id::NodeId;

    #[test]
    fn a_successor_is_certified_as_an_authority_by_the_authority_before() {
        let [before, new, other] = [(); 3].map(|()| Authority::make().unwrap());
        let cross = X509::from_pem(&before.certify(&new).unwrap()).unwrap();
        assert!(is_successor(&cross, before.certificate()));
        assert!(!is_successor(&cross, other.certificate()));
        let name = NodeId::new("a").unwrap();
        let request = Request::make(&name).unwrap();
        let node = before.issue(&name, &request.csr).unwrap();
        let node = X509::from_pem(&node).unwrap();
        assert!(!is_successor(&node, before.certificate()), "it is a node");
    }

    #[test]
    fn both_authorities_are_trusted_until_the_one_before_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| Folder::new(&place.path().join(name));
        let [a, b] = ["a", "b"].map(|name| NodeId::new(name).unwrap());
        at("a").init(&a).unwrap();
        at("a").issue(&b, &at("b")).unwrap();
        assert!(matches!(
            at("a").forget_authority(),
            Err(AuthorityError::NotRenewing(_))
        ));
        let stolen = at("b").identity().unwrap().fingerprint;
        at("a").renew_authority().unwrap();
        assert!(matches!(
            at("a").renew_authority(),
            Err(AuthorityError::Renewing(_))
        ));
        at("a").issue(&b, &at("later")).unwrap();
        let later = at("later").identity().unwrap();
        assert_eq!((later.chain.len(), later.roots.len()), (2, 2));
        // A node that has not renewed yet takes a list that the new authority has signed.
        at("a").revoke(&b, std::slice::from_ref(&stolen)).unwrap();
        let text = at("a").revocations().unwrap().text().unwrap();
        assert!(at("b").verified(&text).unwrap().has(&stolen));
        at("a").forget_authority().unwrap();
        at("a").issue(&b, &at("last")).unwrap();
        let last = at("last").identity().unwrap();
        assert_eq!((last.chain.len(), last.roots.len()), (1, 1));
        assert!(at("last").verified(&text).unwrap().has(&stolen));
        assert!(at("b").authorities().unwrap().len() == 1);
    }
}
