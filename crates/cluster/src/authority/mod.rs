//! The certificates of a cluster: its authority, the nodes' certificates, and invitations.
//!
//! A folder holds `ca.pem`, with the authorities that its node trusts, `node.pem`, `node.key`, the list of revoked certificates in
//! `revoked.json`, and the inviting node in `issuer`. That of the node where the cluster was made
//! also holds `ca.key`, the open invitations in `invitations`, and in `issued` a line for each
//! certificate.

mod invitation;
mod issue;
mod revocation;
mod succession;

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
pub(crate) use issue::Authority;
pub(crate) use issue::Request;
pub use revocation::RevocationError;
pub(crate) use revocation::Revocations;
use revocation::Revoked;

/// Who a node is to the others.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name in its certificate.
    pub id: NodeId,
    /// The certificate, and that of its authority by the authority before, if there is one.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub(crate) key: Arc<PrivateKeyDer<'static>>,
    /// The authority of the cluster.
    pub(crate) roots: Arc<RootCertStore>,
    /// The SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
    /// When the certificate expires, in seconds since 1970.
    pub expires: u64,
}

/// The node that has issued a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Its name.
    pub node: NodeId,
    /// `HOST:PORT` of its control port.
    pub address: String,
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
    /// The authority was renewed, and the one before is still trusted.
    #[error("{} has two authorities: forget the one before first", .0.display())]
    Renewing(PathBuf),
    /// Only one authority is trusted.
    #[error("{} has one authority only", .0.display())]
    NotRenewing(PathBuf),
    /// There is a certificate already.
    #[error("{} is there already: this node has a certificate", .0.display())]
    Exists(PathBuf),
    /// This is not the node where the cluster was made.
    #[error("{} is missing: invitations are made on the node where the cluster was made", .0.display())]
    NoAuthority(PathBuf),
    /// The inviting node is not known.
    #[error("{} is missing: it has the node that has issued the certificate; join again by an invitation", .0.display())]
    NoIssuer(PathBuf),
    /// No certificate of this node was issued here.
    #[error("no certificate of {0} that is valid was issued here: give its --fingerprint")]
    NotIssued(NodeId),
    /// The list of revoked certificates cannot be used.
    #[error(transparent)]
    Revocation(#[from] RevocationError),
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
        self.note(name, &certificate)?;
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
        let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| wrong(&path, &error))?;
        let certificate = chain.first();
        let certificate = certificate.ok_or_else(|| wrong(&path, &"it has no certificate"))?;
        let id = name_in(certificate).ok_or_else(|| wrong(&path, &"it names no node"))?;
        let key_path = self.0.join("node.key");
        let key = PrivateKeyDer::from_pem_slice(&read(&key_path)?)
            .map_err(|error| wrong(&key_path, &error))?;
        let ca_path = self.0.join("ca.pem");
        let roots = roots(&read(&ca_path)?).map_err(|reason| wrong(&ca_path, &reason))?;
        Ok(Identity {
            id,
            fingerprint: fingerprint(certificate),
            expires: issue::expiry(&pem)?,
            chain,
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
        let certificate = self.chained(authority.issue(name, &request.csr)?)?;
        self.note(name, &certificate)?;
        to.install(&self.authorities_pem()?, &certificate, &request.key)
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
        if !expires.parse().is_ok_and(|expires| unix_time() < expires) {
            return Err(AuthorityError::Unknown);
        }
        let name = NodeId::new(name)?;
        let certificate = self.chained(authority.issue(&name, csr)?)?;
        self.note(&name, &certificate)?;
        Ok(certificate)
    }

    /// Writes a new certificate and key in place of those that there are.
    pub(crate) fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), AuthorityError> {
        write_whole(&self.0.join("node.key"), key)?;
        write_whole(&self.0.join("node.pem"), certificate)
    }

    /// Notes which node has issued the certificate.
    pub(crate) fn set_issuer(&self, issuer: &Issuer) -> Result<(), AuthorityError> {
        let text = format!("{} {}\n", issuer.node, issuer.address);
        write_private(&self.0.join("issuer"), text.as_bytes())
    }

    /// Returns the node that has issued the certificate.
    pub(crate) fn issuer(&self) -> Result<Issuer, AuthorityError> {
        let path = self.0.join("issuer");
        let text = fs::read_to_string(&path).map_err(|_| AuthorityError::NoIssuer(path.clone()))?;
        let words = text.trim().split_once(' ');
        let (node, address) = words.ok_or(AuthorityError::NoIssuer(path))?;
        Ok(Issuer {
            node: NodeId::new(node)?,
            address: address.to_owned(),
        })
    }

    /// Returns whether the key of the authority is here.
    pub(crate) fn is_authority(&self) -> bool {
        self.0.join("ca.key").exists()
    }

    /// Issues a certificate for a node that has shown a valid one.
    pub(crate) fn reissue(&self, name: &NodeId, csr: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        let certificate = self.chained(self.authority()?.issue(name, csr)?)?;
        self.note(name, &certificate)?;
        Ok(certificate)
    }

    /// Revokes the certificates of a node that were issued here and are valid, and those with these
    /// fingerprints. This node's present certificate stays. Returns how many it revokes.
    pub fn revoke(&self, name: &NodeId, fingerprints: &[String]) -> Result<usize, AuthorityError> {
        let authority = self.authority()?;
        let now = unix_time();
        let own = self.identity().map(|own| own.fingerprint).ok();
        let issued = self.issued()?;
        let of_name = issued.into_iter().filter(|it| it.node == *name);
        let valid = of_name.filter(|it| it.until > now && own.as_ref() != Some(&it.fingerprint));
        let mut revoked: Vec<Revoked> = valid.collect();
        for fingerprint in fingerprints {
            if revoked.iter().all(|it| it.fingerprint != *fingerprint) {
                revoked.push(Revoked {
                    node: name.clone(),
                    fingerprint: fingerprint.clone(),
                    until: now.saturating_add(issue::NODE_SECONDS),
                });
            }
        }
        let count = revoked.len();
        if count == 0 {
            return Err(AuthorityError::NotIssued(name.clone()));
        }
        let by = self.cross()?;
        let by = by.map(|by| String::from_utf8_lossy(&by).into_owned());
        let list = self.revocations()?;
        let list = list.with(revoked, now, authority.key(), by)?;
        self.keep_revocations(&list)?;
        Ok(count)
    }

    /// Returns the list of revoked certificates that this folder has.
    pub(crate) fn revocations(&self) -> Result<Revocations, AuthorityError> {
        self.revocations_in(&self.revocations_path())
    }

    /// Reads a list of revoked certificates. It is empty if there is no such file.
    pub(crate) fn revocations_in(&self, path: &Path) -> Result<Revocations, AuthorityError> {
        match fs::read(path) {
            Ok(text) => self.verified(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Revocations::default()),
            Err(error) => Err(AuthorityError::File {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Reads a list of revoked certificates that comes from another node.
    pub(crate) fn verified(&self, text: &[u8]) -> Result<Revocations, AuthorityError> {
        Ok(Revocations::read(text, &self.authorities()?)?)
    }

    /// Writes a list of revoked certificates.
    pub(crate) fn keep_revocations(&self, list: &Revocations) -> Result<(), AuthorityError> {
        write_whole(&self.revocations_path(), &list.text().unwrap_or_default())
    }

    /// Returns when this node's certificate was written.
    pub(crate) fn identity_written(&self) -> Option<SystemTime> {
        written(&self.0.join("node.pem"))
    }

    /// Returns the file with the list of revoked certificates.
    pub(crate) fn revocations_path(&self) -> PathBuf {
        self.0.join("revoked.json")
    }

    /// Notes a certificate (PEM) that is issued, so that it can be revoked.
    fn note(&self, name: &NodeId, certificate: &[u8]) -> Result<(), AuthorityError> {
        let path = self.0.join("issued");
        let der = CertificateDer::from_pem_slice(certificate);
        let der = der.map_err(|error| AuthorityError::Content {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        let until = issue::expiry(certificate)?;
        let line = format!("{} {name} {until}\n", fingerprint(&der));
        append_private(&path, line.as_bytes())
    }

    /// Returns the certificates that were issued here. Lines that cannot be read are skipped.
    fn issued(&self) -> Result<Vec<Revoked>, AuthorityError> {
        let path = self.0.join("issued");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&read(&path)?).into_owned();
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some(Revoked {
                fingerprint: words.next()?.to_owned(),
                node: NodeId::new(words.next()?).ok()?,
                until: words.next()?.parse().ok()?,
            })
        });
        Ok(lines.collect())
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

/// Returns when a file was written, if it is there.
pub(crate) fn written(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Returns the authorities in a PEM text.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it has no certificate".to_owned()),
        false => Ok(roots),
    }
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

/// Returns the time in seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, content: &[u8]) -> Result<(), AuthorityError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    write_by(options, path, content)
}

/// Adds to such a file.
fn append_private(path: &Path, content: &[u8]) -> Result<(), AuthorityError> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    write_by(options, path, content)
}

/// Writes such a file at once, so that readers see the old content or the new one.
fn write_whole(path: &Path, content: &[u8]) -> Result<(), AuthorityError> {
    let new = path.with_extension("new");
    write_private(&new, content)?;
    fs::rename(&new, path).map_err(|error| AuthorityError::File {
        path: path.to_owned(),
        error,
    })
}

fn write_by(
    mut options: fs::OpenOptions,
    path: &Path,
    content: &[u8],
) -> Result<(), AuthorityError> {
    let mut write = || {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        options.mode(0o600).open(path)?.write_all(content)
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
    #[test]
    fn the_certificates_of_a_node_are_revoked_and_later_ones_are_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| Folder::new(&place.path().join(name));
        let folder = at("a");
        folder.init(&node("a")).unwrap();
        let none = folder.revoke(&node("b"), &[]);
        assert!(matches!(none, Err(AuthorityError::NotIssued(_))));
        folder.issue(&node("b"), &at("b")).unwrap();
        let stolen = at("b").identity().unwrap();
        assert!(stolen.expires > unix_time() + 800 * 86_400);
        assert_eq!(folder.revoke(&node("b"), &[]).unwrap(), 1);
        folder.issue(&node("b"), &at("b2")).unwrap();
        let other = "f".repeat(64);
        assert_eq!(
            folder
                .revoke(&node("c"), std::slice::from_ref(&other))
                .unwrap(),
            1
        );
        let list = folder.revocations().unwrap();
        assert!(list.has(&stolen.fingerprint) && list.has(&other));
        assert!(!list.has(&at("b2").identity().unwrap().fingerprint));
        // Others verify it, and cannot make one.
        let text = list.text().unwrap();
        assert!(at("b2").verified(&text).unwrap().has(&stolen.fingerprint));
        assert!(at("b2").revoke(&node("a"), &[]).is_err());
        // The present certificate of the node itself stays.
        let none = folder.revoke(&node("a"), &[]);
        assert!(matches!(none, Err(AuthorityError::NotIssued(_))));
        let request = Request::make(&node("a")).unwrap();
        let certificate = folder.reissue(&node("a"), &request.csr).unwrap();
        let before = folder.identity().unwrap().fingerprint;
        folder.replace(&certificate, &request.key).unwrap();
        assert_eq!(folder.revoke(&node("a"), &[]).unwrap(), 1);
        assert!(folder.revocations().unwrap().has(&before));
    }
}
