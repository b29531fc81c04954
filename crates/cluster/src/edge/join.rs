//! How an invited node gets its certificate: one request and one answer, each a JSON text in a
//! frame.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::error::StartError;
use super::tls;
use crate::authority::{AuthorityError, Folder, Invitation, Request, roots};
use crate::id::NodeId;

/// The largest frame in bytes.
const MAX_FRAME: usize = 16_384;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct Asking {
    secret: String,
    csr: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The reason why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The invitation or the folder cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] StartError),
    /// The inviting node is not reached.
    #[error("cannot reach {address}: {error}")]
    Connect {
        /// Its address.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The inviting node does not answer within 10 s.
    #[error("{0} does not answer within 10 s")]
    Timeout(String),
    /// The inviting node refuses.
    #[error("the inviting node refuses: {0}")]
    Refused(String),
}

/// Joins a cluster: gets a certificate for an invitation, and writes it into the folder. Returns
/// the name in it.
pub async fn join(folder: &Folder, invitation: &Invitation) -> Result<NodeId, JoinError> {
    if let Ok(identity) = folder.identity() {
        return Err(AuthorityError::Exists(identity.id.as_str().into()).into());
    }
    let address = invitation.address.clone();
    let asked = timeout(LIMIT, ask(folder, invitation)).await;
    asked.map_err(|_| JoinError::Timeout(address))?
}

async fn ask(folder: &Folder, invitation: &Invitation) -> Result<NodeId, JoinError> {
    let address = &invitation.address;
    let failed = |error: io::Error| JoinError::Connect {
        address: address.clone(),
        error,
    };
    let ca = roots(invitation.ca.as_bytes()).map_err(AuthorityError::Invitation)?;
    let config = tls::joining(ca)?;
    let issuer = invitation.issuer.as_str().to_owned();
    let issuer = ServerName::try_from(issuer).map_err(|error| failed(io::Error::other(error)))?;
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    let connector = TlsConnector::from(config);
    let stream = connector.connect(issuer, stream).await.map_err(failed)?;
    let request = Request::make(&invitation.node).map_err(AuthorityError::from)?;
    let asking = Asking {
        secret: invitation.secret.clone(),
        csr: String::from_utf8_lossy(&request.csr).into_owned(),
    };
    let mut framed = framed(stream);
    let text = serde_json::to_vec(&asking).unwrap_or_default();
    framed.send(Bytes::from(text)).await.map_err(failed)?;
    let ended = || failed(io::ErrorKind::UnexpectedEof.into());
    let text = framed.next().await.ok_or_else(ended)?.map_err(failed)?;
    let answer: Answer =
        serde_json::from_slice(&text).map_err(|error| JoinError::Refused(error.to_string()))?;
    let certificate = answer.certificate.ok_or_else(|| {
        let error = answer.error.unwrap_or_default();
        JoinError::Refused(error)
    })?;
    let ca = invitation.ca.as_bytes();
    folder.install(ca, certificate.as_bytes(), &request.key)?;
    Ok(folder.identity()?.id)
}

/// Answers a node that joins.
pub(super) async fn answer<S>(folder: &Folder, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut framed = framed(stream);
    let asked = timeout(LIMIT, framed.next()).await?;
    let text = asked.ok_or(io::ErrorKind::UnexpectedEof)??;
    let asking: Asking = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let issued = folder.redeem(&asking.secret, asking.csr.as_bytes());
    match &issued {
        Ok(_) => tracing::info!("a certificate is issued to an invited node"),
        Err(error) => tracing::warn!(%error, "a node that wants to join is refused"),
    }
    let answer = match issued {
        Ok(certificate) => Answer {
            certificate: Some(String::from_utf8_lossy(&certificate).into_owned()),
            error: None,
        },
        Err(error) => Answer {
            certificate: None,
            error: Some(error.to_string()),
        },
    };
    let text = serde_json::to_vec(&answer).unwrap_or_default();
    // Its end follows when the stream is dropped.
    framed.send(Bytes::from(text)).await
}

fn framed<S: AsyncRead + AsyncWrite>(stream: S) -> Framed<S, LengthDelimitedCodec> {
    LengthDelimitedCodec::builder()
        .max_frame_length(MAX_FRAME)
        .new_framed(stream)
}
