//! Connections to other nodes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::codec::LengthDelimitedCodec;

use super::credentials::Credentials;
use super::refusals::Refusals;
use super::revocations::InForce;
use super::{join, tls};
use crate::authority::{Folder, fingerprint, name_in};
use crate::id::NodeId;
use crate::links::{ConnId, LinkEvent};
use crate::wire::MAX_FRAME;

/// How long a connection and its handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The most connections whose handshake is under way.
const HANDSHAKES: usize = 256;

/// Frames between a connection and the node, each way.
const FRAMES: usize = 64;

/// Something that happens on a connection.
#[derive(Debug)]
pub(super) enum LinkNews {
    /// For the node.
    Event(LinkEvent),
    /// It is open, with the way to send and to close.
    Open(Wire),
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) conn: ConnId,
    pub(super) node: NodeId,
    pub(super) is_dialled: bool,
    /// The SHA-256 of the certificate of the other side.
    pub(super) fingerprint: String,
    pub(super) frames: mpsc::Sender<Bytes>,
    /// Closes the connection when it is dropped.
    pub(super) _open: oneshot::Sender<()>,
}

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) credentials: Credentials,
    pub(super) folder: Folder,
    pub(super) news: mpsc::Sender<LinkNews>,
    /// Told when a connection has taken a frame.
    pub(super) room: Arc<Notify>,
    pub(super) next: Arc<AtomicU64>,
    pub(super) handshakes: Arc<AtomicUsize>,
    pub(super) refusals: Arc<Refusals>,
    pub(super) revoked: InForce,
}

