//! Peers with ICE-lite: they answer checks, and send none.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::testing::{Side, credentials, video};
use portunus_rtc::{LocalCandidate, candidate_lines};
use portunus_sdp::negotiated::{DtlsRole, Negotiated, RemoteTransport};

use super::track;
use crate::PeerId;
use crate::command::{Command, PeerCommand};
use crate::testing::{Bare, checking};

const SECOND: Duration = Duration::from_secs(1);
/// In virtual time.
const STEP: Duration = Duration::from_millis(10);

/// A worker that sends checks, and peers.
struct Stage {
    bare: Bare,
    now: Instant,
    /// Each with its address, and whether that can be reached.
    peers: Vec<(Side, SocketAddr, bool)>,
    /// Checks that the worker sent.
    checks: Vec<(SocketAddr, Vec<u8>)>,
}

impl Stage {
    fn new() -> Self {
        let now = Instant::now();
        let mut bare = checking(now);
        bare.worker.keep_datagrams();
        bare.worker.take_time_for_handshakes();
        Self {
            bare,
            now,
            peers: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn id(index: usize) -> PeerId {
        track(0, index as u64 + 1).peer
    }

    /// Adds a peer that names `named` as its candidates.
    fn meet(&mut self, address: SocketAddr, role: DtlsRole, named: Vec<String>) {
        let index = self.peers.len();
        let mut side = Side::new(&format!("client{index}"), address, false, role);
        side.config.ice_lite = true;
        let mut side = Side::with(side.config, role);
        let ice = credentials(&format!("server{index}"), 1);
        let peer = Self::id(index);
        self.bare.inbox.send(Command::Peer(
            peer,
            PeerCommand::Create {
                ice: ice.clone(),
                controlling: false,
            },
        ));
        let mut transport = side.describe();
        transport.candidates = named;
        let media = vec![video("0", 1_000)];
        let negotiated = Box::new(Negotiated { transport, media });
        self.bare
            .inbox
            .send(Command::Peer(peer, PeerCommand::Negotiate(negotiated)));
        let local = self.bare.local;
        let server = RemoteTransport {
            ice,
            ice_lite: false,
            fingerprints: side.describe().fingerprints,
            dtls_role: role,
            candidates: candidate_lines(&[LocalCandidate::udp(local, local)]),
        };
        side.transport.set_remote(&server, self.now).unwrap();
        self.peers.push((side, address, true));
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut buffer = vec![0; 2_048];
        while self.now < end {
            self.now += STEP;
            let (worker, now) = (&mut self.bare.worker, self.now);
            worker.take_commands(now);
            worker.take_handshakes(now);
            worker.run_timers(now);
            worker.poll_touched(now);
            for (to, datagram) in worker.take_kept() {
                if datagram.starts_with(&[0, 1]) {
                    self.checks.push((to, datagram.clone()));
                }
                let here = self.peers.iter_mut();
                for (side, at, _) in here.filter(|(_, at, reached)| *at == to && *reached) {
                    let mut datagram = datagram.clone();
                    side.transport
                        .receive(now, *at, self.bare.local, &mut datagram);
                }
            }
            for (side, at, reached) in &mut self.peers {
                side.transport.handle_timeout(now);
                while let Some(transmit) = side.transport.poll_transmit(&mut buffer) {
                    if *reached {
                        let datagram = &mut buffer[..transmit.len];
                        worker.take_datagram(now, self.bare.local, *at, datagram);
                    }
                }
                while side.transport.poll_event().is_some() {}
            }
            worker.poll_touched(now);
        }
    }

    fn is_connected(&self, index: usize) -> bool {
        let worker = &self.bare.worker;
        let slot = worker.peers.slot(Self::id(index));
        let peer = slot.and_then(|slot| worker.peers.get(slot));
        let here = peer.is_some_and(|peer| peer.connection.transport.is_connected());
        here && self.peers[index].0.transport.is_connected()
    }
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn named(address: SocketAddr) -> Vec<String> {
    candidate_lines(&[LocalCandidate::udp(address, address)])
}

#[test]
fn a_peer_that_only_answers_is_found() {
    for role in [DtlsRole::Client, DtlsRole::Server] {
        let mut stage = Stage::new();
        stage.meet(address(20_001), role, named(address(20_001)));
        stage.run(SECOND);
        assert!(stage.is_connected(0), "{role:?}");
        stage.run(120 * SECOND);
        assert!(stage.is_connected(0), "{role:?}");
        assert_eq!(stage.bare.worker.owner(address(20_001)), Some(Stage::id(0)));
        assert_eq!(stage.bare.worker.peers.known().1, 0);
        // Without an answer it ends like any other peer.
        stage.peers[0].2 = false;
        stage.run(45 * SECOND);
        assert_eq!(stage.bare.worker.owner(address(20_001)), None);
    }
}

#[test]
fn what_nobody_asked_for_leaves_nothing_behind() {
    let mut stage = Stage::new();
    stage.meet(address(20_001), DtlsRole::Client, named(address(20_001)));
    stage.peers[0].2 = false;
    stage.run(SECOND);
    let checked = stage.bare.worker.peers.known().1;
    assert!(checked > 0);
    let local = stage.bare.local;
    let (_, check) = stage.checks[0].clone();
    for n in 0..1_000_u16 {
        // Answers to a check from another address, and to a check that was never sent.
        let mut answer = check.clone();
        answer[0] = 1;
        if n % 2 == 0 {
            answer[18..20].copy_from_slice(&n.to_be_bytes());
        }
        let worker = &mut stage.bare.worker;
        worker.take_datagram(stage.now, local, address(30_000 + n), &mut answer);
        worker.poll_touched(stage.now);
    }
    let worker = &stage.bare.worker;
    assert_eq!(worker.peers.known(), (0, checked));
    stage.peers[0].2 = true;
    stage.run(5 * SECOND);
    assert!(stage.is_connected(0));
    stage.run(20 * SECOND);
    assert_eq!(stage.bare.worker.peers.known().1, 0);
}

#[test]
fn who_names_the_address_of_another_disturbs_nobody() {
    let victim = address(20_001);
    for earlier in [true, false] {
        let mut stage = Stage::new();
        if earlier {
            stage.meet(victim, DtlsRole::Client, named(victim));
            stage.run(5 * SECOND);
            stage.meet(address(20_002), DtlsRole::Client, named(victim));
        } else {
            // Its checks are under way when the other peer comes.
            stage.meet(address(20_002), DtlsRole::Client, named(victim));
            stage.run(SECOND / 2);
            stage.meet(victim, DtlsRole::Client, named(victim));
        }
        stage.run(5 * SECOND);
        let index = usize::from(!earlier);
        assert!(stage.is_connected(index), "{earlier}");
        stage.run(20 * SECOND);
        assert!(stage.is_connected(index), "{earlier}");
        assert_eq!(stage.bare.worker.owner(victim), Some(Stage::id(index)));
    }
}

#[test]
fn of_two_on_one_address_the_first_stays_as_long_as_it_answers() {
    let server = address(20_001);
    let mut stage = Stage::new();
    stage.meet(server, DtlsRole::Client, named(server));
    stage.run(SECOND);
    assert!(stage.is_connected(0));
    stage.meet(server, DtlsRole::Client, named(server));
    stage.run(10 * SECOND);
    assert!(stage.is_connected(0));
    assert_eq!(stage.bare.worker.owner(server), Some(Stage::id(0)));
    stage.peers[0].2 = false;
    stage.run(40 * SECOND);
    assert_eq!(stage.bare.worker.owner(server), Some(Stage::id(1)));
    assert!(stage.is_connected(1));
}
