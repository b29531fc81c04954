//! Addresses as nanomsg writes them.

use std::io;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::wire::Framing;
use crate::stream::Stream;

/// The address of the subscriber, or our own for subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Tcp { host: String, port: u16 },
    Ipc(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected tcp://HOST:PORT or ipc:///PATH, got {text:?}");
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Address::Ipc(path.into()));
        }
        let at = text
            .strip_prefix("tcp://")
            .and_then(|at| at.rsplit_once(':'));
        let (host, port) = at.ok_or_else(expected)?;
        let port = port.parse().map_err(|_| expected())?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = match bare.unwrap_or(host) {
            "" => return Err(expected()),
            // All addresses, to bind to.
            "*" => "0.0.0.0",
            host => host,
        };
        Ok(Address::Tcp {
            host: host.to_owned(),
            port,
        })
    }
}

impl Address {
    pub(super) const fn framing(&self) -> Framing {
        match self {
            Address::Tcp { .. } => Framing::Tcp,
            Address::Ipc(_) => Framing::Ipc,
        }
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                // Batches are written at once already.
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
            Address::Ipc(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }

    pub(super) async fn bind(&self) -> io::Result<Listener> {
        match self {
            Address::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).await?;
                Ok(Listener::Tcp(listener))
            }
            Address::Ipc(path) => bind_path(path).map(Listener::Ipc),
        }
    }
}

/// Binds a path. Replaces a socket that an earlier server left.
fn bind_path(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let answers = BlockingStream::connect(path);
            match answers {
                Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path)
                }
                _ => Err(error),
            }
        }
        bound => bound,
    }
}

/// The socket for subscribers.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Ipc(UnixListener),
}

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Listener::Tcp(listener) => Ok(Box::new(listener.accept().await?.0)),
            Listener::Ipc(listener) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_nanomsg_does() {
        let tcp = |host: &str, port| {
            let host = host.to_owned();
            Ok(Address::Tcp { host, port })
        };
        assert_eq!(
            "tcp://a.example.org:5555".parse(),
            tcp("a.example.org", 5555)
        );
        assert_eq!("tcp://[::1]:5555".parse(), tcp("::1", 5555));
        assert_eq!("tcp://*:5555".parse(), tcp("0.0.0.0", 5555));
        assert_eq!("ipc:///tmp/x".parse(), Ok(Address::Ipc("/tmp/x".into())));
        for wrong in [
            "",
            "tcp://",
            "tcp://:1",
            "tcp://a",
            "tcp://a:b",
            "ipc://",
            "ws://a:1",
        ] {
            let error = wrong.parse::<Address>();
            assert!(
                error.is_err_and(|text| text.contains("tcp://HOST:PORT")),
                "{wrong}"
            );
        }
    }
}
