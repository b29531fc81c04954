#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::time::{Duration, Instant};

use portunus_rtc::testing::{Side, credentials, video};
use portunus_rtc::{LocalCandidate, candidate_lines};
use portunus_sdp::negotiated::{DtlsRole, Negotiated, RemoteTransport};

use super::*;
use crate::PeerId;
use crate::command::{Command, PeerCommand};
use crate::testing::{Bare, sharing};
use crate::user_fragment::with_worker;

const SECOND: Duration = Duration::from_secs(1);
/// In virtual time.
const STEP: Duration = Duration::from_millis(10);
const WORKERS: u16 = 3;

/// A peer, and its behavior.
struct Client {
    side: Side,
    worker: u16,
    /// The source of its datagrams.
    address: SocketAddr,
    /// A forged source of its checks.
    forges: Option<SocketAddr>,
    is_reachable: bool,
}

/// Workers that share a port, and peers. The datagrams of an address come to the worker with the
/// number of its port, as the kernel would choose it.
struct Stage {
    workers: Vec<Bare>,
    clients: Vec<Client>,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        let now = Instant::now();
        let mut workers = sharing(WORKERS.into(), now);
        for bare in &mut workers {
            bare.worker.keep_datagrams();
            bare.worker.take_time_for_handshakes();
        }
        Self {
            workers,
            clients: Vec::new(),
            now,
        }
    }

    fn id(index: usize, worker: u16) -> PeerId {
        PeerId {
            worker,
            serial: index as u64 + 1,
        }
    }

    /// Adds a peer of `worker`.
    fn meet(&mut self, worker: u16, address: SocketAddr, is_lite: bool) -> usize {
        let index = self.clients.len();
        let mut side = Side::new(&format!("client{index}"), address, false, DtlsRole::Client);
        side.config.ice_lite = is_lite;
        let mut side = Side::with(side.config, DtlsRole::Client);
        let mut ice = credentials(&format!("server{index}"), 1);
        ice.ufrag = with_worker(&ice.ufrag, worker);
        let bare = &self.workers[usize::from(worker)];
        let peer = Self::id(index, worker);
        bare.inbox.send(Command::Peer(
            peer,
            PeerCommand::Create {
                ice: ice.clone(),
                controlling: false,
            },
        ));
        let mut transport = side.describe();
        if !is_lite {
            // As browsers that hide their addresses.
            transport.candidates = Vec::new();
        }
        let media = vec![video("0", 1_000)];
        let negotiated = Box::new(Negotiated { transport, media });
        bare.inbox
            .send(Command::Peer(peer, PeerCommand::Negotiate(negotiated)));
        let server = RemoteTransport {
            ice,
            ice_lite: false,
            fingerprints: side.describe().fingerprints,
            dtls_role: DtlsRole::Client,
            candidates: candidate_lines(&[LocalCandidate::udp(bare.local, bare.local)]),
        };
        side.transport.set_remote(&server, self.now).unwrap();
        self.clients.push(Client {
            side,
            worker,
            address,
            forges: None,
            is_reachable: true,
        });
        index
    }

    /// Passes a datagram to the worker that the kernel chooses.
    fn come(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        let by = usize::from(from.port() % WORKERS);
        let bare = &mut self.workers[by];
        bare.worker
            .take_datagram(self.now, bare.local, from, datagram);
        bare.worker.handover.send(&bare.worker.others);
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut buffer = vec![0; 2_048];
        while self.now < end {
            self.now += STEP;
            let now = self.now;
            for bare in &mut self.workers {
                let worker = &mut bare.worker;
                let blocks = worker.handover.count_blocks();
                worker.take_commands(now);
                worker.take_claims(now);
                worker.take_blocks(&blocks, || now);
                worker.take_handshakes(now);
                worker.run_timers(now);
                worker.poll_touched(now);
                for (to, datagram) in worker.take_kept() {
                    let there = self.clients.iter_mut();
                    let there = there.filter(|it| it.address == to && it.is_reachable);
                    for client in there {
                        let mut datagram = datagram.clone();
                        // It assumes its first address.
                        let here = client.side.config.candidates[0].base;
                        let transport = &mut client.side.transport;
                        transport.receive(now, here, bare.local, &mut datagram);
                    }
                }
            }
            let mut sent = Vec::new();
            for client in &mut self.clients {
                client.side.transport.handle_timeout(now);
                while let Some(transmit) = client.side.transport.poll_transmit(&mut buffer) {
                    let datagram = buffer[..transmit.len].to_vec();
                    let forged = client.forges.filter(|_| datagram.starts_with(&[0, 1]));
                    for from in [Some(client.address), forged].into_iter().flatten() {
                        if client.is_reachable {
                            sent.push((from, datagram.clone()));
                        }
                    }
                }
                while client.side.transport.poll_event().is_some() {}
            }
            for (from, mut datagram) in sent {
                self.come(from, &mut datagram);
            }
        }
    }

    fn is_connected(&self, index: usize) -> bool {
        let client = &self.clients[index];
        let peers = &self.workers[usize::from(client.worker)].worker.peers;
        let slot = peers.slot(Self::id(index, client.worker));
        let peer = slot.and_then(|slot| peers.get(slot));
        let here = peer.is_some_and(|peer| peer.connection.transport.is_connected());
        here && client.side.transport.is_connected()
    }

    /// The owner of datagrams from an address that are no checks, as seen by the worker that gets
    /// them.
    fn claimant(&self, address: SocketAddr) -> Option<u16> {
        let by = usize::from(address.port() % WORKERS);
        self.workers[by].worker.peers.claimant(address)
    }

    fn handed(&self) -> u64 {
        let counted = |bare: &Bare| bare.worker.handover.counted();
        let (handed, dropped): (Vec<_>, Vec<_>) = self.workers.iter().map(counted).unzip();
        assert_eq!(dropped.iter().sum::<u64>(), 0);
        handed.iter().sum()
    }
}

