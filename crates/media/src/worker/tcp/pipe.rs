//! An accepted TCP connection, in which a peer's datagrams travel as frames (RFC 6544, RFC 4571).

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use portunus_rtc::Path;
use portunus_rtc::framing::{Deframer, FRAME_HEAD, frame_head};
use socket2::SockRef;

use crate::PeerId;

/// Bytes of frames that wait for the connection to take them, on this side of the kernel.
const MOST_WAITING: usize = 256 << 10;
/// The last of these are for datagrams of up to so many bytes each: sound, checks and reports still get through where video
/// does not.
const FOR_SHORT: usize = 32 << 10;
const SHORT: usize = 400;
/// Asked of the kernel for what was sent and is not acknowledged.
const SEND_BUFFER: usize = 256 << 10;
/// So much waits in the kernel to be sent. What waits is late: a connection that takes less than is sent into it is better
/// off with losses, and here it can be chosen what is lost.
const UNSENT: u32 = 32 << 10;
/// A buffer that was needed once and is larger than this is given back.
const KEPT_BUFFER: usize = 16 << 10;
/// The longest frame of a connection that belongs to nobody yet: more than a connectivity check has.
const LONGEST_FIRST: usize = 2_048;
/// The longest frame: that of the longest datagram.
pub(super) const LONGEST: usize = u16::MAX as usize;
/// What was sent and is not acknowledged for this long ends the connection (RFC 5482): as long as consent lasts.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Names a connection as long as it is open. No bits of it are zero at once, so that the lack of one takes no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::worker) struct PipeKey(NonZeroU32);

impl PipeKey {
    /// Of a place among all connections of a worker.
    pub(super) fn of(place: usize) -> Option<Self> {
        let number = u32::try_from(place).ok()?.checked_add(1)?;
        NonZeroU32::new(number).map(Self)
    }

    pub(super) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) stream: TcpStream,
    /// Between which addresses it is.
    pub(super) path: Path,
    /// Whose it is, once its first frame has said so.
    pub(super) owner: Option<PeerId>,
    /// When something last came by it, or when it was accepted.
    pub(super) heard: Instant,
    pub(super) deframer: Deframer,
    outgoing: Outgoing,
    /// It may have something to be read.
    pub(super) is_ready: bool,
    /// It has something to be written.
    pub(super) is_unflushed: bool,
}

impl Pipe {
    /// An accepted connection.
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

    /// Queues a datagram; says whether there was room for it.
    pub(super) fn push(&mut self, datagram: &[u8]) -> bool {
        self.outgoing.push(datagram)
    }

    /// Writes what the connection takes now.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.outgoing.write_to(&mut self.stream)
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

/// An IPv4 address in the form of IPv6, which a socket of both gives, as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Frames that wait to be written. Only whole ones are left out.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// So many of them are written.
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
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
