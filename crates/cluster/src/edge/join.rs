//! How an invited node gets its certificate, and how a node gets a new one: one request and one
//! answer, each a JSON text in a frame.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::error::StartError;
use super::tls;
use crate::authority::{AuthorityError, Folder, Invitation, Issuer, Request, roots};
use crate::id::NodeId;

/// The largest frame in bytes.
const MAX_FRAME: usize = 16_384;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct Asking {
    /// Of the invitation. A node that has a certificate needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    secret: String,
    csr: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    /// The authorities that the answering node trusts, for a node that renews.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorities: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a node gets.
struct Issued {
    certificate: Vec<u8>,
    authorities: Option<Vec<u8>>,
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

/// Gets a new certificate for a node whose present one is valid, from the node that has issued it,
/// and writes it into the folder. `address` replaces the one that the folder has. Returns the name.
pub async fn renew(folder: &Folder, address: Option<String>) -> Result<NodeId, JoinError> {
    let identity = folder.identity()?;
    let request = Request::make(&identity.id).map_err(AuthorityError::from)?;
    let issued = match folder.is_authority() {
        true => Issued {
            certificate: folder.reissue(&identity.id, &request.csr)?,
            authorities: None,
        },
        false => {
            let mut issuer = folder.issuer()?;
            issuer.address = address.unwrap_or(issuer.address);
            let config = tls::client(&identity, tls::RENEW)?;
            let asking = Asking {
                secret: String::new(),
                csr: String::from_utf8_lossy(&request.csr).into_owned(),
            };
            let asked = timeout(LIMIT, exchange(&issuer, config, &asking)).await;
            asked.map_err(|_| JoinError::Timeout(issuer.address))??
        }
    };
    if let Some(authorities) = &issued.authorities {
        folder.trust(authorities)?;
    }
    folder.replace(&issued.certificate, &request.key)?;
    Ok(folder.identity()?.id)
}

async fn ask(folder: &Folder, invitation: &Invitation) -> Result<NodeId, JoinError> {
    let ca = roots(invitation.ca.as_bytes()).map_err(AuthorityError::Invitation)?;
    let issuer = Issuer {
        node: invitation.issuer.clone(),
        address: invitation.address.clone(),
    };
    let request = Request::make(&invitation.node).map_err(AuthorityError::from)?;
    let asking = Asking {
        secret: invitation.secret.clone(),
        csr: String::from_utf8_lossy(&request.csr).into_owned(),
    };
    let issued = exchange(&issuer, tls::joining(ca)?, &asking).await?;
    folder.set_issuer(&issuer)?;
    folder.install(invitation.ca.as_bytes(), &issued.certificate, &request.key)?;
    Ok(folder.identity()?.id)
}

/// Asks the issuing node for a certificate.
async fn exchange(
    issuer: &Issuer,
    config: Arc<ClientConfig>,
    asking: &Asking,
) -> Result<Issued, JoinError> {
    let failed = |error: io::Error| JoinError::Connect {
        address: issuer.address.clone(),
        error,
    };
    let name = ServerName::try_from(issuer.node.as_str().to_owned());
    let name = name.map_err(|error| failed(io::Error::other(error)))?;
    let stream = TcpStream::connect(&issuer.address).await.map_err(failed)?;
    let connector = TlsConnector::from(config);
    let stream = connector.connect(name, stream).await.map_err(failed)?;
    let mut framed = framed(stream);
    let text = serde_json::to_vec(asking).unwrap_or_default();
    framed.send(Bytes::from(text)).await.map_err(failed)?;
    let ended = || failed(io::ErrorKind::UnexpectedEof.into());
    let text = framed.next().await.ok_or_else(ended)?.map_err(failed)?;
    let answer: Answer =
        serde_json::from_slice(&text).map_err(|error| JoinError::Refused(error.to_string()))?;
    let certificate = answer.certificate.ok_or_else(|| {
        let error = answer.error.unwrap_or_default();
        JoinError::Refused(error)
    })?;
    Ok(Issued {
        certificate: certificate.into_bytes(),
        authorities: answer.authorities.map(String::into_bytes),
    })
}

/// Answers a node that joins.
pub(super) async fn answer<S>(folder: &Folder, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    answer_by(stream, |asking| {
        let issued = folder.redeem(&asking.secret, asking.csr.as_bytes());
        match &issued {
            Ok(_) => tracing::info!("a certificate is issued to an invited node"),
            Err(error) => tracing::warn!(%error, "a node that wants to join is refused"),
        }
        let certificate = issued.map_err(|error| error.to_string())?;
        Ok(Issued {
            certificate,
            authorities: None,
        })
    })
    .await
}

/// Answers a node that wants a new certificate. `name` is `None` if its present one is of no use.
pub(super) async fn answer_renewal<S>(
    folder: &Folder,
    stream: S,
    name: Option<NodeId>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    answer_by(stream, |asking| {
        let name = name.ok_or("the certificate is revoked: join by an invitation")?;
        let issued = folder.reissue(&name, asking.csr.as_bytes());
        match &issued {
            Ok(_) => tracing::info!(node = %name, "a new certificate is issued to a node"),
            Err(error) => tracing::warn!(node = %name, %error, "no new certificate is issued"),
        }
        let authorities = folder.authorities_pem();
        issued
            .and_then(|certificate| {
                Ok(Issued {
                    certificate,
                    authorities: Some(authorities?),
                })
            })
            .map_err(|error| error.to_string())
    })
    .await
}

async fn answer_by<S>(
    stream: S,
    issue: impl FnOnce(Asking) -> Result<Issued, String>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut framed = framed(stream);
    let asked = timeout(LIMIT, framed.next()).await?;
    let text = asked.ok_or(io::ErrorKind::UnexpectedEof)??;
    let asking: Asking = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let text = |pem: Vec<u8>| String::from_utf8_lossy(&pem).into_owned();
    let answer = match issue(asking) {
        Ok(issued) => Answer {
            certificate: Some(text(issued.certificate)),
            authorities: issued.authorities.map(text),
            error: None,
        },
        Err(error) => Answer {
            certificate: None,
            authorities: None,
            error: Some(error),
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
