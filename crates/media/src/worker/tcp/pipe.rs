//! A TCP connection that carries a peer's datagrams as frames (RFC 6544, RFC 4571).

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use portunus_rtc::Path;
use portunus_rtc::framing::{Deframer, FRAME_HEAD, frame_head};
use socket2::SockRef;

use crate::PeerId;

/// The maximum size of frames that wait for the connection, in bytes.
const MOST_WAITING: usize = 256 << 10;
/// The last of these bytes are for short datagrams, up to this size: audio, checks and reports get
/// through even if video does not.
const FOR_SHORT: usize = 32 << 10;
const SHORT: usize = 400;
/// The size of the kernel's send buffer to request.
const SEND_BUFFER: usize = 256 << 10;
/// The maximum number of unsent bytes in the kernel. Losses are better than delay, and only here it
/// can be chosen what is dropped.
const UNSENT: u32 = 32 << 10;
/// A larger buffer is freed when it is empty.
const KEPT_BUFFER: usize = 16 << 10;
/// The maximum length of a frame before the peer is known: more than that of a connectivity check.
const LONGEST_FIRST: usize = 2_048;
/// The maximum length of a frame: that of a datagram.
pub(super) const LONGEST: usize = u16::MAX as usize;
/// Data that is not acknowledged for this time ends the connection (RFC 5482): as long as consent
/// lasts.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The key of a connection while it is open. It is never zero, so that an `Option` of it takes no
/// more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::worker) struct PipeKey(NonZeroU32);

impl PipeKey {
    /// The index among all connections of a worker.
    pub(super) fn of(place: usize) -> Option<Self> {
        let number = u32::try_from(place).ok()?.checked_add(1)?;
        NonZeroU32::new(number).map(Self)
    }

    pub(super) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) stream: TcpStream,
    /// Its addresses.
    pub(super) path: Path,
    /// The peer, once the first frame has said.
    pub(super) owner: Option<PeerId>,
    /// When the last datagram arrived, or when it was accepted.
    pub(super) heard: Instant,
    pub(super) deframer: Deframer,
    outgoing: Outgoing,
    /// It may be readable.
    pub(super) is_ready: bool,
    /// It has frames to write.
    pub(super) is_unflushed: bool,
}

impl Pipe {
    /// Returns an accepted connection.
    pub(super) fn new(stream: TcpStream, remote: SocketAddr, now: Instant) -> io::Result<Self> {
        let path = Path::tcp(canonical(stream.local_addr()?), canonical(remote));
        stream.set_nodelay(true)?;
        let options = SockRef::from(&stream);
        options.set_send_buffer_size(SEND_BUFFER)?;
        options.set_tcp_notsent_lowat(UNSENT)?;
        options.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
        Ok(Self {
            stream,
            path,
            owner: None,
            heard: now,
            deframer: Deframer::new(LONGEST_FIRST),
            outgoing: Outgoing::default(),
            is_ready: false,
            is_unflushed: false,
        })
    }

    /// Queues a datagram. Returns whether there was room for it.
    pub(super) fn push(&mut self, datagram: &[u8]) -> bool {
        self.outgoing.push(datagram)
    }

    /// Writes what the connection takes now.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.outgoing.write_to(&mut self.stream)
    }

    /// Reads what has arrived.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

/// Returns IPv4-mapped addresses, as sockets of both families have them, as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Frames that wait. Only whole frames are dropped.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// The number of bytes that are written already.
    written: usize,
}

impl Outgoing {
    fn push(&mut self, datagram: &[u8]) -> bool {
        let waiting = self.bytes.len().saturating_sub(self.written);
        let more = datagram.len().saturating_add(FRAME_HEAD);
        let Some(head) = frame_head(datagram.len()) else {
            return false;
        };
        let most = match datagram.len() <= SHORT {
            true => MOST_WAITING,
            false => MOST_WAITING - FOR_SHORT,
        };
        if waiting.saturating_add(more) > most {
            return false;
        }
        if self.written > MOST_WAITING / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(datagram);
        true
    }

