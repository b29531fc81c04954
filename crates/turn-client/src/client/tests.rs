#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::net::SocketAddr;

use portunus_turn::{Action, Keychain, Limits, MediaAddress, MediaAddresses, Now, Shared};
use proptest::prelude::*;

use super::*;

const CLIENT: &str = "192.0.2.1:10000";
const RELAYED: &str = "203.0.113.7:40000";
const PEER: &str = "198.51.100.1:5000";
/// Another port of the peer's NAT.
const PEER_ELSEWHERE: &str = "198.51.100.1:5001";
const UNIX: u64 = 1_700_000_000;
const LIFETIME: Duration = Duration::from_secs(3_600);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A client and a server in virtual time. Each datagram is lost with a probability.
struct Bench {
    shared: Shared,
    server: portunus_turn::Client,
    client: Client,
    now: Now,
    /// The loss, in 256ths.
    loss: u32,
    random: u32,
    is_server_gone: bool,
    /// The datagrams relayed to peers.
    relayed: Vec<(SocketAddr, Vec<u8>)>,
}

impl Bench {
    fn new() -> Self {
        Self::with_loss(0)
    }

    fn with_loss(loss: u32) -> Self {
        let now = Now {
            instant: Instant::now(),
            unix: UNIX,
        };
        let limits = Limits {
            allocations: 10,
            allocations_per_address: 10,
            lifetime: LIFETIME,
        };
        let to = |text| MediaAddress {
            announced: address(text),
            bound: address(text),
        };
        let media = MediaAddresses::new([to(PEER), to(PEER_ELSEWHERE)]);
        let shared = Shared::new(
            Keychain::new(b"secret"),
            [1; 32],
            limits,
            media,
            now.instant,
        );
        let login = login("secret");
        Bench {
            shared,
            server: portunus_turn::Client::new(address(CLIENT)),
            client: Client::new(1, login, now.instant),
            now,
            loss,
            random: 1,
            is_server_gone: false,
            relayed: Vec::new(),
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.random >> 24 < self.loss
    }

    /// Exchanges datagrams until both are done.
    fn talk(&mut self) {
        while let Some(datagram) = self.client.poll_transmit() {
            if !self.is_lost() && !self.is_server_gone {
                self.serve(&datagram);
            }
        }
    }

    fn serve(&mut self, datagram: &[u8]) {
        let (shared, now) = (&self.shared, self.now);
        let response = match self.server.receive(shared, datagram, now) {
            Action::Nothing => return,
            Action::Reply(response) | Action::Released(response) => response,
            Action::Open(pending) => {
                self.server
                    .opened(shared, pending, Some(address(RELAYED)), now)
            }
            Action::Relay { to, data } => {
                let data = data.to_vec();
                return self.relayed.push((to, data));
            }
        };
        if !self.is_lost() {
            let received = self.client.receive(self.now.instant, &response);
            // A late response belongs to an answered request.
            assert!(matches!(received, Received::Consumed | Received::Refused));
        }
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let end = self.now.instant + time;
        loop {
            self.talk();
            let next = self.client.poll_timeout().filter(|at| *at <= end);
            let at = next.unwrap_or(end).max(self.now.instant);
            let passed = at - self.now.instant;
            self.now.instant = at;
            self.now.unix = UNIX + (self.now.instant - (end - time)).as_secs();
            self.client.handle_timeout(at);
            if next.is_none() && passed.is_zero() {
                return;
            }
        }
    }

    /// Sends to a peer like the owner of the client.
    fn send(&mut self, peer: &str, data: &[u8]) -> Option<Envelope> {
        let channel = self.client.open(address(peer), self.now.instant)?;
        self.talk();
        let envelope = self.client.envelope(channel)?;
        let datagram = match envelope {
            Envelope::ChannelData(number) => {
                let len = (data.len() as u16).to_be_bytes();
                [&number.to_be_bytes()[..], &len, data].concat()
            }
            Envelope::Indication(peer) => Client::indication(peer, data),
        };
        if !self.is_lost() {
            self.serve(&datagram);
        }
        Some(envelope)
    }

    /// Returns the datagram that the client gets from a peer.
    fn hear(&mut self, peer: &str, data: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        let mut datagram = Vec::new();
        let (shared, now) = (&self.shared, self.now);
        let is_head = self
            .server
            .envelop(shared, address(peer), data, now, &mut datagram)?;
        if is_head {
            datagram.extend(data);
        }
        match self.client.receive(now.instant, &datagram) {
            Received::Peer(from, range) => Some((from, datagram[range].to_vec())),
            _ => None,
        }
    }

    fn event(&mut self) -> Option<Event> {
        self.client.poll_event()
    }
}

fn login(secret: &str) -> Login {
    let login = Keychain::new(secret.as_bytes()).login("media", UNIX + 1_000_000);
    Login {
        username: login.username,
        password: login.password,
    }
}

#[test]
fn datagrams_pass_both_ways_from_the_first_on() {
    let mut bench = Bench::new();
    bench.talk();
    assert_eq!(bench.event(), Some(Event::Allocated(address(RELAYED))));
    assert_eq!(bench.client.relayed(), Some(address(RELAYED)));
    let envelope = bench.send(PEER, b"first");
    assert_eq!(envelope, Some(Envelope::ChannelData(0x4000)));
    assert_eq!(bench.relayed, [(address(PEER), b"first".to_vec())]);
    let heard = bench.hear(PEER, b"back");
    assert_eq!(heard, Some((address(PEER), b"back".to_vec())));
    // A NAT gave the peer another port for the relay. It may send, and gets a channel with the
    // first answer.
    let heard = bench.hear(PEER_ELSEWHERE, b"here");
    assert_eq!(heard, Some((address(PEER_ELSEWHERE), b"here".to_vec())));
    bench.send(PEER_ELSEWHERE, b"there");
    assert_eq!(bench.client.channels(), 2);
    let v6 = "[2001:db8::1]:5000".parse().unwrap();
    assert_eq!(bench.client.open(v6, bench.now.instant), None);
}

#[test]
fn what_is_sent_before_the_channel_is_confirmed_goes_in_an_indication() {
    let mut bench = Bench::new();
    bench.talk();
    // The request arrives, but its response does not.
    let channel = bench.client.open(address(PEER), bench.now.instant).unwrap();
    let request = bench.client.poll_transmit().unwrap();
    let response = bench.server.receive(&bench.shared, &request, bench.now);
    assert!(matches!(response, Action::Reply(_)));
    assert_eq!(
        bench.client.envelope(channel),
        Some(Envelope::Indication(address(PEER)))
    );
    bench.send(PEER, b"early");
    assert_eq!(bench.relayed, [(address(PEER), b"early".to_vec())]);
    // The peer's answer arrives on the unconfirmed channel.
    assert!(bench.hear(PEER, b"back").is_some());
    bench.run(Duration::from_secs(1));
    assert_eq!(
        bench.client.envelope(channel),
        Some(Envelope::ChannelData(0x4000))
    );
}

#[test]
fn the_allocation_and_channels_in_use_outlast_their_lifetimes_and_losses() {
    let mut bench = Bench::with_loss(40);
    bench.run(Duration::from_secs(10));
    assert_eq!(bench.event(), Some(Event::Allocated(address(RELAYED))));
    bench.send(PEER_ELSEWHERE, b"once").unwrap();
    let mut arrived = 0;
    for _ in 0..4_000 {
        bench.relayed.clear();
        bench.send(PEER, b"on and on").unwrap();
        arrived += bench.relayed.len();
        bench.run(Duration::from_secs(5));
        assert_eq!(bench.event(), None, "{:?}", bench.client);
    }
    assert!(arrived > 3_000, "{arrived}");
    bench.loss = 0;
    assert!(bench.hear(PEER, b"still").is_some());
    // Nobody sends to the other peer any more.
    assert_eq!(bench.client.channels(), 1);
}

#[test]
fn a_wrong_password_is_told_from_a_server_that_is_not_there() {
    let mut bench = Bench::new();
    bench.client = Client::new(1, login("guess"), bench.now.instant);
    bench.talk();
    assert_eq!(bench.event(), Some(Event::Failed(Fault::Login)));
    assert_eq!(bench.client.poll_timeout(), None);

    let mut bench = Bench::with_loss(256);
    bench.run(Duration::from_secs(15));
    assert_eq!(bench.event(), None);
    bench.run(Duration::from_secs(1));
    assert_eq!(bench.event(), Some(Event::Failed(Fault::NoAnswer)));
}

#[test]
fn an_allocation_of_a_former_run_makes_room() {
    let mut bench = Bench::new();
    bench.talk();
    bench.client = Client::new(2, login("secret"), bench.now.instant);
    bench.talk();
    assert_eq!(bench.event(), Some(Event::Allocated(address(RELAYED))));
    // An allocation of another user is not released.
    let other = Keychain::new(b"secret").login("another", UNIX + 1_000_000);
    let other = Login {
        username: other.username,
        password: other.password,
    };
    bench.client = Client::new(3, other, bench.now.instant);
    bench.talk();
    assert_eq!(bench.event(), Some(Event::Failed(Fault::Mismatch)));
}

#[test]
fn a_server_that_restarts_or_goes_is_noticed() {
    for is_gone in [false, true] {
        let mut bench = Bench::new();
        bench.talk();
        bench.event().unwrap();
        let channel = bench.client.open(address(PEER), bench.now.instant).unwrap();
        bench.server = portunus_turn::Client::new(address(CLIENT));
        bench.is_server_gone = is_gone;
        bench.run(LIFETIME);
        let fault = match is_gone {
            true => Fault::NoAnswer,
            false => Fault::Ended,
        };
        assert_eq!(bench.event(), Some(Event::Failed(fault)));
        assert_eq!(bench.client.relayed(), None);
        assert_eq!(bench.client.envelope(channel), None);
        assert_eq!(bench.client.open(address(PEER), bench.now.instant), None);
    }
}

#[test]
fn a_channel_of_another_allocation_is_not_used() {
    let mut bench = Bench::new();
    bench.talk();
    let old = bench.client.open(address(PEER), bench.now.instant).unwrap();
    bench.talk();
    bench.client = Client::new(2, login("secret"), bench.now.instant);
    bench.talk();
    bench
        .client
        .open(address(PEER_ELSEWHERE), bench.now.instant)
        .unwrap();
    bench.talk();
    assert_eq!(bench.client.envelope(old), None);
}

#[test]
fn an_allocation_that_is_closed_is_given_back() {
    let mut bench = Bench::new();
    bench.talk();
    assert!(bench.server.is_allocated(bench.now));
    bench.client.close();
    bench.talk();
    assert!(!bench.server.is_allocated(bench.now));
}

#[test]
fn a_response_without_the_servers_signature_is_refused() {
    let mut bench = Bench::new();
    let ask = bench.client.poll_transmit().unwrap();
    bench.serve(&ask);
    let request = bench.client.poll_transmit().unwrap();
    let request = Message::from_bytes(&request).unwrap();
    let builder =
        Message::builder_success(&request, turn_types::stun::message::MessageWriteVec::new());
    let forged = turn_types::stun::prelude::MessageWrite::finish(builder);
    assert_eq!(
        bench.client.receive(bench.now.instant, &forged),
        Received::Refused
    );
}

proptest! {
    #[test]
    fn anything_may_come(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..20),
        spoil in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bench = Bench::new();
        while let Some(datagram) = bench.client.poll_transmit() {
            let (shared, now) = (&bench.shared, bench.now);
            let Action::Reply(mut response) = bench.server.receive(shared, &datagram, now) else {
                break;
            };
            for (at, byte) in &spoil {
                let at = at.index(response.len());
                response[at] = *byte;
            }
            bench.client.receive(now.instant, &response);
        }
        for datagram in &datagrams {
            if let Received::Peer(_, range) = bench.client.receive(bench.now.instant, datagram) {
                prop_assert!(datagram.get(range).is_some());
            }
        }
        bench.client.handle_timeout(bench.now.instant + Duration::from_secs(30));
    }
}
