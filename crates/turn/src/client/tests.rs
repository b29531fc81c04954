#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::time::{Duration, Instant};

use turn_types::attribute::{
    ChannelNumber, DontFragment, EvenPort, Lifetime, RequestedAddressFamily, RequestedTransport,
    XorRelayedAddress,
};
use turn_types::message::{
    ALLOCATE, CHANNEL_BIND, CONNECT, CREATE_PERMISSION, DATA, REFRESH, SEND,
};
use turn_types::stun::attribute::AttributeWrite;
use turn_types::stun::message::{MessageWriteVec, Method};
use turn_types::stun::prelude::{MessageWrite, MessageWriteExt};

use turn_types::AddressFamily;

use super::*;
use crate::{Keychain, Limits, Login, MediaAddress, MediaAddresses};

/// The bound address of media, and the announced one.
const BOUND: &str = "10.0.0.5:10000";
const ANNOUNCED: &str = "203.0.113.7:20000";
const ELSEWHERE: &str = "198.51.100.9:10000";

const UNIX: u64 = 1_700_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn media() -> MediaAddresses {
    let one = |announced, bound| MediaAddress {
        announced: address(announced),
        bound: address(bound),
    };
    MediaAddresses::new([
        one(ANNOUNCED, BOUND),
        one("[2001:db8::5]:10000", "[2001:db8::5]:10000"),
    ])
}

/// A server, and a client that knows its nonce and has a login.
struct Bench {
    shared: Shared,
    client: Client,
    now: Now,
    login: Login,
    nonce: String,
}

impl Bench {
    fn new() -> Self {
        Self::with_allocations(10)
    }

    fn with_allocations(allocations: usize) -> Self {
        let instant = Instant::now();
        let limits = Limits {
            allocations,
            allocations_per_address: 2,
            lifetime: Duration::from_secs(3_600),
        };
        let shared = Shared::new(Keychain::new(b"secret"), [1; 32], limits, media(), instant);
        let login = shared.keychain.login("test", UNIX + 600);
        let mut bench = Bench {
            shared,
            client: Client::new(address("192.0.2.1:5000")),
            now: Now {
                instant,
                unix: UNIX,
            },
            login,
            nonce: String::new(),
        };
        let response = bench.answer(&request(ALLOCATE, &[&UDP]).finish());
        bench.learn(&response);
        bench
    }

    fn later(&mut self, seconds: u64) {
        self.now.instant += Duration::from_secs(seconds);
        self.now.unix += seconds;
    }

    /// Stores the nonce of a response.
    fn learn(&mut self, response: &[u8]) {
        let message = Message::from_bytes(response).unwrap();
        self.nonce = message.attribute::<Nonce>().unwrap().nonce().to_owned();
        assert_eq!(message.attribute::<Realm>().unwrap().realm(), REALM);
    }

    fn key(&self) -> IntegrityKey {
        let (name, password) = (self.login.username.clone(), self.login.password.clone());
        let login = LongTermKeyCredentials::new(name, password, REALM.to_owned());
        login.make_key(IntegrityAlgorithm::Sha1)
    }

    /// Returns a request with credentials.
    fn signed(&self, method: Method, attributes: &[&dyn AttributeWrite]) -> Vec<u8> {
        self.sign(request(method, attributes))
    }

    fn sign(&self, mut builder: MessageWriteVec) -> Vec<u8> {
        let name = Username::new(&self.login.username).unwrap();
        builder.add_attribute(&name).unwrap();
        builder.add_attribute(&Realm::new(REALM).unwrap()).unwrap();
        builder
            .add_attribute(&Nonce::new(&self.nonce).unwrap())
            .unwrap();
        let sha1 = IntegrityAlgorithm::Sha1;
        builder
            .add_message_integrity_with_key(&self.key(), sha1)
            .unwrap();
        builder.finish()
    }

