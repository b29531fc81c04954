//! Clients that send more than their share.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdStream;

use mio::net::TcpListener;

use super::*;
use crate::PeerId;
use crate::testing::bare;

/// More than have a turn at once.
const FLOODS: usize = READS_PER_TURN / READS_PER_PIPE + 8;
/// Two bytes that are a complete frame.
const EMPTY: [u8; 2] = [0; 2];

struct Stage {
    worker: Worker,
    server: SocketAddr,
    ready: mio::Events,
}

impl Stage {
    fn new() -> Self {
        Self::with(1_000)
    }

    /// A worker with up to `most` connections.
    fn with(most: usize) -> Self {
        let mut worker = bare(Instant::now()).worker;
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let server = listener.local_addr().unwrap();
        worker.network.pipes = Pipes::new(Some(listener), Some(most));
        let registry = worker.poller.registry();
        worker.network.pipes.listen(registry).unwrap();
        Self {
            worker,
            server,
            ready: mio::Events::with_capacity(256),
        }
    }

    /// Notes readable connections, without reading them.
    fn look(&mut self) {
        self.worker.poller.wait(&mut self.ready, None).unwrap();
        self.worker.network.pipes.note_ready(&self.ready);
    }

    /// Assigns a connection to a peer.
    fn own(&mut self, place: usize) {
        let owner = PeerId {
            worker: 0,
            serial: 77,
        };
        let key = PipeKey::of(place).unwrap();
        self.worker.network.pipes.forget_stranger(key);
        self.worker.network.pipes.get_mut(key).unwrap().owner = Some(owner);
    }

    /// Connects, and is accepted.
    fn connect(&mut self) -> StdStream {
        let client = StdStream::connect(self.server).unwrap();
        let (patience, accepted) = (Instant::now() + Duration::from_secs(10), self.accepted());
        while self.accepted() == accepted {
            assert!(Instant::now() < patience);
            self.look();
            self.worker.accept(Instant::now());
        }
        client
    }

    fn accepted(&self) -> u64 {
        self.worker.network.pipes.counted.accepted
    }

    fn turn(&mut self) -> bool {
        self.look();
        self.worker.receive_pipes(Instant::now())
    }
}

/// Writes as much as there is room for, and more than a test reads.
fn fill(client: &mut StdStream, with: &[u8]) {
    client.set_nonblocking(true).unwrap();
    let much = with.repeat((32 << 10) / with.len());
    for _ in 0..32 {
        match client.write(&much) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => unreachable!("{error}"),
        }
    }
}

#[test]
fn who_sends_without_end_keeps_none_from_their_turn() {
    let mut stage = Stage::new();
    let mut floods: Vec<StdStream> = (0..FLOODS).map(|_| stage.connect()).collect();
    for client in &mut floods {
        fill(client, &EMPTY);
    }
    stage.look();
    let mut last = stage.connect();
    last.write_all(b"GET /").unwrap();
    let not_a_check = Refused::NotACheck as usize;
    for _ in 0..4 {
        assert!(stage.turn(), "the others have sent more than that");
        for client in &mut floods {
            fill(client, &EMPTY);
        }
    }
    assert_eq!(stage.worker.network.pipes.counted.refused[not_a_check], 1);
}

#[test]
fn a_turn_takes_so_many_datagrams_however_short_they_are() {
    let mut stage = Stage::new();
    let mut floods: Vec<StdStream> = (0..FLOODS).map(|_| stage.connect()).collect();
    for (place, client) in floods.iter_mut().enumerate() {
        stage.own(place);
        fill(client, &[0, 1, 255]);
    }
    let mut before = 0;
    for _ in 0..3 {
        assert!(stage.turn());
        let frames = stage.worker.network.pipes.counted.received_frames;
        assert!(frames > before);
        let most = FRAMES_PER_TURN + READ_BYTES as u64 / 3;
        assert!(frames - before <= most, "{} in a turn", frames - before);
        before = frames;
    }
}

#[test]
fn nothing_is_accepted_before_it_is_time_to_try_again() {
    let mut stage = Stage::new();
    stage.turn();
    let later = Instant::now() + ACCEPT_PAUSE;
    stage.worker.network.pipes.accept_again = Some(later);
    let _client = StdStream::connect(stage.server).unwrap();
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        stage.look();
        if !stage.ready.is_empty() {
            break;
        }
        assert!(Instant::now() < patience);
    }
    assert!(
        !stage.worker.receive_pipes(later - ACCEPT_PAUSE),
        "no turn is due"
    );
    assert_eq!(stage.accepted(), 0);
    stage.worker.receive_pipes(later);
    assert_eq!(stage.accepted(), 1);
}

#[test]
fn who_finds_no_room_is_closed_at_once_and_counted() {
    const MOST: usize = 3;
    let mut stage = Stage::with(MOST);
    let peers: Vec<StdStream> = (0..MOST).map(|_| stage.connect()).collect();
    (0..MOST).for_each(|place| stage.own(place));
    let full = |stage: &Stage| stage.worker.network.pipes.counted.refused[Refused::Full as usize];
    for times in 1..=5 {
        let mut client = stage.connect();
        assert_eq!(full(&stage), times);
        let patience = Some(Duration::from_secs(10));
        client.set_read_timeout(patience).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        assert_eq!(stage.worker.network.pipes.counted.connections, MOST as u64);
    }
    // A closed connection makes room.
    drop(peers);
    let patience = Instant::now() + Duration::from_secs(10);
    while stage.worker.network.pipes.counted.connections > 0 {
        assert!(Instant::now() < patience);
        stage.turn();
    }
    let _client = stage.connect();
    assert_eq!(
        (full(&stage), stage.worker.network.pipes.counted.connections),
        (5, 1)
    );
}
