//! Clients of TCP or TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Tls, relay, stopped};
use crate::counters::{count, uncount};
use crate::framing::{MAX_FRAME, frame};
use crate::places::{Place, Places};
use crate::{Action, Client, Now, Shared, TurnClosed};

/// The longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The longest time of a connection without an allocation.
const IDLE: Duration = Duration::from_secs(30);
/// The longest time for which a client may not read its data.
const SLOW: Duration = Duration::from_secs(10);
/// The interval at which these times are checked.
const TICK: Duration = Duration::from_millis(500);
/// The pause of an accept loop after a failure, mostly for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The bytes that the kernel buffers for a client that does not read. More would only delay media.
const SEND_BUFFER: usize = 64 << 10;
/// The capacity that an empty queue keeps, in bytes.
const KEPT: usize = 16 << 10;

/// The state shared by connections.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) places: Arc<Places>,
    pub(super) max_queue: usize,
    pub(super) stop: watch::Receiver<bool>,
}

/// A connection, which is counted while it lives.
struct Counted {
    shared: Arc<Shared>,
    _place: Place,
}

impl Drop for Counted {
    fn drop(&mut self) {
        uncount(&self.shared.counters.connections);
    }
}

/// Accepts connections until the server stops.
pub(super) async fn serve(listener: TcpListener, tls: Option<Arc<Tls>>, server: Server) {
    let mut stop = server.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        match accepted {
            Ok((stream, from)) => accept(stream, from, tls.clone(), &server),
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection of TURN");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn accept(stream: TcpStream, from: SocketAddr, tls: Option<Arc<Tls>>, server: &Server) {
    let counters = &server.shared.counters;
    count(&counters.accepted);
    let Ok(place) = server.places.take(from.ip()) else {
        counters.closed(TurnClosed::Limit);
        return;
    };
    count(&counters.connections);
    let counted = Counted {
        shared: server.shared.clone(),
        _place: place,
    };
    let prepared = stream.set_nodelay(true);
    let prepared = prepared.and(SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER));
    if let Err(error) = prepared {
        tracing::debug!(%error, "cannot prepare a connection of TURN");
    }
    let server = server.clone();
    tokio::spawn(async move {
        let closed = match tls {
            None => {
                Connection::new(from, &server)
                    .run(stream, server.stop)
                    .await
            }
            Some(tls) => shake_hands(stream, from, &tls, server).await,
        };
        if let Some(why) = closed {
            counted.shared.counters.closed(why);
            tracing::debug!(%from, why = why.as_str(), "closed a connection of TURN");
        }
    });
}

/// Serves a TLS connection. Returns the reason if the server closes it because of the client.
async fn shake_hands(
    stream: TcpStream,
    from: SocketAddr,
    tls: &Tls,
    server: Server,
) -> Option<TurnClosed> {
    let acceptor = tls.acceptor()?;
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            Connection::new(from, &server)
                .run(stream, server.stop)
                .await
        }
        Ok(Err(error)) => {
            tracing::debug!(%from, %error, "TLS handshake of TURN failed");
            Some(TurnClosed::Tls)
        }
        Err(_) => Some(TurnClosed::Handshake),
    }
}

/// A client's connection.
struct Connection {
    client: Client,
    relay: Option<UdpSocket>,
    shared: Arc<Shared>,
    /// Received bytes without a complete message.
    input: Vec<u8>,
    filled: usize,
    output: Output,
    /// The start of a time without an allocation.
    idle_since: Option<Instant>,
}

/// The data that waits for the client.
struct Output {
    queue: BytesMut,
    most: usize,
    /// Whether the stream holds data that was not flushed.
    is_unflushed: bool,
    /// The start of a time in which the client has not read.
    waits_since: Option<Instant>,
}

/// An event of a connection.
enum Event {
    Read(io::Result<usize>),
    Written(io::Result<usize>),
    Flushed(io::Result<()>),
    Relayed(io::Result<(usize, SocketAddr)>),
    Tick,
    Stop,
}

impl Connection {
    fn new(from: SocketAddr, server: &Server) -> Self {
        Connection {
            client: Client::new(from),
            relay: None,
            shared: server.shared.clone(),
            input: vec![0; MAX_FRAME],
            filled: 0,
            output: Output {
                queue: BytesMut::new(),
                most: server.max_queue,
                is_unflushed: false,
                waits_since: None,
            },
            idle_since: Some(Instant::now()),
        }
    }

    /// Serves the connection until it ends. Returns the reason if the server closes it because of
    /// the client.
    async fn run<S>(mut self, stream: S, stop: watch::Receiver<bool>) -> Option<TurnClosed>
    where
        S: AsyncRead + AsyncWrite,
    {
        let closed = self.serve(stream, stop).await;
        self.client.end(&self.shared);
        closed
    }

