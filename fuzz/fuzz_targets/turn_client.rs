#![no_main]
//! The client of TURN: the bytes are datagrams of its server, each after a byte with its length. If
//! the first byte is odd, the client has an allocation and a channel, else they change its server's
//! answers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use portunus_turn::{Action, Keychain, Limits, MediaAddress, MediaAddresses, Now, Shared};
use portunus_turn_client::{Client, Login, Received};

fuzz_target!(|data: &[u8]| {
    let [first, datagrams @ ..] = data else {
        return;
    };
    let now = Now {
        instant: Instant::now(),
        unix: 1_700_000_000,
    };
    let limits = Limits {
        allocations: 4,
        allocations_per_address: 4,
        lifetime: Duration::from_secs(3_600),
    };
    let peer = SocketAddr::from(([198, 51, 100, 1], 5_000));
    let peers = MediaAddresses::new([MediaAddress {
        announced: peer,
        bound: peer,
    }]);
    let shared = Shared::new(
        Keychain::new(b"secret"),
        [7; 32],
        limits,
        peers,
        now.instant,
    );
    let mut server = portunus_turn::Client::new(SocketAddr::from(([192, 0, 2, 1], 10_000)));
    let login = Keychain::new(b"secret").login("media", now.unix + 600);
    let login = Login {
        username: login.username,
        password: login.password,
    };
    let mut client = Client::new(1, login, now.instant);
    let is_allocated = first & 1 == 1;
    let mut changes = datagrams.chunks_exact(2);
    for _ in 0..8 {
        while let Some(request) = client.poll_transmit() {
            let mut response = match server.receive(&shared, &request, now) {
                Action::Reply(response) | Action::Released(response) => response,
                Action::Open(pending) => {
                    let relay = SocketAddr::new(pending.bind, 40_000);
                    server.opened(&shared, pending, Some(relay), now)
                }
                _ => continue,
            };
            if !is_allocated && let Some([at, byte]) = changes.next() {
                let at = usize::from(*at) % response.len();
                response[at] ^= byte;
            }
            client.receive(now.instant, &response);
        }
        client.open(peer, now.instant);
    }
    if is_allocated {
        assert!(client.relayed().is_some());
    }
    let mut rest = datagrams;
    while let [len, more @ ..] = rest {
        let (datagram, next) = more.split_at(usize::from(*len).min(more.len()));
        if let Received::Peer(_, range) = client.receive(now.instant, datagram) {
            assert!(datagram.get(range).is_some());
        }
        rest = next;
    }
    client.handle_timeout(now.instant + Duration::from_secs(300));
});
