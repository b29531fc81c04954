//! The Unix socket: one message a packet, for programs on the same machine.

mod datagram;
mod seqpacket;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portunus_core::Gateway;
use tokio::sync::watch;

use crate::{Counters, StartError, UnixConfig, UnixKind};

/// A bound socket; its file goes with it.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    socket: Socket,
    config: UnixConfig,
    path: PathBuf,
}

#[derive(Debug)]
enum Socket {
    Seqpacket(tokio_seqpacket::UnixSeqpacketListener),
    Datagram(tokio::net::UnixDatagram),
}

/// Binds the socket. The file of a server that is gone is removed.
pub(crate) fn bind(config: &UnixConfig, path: &Path) -> Result<BoundSocket, StartError> {
    let failed = |error| StartError::Unix {
        path: path.to_owned(),
        error,
    };
    remove_stale(path, config.kind)?;
    let socket = match config.kind {
        UnixKind::Seqpacket => {
            tokio_seqpacket::UnixSeqpacketListener::bind(path).map(Socket::Seqpacket)
        }
        UnixKind::Datagram => tokio::net::UnixDatagram::bind(path).map(Socket::Datagram),
    };
    let socket = socket.map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(config.mode.0)).map_err(failed)?;
    Ok(BoundSocket {
        socket,
        config: config.clone(),
        path: path.to_owned(),
    })
}

fn remove_stale(path: &Path, kind: UnixKind) -> Result<(), StartError> {
    let failed = |error| StartError::Unix {
        path: path.to_owned(),
        error,
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        Ok(_) => {}
    }
    let answers = match kind {
        UnixKind::Datagram => StdDatagram::unbound()
            .and_then(|socket| socket.connect(path))
            .is_ok(),
        UnixKind::Seqpacket => seqpacket::answers(path),
    };
    if answers {
        return Err(StartError::UnixInUse(path.to_owned()));
    }
    fs::remove_file(path).map_err(failed)
}

impl BoundSocket {
    /// Serves until `stop` turns true, then removes the socket's file.
    pub(crate) async fn serve(
        self,
        gateway: Gateway,
        counters: Arc<Counters>,
        stop: watch::Receiver<bool>,
    ) {
        let Self {
            socket,
            config,
            path,
        } = self;
        match socket {
            Socket::Seqpacket(listener) => {
                seqpacket::serve(listener, config, gateway, counters, stop).await
            }
            Socket::Datagram(socket) => {
                datagram::serve(socket, config, gateway, counters, stop).await
            }
        }
        if let Err(error) = fs::remove_file(&path) {
            tracing::debug!(path = %path.display(), %error, "cannot remove the Unix socket's file");
        }
    }
}