    /// Returns the answer to the client. A relay socket can be opened.
    fn answer(&mut self, datagram: &[u8]) -> Vec<u8> {
        match self.client.receive(&self.shared, datagram, self.now) {
            Action::Reply(response) | Action::Released(response) => response,
            Action::Open(pending) => {
                let relay = SocketAddr::new(pending.bind, 40_000);
                self.client
                    .opened(&self.shared, pending, Some(relay), self.now)
            }
            other => panic!("no answer but {other:?}"),
        }
    }

    /// Returns the error code of the response to a signed request. 0 means success. All but
    /// requests for credentials are signed.
    fn code(&mut self, method: Method, attributes: &[&dyn AttributeWrite]) -> u16 {
        let datagram = self.signed(method, attributes);
        let response = self.answer(&datagram);
        let message = Message::from_bytes(&response).unwrap();
        let code = message.attribute::<ErrorCode>().map_or(0, |it| it.code());
        let is_challenge = [401, 438].contains(&code);
        let is_signed = message.validate_integrity_with_key(&self.key()).is_ok();
        assert_eq!(is_signed, !is_challenge, "{code}");
        code
    }

    fn allocate(&mut self) {
        assert_eq!(self.code(ALLOCATE, &[&UDP]), 0);
    }

    fn refused(&self, why: TurnRefused) -> u64 {
        self.shared.totals().refused[why as usize]
    }

