#![no_main]
//! TURN: the bytes are a stream of messages of one client, which has an allocation if the first
//! byte is odd. Each message is handled unchanged, and with credentials.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use portunus_turn::{
    Action, Client, Keychain, Limits, MediaAddress, MediaAddresses, Now, Shared, frame,
};

fuzz_target!(|data: &[u8]| {
    let [first, stream @ ..] = data else { return };
    let now = Now {
        instant: Instant::now(),
        unix: 1_700_000_000,
    };
    let limits = Limits {
        allocations: 4,
        allocations_per_address: 4,
        lifetime: Duration::from_secs(3_600),
    };
    let bound = SocketAddr::from(([10, 0, 0, 5], 10_000));
    let announced = SocketAddr::from(([203, 0, 113, 7], 20_000));
    let media = MediaAddresses::new([MediaAddress { announced, bound }]);
    let shared = Shared::new(
        Keychain::new(b"secret"),
        [7; 32],
        limits,
        media,
        now.instant,
    );
    let mut client = Client::new(SocketAddr::from(([192, 0, 2, 1], 5_000)));
    if first & 1 == 1 {
        let request = shared.signed(client.address(), 3, &[0, 0x19, 0, 4, 17, 0, 0, 0], now);
        receive(&mut client, &shared, &request, now);
        assert!(client.is_allocated(now));
    }
    let mut rest = stream;
    while let Ok(Some((len, next))) = frame(rest) {
        let message = &rest[..len];
        rest = &rest[next..];
        receive(&mut client, &shared, message, now);
        if let [high, low, _, _, body @ ..] = message
            && high >> 6 == 0
        {
            let method = u16::from_be_bytes([*high, *low]);
            let attributes = body.get(16..).unwrap_or_default();
            let request = shared.signed(client.address(), method, attributes, now);
            receive(&mut client, &shared, &request, now);
        }
    }
    receive(&mut client, &shared, rest, now);
    let mut head = Vec::new();
    client.envelop(&shared, bound, rest, now, &mut head);
});

/// Nothing but media addresses is ever sent to.
fn receive(client: &mut Client, shared: &Shared, message: &[u8], now: Now) {
    match client.receive(shared, message, now) {
        Action::Open(pending) => {
            let relay = SocketAddr::new(pending.bind, 40_000);
            let response = client.opened(shared, pending, Some(relay), now);
            assert!(!response.is_empty());
        }
        Action::Relay { to, .. } => assert_eq!(to, SocketAddr::from(([10, 0, 0, 5], 10_000))),
        Action::Reply(response) | Action::Released(response) => assert!(!response.is_empty()),
        Action::Nothing => {}
    }
}