    async fn serve<S>(&mut self, stream: S, mut stop: watch::Receiver<bool>) -> Option<TurnClosed>
    where
        S: AsyncRead + AsyncWrite,
    {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut datagram = vec![0; MAX_FRAME];
        let mut head = Vec::new();
        loop {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            let event = tokio::select! {
                read = reader.read(room) => Event::Read(read),
                event = self.output.write_to(&mut writer) => event,
                received = receive(self.relay.as_ref(), &mut datagram) => Event::Relayed(received),
                _ = tick.tick() => Event::Tick,
                () = stopped(&mut stop) => Event::Stop,
            };
            match event {
                Event::Read(Ok(0)) | Event::Read(Err(_)) | Event::Stop => return None,
                Event::Read(Ok(len)) => {
                    self.filled = self.filled.saturating_add(len);
                    if let Err(why) = self.take_messages() {
                        return Some(why);
                    }
                }
                Event::Written(Ok(len)) if len > 0 => self.output.written(len),
                Event::Written(_) | Event::Flushed(Err(_)) => return None,
                Event::Flushed(Ok(())) => self.output.flushed(),
                Event::Relayed(Ok((len, from))) => {
                    let data = datagram.get(..len).unwrap_or_default();
                    self.relayed(from, data, &mut head);
                }
                Event::Relayed(Err(error)) => {
                    tracing::debug!(%error, "cannot read a relay socket of TURN");
                }
                Event::Tick => {
                    if let Some(why) = self.overdue() {
                        return Some(why);
                    }
                }
            }
        }
    }

    /// Takes the complete messages of the input.
    fn take_messages(&mut self) -> Result<(), TurnClosed> {
        let input = std::mem::take(&mut self.input);
        let mut start = 0;
        let outcome = loop {
            let rest = input.get(start..self.filled).unwrap_or_default();
            match frame(rest) {
                Err(_) => break Err(TurnClosed::Malformed),
                Ok(None) => break Ok(()),
                Ok(Some((len, next))) => {
                    let message = rest.get(..len).unwrap_or_default();
                    if let Err(why) = self.take(message, Now::read()) {
                        break Err(why);
                    }
                    start = start.saturating_add(next);
                }
            }
        };
        self.input = input;
        let end = self.filled.max(start);
        self.input.copy_within(start..end, 0);
        self.filled = end.saturating_sub(start);
        outcome
    }

    fn take(&mut self, message: &[u8], now: Now) -> Result<(), TurnClosed> {
        let response = match self.client.receive(&self.shared, message, now) {
            Action::Nothing => return Ok(()),
            Action::Relay { to, data } => {
                if let Some(relay) = &self.relay {
                    relay::send(relay, to, data, &self.shared.counters);
                }
                return Ok(());
            }
            Action::Reply(response) => response,
            Action::Released(response) => {
                self.relay = None;
                response
            }
            Action::Open(pending) => {
                let opened = relay::open(pending.bind);
                let address = opened.as_ref().map(|(_, address)| *address);
                self.relay = opened.map(|(relay, _)| relay);
                self.client.opened(&self.shared, pending, address, now)
            }
        };
        // A client that does not even read responses is useless.
        match self.output.push(&response, &[]) {
            true => Ok(()),
            false => Err(TurnClosed::Slow),
        }
    }

    fn relayed(&mut self, from: SocketAddr, data: &[u8], head: &mut Vec<u8>) {
        head.clear();
        let follows = self
            .client
            .envelop(&self.shared, from, data, Now::read(), head);
        let pushed = match follows {
            None => return,
            Some(true) => self.output.push(head, data),
            Some(false) => self.output.push(head, &[]),
        };
        match pushed {
            true => self.shared.counters.relayed_to_client(data.len()),
            false => count(&self.shared.counters.dropped),
        }
    }

    /// Returns why the connection has to be closed, if a time limit has passed.
    fn overdue(&mut self) -> Option<TurnClosed> {
        let now = Instant::now();
        let is_over = |since: Option<Instant>, limit| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
        };
        match self.client.is_allocated(Now::read()) {
            true => self.idle_since = None,
            false => {
                self.client.end(&self.shared);
                self.relay = None;
                self.idle_since.get_or_insert(now);
            }
        }
        if is_over(self.output.waits_since, SLOW) {
            return Some(TurnClosed::Slow);
        }
        is_over(self.idle_since, IDLE).then_some(TurnClosed::Idle)
    }
}

impl Output {
    /// Writes some of the waiting data, or flushes the stream after all of it. Never ends if there
    /// is nothing to do.
    async fn write_to(&self, writer: &mut (impl AsyncWrite + Unpin)) -> Event {
        if !self.queue.is_empty() {
            return Event::Written(writer.write(&self.queue).await);
        }
        match self.is_unflushed {
            true => Event::Flushed(writer.flush().await),
            false => std::future::pending().await,
        }
    }

    /// Queues a message, padded to a multiple of 4 bytes. Returns whether there was room.
    fn push(&mut self, head: &[u8], data: &[u8]) -> bool {
        let len = head.len().saturating_add(data.len());
        let padded = len.next_multiple_of(4);
        if self.queue.len().saturating_add(padded) > self.most {
            return false;
        }
        self.queue.extend_from_slice(head);
        self.queue.extend_from_slice(data);
        self.queue
            .resize(self.queue.len().saturating_add(padded - len), 0);
        self.waits_since.get_or_insert_with(Instant::now);
        true
    }

    fn written(&mut self, len: usize) {
        self.queue.advance(len.min(self.queue.len()));
        self.is_unflushed = true;
        self.waits_since = Some(Instant::now());
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
            self.queue = BytesMut::new();
        }
    }

    fn flushed(&mut self) {
        self.is_unflushed = false;
        self.waits_since = None;
    }
}

/// Receives from a relay socket. Never ends without one.
async fn receive(relay: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match relay {
        Some(relay) => relay.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}
