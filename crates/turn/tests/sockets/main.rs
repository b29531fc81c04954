//! The server on real sockets, with a client of another project.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::X509;
use openssl::x509::extension::SubjectAlternativeName;
use portunus_turn::{
    MediaAddress, MediaAddresses, Turn, TurnClosed, TurnConfig, TurnRefused, TurnTotals,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use turn_client_proto::api::{TurnClientApi, TurnConfig as Login, TurnEvent};
use turn_types::TurnCredentials;

use client::{Relayed, credentials};

const PATIENCE: Duration = Duration::from_secs(20);
/// The announced address of media, where nothing listens.
const ANNOUNCED: &str = "203.0.113.7:20000";
/// The announced address of a second worker.
const SECOND: &str = "203.0.113.7:20001";

/// Lengths of ChannelData without padding: the client lacks the padding that RFC 8656 section 12.5
/// requires on streams. Browsers have it.
const UNPADDED: &[usize] = &[4, 800, 1_200];

/// A server, and the media socket that it relays to.
struct Bench {
    turn: Turn,
    media: UdpSocket,
    _second: UdpSocket,
    certificate: CertificateDer<'static>,
}

impl Bench {
    async fn start(config: TurnConfig) -> Self {
        let media = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let second = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = |(announced, socket): (&str, &UdpSocket)| MediaAddress {
            announced: announced.parse().unwrap(),
            bound: socket.local_addr().unwrap(),
        };
        let addresses = [(ANNOUNCED, &media), (SECOND, &second)].map(address);
        let addresses = MediaAddresses::new(addresses);
        let (tls, certificate) = tls();
        let turn = Turn::start(&config, addresses).unwrap();
        turn.set_tls(move || tls.clone());
        Bench {
            turn,
            media,
            _second: second,
            certificate,
        }
    }

    fn udp(&self) -> SocketAddr {
        self.turn.udp()[0]
    }

    fn tcp(&self) -> SocketAddr {
        SocketAddr::new("127.0.0.1".parse().unwrap(), self.turn.tcp()[0].port())
    }

    fn tls(&self) -> SocketAddr {
        SocketAddr::new("127.0.0.1".parse().unwrap(), self.turn.tls()[0].port())
    }

    fn login(&self) -> Login {
        credentials(&self.turn.ice_server())
    }

    /// Waits until the totals are as expected.
    async fn until(&self, what: impl Fn(&TurnTotals) -> bool) {
        let reached = async {
            while !what(&self.turn.totals()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            panic!("{:?}", self.turn.totals());
        }
    }

    fn refused(&self, why: TurnRefused) -> u64 {
        self.turn.totals().refused[why as usize]
    }
}

fn config() -> TurnConfig {
    TurnConfig {
        enabled: true,
        host: "localhost".to_owned(),
        port: 0,
        tls: true,
        tls_port: 0,
        ..TurnConfig::default()
    }
}

/// Returns a self-signed certificate for `localhost`.
fn tls() -> (TlsAcceptor, CertificateDer<'static>) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_pubkey(&key).unwrap();
    let (from, to) = (Asn1Time::days_from_now(0), Asn1Time::days_from_now(1));
    builder.set_not_before(&from.unwrap()).unwrap();
    builder.set_not_after(&to.unwrap()).unwrap();
    let names = SubjectAlternativeName::new()
        .dns("localhost")
        .build(&builder.x509v3_context(None, None));
    builder.append_extension(names.unwrap()).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let certificate: CertificateDer<'static> = builder.build().to_der().unwrap().into();
    let key = PrivatePkcs8KeyDer::from(key.private_key_to_pkcs8().unwrap());
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![certificate.clone()], key.into());
    (TlsAcceptor::from(Arc::new(server.unwrap())), certificate)
}

/// Allocates, and exchanges datagrams with the media socket by an indication and by a channel.
async fn exchange<C: TurnClientApi>(bench: &Bench, mut client: Relayed<C>, lens: &[usize]) {
    let announced: SocketAddr = ANNOUNCED.parse().unwrap();
    let relayed = client.allocated().await;
    assert!(relayed.ip().is_loopback());
    assert!(client.permit(announced).await);
    let mut buffer = [0; 2_000];
    for round in 0..2_u8 {
        for &len in lens {
            client.send(announced, &vec![round; len]).await;
            let received = tokio::time::timeout(PATIENCE, bench.media.recv_from(&mut buffer));
            let (received, from) = received.await.expect("a datagram").unwrap();
            assert_eq!(buffer[..received], vec![round; len]);
            assert_eq!(from, relayed);
            bench
                .media
                .send_to(&buffer[..received], from)
                .await
                .unwrap();
            assert_eq!(client.receive().await, (announced, vec![round; len]));
        }
        if round == 0 {
            assert!(client.bind(announced).await);
        }
    }
    assert_eq!(bench.turn.totals().allocations, 1);
    client.delete().await;
    bench.until(|it| it.allocations == 0).await;
}

#[tokio::test]
async fn a_client_is_relayed_by_udp() {
    let bench = Bench::start(config()).await;
    let client = Relayed::udp(bench.udp(), bench.login()).await;
    exchange(&bench, client, &[1, 3, 1_200]).await;
    let totals = bench.turn.totals();
    assert_eq!((totals.to_media, totals.to_clients), (6, 6));
    assert_eq!(totals.to_media_bytes, 2 * 1_204);
}

#[tokio::test]
async fn a_client_is_relayed_by_tcp() {
    let bench = Bench::start(config()).await;
    let client = Relayed::tcp(bench.tcp(), bench.login()).await;
    exchange(&bench, client, UNPADDED).await;
    bench.until(|it| it.connections == 0).await;
}

#[tokio::test]
async fn a_client_is_relayed_by_tls() {
    let bench = Bench::start(config()).await;
    let certificate = bench.certificate.clone();
    let client = Relayed::tls(bench.tls(), certificate, bench.login()).await;
    exchange(&bench, client, UNPADDED).await;
    bench.until(|it| it.connections == 0).await;
}

#[tokio::test]
async fn a_client_is_told_where_all_of_it_is() {
    let bench = Bench::start(config()).await;
    let server = bench.turn.ice_server();
    let (udp, tls) = (bench.udp().port(), bench.tls().port());
    assert_eq!(
        server.urls,
        [
            format!("turn:localhost:{udp}?transport=udp"),
            format!("turn:localhost:{udp}?transport=tcp"),
            format!("turns:localhost:{tls}?transport=tcp"),
        ]
    );
    assert_ne!(server.username, bench.turn.ice_server().username);
}

#[tokio::test]
async fn nobody_else_is_relayed_to() {
    let bench = Bench::start(config()).await;
    let elsewhere = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let announced: SocketAddr = ANNOUNCED.parse().unwrap();
    let mut client = Relayed::udp(bench.udp(), bench.login()).await;
    let relayed = client.allocated().await;
    assert!(!client.permit("192.0.2.1:1".parse().unwrap()).await);
    assert!(!client.bind(elsewhere.local_addr().unwrap()).await);
    assert_eq!(bench.refused(TurnRefused::Forbidden), 2);
    // Datagrams of others at the relay do not reach the client.
    assert!(client.bind(announced).await);
    elsewhere.send_to(b"forged", relayed).await.unwrap();
    bench.media.send_to(b"right", relayed).await.unwrap();
    assert_eq!(client.receive().await, (announced, b"right".to_vec()));
    bench.until(|it| it.unwanted == 1).await;
}

#[tokio::test]
async fn wrong_credentials_get_nothing() {
    let bench = Bench::start(config()).await;
    let right = bench.turn.ice_server();
    let wrong = Login::new(TurnCredentials::new(&right.username, "wrong"));
    let mut client = Relayed::udp(bench.udp(), wrong).await;
    let event = client.event().await;
    assert!(
        matches!(event, TurnEvent::AllocationCreateFailed(_)),
        "{event:?}"
    );
    assert!(bench.refused(TurnRefused::Credentials) >= 1);
    assert_eq!(bench.turn.totals().allocated, 0);
}

#[tokio::test]
async fn thousands_of_allocations_are_not_to_be_had() {
    let bench = Bench::start(TurnConfig {
        max_allocations_per_address: 20,
        ..config()
    })
    .await;
    let login = bench.login();
    let mut clients = Vec::new();
    for _ in 0..25 {
        let mut client = Relayed::udp(bench.udp(), login.clone()).await;
        let event = client.event().await;
        let is_made = matches!(event, TurnEvent::AllocationCreated(..));
        assert_eq!(is_made, clients.len() < 20, "{event:?}");
        clients.push(client);
    }
    assert_eq!(bench.turn.totals().allocations, 20);
    assert_eq!(bench.refused(TurnRefused::Quota), 5);
    // A client that leaves makes room.
    clients[0].delete().await;
    bench.until(|it| it.allocations == 19).await;
    Relayed::udp(bench.udp(), login).await.allocated().await;
}

#[tokio::test]
async fn connections_of_an_address_are_limited() {
    let bench = Bench::start(TurnConfig {
        max_connections_per_address: 2,
        ..config()
    })
    .await;
    let _held = TcpStream::connect(bench.tcp()).await.unwrap();
    let _half_open = TcpStream::connect(bench.tls()).await.unwrap();
    bench.until(|it| it.connections == 2).await;
    let mut refused = TcpStream::connect(bench.tcp()).await.unwrap();
    assert_eq!(refused.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(bench.turn.totals().closed[TurnClosed::Limit as usize], 1);
}

#[tokio::test]
async fn a_connection_that_does_not_speak_turn_is_closed() {
    let bench = Bench::start(config()).await;
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xFF; 100], &[0; 40]] {
        let mut stream = TcpStream::connect(bench.tcp()).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        // Closed, or reset because of unread data.
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0])).await;
        assert!(matches!(read.unwrap(), Ok(0) | Err(_)));
    }
    bench
        .until(|it| it.closed[TurnClosed::Malformed as usize] == 3)
        .await;
    let mut stream = TcpStream::connect(bench.tls()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    bench
        .until(|it| it.closed[TurnClosed::Tls as usize] == 1)
        .await;
}

