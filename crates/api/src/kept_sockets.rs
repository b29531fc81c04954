//! Listening sockets that systemd keeps over a restart. Clients that connect meanwhile wait for the
//! new process instead of being refused (sd_listen_fds(3); `FileDescriptorStoreMax=` of
//! systemd.service(5)).

use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::{io, mem};

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::TcpListener;

/// The sockets that the process before this one, or a socket unit, has left to it.
#[derive(Debug, Default)]
pub(crate) struct KeptSockets(Mutex<Vec<StdListener>>);

impl KeptSockets {
    /// Takes over the TCP sockets that systemd passes to this process. They are passed once.
    pub(crate) fn take_over() -> Self {
        let mut passed = ListenFd::from_env();
        let mut kept = Vec::new();
        for index in 0..passed.len() {
            match passed.take_tcp_listener(index) {
                Ok(listener) => kept.extend(listener),
                Err(error) => {
                    tracing::warn!(%error, index, "systemd passed a socket that is no TCP listener");
                }
            }
        }
        Self(Mutex::new(kept))
    }

    /// Returns the kept socket with this address, or binds a new one, and asks systemd to keep it.
    pub(crate) async fn bind(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let listener = match self.find(address) {
            Some(kept) => {
                tracing::debug!(%address, "going on with the socket that systemd kept");
                kept.set_nonblocking(true)?;
                TcpListener::from_std(kept)?
            }
            None => TcpListener::bind(address).await?,
        };
        // With port 0, the next process asks for another port.
        if address.port() != 0 {
            let name = name(address);
            let states = [NotifyState::FdStore, NotifyState::FdName(&name)];
            if let Err(error) = sd_notify::notify_with_fds(&states, &[listener.as_fd()]) {
                tracing::debug!(%error, %address, "systemd does not keep the socket");
            }
        }
        Ok(listener)
    }

    /// Closes the sockets that the configuration no longer has, and removes them from systemd's
    /// store. Otherwise their clients would wait for ever.
    pub(crate) fn close_unused(&self) {
        let unused = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for address in unused.iter().filter_map(|socket| socket.local_addr().ok()) {
            tracing::info!(%address, "closing a socket that is no longer in the configuration");
            let name = name(address);
            let states = [NotifyState::FdStoreRemove, NotifyState::FdName(&name)];
            if let Err(error) = sd_notify::notify(&states) {
                tracing::debug!(%error, %address, "systemd goes on keeping the socket");
            }
        }
    }

    fn find(&self, address: SocketAddr) -> Option<StdListener> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept
            .iter()
            .position(|socket| socket.local_addr().is_ok_and(|it| it == address))?;
        Some(kept.swap_remove(place))
    }
}

/// Returns the name of a socket in systemd's store, which must not contain colons.
fn name(address: SocketAddr) -> String {
    format!("tcp-{address}").replace(':', "_")
}
