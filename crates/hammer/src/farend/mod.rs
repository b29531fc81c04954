//! The far end that servers call: a SIP registrar and telephone that answers at once and echoes
//! RTP.
//!
//! All calls share one port for SIP and a pair for RTP. Echoes go to the sender's address: a server
//! has its own port for each call.

mod answer;
mod book;
mod echo;
mod phone;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portunus_udp::{Socket, ask_receive_buffer, enable_timestamps, run_first};

use book::Book;
pub(crate) use book::{Answered, FarConfig, SipCounts};
use echo::Echo;
pub(crate) use echo::FarWindow;
pub(crate) use phone::PASSWORD;
use phone::Phone;

/// The attempts to find two consecutive ports for RTP and RTCP.
const TRIES: u32 = 1_000;
/// The receive buffer for all calls, in bytes.
const BUFFER_BYTES: usize = 64 << 20;
/// The interval of reading RTP. All waiting packets are then read at once.
const PASS: Duration = Duration::from_micros(500);
/// The wait for SIP messages before answers without an ACK are retransmitted.
const TICK: Duration = Duration::from_millis(100);
/// The longest SIP message.
const MAX_MESSAGE: usize = 65_536;

/// The far end. It runs until it is dropped.
#[derive(Debug)]
pub(crate) struct FarEnd {
    sip: SocketAddr,
    book: Arc<Mutex<Book>>,
    window: Arc<Mutex<FarWindow>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FarEnd {
    /// Starts the far end.
    pub(crate) fn start(config: &FarConfig) -> io::Result<Self> {
        let sip = UdpSocket::bind((config.local, 0))?;
        ask_receive_buffer(&sip, BUFFER_BYTES);
        sip.set_read_timeout(Some(TICK))?;
        let (rtp, rtcp) = pair(config.local)?;
        for socket in [&rtp, &rtcp] {
            ask_receive_buffer(socket, BUFFER_BYTES);
        }
        enable_timestamps(&rtp);
        let mut this = Self {
            sip: sip.local_addr()?,
            book: Arc::default(),
            window: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let phone = Phone::new(config, this.sip, rtp.local().port());
        let (book, stop) = (Arc::clone(&this.book), Arc::clone(&this.stop));
        this.spawn("far-sip", move || converse(&sip, phone, &book, &stop))?;
        let (window, stop) = (Arc::clone(&this.window), Arc::clone(&this.stop));
        this.spawn("far-rtp", move || send_back(&rtp, &rtcp, &window, &stop))?;
        Ok(this)
    }

    /// Returns the address of SIP.
    pub(crate) fn sip(&self) -> SocketAddr {
        self.sip
    }

    /// Returns the record of the call with this Call-ID, and forgets it.
    pub(crate) fn take_call(&self, call_id: &str) -> Option<Answered> {
        lock(&self.book).calls.remove(call_id)
    }

    /// Returns the counts of requests since the last call.
    pub(crate) fn take_counts(&self) -> SipCounts {
        std::mem::take(&mut lock(&self.book).counts)
    }

    /// Returns the RTP packets since the last call.
    pub(crate) fn take_window(&self) -> FarWindow {
        std::mem::take(&mut lock(&self.window))
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Without the right, other threads of the core go first, and delays are longer.
            let _ = run_first(1);
            work();
        });
        self.threads.push(thread?);
        Ok(())
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Opens two consecutive ports, the first of them even.
fn pair(local: IpAddr) -> io::Result<(Socket, Socket)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let rtp = Socket::bind((local, 0).into())?;
        let port = rtp.local().port();
        if !port.is_multiple_of(2) {
            continue;
        }
        match Socket::bind((local, port + 1).into()) {
            Ok(rtcp) => return Ok((rtp, rtcp)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Answers SIP.
fn converse(socket: &UdpSocket, mut phone: Phone, book: &Mutex<Book>, stop: &AtomicBool) {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        // An error is the end of the tick, or an ICMP error of an earlier answer.
        let came = socket.recv_from(&mut buffer);
        let now = Instant::now();
        if let Ok((length, from)) = came {
            let bytes = buffer.get(..length).unwrap_or_default();
            phone.take(now, from, bytes, &mut lock(book), &mut answers);
        }
        phone.handle_timeout(now, &mut answers);
        for (to, bytes) in answers.drain(..) {
            // A lost answer is requested again.
            let _ = socket.send_to(&bytes, to);
        }
    }
}

/// Echoes RTP.
fn send_back(rtp: &Socket, rtcp: &Socket, window: &Mutex<FarWindow>, stop: &AtomicBool) {
    let mut echo = Echo::default();
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        echo.pass(rtp, rtcp, window);
        let next = start + PASS;
        let now = Instant::now();
        if now < next {
            thread::sleep(next - now);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