/// Returns an address whose datagrams come to `worker`.
fn at(worker: u16, n: u16) -> SocketAddr {
    let first = 30_000_u16.next_multiple_of(WORKERS);
    ([127, 0, 0, 1], first + n * WORKERS + worker).into()
}

#[test]
fn a_peer_connects_by_the_socket_of_any_worker() {
    for by in 0..WORKERS {
        let mut stage = Stage::new();
        let peer = stage.meet(1, at(by, 0), false);
        stage.run(SECOND);
        assert!(stage.is_connected(peer), "{by}");
        let handed = stage.handed();
        assert_eq!(stage.claimant(at(by, 0)), (by != 1).then_some(1));
        assert_eq!(handed > 0, by != 1, "{by}");
        stage.run(120 * SECOND);
        assert!(stage.is_connected(peer), "{by}");
        assert_eq!(stage.claimant(at(by, 0)), (by != 1).then_some(1));
        // Nothing of a removed peer is left.
        let id = Stage::id(peer, 1);
        let inbox = &stage.workers[1].inbox;
        inbox.send(Command::Peer(id, PeerCommand::Close));
        stage.run(SECOND / 10);
        assert_eq!(stage.claimant(at(by, 0)), None);
    }
}

#[test]
fn a_peer_that_moves_is_followed_to_the_socket_of_another_worker() {
    let mut stage = Stage::new();
    let peer = stage.meet(1, at(1, 0), false);
    stage.run(SECOND);
    for (n, by) in [(1, 0), (2, 2), (3, 2), (4, 1)] {
        stage.clients[peer].address = at(by, n);
        stage.run(30 * SECOND);
        assert!(stage.is_connected(peer), "{n}");
        assert_eq!(stage.claimant(at(by, n)), (by != 1).then_some(1), "{n}");
        let peers = &stage.workers[1].worker.peers;
        let slot = peers.slot(Stage::id(peer, 1)).unwrap();
        let transport = &peers.get(slot).unwrap().connection.transport;
        assert_eq!(transport.selected_pair().unwrap().remote, at(by, n));
    }
    // The addresses that it left are forgotten.
    stage.run(90 * SECOND);
    assert_eq!(stage.claimant(at(0, 1)), None);
}

#[test]
fn a_lite_peer_is_found_by_its_answers() {
    for by in 0..WORKERS {
        let mut stage = Stage::new();
        let peer = stage.meet(1, at(by, 0), true);
        stage.run(2 * SECOND);
        assert!(stage.is_connected(peer), "{by}");
        stage.run(60 * SECOND);
        assert!(stage.is_connected(peer), "{by}");
    }
}

