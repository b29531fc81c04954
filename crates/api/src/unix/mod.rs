//! The Janus API and the Admin API over Unix sockets, with a message in each packet.

mod datagram;
mod seqpacket;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portunus_admin::Administration;
use portunus_core::{ClientAddress, OverBudget, Purse, prices};
use serde_json::Value;
use socket2::SockRef;
use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio_seqpacket::UnixSeqpacketListener;

use crate::pace::Api;
use crate::{Counters, StartError, UnixConfig, UnixKind, reply};

/// The requested buffer. It limits the length of messages, and lists of rooms are long.
const SEND_BUFFER: usize = 4 << 20;

/// A bound socket that is not served yet.
#[derive(Debug)]
pub(crate) struct Socket {
    api: Api,
    config: UnixConfig,
    kind: Kind,
    /// Removes the socket's file on drop.
    _file: SocketFile,
}

#[derive(Debug)]
enum Kind {
    Seqpacket(UnixSeqpacketListener),
    Datagram(UnixDatagram),
}

/// The state that all clients of the socket share.
#[derive(Debug)]
struct Shared {
    api: Api,
    config: UnixConfig,
    administration: Administration,
    counters: Arc<Counters>,
    stop: watch::Receiver<bool>,
}

/// Binds the socket, and replaces the file of a server that is gone.
pub(crate) fn bind(api: Api, config: &UnixConfig, path: &Path) -> Result<Socket, StartError> {
    let key = match api {
        Api::Janus => "unix.path",
        Api::Admin => "admin.unix_path",
    };
    let failed = |error| StartError::Unix {
        path: path.to_owned(),
        error,
        key,
    };
    if in_use(path).map_err(failed)? {
        let path = path.to_owned();
        return Err(StartError::UnixInUse { path, key });
    }
    let kind = match config.kind {
        UnixKind::Seqpacket => UnixSeqpacketListener::bind(path).map(Kind::Seqpacket),
        UnixKind::Datagram => UnixDatagram::bind(path).map(Kind::Datagram),
    };
    let kind = kind.map_err(failed)?;
    let file = SocketFile(path.to_owned());
    let permissions = std::fs::Permissions::from_mode(config.mode.0);
    std::fs::set_permissions(path, permissions).map_err(failed)?;
    Ok(Socket {
        api,
        config: config.clone(),
        kind,
        _file: file,
    })
}

/// Whether a process listens at `path`. Removes the socket's file if there is none.
fn in_use(path: &Path) -> io::Result<bool> {
    let kind = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !kind.is_socket() {
        // Files of others are never removed.
        return Err(io::Error::other("there is a file that is not a socket"));
    }
    // Connecting to a socket of another type fails, but with a different error than a stale socket.
    let connected = StdDatagram::unbound()?.connect(path);
    match connected {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)?;
            Ok(false)
        }
        Ok(()) | Err(_) => Ok(true),
    }
}

impl Socket {
    /// Serves clients until the server stops.
    pub(crate) async fn serve(
        self,
        administration: Administration,
        counters: Arc<Counters>,
        stop: watch::Receiver<bool>,
    ) {
        let shared = Arc::new(Shared {
            api: self.api,
            config: self.config,
            administration,
            counters,
            stop,
        });
        match self.kind {
            Kind::Seqpacket(listener) => seqpacket::serve(listener, shared).await,
            Kind::Datagram(socket) => datagram::serve(socket, shared).await,
        }
    }
}

impl Shared {
    /// Returns the purse of a new client, which pays for a receive buffer.
    fn purse(&self) -> Result<Purse, OverBudget> {
        let price = prices::CONNECTION.saturating_add(self.config.max_message);
        let purse = self
            .api
            .memory(self.administration.gateway())
            .purse(ClientAddress::Unix);
        purse.open(price, prices::CONNECTION_PREPAID)
    }
}

/// Raises the buffers for long messages as far as the system allows.
fn enlarge(socket: &impl AsFd) {
    if let Err(error) = SockRef::from(socket).set_send_buffer_size(SEND_BUFFER) {
        tracing::debug!(%error, "cannot enlarge the Unix socket's buffer");
    }
}

/// Returns the error reply that replaces a message too long for a packet, or `None` for other
/// errors, which end the client.
fn instead_of(message: &Value, error: &io::Error) -> Option<Value> {
    if error.raw_os_error() != Some(libc::EMSGSIZE) {
        return None;
    }
    tracing::warn!("a message is too long for the Unix socket: net.core.wmem_max bounds it");
    Some(reply::refused(
        message,
        "The reply is too long for this socket",
    ))
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "cannot remove the Unix socket's file");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use serde_json::json;

    use super::*;

    fn config() -> UnixConfig {
        UnixConfig::default()
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        for kind in [UnixKind::Seqpacket, UnixKind::Datagram] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("api.sock");
            let config = UnixConfig { kind, ..config() };
            let socket = bind(Api::Janus, &config, &path).unwrap();
            assert!(matches!(
                bind(Api::Janus, &config, &path),
                Err(StartError::UnixInUse { .. })
            ));
            std::mem::forget(socket._file);
            drop(socket.kind);
            assert!(path.exists());
            bind(Api::Janus, &config, &path).unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(
            bind(Api::Janus, &config(), &path),
            Err(StartError::Unix { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn permissions_are_as_configured_and_the_file_goes_with_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let socket = bind(Api::Janus, &config(), &path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_too_long_is_said_to_be_so() {
        let reply =
            json!({ "janus": "success", "session_id": 5, "transaction": "t", "plugindata": {} });
        let too_long = io::Error::from_raw_os_error(libc::EMSGSIZE);
        let instead = instead_of(&reply, &too_long).unwrap_or_default();
        assert_eq!(instead["janus"], "error");
        assert_eq!(
            (&instead["transaction"], &instead["session_id"]),
            (&json!("t"), &json!(5))
        );
        assert_eq!(instead["error"]["code"], 450);
        assert_eq!(instead_of(&reply, &io::ErrorKind::BrokenPipe.into()), None);
    }
}