    /// Returns the destination of a client's datagram.
    fn relayed(&mut self, datagram: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        match self.client.receive(&self.shared, datagram, self.now) {
            Action::Relay { to, data } => Some((to, data.to_vec())),
            Action::Nothing => None,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the client's data for a datagram at the relay socket.
    fn delivered(&self, from: &str, data: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let client = &self.client;
        if client.envelop(&self.shared, address(from), data, self.now, &mut out)? {
            out.extend(data);
        }
        Some(out)
    }
}

const UDP: UdpTransport = UdpTransport;

/// REQUESTED-TRANSPORT of UDP, which has no constant of its own.
#[derive(Debug)]
struct UdpTransport;

impl Attribute for UdpTransport {
    fn get_type(&self) -> AttributeType {
        RequestedTransport::TYPE
    }

    fn length(&self) -> u16 {
        4
    }
}

impl AttributeWrite for UdpTransport {
    fn to_raw(&self) -> turn_types::stun::attribute::RawAttribute<'_> {
        turn_types::stun::attribute::RawAttribute::new(RequestedTransport::TYPE, &[17, 0, 0, 0])
    }

    fn write_into_unchecked(&self, dest: &mut [u8]) {
        RequestedTransport::new(RequestedTransport::UDP).write_into_unchecked(dest);
    }
}

fn request(method: Method, attributes: &[&dyn AttributeWrite]) -> MessageWriteVec {
    let mut builder = Message::builder_request(method, MessageWriteVec::new());
    for attribute in attributes {
        builder.add_attribute(*attribute).unwrap();
    }
    builder
}

/// Sends a request with a peer.
fn with_peer(bench: &Bench, method: Method, peer: &str, number: Option<u16>) -> Vec<u8> {
    let mut builder = request(method, &[]);
    let peer = XorPeerAddress::new(address(peer), builder.transaction_id());
    builder.add_attribute(&peer).unwrap();
    if let Some(number) = number {
        builder.add_attribute(&ChannelNumber::new(number)).unwrap();
    }
    bench.sign(builder)
}

fn code_of(response: &[u8]) -> u16 {
    let message = Message::from_bytes(response).unwrap();
    message.attribute::<ErrorCode>().map_or(0, |it| it.code())
}

fn permit(bench: &mut Bench, peer: &str) -> u16 {
    let datagram = with_peer(bench, CREATE_PERMISSION, peer, None);
    code_of(&bench.answer(&datagram))
}

fn bind(bench: &mut Bench, peer: &str, number: u16) -> u16 {
    let datagram = with_peer(bench, CHANNEL_BIND, peer, Some(number));
    code_of(&bench.answer(&datagram))
}

fn send(peer: &str, data: &[u8]) -> Vec<u8> {
    let mut builder = Message::builder_indication(SEND, MessageWriteVec::new());
    let peer = XorPeerAddress::new(address(peer), builder.transaction_id());
    builder.add_attribute(&peer).unwrap();
    builder.add_attribute(&Data::new(data)).unwrap();
    builder.finish()
}

#[test]
fn an_allocation_tells_the_relays_address_and_the_clients_own() {
    let mut bench = Bench::new();
    let datagram = bench.signed(ALLOCATE, &[&UDP, &Lifetime::new(1_000)]);
    let response = bench.answer(&datagram);
    let message = Message::from_bytes(&response).unwrap();
    let id = message.transaction_id();
    let relayed = message.attribute::<XorRelayedAddress>().unwrap().addr(id);
    assert_eq!(relayed, address("10.0.0.5:40000"));
    let mapped = message.attribute::<XorMappedAddress>().unwrap().addr(id);
    assert_eq!(mapped, address("192.0.2.1:5000"));
    assert_eq!(message.attribute::<Lifetime>().unwrap().seconds(), 1_000);
    assert_eq!(bench.shared.totals().allocations, 1);
    // The response got lost.
    let again = bench.answer(&datagram);
    let again = Message::from_bytes(&again).unwrap();
    assert!(again.has_attribute(XorRelayedAddress::TYPE));
    assert_eq!(bench.shared.totals().allocated, 1);
    // Another request is for another allocation.
    assert_eq!(bench.code(ALLOCATE, &[&UDP]), 437);
}

#[test]
fn credentials_have_to_be_right_and_fresh() {
    let mut bench = Bench::new();
    let right = bench.login.clone();
    bench.login.password.push('x');
    assert_eq!(bench.code(ALLOCATE, &[&UDP]), 401);
    assert_eq!(bench.refused(TurnRefused::Credentials), 1);
    for name in ["nobody", "", "1700000600", "1700000600:other"] {
        bench.login = Login {
            username: name.to_owned(),
            ..right.clone()
        };
        assert_eq!(bench.code(ALLOCATE, &[&UDP]), 401, "{name}");
    }
    bench.login = bench.shared.keychain.login("test", UNIX - 1);
    assert_eq!(bench.code(ALLOCATE, &[&UDP]), 401);
    assert_eq!(bench.refused(TurnRefused::Expired), 1);
    bench.login = right;
    bench.allocate();
}

#[test]
fn a_stale_nonce_is_replaced() {
    let mut bench = Bench::new();
    bench.login = bench.shared.keychain.login("test", UNIX + 10_000);
    bench.later(601);
    let datagram = bench.signed(ALLOCATE, &[&UDP]);
    let response = bench.answer(&datagram);
    assert_eq!(code_of(&response), 438);
    assert_eq!(bench.refused(TurnRefused::Nonce), 1);
    bench.learn(&response);
    bench.allocate();
}

#[test]
fn a_request_that_says_too_little_is_malformed() {
    let mut bench = Bench::new();
    let mut builder = request(ALLOCATE, &[&UDP]);
    let sha1 = IntegrityAlgorithm::Sha1;
    builder
        .add_message_integrity_with_key(&bench.key(), sha1)
        .unwrap();
    let response = bench.answer(&builder.finish());
    assert_eq!(code_of(&response), 400);
    for (attributes, expected) in [
        (vec![], 400),
        (
            vec![&RequestedTransport::new(6) as &dyn AttributeWrite],
            442,
        ),
        (vec![&UDP as _, &EvenPort::new(true)], 508),
        (vec![&UDP as _, &DontFragment::new()], 420),
    ] {
        assert_eq!(bench.code(ALLOCATE, &attributes), expected);
    }
    assert_eq!(bench.code(CONNECT, &[]), 400);
    bench.allocate();
}

#[test]
fn only_this_servers_media_is_relayed_to() {
    let mut bench = Bench::new();
    bench.allocate();
    assert_eq!(permit(&mut bench, ELSEWHERE), 403);
    assert_eq!(bind(&mut bench, ELSEWHERE, 0x4000), 403);
    // A port of this machine outside of media.
    assert_eq!(bind(&mut bench, "203.0.113.7:22", 0x4000), 403);
    assert_eq!(bind(&mut bench, "10.0.0.5:22", 0x4000), 403);
    assert_eq!(permit(&mut bench, "[2001:db8::5]:10000"), 443);
    assert_eq!(bench.refused(TurnRefused::Forbidden), 4);
    assert_eq!(permit(&mut bench, ANNOUNCED), 0);
    for peer in [ELSEWHERE, "203.0.113.7:22", "127.0.0.1:10000"] {
        assert_eq!(bench.relayed(&send(peer, b"x")), None, "{peer}");
    }
    assert_eq!(bench.refused(TurnRefused::Forbidden), 7);
    assert_eq!(bench.delivered(ELSEWHERE, b"x"), None);
    assert_eq!(bench.delivered("10.0.0.5:22", b"x"), None);
}

#[test]
fn a_permission_is_for_one_peer_and_expires() {
    let mut bench = Bench::new();
    bench.allocate();
    let to_media = send(ANNOUNCED, b"hello");
    assert_eq!(bench.relayed(&to_media), None);
    assert_eq!(bench.delivered(BOUND, b"hello"), None);
    assert_eq!(permit(&mut bench, ANNOUNCED), 0);
    let expected = Some((address(BOUND), b"hello".to_vec()));
    assert_eq!(bench.relayed(&to_media), expected);
    // The announced address was permitted, not the bound one.
    assert_eq!(bench.relayed(&send(BOUND, b"hello")), None);
    let delivered = bench.delivered(BOUND, b"world").unwrap();
    let message = Message::from_bytes(&delivered).unwrap();
    assert!(message.has_method(DATA));
    assert_eq!(message.attribute::<Data>().unwrap().data(), b"world");
    let peer = message.attribute::<XorPeerAddress>().unwrap();
    assert_eq!(peer.addr(message.transaction_id()), address(ANNOUNCED));
    bench.later(300);
    assert_eq!(bench.relayed(&to_media), None);
    assert_eq!(bench.delivered(BOUND, b"world"), None);
    assert!(bench.shared.totals().unwanted >= 4);
}

#[test]
fn a_channel_carries_both_ways() {
    let mut bench = Bench::new();
    bench.allocate();
    for number in [0x3FFF, 0x8000] {
        assert_eq!(bind(&mut bench, ANNOUNCED, number), 400);
    }
    assert_eq!(bind(&mut bench, ANNOUNCED, 0x4001), 0);
    let data = [0x40, 1, 0, 5, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
    let expected = Some((address(BOUND), b"hello".to_vec()));
    assert_eq!(bench.relayed(&data), expected);
    assert_eq!(bench.relayed(&data[..9]), expected);
    assert_eq!(bench.relayed(&data[..8]), None);
    assert_eq!(bench.relayed(&[0x40, 2, 0, 1, b'h']), None);
    assert_eq!(
        bench.delivered(BOUND, b"hi").unwrap(),
        [0x40, 1, 0, 2, b'h', b'i']
    );
    // A channel has one peer.
    assert_eq!(bind(&mut bench, ANNOUNCED, 0x4002), 400);
    assert_eq!(bind(&mut bench, BOUND, 0x4001), 400);
    assert_eq!(bind(&mut bench, ANNOUNCED, 0x4001), 0);
    bench.later(299);
    assert_eq!(permit(&mut bench, ANNOUNCED), 0);
    bench.later(299);
    assert_eq!(bench.relayed(&data), expected);
    assert_eq!(permit(&mut bench, ANNOUNCED), 0);
    bench.later(2);
    assert_eq!(bench.relayed(&data), None, "the channel has expired");
    let delivered = bench.delivered(BOUND, b"hi").unwrap();
    assert_eq!(delivered[..2], [0, 0x17], "an indication");
}

#[test]
fn the_client_hears_a_socket_by_the_name_that_it_last_used() {
    let mut bench = Bench::new();
    bench.allocate();
    assert_eq!(bind(&mut bench, ANNOUNCED, 0x4001), 0);
    assert_eq!(bind(&mut bench, BOUND, 0x4002), 0);
    for number in [1, 2, 1] {
        bench.relayed(&[0x40, number, 0, 1, 7]).unwrap();
        let delivered = bench.delivered(BOUND, &[8]).unwrap();
        assert_eq!(delivered, [0x40, number, 0, 1, 8]);
    }
}

#[test]
fn an_allocation_lasts_until_it_is_released_or_expires() {
    let mut bench = Bench::new();
    bench.allocate();
    bench.later(599);
    // The credentials have expired too, which does not matter with an allocation.
    assert_eq!(bench.code(REFRESH, &[&Lifetime::new(1)]), 0);
    bench.later(2);
    let response = {
        let datagram = bench.signed(REFRESH, &[]);
        bench.answer(&datagram)
    };
    assert_eq!(code_of(&response), 438);
    bench.learn(&response);
    assert_eq!(
        bench.code(
            REFRESH,
            &[&RequestedAddressFamily::new(AddressFamily::IPV6)]
        ),
        443
    );
    let datagram = bench.signed(REFRESH, &[&Lifetime::new(100_000)]);
    let response = bench.answer(&datagram);
    let granted = Message::from_bytes(&response).unwrap();
    assert_eq!(granted.attribute::<Lifetime>().unwrap().seconds(), 3_600);
    let datagram = bench.signed(REFRESH, &[&Lifetime::new(0)]);
    let action = bench.client.receive(&bench.shared, &datagram, bench.now);
    assert!(matches!(action, Action::Released(_)), "{action:?}");
    assert_eq!(bench.shared.totals().allocations, 0);
    assert_eq!(bench.code(REFRESH, &[]), 437);
    bench.login = bench.shared.keychain.login("test", bench.now.unix + 600);
    bench.allocate();
    bench.later(600);
    assert!(!bench.client.is_allocated(bench.now));
}

#[test]
fn an_allocation_is_its_users() {
    let mut bench = Bench::new();
    bench.allocate();
    bench.login = bench.shared.keychain.login("other", UNIX + 600);
    assert_eq!(bench.code(REFRESH, &[]), 441);
    assert_eq!(permit(&mut bench, ANNOUNCED), 441);
    assert_eq!(bench.refused(TurnRefused::User), 2);
}

#[test]
fn allocations_are_limited_for_an_address_and_for_all() {
    let mut bench = Bench::with_allocations(3);
    let mut clients = Vec::new();
    let mut from = |bench: &mut Bench, ip: &str, port: u16| {
        let client = Client::new(SocketAddr::new(ip.parse().unwrap(), port));
        clients.push(std::mem::replace(&mut bench.client, client));
        let response = bench.answer(&request(ALLOCATE, &[&UDP]).finish());
        bench.learn(&response);
        bench.code(ALLOCATE, &[&UDP])
    };
    assert_eq!(from(&mut bench, "192.0.2.1", 1), 0);
    assert_eq!(from(&mut bench, "192.0.2.1", 2), 0);
    assert_eq!(from(&mut bench, "192.0.2.1", 3), 486);
    assert_eq!(from(&mut bench, "192.0.2.2", 1), 0);
    assert_eq!(from(&mut bench, "192.0.2.3", 1), 508);
    assert_eq!(bench.refused(TurnRefused::Quota), 1);
    assert_eq!(bench.refused(TurnRefused::Capacity), 1);
    assert_eq!(bench.shared.totals().allocations, 3);
}

#[test]
fn a_relay_socket_that_cannot_be_opened_is_lack_of_capacity() {
    let mut bench = Bench::new();
    let datagram = bench.signed(ALLOCATE, &[&UDP]);
    let Action::Open(pending) = bench.client.receive(&bench.shared, &datagram, bench.now) else {
        panic!("no socket is wanted");
    };
    let response = bench.client.opened(&bench.shared, pending, None, bench.now);
    assert_eq!(code_of(&response), 508);
    assert_eq!(bench.shared.totals().allocations, 0);
    bench.allocate();
}

#[test]
fn ipv6_is_relayed_to_ipv6() {
    let mut bench = Bench::new();
    let family = RequestedAddressFamily::new(AddressFamily::IPV6);
    assert_eq!(bench.code(ALLOCATE, &[&UDP, &family]), 0);
    assert_eq!(permit(&mut bench, ANNOUNCED), 443);
    assert_eq!(bind(&mut bench, "[2001:db8::5]:10000", 0x4000), 0);
    let relayed = bench.relayed(&[0x40, 0, 0, 1, 7]).unwrap();
    assert_eq!(relayed, (address("[2001:db8::5]:10000"), vec![7]));
}

#[test]
fn changed_addresses_of_media_count_from_the_next_request_on() {
    let mut bench = Bench::new();
    bench.allocate();
    assert_eq!(bind(&mut bench, ANNOUNCED, 0x4000), 0);
    let other = "203.0.113.8:20000";
    bench.shared.set_media(MediaAddresses::new([MediaAddress {
        announced: address(other),
        bound: address(BOUND),
    }]));
    assert_eq!(permit(&mut bench, ANNOUNCED), 403);
    assert_eq!(bind(&mut bench, other, 0x4001), 0);
    let relayed = bench.relayed(&[0x40, 1, 0, 1, 7]).unwrap();
    assert_eq!(relayed.0, address(BOUND));
}

#[test]
fn strangers_are_answered_so_often_and_with_little() {
    let mut bench = Bench::new();
    let asked = request(ALLOCATE, &[&UDP]).finish();
    let answered = bench.answer(&asked);
    // With the headers of IPv4 and UDP, the answer is less than twice as long as the request.
    assert!(
        answered.len() + 28 < 2 * (asked.len() + 28),
        "{}",
        answered.len()
    );
    let binding = request(BINDING, &[]).finish();
    let answers = (0..1_000)
        .filter(|_| {
            let action = bench.client.receive(&bench.shared, &binding, bench.now);
            matches!(action, Action::Reply(_))
        })
        .count();
    assert!(answers < 200, "{answers}");
    assert!(bench.shared.totals().unanswered > 800);
    bench.allocate();
}

#[test]
fn garbage_is_counted_and_nothing_else() {
    let mut bench = Bench::new();
    bench.allocate();
    let before = bench.shared.totals().garbage;
    let whole = bench.signed(REFRESH, &[]);
    let longer = [&whole[..], &[0; 4]].concat();
    let garbage: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1",
        &[0],
        &[0x40, 0],
        &[0xFF; 40],
        &whole[..whole.len() - 1],
        &whole[..30],
        &longer,
    ];
    for datagram in garbage {
        let action = bench.client.receive(&bench.shared, datagram, bench.now);
        assert!(matches!(action, Action::Nothing), "{datagram:?}");
    }
    assert_eq!(bench.shared.totals().garbage, before + 8);
    assert_eq!(bench.code(REFRESH, &[]), 0);
}

proptest::proptest! {
    #[test]
    fn no_bytes_upset_it(mut bytes: Vec<u8>, position in 0..200_usize, allocated: bool) {
        let mut bench = Bench::new();
        if allocated {
            bench.allocate();
        }
        bench.client.receive(&bench.shared, &bytes, bench.now);
        // A message with small errors.
        let mut message = bench.signed(CREATE_PERMISSION, &[&UDP, &Lifetime::new(5)]);
        bytes.truncate(8);
        for (byte, place) in bytes.iter().zip(position..) {
            if let Some(to) = message.get_mut(place) {
                *to = *byte;
            }
        }
        bench.client.receive(&bench.shared, &message, bench.now);
    }
}
