//! Datagrams from many addresses at a given rate, and the answers to them.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::{Tally, address};

/// Sockets of a flood, spread over the addresses.
const SOCKETS: usize = 256;
/// The interval of looking at the clock.
const SLICE: Duration = Duration::from_millis(2);

/// The sockets of a flood.
pub struct Flood(Vec<UdpSocket>);

impl Flood {
    /// Binds the sockets.
    pub fn new() -> Self {
        let bind = |n| {
            let socket = UdpSocket::bind((address(n), 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        Flood((0..SOCKETS).map(bind).collect())
    }

    /// Returns the addresses of the sockets.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|socket| socket.local_addr().unwrap())
    }

    /// Sends the datagrams repeatedly, `rate` per second, from all sockets in turn. Counts the
    /// answers.
    pub fn run(&self, to: SocketAddr, datagrams: &[Vec<u8>], rate: u32, time: Duration) -> Tally {
        let mut tally = Tally::default();
        let begin = Instant::now();
        let mut sent = 0;
        while begin.elapsed() < time {
            let due = begin.elapsed().as_secs_f64() * f64::from(rate);
            while (sent as f64) < due {
                let datagram = &datagrams[sent % datagrams.len()];
                // The step is odd, so that each socket sends each datagram.
                let socket = &self.0[(sent * 7 + sent / datagrams.len()) % self.0.len()];
                if socket.send_to(datagram, to).is_ok() {
                    tally.sent += 1;
                    tally.sent_bytes += datagram.len() as u64;
                }
                sent += 1;
            }
            tally.received_bytes += self.take();
            std::thread::sleep(SLICE);
        }
        // Answers on their way arrive.
        std::thread::sleep(Duration::from_millis(100));
        tally.received_bytes += self.take();
        tally
    }

    /// Returns the bytes that have arrived since the last call.
    pub fn take(&self) -> u64 {
        let mut buf = [0; 2_048];
        let mut bytes = 0;
        for socket in &self.0 {
            while let Ok((len, _)) = socket.recv_from(&mut buf) {
                bytes += len as u64;
            }
        }
        bytes
    }
}
