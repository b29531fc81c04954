//! Sockets of both sides on the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::*;
use crate::net::testing;

const LIMIT: Duration = Duration::from_secs(20);
const ALL: [Transport; 5] = [
    Transport::Udp,
    Transport::Tcp,
    Transport::Tls,
    Transport::Ws,
    Transport::Wss,
];

fn config(transport: Transport) -> Config {
    Config {
        listen: vec![Listen {
            transport,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
        }],
        tls: testing::certificate(),
        ..Config::default()
    }
}

fn bind(transport: Transport, change: impl FnOnce(&mut Config)) -> (Sockets, SocketAddr) {
    let mut config = config(transport);
    change(&mut config);
    let sockets = Sockets::bind(&config).unwrap();
    let address = sockets.listening()[0].address;
    (sockets, address)
}

fn target(transport: Transport, remote: SocketAddr) -> Route {
    Route::Target(Target {
        transport,
        remote,
        host: Host::Name("localhost".to_owned()),
    })
}

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

/// A message as a stream needs it.
fn message(number: u32) -> Arc<[u8]> {
    bytes(&format!(
        "OPTIONS sip:a SIP/2.0\r\nCSeq: {number} OPTIONS\r\nl: 0\r\n\r\n"
    ))
}

async fn told(sockets: &mut Sockets) -> Told {
    timeout(LIMIT, sockets.next())
        .await
        .expect("something happens")
}

async fn received(sockets: &mut Sockets) -> (Flow, Arc<[u8]>) {
    match told(sockets).await {
        Told::Message(flow, bytes) => (flow, bytes.into()),
        other => panic!("{other:?}"),
    }
}

/// What one socket tells, while the other does its own work.
async fn beside<T>(work: impl Future<Output = T>, other: &mut Sockets) -> T {
    tokio::select! {
        done = work => done,
        told = other.next() => panic!("{told:?}"),
    }
}

