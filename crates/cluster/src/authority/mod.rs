//! The certificates of a cluster: its authority, the nodes' certificates, and invitations.
//!
//! A folder holds `ca.pem`, `node.pem` and `node.key`. That of the node where the cluster was made
//! also holds `ca.key` and the open invitations, in `invitations`.

mod invitation;
mod issue;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openssl::error::ErrorStack;
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::id::{IdError, NodeId};

pub use invitation::Invitation;
pub(crate) use invitation::hexadecimal;
use issue::Authority;
pub(crate) use issue::Request;

/// Who a node is to the others.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name in its certificate.
    pub id: NodeId,
    /// The certificate.
    pub(crate) certificate: CertificateDer<'static>,
    /// Its key.
    pub(crate) key: Arc<PrivateKeyDer<'static>>,
    /// The authority of the cluster.
    pub(crate) roots: Arc<RootCertStore>,
    /// The SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
}

/// The certificates cannot be used, or made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file does not hold what it should.
    #[error("cannot use {}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is a certificate already.
    #[error("{} is there already: this node has a certificate", .0.display())]
    Exists(PathBuf),
    /// This is not the node where the cluster was made.
    #[error("{} is missing: invitations are made on the node where the cluster was made", .0.display())]
    NoAuthority(PathBuf),
    /// The invitation is none.
    #[error("this is no invitation: {0}")]
    Invitation(String),
    /// The invitation is not known, was used, or has expired.
    #[error("this invitation is not known here, was used, or has expired")]
    Unknown,
    /// The name cannot be that of a node.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The library cannot make a certificate.
    #[error("a certificate cannot be made: {0}")]
    Library(#[from] ErrorStack),
}

/// The folder of the certificates.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// Returns the folder at this path. It need not exist.
    pub fn new(path: &Path) -> Self {
        Folder(path.to_owned())
    }

    /// Makes an authority, and this node's certificate.
    pub fn init(&self, name: &NodeId) -> Result<(), AuthorityError> {
        let (ca, ca_key) = (self.0.join("ca.pem"), self.0.join("ca.key"));
        for path in [&ca, &ca_key, &self.0.join("node.pem")] {
            if path.exists() {
                return Err(AuthorityError::Exists(path.clone()));
            }
        }
        let authority = Authority::make()?;
        let request = Request::make(name)?;
        let certificate = authority.issue(name, &request.csr)?;
        write_private(&ca_key, &authority.key_pem()?)?;
        self.install(&authority.certificate_pem()?, &certificate, &request.key)
    }

    /// Writes the certificate of the authority, this node's, and its key.
    pub(crate) fn install(
        &self,
        ca: &[u8],
        certificate: &[u8],
        key: &[u8],
    ) -> Result<(), AuthorityError> {
        write_private(&self.0.join("ca.pem"), ca)?;
        write_private(&self.0.join("node.key"), key)?;
        write_private(&self.0.join("node.pem"), certificate)
    }

    /// Reads this node's certificate.
    pub fn identity(&self) -> Result<Identity, AuthorityError> {
        let path = self.0.join("node.pem");
        let wrong = |path: &Path, reason: &dyn std::fmt::Display| AuthorityError::Content {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let pem = read(&path)?;
        let certificate =
            CertificateDer::from_pem_slice(&pem).map_err(|error| wrong(&path, &error))?;
        let id = name_in(&certificate).ok_or_else(|| wrong(&path, &"it names no node"))?;
        let key_path = self.0.join("node.key");
        let key = PrivateKeyDer::from_pem_slice(&read(&key_path)?)
            .map_err(|error| wrong(&key_path, &error))?;
        let ca_path = self.0.join("ca.pem");
        let roots = roots(&read(&ca_path)?).map_err(|reason| wrong(&ca_path, &reason))?;
        Ok(Identity {
            id,
            fingerprint: fingerprint(&certificate),
            certificate,
            key: Arc::new(key),
            roots: Arc::new(roots),
        })
    }

    /// Makes a key and a certificate for a node in another folder, which has none yet.
    pub fn issue(&self, name: &NodeId, to: &Folder) -> Result<(), AuthorityError> {
        let authority = self.authority()?;
        let there = to.0.join("node.pem");
        if there.exists() {
            return Err(AuthorityError::Exists(there));
        }
        let request = Request::make(name)?;
        let certificate = authority.issue(name, &request.csr)?;
        to.install(&authority.certificate_pem()?, &certificate, &request.key)
    }

    /// Makes an invitation for a node, which can be used once. `address` is this node's control
    /// port, and `issuer` its name.
    pub fn invite(
        &self,
        name: &NodeId,
        issuer: &NodeId,
        address: String,
        valid: Duration,
    ) -> Result<Invitation, AuthorityError> {
        // Fails early if this is not the node where the cluster was made.
        self.authority()?;
        let ca = read(&self.0.join("ca.pem"))?;
        let ca = String::from_utf8_lossy(&ca).into_owned();
        let invitation = Invitation::new(name, issuer, address, ca)?;
        let expires = SystemTime::now() + valid;
        let expires = expires
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let path = self.invitation_path(&invitation.secret);
        write_private(&path, format!("{name} {expires}\n").as_bytes())?;
        Ok(invitation)
    }

    /// Uses an invitation up, and issues a certificate for its node.
    pub(crate) fn redeem(&self, secret: &str, csr: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        let authority = self.authority()?;
        let path = self.invitation_path(secret);
        let text = fs::read_to_string(&path).map_err(|_| AuthorityError::Unknown)?;
        // Who removes it may use it: two at once cannot.
        fs::remove_file(&path).map_err(|_| AuthorityError::Unknown)?;
        let (name, expires) = text.trim().split_once(' ').ok_or(AuthorityError::Unknown)?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if expires
            .parse::<u64>()
            .is_ok_and(|expires| now.as_secs() < expires)
        {
            authority.issue(&NodeId::new(name)?, csr)
        } else {
            Err(AuthorityError::Unknown)
        }
    }

    /// Returns the file of an invitation. Its name has a hash, since the folder is in backups.
    fn invitation_path(&self, secret: &str) -> PathBuf {
        let hash = hexadecimal(&Sha256::digest(secret));
        self.0.join("invitations").join(hash)
    }

    fn authority(&self) -> Result<Authority, AuthorityError> {
        let path = self.0.join("ca.key");
        if !path.exists() {
            return Err(AuthorityError::NoAuthority(path));
        }
        Authority::read(&read(&self.0.join("ca.pem"))?, &read(&path)?)
    }
}