/// The clock advances once all tasks wait.
#[tokio::test(start_paused = true)]
async fn half_open_and_idle_connections_are_closed() {
    let bench = Bench::start(config()).await;
    let mut half_open = TcpStream::connect(bench.tls()).await.unwrap();
    let mut idle = TcpStream::connect(bench.tcp()).await.unwrap();
    assert_eq!(half_open.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    let closed = bench.turn.totals().closed;
    assert_eq!(closed[TurnClosed::Handshake as usize], 1);
    assert_eq!(closed[TurnClosed::Idle as usize], 1);
    assert_eq!(bench.turn.totals().connections, 0);
}

#[tokio::test]
async fn who_does_not_read_is_sent_what_its_queue_holds_and_then_closed() {
    let bench = Bench::start(TurnConfig {
        max_queue: 64 << 10,
        ..config()
    })
    .await;
    let announced: SocketAddr = ANNOUNCED.parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let stream = socket.connect(bench.tcp()).await.unwrap();
    let local = stream.local_addr().unwrap();
    let login = bench.login();
    let mut client = Relayed::stream(Box::new(stream), bench.tcp(), local, login);
    let relayed = client.allocated().await;
    assert!(client.bind(announced).await);
    // Others are served meanwhile.
    let mut other = Relayed::udp(bench.udp(), bench.login()).await;
    other.allocated().await;
    let flooded = async {
        while bench.turn.totals().dropped < 100 {
            bench.media.send_to(&[7; 1_000], relayed).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, flooded).await.unwrap();
    assert!(other.bind(announced).await);
    bench
        .until(|it| it.closed[TurnClosed::Slow as usize] == 1)
        .await;
    bench.until(|it| it.allocations == 1).await;
}

#[tokio::test]
async fn a_stopped_server_closes_its_sockets() {
    let bench = Bench::start(config()).await;
    let mut stream = TcpStream::connect(bench.tcp()).await.unwrap();
    bench.until(|it| it.connections == 1).await;
    Relayed::udp(bench.udp(), bench.login())
        .await
        .allocated()
        .await;
    bench.turn.stop();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    bench
        .until(|it| it.allocations == 0 && it.connections == 0)
        .await;
}
