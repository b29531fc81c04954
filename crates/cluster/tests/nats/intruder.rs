//! Those who should not be let in, and those who send without end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{BufMut as _, Bytes, BytesMut};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::X509;
use openssl::x509::extension::SubjectAlternativeName;
use portunus_cluster::{Epoch, Folder, Frame, Invitation, NodeId, VersionRange, join};
use portunus_metrics::{MetricsPage, MetricsSource as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

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

/// Returns what accepts connections with the certificate in a folder.
fn acceptor(own: &Path) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(own.join("node.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(own.join("node.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"portunus-cluster".to_vec()];
    TlsAcceptor::from(Arc::new(config))
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

/// Issues a certificate that expired a day ago.
fn issue_expired(authority: &Path, name: &str, to: &Path) {
    let read = |name: &str| std::fs::read(authority.join(name)).unwrap();
    let ca = X509::from_pem(&read("ca.pem")).unwrap();
    let ca_key = PKey::private_key_from_pem(&read("ca.key")).unwrap();
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_issuer_name(ca.subject_name()).unwrap();
    builder.set_pubkey(&key).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(now.unwrap().as_secs()).unwrap();
    let [from, until] = [3, 1].map(|days| Asn1Time::from_unix(now - days * 86_400).unwrap());
    builder.set_not_before(&from).unwrap();
    builder.set_not_after(&until).unwrap();
    let context = builder.x509v3_context(Some(&ca), None);
    let names = SubjectAlternativeName::new().dns(name).build(&context);
    builder.append_extension(names.unwrap()).unwrap();
    builder.sign(&ca_key, MessageDigest::sha256()).unwrap();
    std::fs::create_dir_all(to).unwrap();
    std::fs::write(to.join("node.pem"), builder.build().to_pem().unwrap()).unwrap();
    let key = key.private_key_to_pem_pkcs8().unwrap();
    std::fs::write(to.join("node.key"), key).unwrap();
}

/// Waits until a node has refused so many connections for this reason.
async fn refused(member: &Member, what: &str, count: u64) {
    let line = format!("portunus_cluster_refused_total{{what=\"{what}\"}} ");
    let refused = || {
        let mut page = MetricsPage::default();
        member.cluster.write(&mut page);
        let text = page.into_text();
        let value = text.lines().find_map(|it| it.strip_prefix(&*line));
        value.expect("the counter").parse::<u64>().unwrap()
    };
    let counted = async {
        while refused() < count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let counted = timeout(Duration::from_secs(10), counted).await;
    assert!(counted.is_ok(), "{what}: {} of {count}", refused());
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
    let expired = site.place("expired");
    issue_expired(&ours, "a", &expired);
    for own in [None, Some(foreign.as_path()), Some(expired.as_path())] {
        // By TLS 1.3 a client learns that it is refused with its first read.
        if let Ok(mut stream) = dial(at, &ours, own).await {
            let _ = stream.write_all(&hello("a")).await;
            until_closed(&mut stream).await;
        }
    }
    refused(&members[1], "certificate", 3).await;
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

/// Without access to the bus a thief can take a node's link until its certificate is revoked.
#[tokio::test]
async fn a_revoked_certificate_opens_nothing_any_more() {
    let Some(site) = Site::start().await else {
        return;
    };
    let [a, b] = two(&site).await;
    let stolen = site.place("stolen");
    site.certify(&a, "aa", &stolen).await;
    let at = b.cluster.local();
    let mut inside = dial(at, &site.place("a"), Some(&stolen)).await.unwrap();
    inside.write_all(&hello("aa")).await.unwrap();
    b.until("the thief", |told| {
        told.up.iter().any(|node| node.as_str() == "aa")
    })
    .await;
    let folder = Folder::new(&site.place("a"));
    assert_eq!(folder.revoke(&NodeId::new("aa").unwrap(), &[]).unwrap(), 1);
    // Node b hears of it from node a.
    until_closed(&mut inside).await;
    refused(&b, "revoked", 1).await;
    if let Ok(mut stream) = dial(at, &site.place("a"), Some(&stolen)).await {
        let _ = stream.write_all(&hello("aa")).await;
        until_closed(&mut stream).await;
    }
    refused(&b, "revoked", 2).await;
    still_linked(&[a, b]).await;
}

/// A node that others dial sends without end, too.
#[tokio::test]
async fn a_node_that_is_dialled_and_floods_costs_itself_the_link() {
    let Some(site) = Site::start().await else {
        return;
    };
    let members = two(&site).await;
    let own = site.place("zz");
    site.certify(&members[0], "zz", &own).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let acceptor = acceptor(&own);
    let flood = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        stream.write_all(&hello("zz")).await.unwrap();
        let endless: Bytes = framed(Frame::Ping { clock: 1 }).repeat(1_000).into();
        let mut times = 0;
        while stream.write_all(&endless).await.is_ok() && times < 1_000 {
            times += 1;
        }
        times
    };
    let name = NodeId::new("zz").unwrap();
    site.announce(&name, listener.local_addr().unwrap()).await;
    let times = timeout(Duration::from_secs(20), flood).await;
    assert!(times.expect("it is dialled, and closed") < 1_000);
    let lost_only = |lost: &[NodeId]| lost.iter().all(|node| *node == name);
    for member in &members {
        member.open(&room("after")).await;
    }
    for member in &members {
        member.until_others(&room("after"), 1).await;
        assert!(lost_only(&member.told.lock().unwrap().lost));
    }
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
