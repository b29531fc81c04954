//! The certificate that this node shows, which may be renewed while it runs.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use tokio_rustls::rustls::{ClientConfig, ServerConfig};

use super::error::StartError;
use super::tls;
use crate::authority::{Folder, Identity};
use crate::id::NodeId;

/// Between two looks at the folder.
const LOOK: Duration = Duration::from_secs(1);

/// What new connections show; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Credentials(Arc<RwLock<Arc<Shown>>>);

/// The options of both sides.
#[derive(Debug)]
struct Shown {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Shown {
    /// Fails if the key is not that of the certificate.
    fn new(identity: &Identity) -> Result<Arc<Self>, StartError> {
        Ok(Arc::new(Shown {
            server: tls::server(identity)?,
            client: tls::client(identity, tls::LINK)?,
        }))
    }
}

impl Credentials {
    pub(super) fn new(identity: &Identity) -> Result<Self, StartError> {
        Ok(Credentials(Arc::new(RwLock::new(Shown::new(identity)?))))
    }

    /// Returns the options of the side that listens.
    pub(super) fn server(&self) -> Arc<ServerConfig> {
        self.get().server.clone()
    }

    /// Returns the options of the side that dials.
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        self.get().client.clone()
    }

    fn get(&self) -> Arc<Shown> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }

    fn set(&self, shown: Arc<Shown>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

/// Looks for a renewed certificate in the folder.
#[derive(Debug)]
pub(super) struct Renewal {
    folder: Folder,
    id: NodeId,
    /// The fingerprint of the certificate that is shown.
    shown: String,
    /// When the certificate was written that was read last.
    written: Option<SystemTime>,
    looked: Instant,
}

impl Renewal {
    /// `written` is when the certificate was written, before `identity` was read.
    pub(super) fn new(folder: Folder, identity: &Identity, written: Option<SystemTime>) -> Self {
        Renewal {
            folder,
            id: identity.id.clone(),
            shown: identity.fingerprint.clone(),
            written,
            looked: Instant::now(),
        }
    }

    /// Looks now and then whether the folder has another certificate. New connections show it from
    /// now on. One that cannot be used is logged, and the one before stays.
    pub(super) fn look(&mut self, now: Instant, credentials: &Credentials) -> Option<Identity> {
        if now.saturating_duration_since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        let written = self.folder.identity_written();
        if std::mem::replace(&mut self.written, written) == written {
            return None;
        }
        match self.read(credentials) {
            Ok(identity) => identity,
            Err(error) => {
                tracing::error!(%error, "cluster: the renewed certificate cannot be used, and the one before stays");
                None
            }
        }
    }

    fn read(&mut self, credentials: &Credentials) -> Result<Option<Identity>, StartError> {
        let identity = self.folder.identity()?;
        if identity.id != self.id {
            return Err(StartError::OtherName(identity.id));
        }
        if identity.fingerprint == self.shown {
            return Ok(None);
        }
        credentials.set(Shown::new(&identity)?);
        self.shown = identity.fingerprint.clone();
        Ok(Some(identity))
    }
}
