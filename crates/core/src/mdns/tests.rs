#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_resolver::proto::op::{Message, MessageType, OpCode};
use hickory_resolver::proto::rr::{Name as DnsName, RData, Record, RecordType, rdata};
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

use super::*;

const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
const NAME: &str = "0d7a4f3a-24c9-4c26-9b6b-8d6f3b8f3e9e.local";

/// Starts a responder on the loopback interface that knows one name, as a browser does. Returns its
/// port and the count of queries.
fn responder() -> (u16, Arc<AtomicUsize>) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    socket.bind(&any.into()).unwrap();
    socket
        .join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)
        .unwrap();
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    socket.set_multicast_loop_v4(true).unwrap();
    let socket = UdpSocket::from_std(socket.into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let name = DnsName::from_ascii(format!("{NAME}.")).unwrap();
        let mut buffer = [0; 9_000];
        loop {
            let (len, _) = socket.recv_from(&mut buffer).await.unwrap();
            let Ok(query) = Message::from_vec(&buffer[..len]) else {
                continue;
            };
            let is_it = |it: &hickory_resolver::proto::op::Query| {
                *it.name() == name && it.query_type() == RecordType::A
            };
            if query.metadata.message_type != MessageType::Query || !query.queries.iter().any(is_it)
            {
                continue;
            }
            count.fetch_add(1, Ordering::SeqCst);
            let mut answer = Message::new(0, MessageType::Response, OpCode::Query);
            answer.metadata.authoritative = true;
            let record = Record::from_rdata(name.clone(), 120, RData::A(rdata::A(ADDRESS)));
            answer.add_answer(record);
            let answer = answer.to_vec().unwrap();
            socket.send_to(&answer, (GROUP, port)).await.unwrap();
        }
    });
    (port, asked)
}

#[tokio::test]
async fn a_name_is_resolved_by_its_responder_and_remembered() {
    let (port, asked) = responder();
    let names = MdnsNames::at(port);
    // Two PeerConnections of a page have the same name.
    let found = tokio::join!(names.resolve(NAME), names.resolve(NAME));
    assert_eq!(found, (vec![ADDRESS.into()], vec![ADDRESS.into()]));
    let before = asked.load(Ordering::SeqCst);
    let upper = NAME.to_ascii_uppercase();
    assert_eq!(names.resolve(&upper).await, [IpAddr::from(ADDRESS)]);
    assert_eq!(asked.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn a_name_that_nobody_knows_has_no_address() {
    let (port, _asked) = responder();
    let names = MdnsNames::at(port);
    let began = Instant::now();
    assert_eq!(names.resolve("nobody.local").await, [] as [IpAddr; 0]);
    assert!(began.elapsed() <= PATIENCE + Duration::from_secs(2));
    // That is remembered.
    let began = Instant::now();
    assert_eq!(names.resolve("nobody.local").await, [] as [IpAddr; 0]);
    assert!(began.elapsed() < PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn the_names_that_are_remembered_are_bounded_and_expire() {
    let names = MdnsNames::at(0);
    for n in 0..MOST_NAMES {
        let entry = names.entry(&format!("{n}.local")).unwrap();
        entry.set(vec![ADDRESS.into()]).unwrap();
    }
    assert!(names.entry("one-more.local").is_none());
    assert!(names.entry("7.local").unwrap().initialized());
    tokio::time::advance(LIFETIME).await;
    assert!(!names.entry("7.local").unwrap().initialized());
    assert!(names.entry("one-more.local").is_some());
    assert_eq!(names.names().len(), 2);
}
