//! Those who should not be let in, and those who send without end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use portunus_cluster::{Epoch, Folder, Frame, Invitation, NodeId, VersionRange, join};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::site::{Member, Site, room};

/// Dials a node with the certificate in a folder, or with none.
async fn dial(
    at: SocketAddr,
    ca: &Path,
    own: Option<&Path>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(ca.join("ca.pem")).unwrap())
        .unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some(own) => {
            let certificate = CertificateDer::from_pem_file(own.join("node.pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(own.join("node.key")).unwrap();
            builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"portunus-cluster".to_vec()];
    let stream = TcpStream::connect(at).await?;
    let name = ServerName::try_from("b").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

fn framed(frame: Frame) -> Bytes {
    let bytes = frame.encode();
    let mut all = BytesMut::new();
    all.put_u32(u32::try_from(bytes.len()).unwrap());
    all.put_slice(&bytes);
    all.freeze()
}

fn hello(name: &str) -> Bytes {
    framed(Frame::Hello {
        node: NodeId::new(name).unwrap(),
        epoch: Epoch(4),
        cluster: "portunus".to_owned(),
        versions: VersionRange::OURS,
    })
}

/// Waits until the other side closes, whatever it has sent before.
async fn until_closed(stream: &mut TlsStream<TcpStream>) {
    let mut bytes = [0; 4_096];
    let closed = async { while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {} };
    timeout(Duration::from_secs(10), closed)
        .await
        .expect("it is closed");
}

/// Two nodes, a and b. The intruders dial b.
async fn two(site: &Site) -> [Member; 2] {
    let a = site.first("a").await;
    let b = site.invited(&a, "b").await;
    for member in [&a, &b] {
        member.until("a link", |told| !told.up.is_empty()).await;
    }
    [a, b]
}

async fn still_linked(members: &[Member; 2]) {
    let key = room("after");
    for member in members {
        member.open(&key).await;
    }
    for member in members {
        member.until_others(&key, 1).await;
        // The intruder's name may be lost.
        let lost = member.told.lock().unwrap().lost.clone();
        assert!(lost.iter().all(|node| node.as_str() == "aa"), "{lost:?}");
    }
}

#[tokio::test]
async fn certificates_of_others_and_none_are_refused_and_nobody_is_disturbed() {
    let Some(site) = Site::start().await else {
        return;
    };
    let members = two(&site).await;
    let at = members[1].cluster.local();
    let ours = site.place("a");
    let foreign = site.place("foreign");
    Folder::new(&foreign)
        .init(&NodeId::new("a").unwrap())
        .unwrap();
    for own in [None, Some(foreign.as_path())] {
        // By TLS 1.3 a client learns that it is refused with its first read.
        if let Ok(mut stream) = dial(at, &ours, own).await {
            let _ = stream.write_all(&hello("a")).await;
            until_closed(&mut stream).await;
        }
    }
    // A node of its own cluster that claims to be another one.
    site.certify(&members[0], "aa", &site.place("aa")).await;
    let mut stream = dial(at, &ours, Some(&site.place("aa"))).await.unwrap();
    stream.write_all(&hello("a")).await.unwrap();
    until_closed(&mut stream).await;
    // Bytes that are no TLS.
    let mut plain = TcpStream::connect(at).await.unwrap();
    plain.write_all(&[0x5a; 4_096]).await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(10), plain.read_to_end(&mut rest))
        .await
        .expect("it is closed");
    still_linked(&members).await;
}

#[tokio::test]
async fn a_stolen_certificate_is_of_no_use_once_it_was_replaced() {
    let Some(site) = Site::start().await else {
        return;
    };
    let [a, b] = two(&site).await;
    let stolen = site.place("stolen");
    site.certify(&a, "aa", &stolen).await;
    let aa = site.invited(&a, "aa").await;
    b.until("aa", |told| told.up.len() >= 2).await;
    let at = b.cluster.local();
    let mut stream = dial(at, &site.place("a"), Some(&stolen)).await.unwrap();
    let _ = stream.write_all(&hello("aa")).await;
    until_closed(&mut stream).await;
    drop(aa);
    still_linked(&[a, b]).await;
}

#[tokio::test]
async fn frames_without_end_and_malformed_ones_cost_their_sender_the_link() {
    let Some(site) = Site::start().await else {
        return;
    };
    let members = two(&site).await;
    let at = members[1].cluster.local();
    let own = site.place("aa");
    site.certify(&members[0], "aa", &own).await;
    let ping = framed(Frame::Ping { clock: 1 });
    let endless: Bytes = ping.repeat(1_000).into();
    let huge = {
        let mut huge = BytesMut::new();
        huge.put_u32(u32::MAX);
        huge.freeze()
    };
    let malformed = Bytes::from_static(&[0, 0, 0, 2, 0x0a, 0xff]);
    let early = framed(Frame::Pong { clock: 1 });
    for (greets, bytes, times) in [
        (true, endless, 1_000),
        (true, huge, 1),
        (true, malformed, 1),
        (false, early, 1),
    ] {
        let mut stream = dial(at, &site.place("a"), Some(&own)).await.unwrap();
        if greets {
            stream.write_all(&hello("aa")).await.unwrap();
        }
        for _ in 0..times {
            if stream.write_all(&bytes).await.is_err() {
                break;
            }
        }
        until_closed(&mut stream).await;
    }
    still_linked(&members).await;
}

#[tokio::test]
async fn an_invitation_can_be_used_once() {
    let Some(site) = Site::start().await else {
        return;
    };
    let a = site.first("a").await;
    let hour = Duration::from_secs(3_600);
    let id = NodeId::new("b").unwrap();
    let address = a.cluster.local().to_string();
    let folder = Folder::new(&site.place("a"));
    let invitation = folder.invite(&id, a.cluster.id(), address, hour).unwrap();
    let invitation: Invitation = invitation.to_string().parse().unwrap();
    join(&Folder::new(&site.place("b")), &invitation)
        .await
        .unwrap();
    let again = join(&Folder::new(&site.place("c")), &invitation).await;
    let error = again.unwrap_err().to_string();
    assert!(error.contains("was used"), "{error}");
    let known = join(&Folder::new(&site.place("b")), &invitation).await;
    assert!(known.unwrap_err().to_string().contains("already"));
}
