//! A client's PeerConnection: our own sans-IO stack on a socket.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::connection::Received;
use portunus_rtc::data::{DataMessage, DataOptions, DataPayload};
use portunus_rtc::streams::{Burst, NtpClock, SenderClock};
use portunus_rtc::{
    Connection, Feedback, Identity, LocalCandidate, Path, StreamConfig, TransportConfig,
    TransportEvent, candidate_lines,
};
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{ExtensionKind, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::{IceCredentials, Negotiated};
use portunus_sdp::{AnswerOptions, Description, LocalTransport, SdpType, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{sleep_until, timeout};

use crate::socket::ClientSocket;

/// The longest time that a test waits for an expected event.
const PATIENCE: Duration = Duration::from_secs(20);

/// A PeerConnection on the loopback interface.
#[derive(Debug)]
pub struct Peer {
    socket: ClientSocket,
    local: SocketAddr,
    /// The connection.
    pub connection: Connection,
    session: Session,
    negotiated: Option<Negotiated>,
    /// The header extensions that its answers accept.
    pub extensions: Vec<ExtensionKind>,
    /// Its answers accept redundant audio (RFC 2198).
    pub red: bool,
    /// Each sent packet ends a picture.
    pub marker: bool,
    sent: Vec<u64>,
    /// The next number of each simulcast encoding, by m-line and rid.
    encodings: HashMap<(usize, String), u64>,
    /// The random loss of received datagrams: the share, and the number so far.
    losing: Option<(StdRng, f64)>,
    lost: u64,
    forged_hello: Option<ForgedHello>,
    /// The sent media datagrams, if they are recorded.
    pub recorded: Option<Vec<Vec<u8>>>,
    /// The received RTP packets.
    pub packets: Vec<Packet>,
    /// The events of the transport.
    pub events: Vec<TransportEvent>,
    /// The clocks of sender reports, with the index of the m-line.
    pub clocks: Vec<(usize, SenderClock)>,
    /// The packets requested by NACK: index of the m-line, and number.
    pub asked: Vec<(usize, u64)>,
    /// The m-lines with keyframe requests, in their order.
    pub keyframes_asked: Vec<usize>,
}

/// A received RTP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The index of the m-line.
    pub media: usize,
    /// The extended sequence number.
    pub seq: u64,
    /// The timestamp.
    pub timestamp: u32,
    /// The payload.
    pub payload: Vec<u8>,
    /// The header extensions, by id.
    pub extensions: Vec<(u8, Vec<u8>)>,
}

/// A ClientHello that an attacker sends from this peer's address before its own.
#[derive(Debug)]
struct ForgedHello {
    datagram: Vec<u8>,
    /// The delay of this peer's DTLS.
    delay: Duration,
    /// The start of this peer's DTLS, once the forged ClientHello was sent.
    begins: Option<Instant>,
    /// The peer's own ClientHello until then, with its destination.
    own: Option<(Vec<u8>, SocketAddr)>,
}

impl Peer {
    /// Creates a connection that offers first.
    pub async fn offering() -> Self {
        Self::new(true, ClientSocket::udp().await)
    }

    /// Like `offering`, at this loopback address.
    pub async fn offering_from(ip: IpAddr) -> Self {
        Self::new(true, ClientSocket::udp_from(ip).await)
    }

    /// Creates a connection that answers first.
    pub async fn answering() -> Self {
        Self::new(false, ClientSocket::udp().await)
    }

    /// Like `answering`, at this address.
    pub async fn answering_from(ip: IpAddr) -> Self {
        Self::new(false, ClientSocket::udp_from(ip).await)
    }

    /// Like `answering`, behind a firewall that passes only TCP.
    pub fn answering_by_tcp() -> Self {
        Self::answering_by_tcp_from(Ipv4Addr::LOCALHOST.into())
    }

    /// Like `answering_by_tcp`, at this loopback address.
    pub fn answering_by_tcp_from(ip: IpAddr) -> Self {
        Self::new(false, ClientSocket::tcp(ip))
    }

    /// Like `answering_by_tcp`, for a connection that offers first.
    pub fn offering_by_tcp() -> Self {
        Self::new(true, ClientSocket::tcp(Ipv4Addr::LOCALHOST.into()))
    }

    fn new(controlling: bool, socket: ClientSocket) -> Self {
        let local = socket.local();
        let identity = Arc::new(Identity::generate().unwrap());
        let candidates = vec![LocalCandidate {
            transport: socket.transport(),
            ..LocalCandidate::udp(local, local)
        }];
        let ice = credentials();
        let random = rand::rng().random();
        let session = LocalTransport {
            ice: ice.clone(),
            fingerprint: identity.fingerprint().clone(),
            candidates: candidate_lines(&candidates),
            full_trickle: false,
            ice_lite: false,
            address: local.ip(),
            session_id: 1,
        };
        let transport = TransportConfig {
            local_ice: ice,
            identity,
            controlling,
            ice_lite: false,
            candidates,
            tie_breaker: random,
        };
        let now = Instant::now();
        let clock = NtpClock::new(now, Duration::from_secs(1));
        Peer {
            socket,
            local,
            connection: Connection::new(transport, StreamConfig::default(), clock, now),
            session: Session::new(session, random),
            negotiated: None,
            extensions: Vec::new(),
            red: false,
            sent: Vec::new(),
            marker: true,
            encodings: HashMap::new(),
            losing: None,
            lost: 0,
            forged_hello: None,
            recorded: None,
            packets: Vec::new(),
            events: Vec::new(),
            clocks: Vec::new(),
            asked: Vec::new(),
            keyframes_asked: Vec::new(),
        }
    }

    /// Returns the text of an offer.
    pub fn offer(&mut self, description: Description) -> String {
        self.session.local_offer(description).unwrap()
    }

    /// Returns the text of an offer that restarts ICE.
    pub fn restart(&mut self, description: Description) -> String {
        let ice = credentials();
        let candidates = self.session.local_transport().candidates.clone();
        self.session.set_local_ice(ice.clone(), candidates);
        self.connection
            .transport
            .restart_ice(ice, true, Instant::now());
        self.offer(description)
    }

    /// Takes the text of the answer.
    pub fn accept(&mut self, answer: &str) {
        let answer = self.session.parse(answer, SdpType::Answer).unwrap();
        let negotiated = self.session.accept_answer(answer).unwrap();
        self.agree(negotiated);
    }

    /// Answers the text of an offer, and accepts all of it except header extensions and redundant
    /// audio.
    pub fn answer(&mut self, offer: &str) -> String {
        let offer = self.session.parse(offer, SdpType::Offer).unwrap();
        let mut options = AnswerOptions {
            extensions: self.extensions.clone(),
            ..AnswerOptions::default()
        };
        options.audio.red = self.red;
        let answer = Description::answer(&offer.description, &options);
        self.session.set_remote_offer(offer).unwrap();
        let (answer, negotiated) = self.session.local_answer(answer).unwrap();
        self.agree(negotiated);
        answer
    }

    fn agree(&mut self, negotiated: Negotiated) {
        self.connection
            .negotiate(&negotiated, Instant::now())
            .unwrap();
        self.sent.resize(negotiated.media.len(), 1);
        self.negotiated = Some(negotiated);
    }

    /// Returns the result of the negotiation.
    pub fn negotiated(&self) -> &Negotiated {
        self.negotiated.as_ref().expect("a negotiation")
    }

    /// Lets time pass until `done`, 20 s at most.
    pub async fn run_until(&mut self, mut done: impl FnMut(&mut Peer) -> bool) {
        let run = async {
            while !done(self) {
                self.turn().await;
            }
        };
        let in_time = timeout(PATIENCE, run).await.is_ok();
        assert!(in_time, "nothing came of it: {:?}", self.events);
    }

    /// Lets this time pass.
    pub async fn run_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        self.run_until(|_| Instant::now() > until).await;
    }

    /// Lets time pass until the connection is up.
    pub async fn connect(&mut self) {
        let up = |event: &TransportEvent| matches!(event, TransportEvent::Connected { .. });
        self.run_until(|peer| peer.events.iter().any(up)).await;
    }

    /// From now on, loses a random share of received datagrams.
    pub fn lose(&mut self, share: f64, seed: u64) {
        self.losing = Some((StdRng::seed_from_u64(seed), share));
    }

    /// Returns the datagrams lost that way.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Forges a ClientHello: `datagram` leaves from this peer's address `delay` before the peer's
    /// own. Answers to the forged one are lost until then.
    pub fn forge_hello(&mut self, datagram: Vec<u8>, delay: Duration) {
        self.forged_hello = Some(ForgedHello {
            datagram,
            delay,
            begins: None,
            own: None,
        });
    }

    /// Sends a datagram to the server unchanged, once there is a connection.
    pub async fn send_datagram(&mut self, datagram: &[u8]) {
        let Some(pair) = self.connection.transport.selected_pair() else {
            return;
        };
        let remote = pair.remote;
        // A full socket loses it, as a network would.
        let _ = self.socket.send(datagram, remote).await;
    }

    /// Sends RTCP, sealed.
    pub async fn send_rtcp(&mut self, rtcp: &[u8]) {
        let mut buf = [0; 1_500];
        buf[..rtcp.len()].copy_from_slice(rtcp);
        let sealed = self.connection.transport.seal_rtcp(rtcp.len(), &mut buf);
        self.send_datagram(&buf[..sealed.unwrap()]).await;
    }

    /// Sends an RTP packet on m-line `media`.
    pub async fn send(&mut self, media: usize, timestamp: u32, payload: &[u8]) {
        self.send_with(media, timestamp, &[], payload).await;
    }

    /// Like [`Peer::send`], with header extensions: their ids and values.
    pub async fn send_with(
        &mut self,
        media: usize,
        timestamp: u32,
        extensions: &[(u8, &[u8])],
        payload: &[u8],
    ) {
        let ssrc = self.negotiated().media[media].local_ssrc;
        let seq = self.sent[media];
        self.sent[media] += 1;
        self.send_numbered(media, (ssrc, seq), timestamp, extensions, payload)
            .await;
    }

    /// Skips the numbers of `packets` packets on m-line `media`, as if they were lost.
    pub fn skip(&mut self, media: usize, packets: u64) {
        self.sent[media] += packets;
    }

    /// Sends the packet with this number on m-line `media`, although later ones may have been sent.
    pub async fn send_late(&mut self, media: usize, seq: u64, timestamp: u32, payload: &[u8]) {
        let ssrc = self.negotiated().media[media].local_ssrc;
        self.send_numbered(media, (ssrc, seq), timestamp, &[], payload)
            .await;
    }

    /// Returns the number of the next packet on m-line `media`.
    pub fn next_number(&self, media: usize) -> u64 {
        self.sent[media]
    }

    /// Like [`Peer::send_with`], for the encoding `rid`.
    pub async fn send_encoding(
        &mut self,
        (media, rid): (usize, &str),
        timestamp: u32,
        extensions: &[(u8, &[u8])],
        payload: &[u8],
    ) {
        let line = &self.negotiated().media[media];
        let mid = line.mid;
        let number = |kind| line.extensions.id(kind).expect("the extension");
        let own = [number(ExtensionKind::Mid), number(ExtensionKind::Rid)];
        // Each has an SSRC of its own.
        let other = rid.bytes().fold(1, |sum, byte| sum * 31 + u32::from(byte));
        let ssrc = Ssrc(line.local_ssrc.0.wrapping_add(other));
        let seq = self.encodings.entry((media, rid.to_owned())).or_insert(0);
        *seq += 1;
        let seq = *seq;
        let mut all = vec![(own[0], mid.as_str().as_bytes()), (own[1], rid.as_bytes())];
        all.extend(extensions);
        self.send_numbered(media, (ssrc, seq), timestamp, &all, payload)
            .await;
    }

    async fn send_numbered(
        &mut self,
        media: usize,
        (ssrc, seq): (Ssrc, u64),
        timestamp: u32,
        extensions: &[(u8, &[u8])],
        payload: &[u8],
    ) {
        let pt: Pt = self.negotiated().media[media].payloads[0].pt;
        let seq = SeqNo(seq);
        let fields = Fields {
            marker: self.marker,
            padding: false,
            pt,
            sequence: seq.wire(),
            timestamp,
            ssrc,
        };
        let mut buf = [0; 1_500];
        let header = write_header(&mut buf, &fields, extensions.iter().copied()).unwrap();
        let len = header + payload.len();
        buf[header..len].copy_from_slice(payload);
        let now = Instant::now();
        let range = (header, len);
        let len = self
            .connection
            .seal_rtp(seq, (range, &[]), &mut buf)
            .unwrap();
        let mut burst = Burst::default();
        burst.add(seq, timestamp, payload.len());
        self.connection.sent(media, &burst, now);
        let remote = self.connection.transport.selected_pair().unwrap().remote;
        self.socket.send(&buf[..len], remote).await.unwrap();
        if let Some(recorded) = &mut self.recorded {
            recorded.push(buf[..len].to_vec());
        }
    }

    /// Sends a text on the data channel `label`.
    pub fn send_text(&mut self, label: &str, text: &str) {
        let (payload, options) = (DataPayload::Text(text), DataOptions::default());
        let sent = self
            .connection
            .transport
            .send_data(label, "", payload, options, Instant::now());
        sent.unwrap();
    }

    /// Sends bytes on the data channel `label`.
    pub fn send_bytes(&mut self, label: &str, bytes: &[u8]) {
        let (payload, options) = (DataPayload::Binary(bytes), DataOptions::default());
        let sent = self
            .connection
            .transport
            .send_data(label, "", payload, options, Instant::now());
        sent.unwrap();
    }

    /// Closes the TCP connection to the server, if it uses one.
    pub fn hang_up(&mut self) {
        self.socket.close();
    }

    /// Closes the TCP connection, and reconnects with the next datagram.
    pub fn connect_again(&mut self) {
        self.socket.connect_again();
    }

    /// From now on, the server sees it at another port of the loopback address `ip`.
    pub async fn move_to(&mut self, ip: IpAddr) {
        self.socket.move_to(ip).await;
    }

    /// Returns the messages received on the data channel `label`.
    pub fn messages(&self, label: &str) -> Vec<&DataMessage> {
        let messages = self.events.iter().filter_map(|event| match event {
            TransportEvent::Data {
                label: on, message, ..
            } if on == label => Some(message),
            _ => None,
        });
        messages.collect()
    }

    /// Returns whether the data channel `label` was closed.
    pub fn has_lost_channel(&self, label: &str) -> bool {
        let closed = |event: &TransportEvent| matches!(event, TransportEvent::DataChannelClosed { label: on } if on == label);
        self.events.iter().any(closed)
    }

    /// Returns the texts received on the data channel `label`.
    pub fn texts(&self, label: &str) -> Vec<&str> {
        let texts = self.messages(label).into_iter();
        let texts = texts.filter_map(|message| match message {
            DataMessage::Text(text) => Some(text.as_str()),
            DataMessage::Binary(_) => None,
        });
        texts.collect()
    }

    /// Sends what waits, then takes a datagram or lets the next deadline pass.
    async fn turn(&mut self) {
        let mut buf = [0; 2_048];
        let forged = self.forged_hello.as_mut();
        let begun = forged.filter(|it| it.begins.is_some_and(|begins| begins <= Instant::now()));
        if let Some((own, destination)) = begun.and_then(|forged| forged.own.take()) {
            let _ = self.socket.send(&own, destination).await;
        }
        while let Some(transmit) = self.connection.poll_transmit(Instant::now(), &mut buf) {
            let datagram = &buf[..transmit.len];
            let forged = self.forged_hello.as_mut().filter(|_| is_dtls(datagram));
            if let Some(forged) = forged.filter(|forged| forged.begins.is_none()) {
                forged.begins = Some(Instant::now() + forged.delay);
                forged.own = Some((datagram.to_vec(), transmit.destination));
                let _ = self
                    .socket
                    .send(&forged.datagram, transmit.destination)
                    .await;
            }
            if !self.is_held(datagram) {
                // A full socket loses it, as a network would.
                let _ = self.socket.send(datagram, transmit.destination).await;
            }
        }
        while let Some(feedback) = self.connection.poll_feedback() {
            match feedback {
                Feedback::SenderReport { media, clock, .. } => self.clocks.push((media, clock)),
                Feedback::Nack { media, seq } => self.asked.push((media, seq.0)),
                Feedback::Keyframe { media } => self.keyframes_asked.push(media),
                _ => {}
            }
        }
        while let Some(event) = self.connection.transport.poll_event() {
            self.events.push(event);
        }
        // A test's condition is checked regularly, whatever happens.
        let soon = Instant::now() + Duration::from_millis(20);
        let deadline = self
            .connection
            .poll_timeout()
            .map_or(soon, |deadline| deadline.min(soon));
        tokio::select! {
            received = self.socket.receive(&mut buf) => {
                let Some((len, remote)) = received else { return };
                if let Some((rng, share)) = &mut self.losing
                    && rng.random_bool(*share)
                {
                    self.lost += 1;
                } else {
                    self.receive(remote, &mut buf[..len]);
                }
            }
            () = sleep_until(deadline.into()) => self.connection.handle_timeout(Instant::now()),
        }
    }

    /// Returns whether a datagram of DTLS waits or is lost because of a forged ClientHello.
    fn is_held(&self, datagram: &[u8]) -> bool {
        let begins = self.forged_hello.as_ref().and_then(|forged| forged.begins);
        is_dtls(datagram) && begins.is_some_and(|begins| Instant::now() < begins)
    }

    fn receive(&mut self, remote: SocketAddr, datagram: &mut [u8]) {
        if self.is_held(datagram) {
            return;
        }
        let path = Path {
            carrier: self.socket.carrier(),
            local: self.local,
            remote,
        };
        let received = self.connection.receive_by(Instant::now(), path, datagram);
        if let Received::Rtp(incoming) = received {
            let packet = &datagram[incoming.range.clone()];
            self.packets.push(Packet {
                media: incoming.media,
                seq: incoming.seq.0,
                timestamp: incoming.header.timestamp,
                payload: incoming.header.payload(packet).to_vec(),
                extensions: incoming
                    .header
                    .extensions(packet)
                    .map(|(id, value)| (id, value.to_vec()))
                    .collect(),
            });
        }
    }
}

fn is_dtls(datagram: &[u8]) -> bool {
    matches!(datagram.first(), Some(20..=63))
}

pub(crate) fn credentials() -> IceCredentials {
    let random = rand::rng().random::<u64>();
    IceCredentials {
        ufrag: format!("u{random:016x}"),
        pwd: format!("p{random:024x}"),
    }
}