#[tokio::test]
async fn messages_go_both_ways_over_each_transport() {
    for transport in ALL {
        let (mut one, _) = bind(transport, |_| {});
        let (mut other, address) = bind(transport, |_| {});
        one.send(&target(transport, address), message(1));
        let (flow, first) = beside(received(&mut other), &mut one).await;
        assert_eq!((first, flow.transport), (message(1), transport));
        other.send(&Route::Flow(flow), message(2));
        let (back, second) = beside(received(&mut one), &mut other).await;
        assert_eq!(
            (second, back.remote, back.local),
            (message(2), address, flow.remote),
            "{transport}"
        );
        // The next goes over the same connection.
        one.send(&target(transport, address), message(3));
        let (again, third) = beside(received(&mut other), &mut one).await;
        assert_eq!((third, again), (message(3), flow), "{transport}");
        let expected = usize::from(transport != Transport::Udp);
        assert_eq!(
            (one.connections(), other.connections()),
            (expected, expected)
        );
        // When one side goes, the other hears so.
        if transport != Transport::Udp {
            drop(one);
            let Told::Closed(closed) = told(&mut other).await else {
                panic!()
            };
            assert_eq!(
                (closed, other.connections(), other.accepted.len()),
                (flow, 0, 0)
            );
        }
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_at_once() {
    for transport in ALL {
        for v6 in [false, true] {
            let any: SocketAddr = if v6 {
                "[::1]:0".parse().unwrap()
            } else {
                "127.0.0.1:0".parse().unwrap()
            };
            let nobody = if transport == Transport::Udp {
                std::net::UdpSocket::bind(any)
                    .unwrap()
                    .local_addr()
                    .unwrap()
            } else {
                std::net::TcpListener::bind(any)
                    .unwrap()
                    .local_addr()
                    .unwrap()
            };
            let (mut sockets, _) = bind(transport, |config| config.listen[0].address = any);
            sockets.send(&target(transport, nobody), message(1));
            let Told::Unreachable(how, to) = told(&mut sockets).await else {
                panic!("{transport}")
            };
            assert_eq!((how, to, sockets.connections()), (transport, nobody, 0));
        }
    }
}

#[tokio::test]
async fn refusals_of_one_do_not_hinder_others() {
    let (mut one, _) = bind(Transport::Udp, |_| {});
    let (mut other, address) = bind(Transport::Udp, |_| {});
    let gone = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for number in 0..20 {
        one.send(&target(Transport::Udp, gone), message(number));
        one.send(&target(Transport::Udp, address), message(number));
    }
    for number in 0..20 {
        assert_eq!(received(&mut other).await.1, message(number));
    }
    let Told::Unreachable(_, to) = told(&mut one).await else {
        panic!()
    };
    assert_eq!(to, gone);
}

#[tokio::test]
async fn an_address_of_no_family_that_is_there_is_unreachable() {
    let (mut sockets, _) = bind(Transport::Udp, |_| {});
    sockets.send(
        &target(Transport::Udp, "[::1]:5060".parse().unwrap()),
        message(1),
    );
    assert!(matches!(told(&mut sockets).await, Told::Unreachable(..)));
    let reach = sockets.reach();
    assert!(reach.v4 && !reach.v6 && reach.transports.contains(&Transport::Tls));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let (mut one, _) = bind(Transport::Tls, |_| {});
    let (mut other, address) = bind(Transport::Tls, |_| {});
    let host = Host::Name("example.org".to_owned());
    one.send(
        &Route::Target(Target {
            transport: Transport::Tls,
            remote: address,
            host,
        }),
        message(1),
    );
    let failed = async {
        tokio::select! {
            told = one.next() => told,
            told = other.next() => panic!("{told:?}"),
        }
    };
    assert!(
        matches!(timeout(LIMIT, failed).await.unwrap(), Told::Unreachable(Transport::Tls, to) if to == address)
    );
}

/// Those of one address; and all, of which a quarter is for our own.
#[tokio::test]
async fn connections_are_bounded() {
    for (all, of_address) in [(4_096, 3), (4, 512)] {
        let (mut server, address) = bind(Transport::Tcp, |config| {
            config.limits.connections = all;
            config.limits.connections_per_address = of_address;
        });
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&message(1)).await.unwrap();
            let _ = received(&mut server).await;
            clients.push(client);
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        let closed = beside(async { late.read(&mut [0; 8]).await }, &mut server).await;
        assert!(matches!(closed, Ok(0) | Err(_)));
        assert_eq!((server.refused, server.connections()), (1, 3));
        // There is room again when one goes.
        drop(clients.pop());
        assert!(matches!(told(&mut server).await, Told::Closed(_)));
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(&message(2)).await.unwrap();
        assert_eq!(received(&mut server).await.1, message(2));
    }
}

#[tokio::test]
async fn of_our_connections_the_oldest_makes_room() {
    let (mut one, _) = bind(Transport::Tcp, |config| config.limits.connections = 2);
    let mut others: Vec<(Sockets, SocketAddr)> =
        (0..3).map(|_| bind(Transport::Tcp, |_| {})).collect();
    for (other, address) in &mut others {
        one.send(&target(Transport::Tcp, *address), message(1));
        // The connection is known as open once it was read from.
        let (flow, _) = loop {
            tokio::select! {
                told = other.next() => if let Told::Message(flow, bytes) = told { break (flow, bytes) },
                told = one.next() => assert!(matches!(told, Told::Closed(_)), "{told:?}"),
            }
        };
        other.send(&Route::Flow(flow), message(2));
        while !matches!(told(&mut one).await, Told::Message(..)) {}
    }
    assert_eq!(one.connections(), 2);
    assert!(matches!(told(&mut others[0].0).await, Told::Closed(_)));
}

#[tokio::test]
async fn who_says_nothing_is_let_go_and_keep_alives_are_answered() {
    for transport in [Transport::Tcp, Transport::Ws] {
        let (mut server, address) = bind(transport, |config| {
            config.limits.idle = Duration::from_millis(300)
        });
        let (mut client, _) = bind(transport, |config| {
            config.limits.keep_alive = Duration::from_millis(50)
        });
        client.send(&target(transport, address), message(1));
        let (flow, _) = beside(received(&mut server), &mut client).await;
        // Kept alive for longer than it may be idle.
        let kept = async {
            tokio::select! { told = server.next() => panic!("{told:?}"), told = client.next() => panic!("{told:?}") }
        };
        assert!(timeout(Duration::from_millis(900), kept).await.is_err());
        drop(client);
        assert!(matches!(told(&mut server).await, Told::Closed(closed) if closed == flow));
        let mut silent = TcpStream::connect(address).await.unwrap();
        if transport == Transport::Tcp {
            silent.write_all(b"\r\n\r\n").await.unwrap();
            let mut pong = [0; 2];
            beside(
                async { silent.read_exact(&mut pong).await.unwrap() },
                &mut server,
            )
            .await;
            assert_eq!(&pong, b"\r\n");
            let closed = async { (silent.read(&mut pong).await, server.next().await) };
            assert!(matches!(
                timeout(LIMIT, closed).await.unwrap(),
                (Ok(0), Told::Closed(_))
            ));
        }
    }
}

#[tokio::test]
async fn a_stream_without_messages_ends() {
    let (mut server, address) = bind(Transport::Tcp, |_| {});
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(b"OPTIONS sip:a SIP/2.0\r\nl: -1\r\n\r\n")
        .await
        .unwrap();
    let (flow, head) = received(&mut server).await;
    assert!(crate::message::Message::parse(&head).is_err());
    assert!(matches!(told(&mut server).await, Told::Closed(closed) if closed == flow));
}

#[tokio::test]
async fn a_websocket_without_sip_is_refused() {
    let (mut server, address) = bind(Transport::Ws, |config| {
        config.limits.connect = Duration::from_millis(300)
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat\r\n\r\n";
    client.write_all(upgrade.as_bytes()).await.unwrap();
    let mut answer = String::new();
    beside(
        async { client.read_to_string(&mut answer).await.unwrap() },
        &mut server,
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    // One who says nothing at all is not waited for.
    let mut silent = TcpStream::connect(address).await.unwrap();
    let closed = beside(async { silent.read(&mut [0; 8]).await }, &mut server);
    assert_eq!(timeout(LIMIT, closed).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn what_cannot_be_listened_on_is_told() {
    let (_held, address) = bind(Transport::Tcp, |_| {});
    let mut twice = config(Transport::Tcp);
    twice.listen[0].address = address;
    assert!(matches!(
        Sockets::bind(&twice),
        Err(StartError::Listen { .. })
    ));
    let mut naked = config(Transport::Wss);
    naked.tls.key = None;
    assert!(matches!(
        Sockets::bind(&naked),
        Err(StartError::NoCertificate)
    ));
    let mut missing = config(Transport::Udp);
    missing.tls.authorities = Some("/nowhere.pem".into());
    assert!(matches!(
        Sockets::bind(&missing),
        Err(StartError::File { .. })
    ));
}
