//! Two transports joined by a network.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use portunus_sdp::negotiated::{DtlsRole, IceCredentials, RemoteTransport};

use super::{Link, Network};
use crate::{
    Carrier, Identity, LocalCandidate, Path, Received, Transport, TransportConfig, TransportEvent,
    candidate_lines,
};

/// Returns the identity for tests, which is made once.
pub fn identity() -> Arc<Identity> {
    #[expect(
        clippy::unwrap_used,
        reason = "a test without an identity cannot go on"
    )]
    static IDENTITY: LazyLock<Arc<Identity>> =
        LazyLock::new(|| Arc::new(Identity::generate().unwrap()));
    Arc::clone(&IDENTITY)
}

/// A transport with its events.
#[derive(Debug)]
pub struct Side {
    /// The transport.
    pub transport: Transport,
    /// Its configuration.
    pub config: TransportConfig,
    /// Its DTLS role.
    pub role: DtlsRole,
    /// All of its events.
    pub events: Vec<TransportEvent>,
    /// The received RTP and RTCP packets, decrypted.
    pub packets: Vec<Vec<u8>>,
}

/// Two transports. The left one offers.
#[derive(Debug)]
pub struct Pair {
    /// The virtual time.
    pub now: Instant,
    /// The network between them.
    pub network: Network,
    /// The left one, which controls ICE.
    pub left: Side,
    /// The right one.
    pub right: Side,
}

impl Side {
    /// Makes a side with one candidate.
    pub fn new(name: &str, address: SocketAddr, controlling: bool, role: DtlsRole) -> Self {
        let config = TransportConfig {
            local_ice: credentials(name, 1),
            identity: identity(),
            controlling,
            ice_lite: false,
            candidates: vec![LocalCandidate::udp(address, address)],
            tie_breaker: address.port().into(),
        };
        Self::with(config, role)
    }

    /// Makes a side with any configuration.
    pub fn with(config: TransportConfig, role: DtlsRole) -> Self {
        let transport = Transport::new(config.clone());
        Self {
            transport,
            config,
            role,
            events: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Returns the parameters in this side's SDP.
    pub fn describe(&self) -> RemoteTransport {
        RemoteTransport {
            ice: self.config.local_ice.clone(),
            ice_lite: self.config.ice_lite,
            fingerprints: vec![self.config.identity.fingerprint().clone()],
            dtls_role: match self.role {
                DtlsRole::Client => DtlsRole::Server,
                DtlsRole::Server => DtlsRole::Client,
            },
            candidates: candidate_lines(&self.config.candidates),
        }
    }

    /// Returns whether an event has happened.
    pub fn saw(&self, matches: impl Fn(&TransportEvent) -> bool) -> bool {
        self.events.iter().any(matches)
    }

    fn has(&self, address: SocketAddr) -> bool {
        self.carrier(address).is_some()
    }

    /// Returns the carrier of datagrams to an address of this side.
    fn carrier(&self, address: SocketAddr) -> Option<Carrier> {
        let mut candidates = self.config.candidates.iter();
        let candidate = candidates.find(|candidate| candidate.base == address)?;
        Some(candidate.carrier())
    }
}

impl Pair {
    /// Makes two sides that do not know each other. The left one is the DTLS server, like a server
    /// that offers to a browser.
    pub fn new(seed: u64, link: Link) -> Self {
        let left = Side::new(
            "left",
            ([10, 0, 0, 1], 1_001).into(),
            true,
            DtlsRole::Server,
        );
        let right = Side::new(
            "right",
            ([10, 0, 0, 2], 1_002).into(),
            false,
            DtlsRole::Client,
        );
        Self::of(seed, link, left, right)
    }

    /// Makes two sides that do not know each other.
    pub fn of(seed: u64, link: Link, left: Side, right: Side) -> Self {
        Self {
            now: Instant::now(),
            network: Network::new(seed, link),
            left,
            right,
        }
    }

    /// Passes each side the other's parameters. The right one is first, since it gets the offer.
    #[expect(
        clippy::unwrap_used,
        reason = "a test whose own descriptions are refused cannot go on"
    )]
    pub fn negotiate(&mut self) {
        let (offer, answer) = (self.left.describe(), self.right.describe());
        self.right.transport.set_remote(&offer, self.now).unwrap();
        self.left.transport.set_remote(&answer, self.now).unwrap();
    }

    /// Lets `time` pass.
    pub fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets at most `time` pass, until `done`. Returns whether it is done.
    pub fn run_until(&mut self, time: Duration, done: impl Fn(&Pair) -> bool) -> bool {
        let end = self.now + time;
        loop {
            self.flush();
            if done(self) {
                return true;
            }
            let timeouts = [
                self.left.transport.poll_timeout(),
                self.right.transport.poll_timeout(),
                self.network.poll_timeout(),
            ];
            let Some(next) = timeouts.into_iter().flatten().min().filter(|at| *at < end) else {
                self.now = end;
                return false;
            };
            // An expired deadline must not stop the clock.
            self.now = next.max(self.now + Duration::from_micros(10));
            while let Some(datagram) = self.network.receive(self.now) {
                self.deliver(datagram.source, datagram.destination, datagram.bytes);
            }
            for side in [&mut self.left, &mut self.right] {
                if side
                    .transport
                    .poll_timeout()
                    .is_some_and(|at| at <= self.now)
                {
                    side.transport.handle_timeout(self.now);
                }
            }
        }
    }

    /// Runs until both sides are connected, at most 20 s. Returns whether they are.
    pub fn connect(&mut self) -> bool {
        self.negotiate();
        self.run_until(Duration::from_secs(20), |pair| {
            pair.left.transport.is_connected() && pair.right.transport.is_connected()
        })
    }

    /// Passes a datagram to its receiver.
    pub fn deliver(&mut self, source: SocketAddr, destination: SocketAddr, mut bytes: Vec<u8>) {
        let sides = [&mut self.left, &mut self.right];
        let Some(side) = sides.into_iter().find(|side| side.has(destination)) else {
            return;
        };
        let path = Path {
            carrier: side.carrier(destination).unwrap_or(Carrier::Udp),
            local: destination,
            remote: source,
        };
        match side.transport.receive_by(self.now, path, &mut bytes) {
            Received::Rtp { len, .. } | Received::Rtcp { len } => {
                bytes.truncate(len);
                side.packets.push(bytes);
            }
            Received::Consumed | Received::Dropped(_) => {}
        }
        self.flush();
    }

    /// Takes the output and the events of the sides.
    pub fn flush(&mut self) {
        let mut buf = [0; 2_048];
        for side in [&mut self.left, &mut self.right] {
            while let Some(transmit) = side.transport.poll_transmit(&mut buf) {
                let bytes = buf.get(..transmit.len).unwrap_or_default();
                self.network
                    .send(self.now, transmit.source, transmit.destination, bytes);
            }
            while let Some(event) = side.transport.poll_event() {
                side.events.push(event);
            }
        }
    }
}

/// Returns ICE credentials for tests. Another `generation` is for a restart.
pub fn credentials(name: &str, generation: u32) -> IceCredentials {
    IceCredentials {
        ufrag: format!("{name}{generation}"),
        pwd: format!("{name}-password-of-generation-{generation}"),
    }
}
