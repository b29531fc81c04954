//! The connection to the receiver.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;

use super::config::{GelfConfig, Protocol};
use super::message::{self, MessageError};

/// The timeout of a connection attempt, and of a message.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a message is not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the GELF backend cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("the connection to the GELF backend broke: {0}")]
    Broken(io::Error),
    #[error("a datagram to the GELF backend was refused: {0}")]
    Refused(io::Error),
    #[error(transparent)]
    Message(#[from] MessageError),
}

impl LinkError {
    /// Returns whether the event is not retried.
    pub(super) const fn loses_event(&self) -> bool {
        matches!(self, LinkError::Refused(_) | LinkError::Message(_))
    }

    /// Returns advice to the operator.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            LinkError::Unreachable(_) => {
                "see that it runs, and events.gelf.backend, port and protocol; events wait"
            }
            LinkError::Broken(_) => "see its own log; events wait until it is back",
            LinkError::Refused(_) => {
                "see that it runs, and events.gelf.backend and port; these events are lost"
            }
            LinkError::Message(_) => {
                "raise events.gelf.max_message_len, or use protocol = \"tcp\"; this event is lost"
            }
        }
    }
}

/// A way that is open.
#[derive(Debug)]
pub(super) struct Link {
    to: (String, u16, Protocol),
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Link {
    pub(super) async fn connect(settings: &GelfConfig) -> Result<Self, LinkError> {
        let at = (settings.backend.as_str(), settings.port);
        let connecting = async {
            match settings.protocol {
                Protocol::Udp => udp(at).await.map(Socket::Udp),
                Protocol::Tcp => TcpStream::connect(at).await.map(Socket::Tcp),
            }
        };
        let connected = timeout(LIMIT, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        Ok(Link {
            to: (settings.backend.clone(), settings.port, settings.protocol),
            socket: connected.map_err(LinkError::Unreachable)?,
        })
    }

    /// Returns whether it is the configured connection.
    pub(super) fn leads_to(&self, settings: &GelfConfig) -> bool {
        let (backend, port, protocol) = &self.to;
        *backend == settings.backend && *port == settings.port && *protocol == settings.protocol
    }

    /// Waits for the end of the connection, and ignores all received bytes. Cancel safe.
    pub(super) async fn gone(&mut self) -> LinkError {
        let Socket::Tcp(stream) = &mut self.socket else {
            return std::future::pending().await;
        };
        loop {
            match stream.read(&mut [0; 256]).await {
                Ok(0) => return LinkError::Broken(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => return LinkError::Broken(error),
            }
        }
    }

    /// Sends a message. After an error that does not lose the event, the connection is of no use.
    pub(super) async fn send(
        &mut self,
        message: &[u8],
        settings: &GelfConfig,
    ) -> Result<(), LinkError> {
        match &mut self.socket {
            Socket::Tcp(stream) => {
                // JSON contains no NUL.
                let ended = [message, b"\0"].concat();
                let sent = timeout(LIMIT, stream.write_all(&ended)).await;
                let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                sent.map_err(LinkError::Broken)
            }
            Socket::Udp(socket) => {
                let message = match settings.compress {
                    true => message::compressed(message, settings.compression),
                    false => Ok(message.to_vec()),
                };
                let message = message.map_err(MessageError::from)?;
                let length = usize::try_from(settings.max_message_len).unwrap_or(usize::MAX);
                for datagram in message::datagrams(message, length, rand::random())? {
                    socket.send(&datagram).await.map_err(LinkError::Refused)?;
                }
                Ok(())
            }
        }
    }
}

async fn udp(at: (&str, u16)) -> io::Result<UdpSocket> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in lookup_host(at).await? {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        match socket.connect(address).await {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