    fn write_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        while let Some(waiting) = self.bytes.get(self.written..).filter(|w| !w.is_empty()) {
            match out.write(waiting) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.written = self.written.saturating_add(written),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        self.written = 0;
        if self.bytes.capacity() > KEPT_BUFFER {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use super::*;
    use proptest::prelude::*;

    /// Takes as many bytes with each call as is said, then none until it is refilled.
    #[derive(Default)]
    struct Narrow {
        taken: Vec<u8>,
        takes: Vec<usize>,
    }

    impl Write for Narrow {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            let takes = self.takes.pop().ok_or(io::ErrorKind::WouldBlock)?;
            let takes = takes.clamp(1, buf.len());
            self.taken.extend(&buf[..takes]);
            Ok(takes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_finds_no_room_is_left_out_whole_and_what_is_there_stays() {
        let mut outgoing = Outgoing::default();
        let datagram = [7; 1_198];
        let room = MOST_WAITING - FOR_SHORT;
        let most = room / 1_200;
        let pushed = (0..most + 10).filter(|_| outgoing.push(&datagram)).count();
        assert_eq!(pushed, most);
        // A part of the first frame leaves; that makes no room for another one.
        let mut out = Narrow {
            takes: vec![600],
            ..Narrow::default()
        };
        outgoing.write_to(&mut out).unwrap();
        let room = room - (most * 1_200 - 600);
        assert_eq!(outgoing.push(&datagram), room >= 1_200);
        out.takes = vec![usize::MAX];
        outgoing.write_to(&mut out).unwrap();
        assert_eq!(out.taken.len() % 1_200, 0);
        assert!(
            out.taken
                .chunks(1_200)
                .all(|frame| frame[..3] == [4, 174, 7])
        );
        assert_eq!(outgoing.bytes.capacity(), 0, "the memory is given back");
    }

    /// A connection that carries less than the video has.
    #[test]
    fn sound_is_not_left_out_with_video() {
        let mut outgoing = Outgoing::default();
        let mut lost = 0;
        for _ in 0..1_000 {
            lost += (0..10).filter(|_| !outgoing.push(&[7; 1_198])).count();
            assert!(outgoing.push(&[8; 160]));
            let mut out = Narrow {
                takes: vec![3_000],
                ..Narrow::default()
            };
            outgoing.write_to(&mut out).unwrap();
        }
        assert!(lost > 7_000, "{lost}");
        let short = (0..).take_while(|_| outgoing.push(&[8; 160])).count();
        assert!(short < 256, "{short}: there is an end to it");
    }

    #[test]
    fn what_no_frame_can_hold_is_refused() {
        assert!(!Outgoing::default().push(&vec![0; 65_536]));
    }

    /// What is in the kernel can no longer be left out, and what is sent next comes after it.
    #[test]
    fn little_waits_in_the_kernel() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let client = client.unwrap();
        client.set_recv_buffer_size(16 << 10).unwrap();
        client
            .connect(&listener.local_addr().unwrap().into())
            .unwrap();
        let (stream, remote) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut pipe = Pipe::new(TcpStream::from_std(stream), remote, Instant::now()).unwrap();
        let mut pushed = 0;
        while pipe.push(&[7; 1_198]) {
            pushed += 1_200;
            pipe.flush().unwrap();
        }
        let left = pushed - (pipe.outgoing.bytes.len() - pipe.outgoing.written);
        assert!(left < 160 << 10, "{left}");
    }

    #[test]
    fn keys_are_of_one_place_each() {
        assert_eq!(size_of::<Option<PipeKey>>(), 4);
        assert_eq!(PipeKey::of(0).unwrap().place(), 0);
        assert_eq!(PipeKey::of(77).unwrap().place(), 77);
        assert_eq!(PipeKey::of(u32::MAX as usize), None);
        assert_eq!(PipeKey::of(usize::MAX), None);
    }

    proptest! {
        /// However little the connection takes at a time, whole frames come out in order.
        #[test]
        fn frames_leave_in_order(
            sizes in proptest::collection::vec(1_usize..3_000, 1..60),
            takes in proptest::collection::vec(1_usize..5_000, 0..60),
        ) {
            let (mut outgoing, mut out) = (Outgoing::default(), Narrow::default());
            let mut pushed = Vec::new();
            for (n, size) in sizes.iter().enumerate() {
                let datagram = vec![n as u8; *size];
                if outgoing.push(&datagram) {
                    pushed.push(datagram);
                }
                out.takes.extend(takes.get(n));
                outgoing.write_to(&mut out).unwrap();
            }
            out.takes = vec![usize::MAX];
            outgoing.write_to(&mut out).unwrap();
            let mut taken = out.taken;
            let (mut input, mut left) = (taken.as_mut_slice(), Vec::new());
            let mut deframer = Deframer::new(3_000);
            let mut whole = Vec::new();
            while let Some(frame) = deframer.next(&mut input, &mut whole).unwrap() {
                left.push(frame.to_vec());
            }
            prop_assert_eq!(left, pushed);
        }
    }
}