/// A client of the server that can forge addresses.
#[test]
fn forged_checks_take_no_address_from_its_peer_and_keep_none_from_it() {
    for by in 0..WORKERS {
        let victims = at(by, 0);
        for is_first in [true, false] {
            let mut stage = Stage::new();
            let forger = stage.meet(2, at(2, 9), false);
            stage.clients[forger].forges = Some(victims);
            if is_first {
                stage.run(5 * SECOND);
                assert!(stage.is_connected(forger));
            }
            let victim = stage.meet(1, victims, false);
            stage.run(5 * SECOND);
            assert!(stage.is_connected(victim), "{by} {is_first}");
            for _ in 0..30 {
                stage.run(SECOND);
                let whose = stage.claimant(victims);
                assert_eq!(whose, (by != 1).then_some(1), "{by} {is_first}");
            }
            assert!(stage.is_connected(victim) && stage.is_connected(forger));
        }
    }
}

#[test]
fn an_address_goes_to_who_answers_there_once_its_peer_does_not() {
    let mut stage = Stage::new();
    let first = stage.meet(1, at(0, 0), false);
    stage.run(SECOND);
    stage.clients[first].is_reachable = false;
    let second = stage.meet(2, at(0, 0), false);
    stage.run(15 * SECOND);
    assert_eq!(stage.claimant(at(0, 0)), Some(2));
    assert!(stage.is_connected(second));
}

/// As those of [`portunus_rtc::testing`], but nobody knows the password.
fn check_of_stranger(ufrag: &str) -> Vec<u8> {
    let username = format!("{ufrag}:you");
    let len = username.len();
    let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
    check.extend([7; 12]);
    check.extend([0, 6, 0, len as u8]);
    check.extend(username.as_bytes());
    check.resize(check.len().next_multiple_of(4), 0);
    check[3] = (check.len() - 20) as u8;
    check
}

#[test]
fn checks_without_the_password_claim_nothing_and_few_of_them_are_handed_over() {
    let mut stage = Stage::new();
    stage.meet(1, at(1, 0), false);
    stage.run(SECOND / 10);
    let ufrag = with_worker("server01", 1);
    let before = stage.handed();
    let mut check = check_of_stranger(&ufrag);
    let Bare { worker, local, .. } = &mut stage.workers[0];
    let most = STRANGERS_PER_TURN as u64;
    for n in 0..2 * STRANGERS_PER_TURN as u16 {
        let from = SocketAddr::from(([192, 0, 2, 1], n));
        worker.take_datagram(stage.now, *local, from, &mut check);
    }
    worker.handover.send(&worker.others);
    assert_eq!(stage.handed() - before, most);
    stage.run(SECOND);
    for n in 0..2 * STRANGERS_PER_TURN as u16 {
        let from = SocketAddr::from(([192, 0, 2, 1], n));
        assert_eq!(stage.workers[0].worker.peers.claimant(from), None);
    }
    // Nor are those for missing workers, or long ones.
    let handed = stage.handed();
    for ufrag in ["server0//", "x", ""] {
        stage.come(at(0, 5), &mut check_of_stranger(ufrag));
    }
    let mut long = check_of_stranger(&with_worker("server01", 1));
    long.resize(LONGEST_OF_STRANGER + 1, 0);
    stage.come(at(0, 5), &mut long);
    stage.come(at(0, 5), &mut [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 1]);
    assert_eq!(stage.handed(), handed);
}

/// Handing over allocates nothing in steady state.
#[test]
fn emptied_blocks_are_filled_again() {
    let mut stage = Stage::new();
    let ends = (at(0, 0).ip(), at(0, 0));
    let mut seen = Vec::new();
    for round in 0..10 {
        let from = &mut stage.workers[0].worker;
        from.handover.push(1, ends, &[7; 1_200]);
        from.handover.send(&from.others);
        let to = &mut stage.workers[1].worker;
        let mut block = to.handover.take_block(0).unwrap();
        let place = block.datagrams().next().unwrap().datagram.as_ptr();
        assert!(round < 3 || seen.contains(&place), "{round}");
        seen.push(place);
        to.handover.give_back(0, block);
    }
}

#[test]
fn a_worker_that_does_not_keep_up_loses_what_finds_no_room() {
    let mut stage = Stage::new();
    let worker = &mut stage.workers[0].worker;
    let ends = (at(0, 0).ip(), at(0, 0));
    for _ in 0..400 {
        worker.handover.push(1, ends, &[7; 60_000]);
        worker.handover.send(&worker.others);
    }
    assert_eq!(worker.handover.counted(), (256, 144));
}
