//! A connection of any kind.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::tls;

/// Bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects once by TCP, and by TLS if `is_secure`, and closes the connection. `authorities` is as
/// for [`tls::client`].
pub(crate) async fn attempt(
    host: &str,
    port: u16,
    is_secure: bool,
    authorities: Option<&Path>,
) -> Result<(), String> {
    // A URL has an IPv6 address in brackets.
    let host = host.trim_matches(['[', ']']);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| text(&error))?;
    if is_secure {
        let client = tls::client(authorities).map_err(|error| text(&error))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| text(&error))?;
        let connected = TlsConnector::from(Arc::new(client)).connect(name, stream);
        connected.await.map_err(|error| text(&error))?;
    }
    Ok(())
}
