//! The byte stream to a broker: TCP, with or without TLS.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::BrokerTls;

/// The byte stream to a broker.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects once, to check whether that works. Does not log in, because a broker would end the
/// connection of a running server with the same name.
pub(crate) async fn attempt(
    host: &str,
    port: u16,
    tls: &BrokerTls,
) -> Result<Box<dyn Stream>, String> {
    let tls = tls.client().map_err(|error| error.to_string())?;
    let connected = connect(host, port, tls.as_ref()).await;
    connected.map_err(|error| error.to_string())
}

/// Connects. An IPv6 address has no brackets.
pub(crate) async fn connect(
    host: &str,
    port: u16,
    tls: Option<&Arc<ClientConfig>>,
) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls.clone())
        .connect(name, stream)
        .await?;
    Ok(Box::new(stream))
}