/// Returns the authorities in a PEM text.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    roots.add(certificate).map_err(|error| error.to_string())?;
    Ok(roots)
}

/// Returns the name of the node in a certificate.
pub(crate) fn name_in(certificate: &CertificateDer<'_>) -> Option<NodeId> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let name = parsed.valid_dns_names().next()?;
    NodeId::new(name).ok()
}

/// Returns the SHA-256 of a certificate, in hexadecimal.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    hexadecimal(&Sha256::digest(certificate))
}

fn read(path: &Path) -> Result<Vec<u8>, AuthorityError> {
    fs::read(path).map_err(|error| AuthorityError::File {
        path: path.to_owned(),
        error,
    })
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, content: &[u8]) -> Result<(), AuthorityError> {
    let write = || {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(path)?.write_all(content)
    };
    write().map_err(|error| AuthorityError::File {
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    #[test]
    fn a_certificate_is_issued_into_the_folder_of_its_node() {
        let place = tempfile::tempdir().unwrap();
        let [folder, other] = ["a", "b"].map(|name| Folder::new(&place.path().join(name)));
        let refused = folder.issue(&node("b"), &other);
        assert!(matches!(refused, Err(AuthorityError::NoAuthority(_))));
        folder.init(&node("a")).unwrap();
        folder.issue(&node("b"), &other).unwrap();
        assert_eq!(other.identity().unwrap().id.as_str(), "b");
        let again = folder.issue(&node("b"), &other);
        assert!(matches!(again, Err(AuthorityError::Exists(_))));
        let refused = other.issue(&node("c"), &folder);
        assert!(matches!(refused, Err(AuthorityError::NoAuthority(_))));
    }

    #[test]
    fn an_invitation_is_for_one_node_and_can_be_used_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(&place.path().join("a/cluster"));
        assert!(folder.identity().is_err());
        folder.init(&node("a")).unwrap();
        assert!(matches!(
            folder.init(&node("a")),
            Err(AuthorityError::Exists(_))
        ));
        let own = folder.identity().unwrap();
        assert_eq!((own.id.as_str(), own.fingerprint.len()), ("a", 64));
        let hour = Duration::from_secs(3_600);
        let invite = |valid| folder.invite(&node("b"), &node("a"), "a:7900".to_owned(), valid);
        let invitation = invite(hour).unwrap();
        let again: Invitation = invitation.to_string().parse().unwrap();
        assert_eq!(again.secret, invitation.secret);
        // The name comes from the invitation, whatever the other side asks for.
        let request = Request::make(&node("c")).unwrap();
        let certificate = folder.redeem(&again.secret, &request.csr).unwrap();
        let used = folder.redeem(&again.secret, &request.csr);
        assert!(matches!(used, Err(AuthorityError::Unknown)));
        let other = Folder::new(&place.path().join("b"));
        other
            .install(again.ca.as_bytes(), &certificate, &request.key)
            .unwrap();
        assert_eq!(other.identity().unwrap().id.as_str(), "b");
        let refused = other.invite(&node("c"), &node("b"), "b:1".to_owned(), hour);
        assert!(matches!(refused, Err(AuthorityError::NoAuthority(_))));
        let expired = invite(Duration::ZERO).unwrap();
        let late = folder.redeem(&expired.secret, &request.csr);
        assert!(matches!(late, Err(AuthorityError::Unknown)));
        assert!(
            folder
                .redeem(&invite(hour).unwrap().secret, b"no request")
                .is_err()
        );
        for wrong in ["", "ptk1.", "ptk1.!!", "ptk1.e30", &"x".repeat(20_000)] {
            assert!(wrong.parse::<Invitation>().is_err(), "{wrong:.20}");
        }
    }
}