impl Links {
    /// Accepts connections. Never returns.
    pub(super) async fn accept(self, listener: TcpListener) {
        loop {
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cluster: a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            if self.handshakes.fetch_add(1, Ordering::Relaxed) >= HANDSHAKES {
                self.handshakes.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let this = self.clone();
            tokio::spawn(async move {
                let greeted = timeout(HANDSHAKE, this.greet(stream)).await;
                this.handshakes.fetch_sub(1, Ordering::Relaxed);
                match greeted {
                    Ok(Ok(Some((stream, certificate)))) => {
                        this.run(stream, &certificate, None).await;
                    }
                    Ok(Ok(None)) => {}
                    Ok(Err(error)) if tls::is_of_certificate(&error) => {
                        this.refusals.certificate(&address.ip(), &error);
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "cluster: a handshake failed"),
                    Err(_) => tracing::debug!("cluster: a handshake took too long"),
                }
            });
        }
    }

    /// Makes the handshake. Who shows no certificate may only join, and is done with that. So is a
    /// node that wants a new certificate.
    async fn greet(
        &self,
        stream: TcpStream,
    ) -> io::Result<
        Option<(
            impl AsyncRead + AsyncWrite + Unpin + Send + use<>,
            CertificateDer<'static>,
        )>,
    > {
        stream.set_nodelay(true)?;
        let acceptor = TlsAcceptor::from(self.credentials.server());
        let mut stream = acceptor.accept(stream).await?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() == Some(tls::JOIN) {
            join::answer(&self.folder, &mut stream).await?;
            return Ok(None);
        }
        let is_renewal = session.alpn_protocol() == Some(tls::RENEW);
        let is_link = session.alpn_protocol() == Some(tls::LINK);
        let certificate = tls::shown(session.peer_certificates());
        let certificate = certificate.filter(|_| is_link || is_renewal);
        let refused = || io::Error::other(Error::NoCertificatesPresented);
        let certificate = certificate.ok_or_else(refused)?;
        if !is_renewal {
            return Ok(Some((stream, certificate)));
        }
        let name = name_in(&certificate).filter(|name| self.admits(name, &certificate));
        join::answer_renewal(&self.folder, &mut stream, name).await?;
        Ok(None)
    }

    /// Returns whether a certificate is not revoked. Counts and logs one that is.
    fn admits(&self, node: &NodeId, certificate: &CertificateDer<'_>) -> bool {
        let is_revoked = self.revoked.has(&fingerprint(certificate));
        if is_revoked {
            self.refusals.revocation(node);
        }
        !is_revoked
    }

    /// Connects to a node, at the first of its addresses that answers.
    pub(super) fn dial(&self, node: NodeId, addresses: Vec<SocketAddr>) {
        let this = self.clone();
        tokio::spawn(async move {
            let mut last = String::new();
            for address in addresses {
                match timeout(HANDSHAKE, this.connect(&node, address)).await {
                    Ok(Ok((stream, certificate))) => {
                        return this.run(stream, &certificate, Some(&node)).await;
                    }
                    Ok(Err(error)) => {
                        if tls::is_of_certificate(&error) {
                            this.refusals.certificate(&node, &error);
                        }
                        last = format!("{address}: {error}");
                    }
                    Err(_) => last = format!("{address}: no answer within {HANDSHAKE:?}"),
                }
            }
            tracing::debug!(%node, error = last, "cluster: a node is not reached");
            let failed = LinkNews::Event(LinkEvent::Failed { node });
            // The node is gone only at the end.
            let _ = this.news.send(failed).await;
        });
    }

    async fn connect(
        &self,
        node: &NodeId,
        address: SocketAddr,
    ) -> io::Result<(
        impl AsyncRead + AsyncWrite + Unpin + Send + use<>,
        CertificateDer<'static>,
    )> {
        let name = ServerName::try_from(node.as_str().to_owned()).map_err(io::Error::other)?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(self.credentials.client());
        let stream = connector.connect(name, stream).await?;
        let certificate = tls::shown(stream.get_ref().1.peer_certificates());
        let missing = || io::Error::other("the other side shows no certificate");
        Ok((stream, certificate.ok_or_else(missing)?))
    }

    /// Passes frames both ways, until either side closes. `dialled` is who was dialled.
    async fn run<S>(
        &self,
        stream: S,
        certificate: &CertificateDer<'static>,
        dialled: Option<&NodeId>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(node) = name_in(certificate) else {
            return;
        };
        if !self.admits(&node, certificate) {
            if let Some(node) = dialled.cloned() {
                let failed = LinkNews::Event(LinkEvent::Failed { node });
                let _ = self.news.send(failed).await;
            }
            return;
        }
        let conn = ConnId(self.next.fetch_add(1, Ordering::Relaxed));
        let (frames, mut outgoing) = mpsc::channel::<Bytes>(FRAMES);
        let (open, mut closed) = oneshot::channel();
        let wire = Wire {
            conn,
            node,
            is_dialled: dialled.is_some(),
            fingerprint: fingerprint(certificate),
            frames,
            _open: open,
        };
        if self.news.send(LinkNews::Open(wire)).await.is_err() {
            return;
        }
        let codec = LengthDelimitedCodec::builder();
        let framed = { codec }.max_frame_length(MAX_FRAME).new_framed(stream);
        let (mut sink, mut stream) = framed.split();
        let write = async {
            while let Some(frame) = outgoing.recv().await {
                sink.feed(frame).await?;
                self.room.notify_one();
                if outgoing.is_empty() {
                    sink.flush().await?;
                }
            }
            sink.close().await
        };
        let read = async {
            while let Some(frame) = stream.next().await {
                let bytes = frame?.freeze();
                let event = LinkEvent::Frame { conn, bytes };
                if self.news.send(LinkNews::Event(event)).await.is_err() {
                    break;
                }
            }
            Ok::<_, io::Error>(())
        };
        let ended = tokio::select! {
            ended = write => ended,
            ended = read => ended,
            _ = &mut closed => return,
        };
        if let Err(error) = ended {
            tracing::debug!(conn = conn.0, %error, "cluster: a connection is lost");
        }
        let event = LinkEvent::Closed { conn };
        let _ = self.news.send(LinkNews::Event(event)).await;
    }
}
