//! One participant as the load thread runs it.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use portunus_rtc::{DropReason, Protocol, Received, Transport, TransportEvent};
use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{Compound, CompoundWriter, Packet, ReceiverReportWriter, RembWriter};
use portunus_srtp::Profile;
use portunus_udp::{ReceiveBatch, Received as Arrival, SendBatch, enable_timestamps};

use super::check::{Checker, Findings};
use super::count::Count;
use super::prepare::Prepared;
use super::send::Sender;
use crate::source::{Lateness, wall_clock};

/// Who reports, as browsers that send nothing call themselves.
const RECEIVER: Ssrc = Ssrc(1);

/// Between two receiver reports.
const REPORTS: Duration = Duration::from_secs(1);

/// Streams that one receiver report has room for.
const MAX_BLOCKS: usize = 31;

/// Longest datagram that is sent, in bytes.
const MAX_DATAGRAM: usize = 1_500;

/// A participant.
pub(super) struct Peer {
    count: Count,
    packets: u64,
    socket: UdpSocket,
    address: SocketAddr,
    checker: Option<Box<Check>>,
    transport: Box<Transport>,
    sender: Option<Box<Sender>>,
    reports: bool,
    limit_bps: Option<u64>,
    next_report: Option<Instant>,
    /// It was there when a storm began.
    pub(super) is_veteran: bool,
    /// The deadline that is in the timer queue.
    pub(super) scheduled: Option<Instant>,
}

#[derive(Debug, Default)]
struct Check {
    checker: Checker,
    last: Option<Duration>,
}

/// What a call brought that others have to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// ICE and DTLS are done.
    Connected(Option<Profile>),
    /// The first media packet has come.
    Media,
    /// It is over, and why.
    Ended(String),
}

/// What is summed up over participants.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets that participants sent and should get back.
    pub(super) sent: u64,
    pub(super) findings: Findings,
    pub(super) longest_gap: Duration,
    /// Gaps count of those only who were there when a storm began.
    pub(super) of_veterans: bool,
}

impl Tally {
    /// What was summed up; the next one begins.
    pub(super) fn take(&mut self) -> Self {
        let next = Self {
            of_veterans: self.of_veterans,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }
}

impl Peer {
    pub(super) fn new(
        prepared: Prepared,
        check: bool,
        reports: bool,
        limit_bps: Option<u64>,
    ) -> Self {
        let Prepared {
            socket,
            address,
            transport,
            sender,
            ..
        } = prepared;
        if check {
            // Without it the time of reading has to do, which is later.
            enable_timestamps(&socket);
        }
        Self {
            count: Count::default(),
            packets: 0,
            socket,
            address,
            checker: check.then(Box::default),
            transport,
            sender,
            reports,
            limit_bps,
            next_report: None,
            is_veteran: false,
            scheduled: None,
        }
    }

    /// The socket, to be polled.
    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Media packets that have come.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// How long the last packet is ago, for those that check.
    pub(super) fn silent(&self, now: Duration) -> Option<Duration> {
        let last = self.checker.as_ref()?.last?;
        Some(now.saturating_sub(last))
    }

    /// Takes all that waits in the socket. Says whether the transport was touched.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        batch: &mut ReceiveBatch,
        tally: &mut Tally,
        news: &mut Vec<News>,
    ) -> bool {
        let mut touched = false;
        let before = self.packets;
        loop {
            // What the kernel does not give is not there.
            let received = batch.receive(&self.socket).unwrap_or(0);
            for arrival in batch.iter(received) {
                touched |= match &mut self.checker {
                    None => self.count(now, arrival, tally),
                    Some(_) => self.check(now, arrival, tally),
                };
            }
            if !batch.was_full(received) {
                break;
            }
        }
        if before == 0 && self.packets > 0 {
            news.push(News::Media);
        }
        if touched {
            self.flush(news);
        }
        touched
    }

    /// Time has passed.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut SendBatch,
        (tally, lateness): (&mut Tally, &Lateness),
        news: &mut Vec<News>,
    ) {
        if let Some(sender) = &mut self.sender
            && sender.poll_timeout().is_some_and(|due| due <= now)
        {
            let sent = sender.send(now, &self.transport, &self.socket, out, lateness);
            if self.packets > 0 {
                tally.sent += sent;
            }
        }
        if self.next_report.is_some_and(|due| due <= now) {
            self.next_report = Some(now + REPORTS);
            self.report();
        }
        if self.transport.poll_timeout().is_some_and(|due| due <= now) {
            self.transport.handle_timeout(now);
            self.flush(news);
        }
    }

    /// When [`Peer::handle_timeout`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let sender = self
            .sender
            .as_ref()
            .and_then(|sender| sender.poll_timeout());
        [self.transport.poll_timeout(), sender, self.next_report]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes a candidate of the server's.
    pub(super) fn add_candidate(&mut self, text: &str, now: Instant, news: &mut Vec<News>) {
        // One that cannot be read is as good as none: the others may do.
        let _ = self.transport.add_remote_candidate(text, now);
        self.flush(news);
    }

    /// Says goodbye to the server.
    pub(super) fn close(&mut self) {
        self.transport.close();
        self.flush(&mut Vec::new());
    }

    /// Sends what waits and collects what happened.
    pub(super) fn flush(&mut self, news: &mut Vec<News>) {
        let mut buf = [0; MAX_DATAGRAM];
        while let Some(transmit) = self.transport.poll_transmit(&mut buf) {
            if let Some(datagram) = buf.get(..transmit.len) {
                // What cannot be sent is lost, as on any network.
                let _ = self.socket.send_to(datagram, transmit.destination);
            }
        }
        while let Some(event) = self.transport.poll_event() {
            match event {
                TransportEvent::Connected { profile } => {
                    let now = Instant::now();
                    if let Some(sender) = &mut self.sender {
                        sender.start(now);
                    }
                    self.next_report = self.reports.then_some(now + REPORTS);
                    news.push(News::Connected(profile));
                }
                TransportEvent::Failed(reason) => news.push(News::Ended(reason.to_string())),
                TransportEvent::Closed => news.push(News::Ended("closed by the server".to_owned())),
                _ => {}
            }
        }
    }

    /// Sends a receiver report, as browsers do each second.
    fn report(&mut self) {
        let Some(to) = self.transport.selected_pair().map(|pair| pair.remote) else {
            return;
        };
        let mut buf = [0; MAX_DATAGRAM];
        let blocks = self.count.report();
        let mut out = CompoundWriter::new(&mut buf);
        let reports = blocks
            .chunks(MAX_BLOCKS)
            .map(|blocks| ReceiverReportWriter {
                ssrc: RECEIVER,
                blocks,
            });
        for report in reports {
            if out.push(&report).is_err() {
                break;
            }
        }
        if let Some(bitrate) = self.limit_bps {
            let ssrcs: Vec<Ssrc> = self.count.ssrcs().take(MAX_BLOCKS).collect();
            let remb = RembWriter {
                sender: RECEIVER,
                bitrate,
                ssrcs: &ssrcs,
            };
            // Without room the last one goes on to count.
            let _ = out.push(&remb);
        }
        if out.is_empty() {
            return;
        }
        let len = out.len();
        if let Ok(len) = self.transport.seal_rtcp(len, &mut buf)
            && let Some(datagram) = buf.get(..len)
        {
            // What cannot be sent is lost, as on any network.
            let _ = self.socket.send_to(datagram, to);
        }
    }

    fn count(&mut self, now: Instant, arrival: Arrival<'_>, tally: &mut Tally) -> bool {
        let mut touched = false;
        let Arrival {
            remote,
            data,
            stride,
            ..
        } = arrival;
        for datagram in data.chunks_mut(stride) {
            match Protocol::of(datagram) {
                Some(Protocol::Rtp) => {
                    self.count.take(datagram);
                    self.packets += 1;
                    tally.packets += 1;
                    tally.bytes += datagram.len() as u64;
                }
                Some(Protocol::Rtcp) => self.obey(now, remote, datagram),
                None => {}
                Some(Protocol::Stun | Protocol::Dtls) => {
                    self.transport.receive(now, self.address, remote, datagram);
                    touched = true;
                }
            }
        }
        touched
    }

    /// Who publishes gives keyframes when the server asks for them.
    fn obey(&mut self, now: Instant, remote: SocketAddr, datagram: &mut [u8]) {
        let Some(sender) = &mut self.sender else {
            return;
        };
        if let Received::Rtcp { len } = self.transport.receive(now, self.address, remote, datagram)
        {
            let wants = |packet| matches!(packet, Ok(Packet::Pli(_) | Packet::Fir(_)));
            if Compound::new(datagram.get(..len).unwrap_or_default()).any(wants) {
                sender.want_keyframe();
            }
        }
    }

    fn check(&mut self, now: Instant, arrival: Arrival<'_>, tally: &mut Tally) -> bool {
        let Arrival {
            remote,
            data,
            stride,
            at,
            ..
        } = arrival;
        let arrived = at.unwrap_or_else(wall_clock);
        let counts_gaps = self.is_veteran || !tally.of_veterans;
        let mut touched = false;
        for datagram in data.chunks_mut(stride) {
            let bytes = datagram.len() as u64;
            let is_rtp = Protocol::of(datagram) == Some(Protocol::Rtp);
            if is_rtp {
                self.count.take(datagram);
            }
            match self.transport.receive(now, self.address, remote, datagram) {
                Received::Rtp { len, header, .. } => {
                    let packet = datagram.get(..len).unwrap_or_default();
                    let payload = header.payload(packet);
                    if let Some(check) = &mut self.checker
                        && let Some(gap) = check.take(header.ssrc, payload, arrived, tally)
                        && counts_gaps
                    {
                        tally.longest_gap = tally.longest_gap.max(gap);
                    }
                    self.packets += 1;
                    tally.packets += 1;
                    tally.bytes += bytes;
                }
                Received::Rtcp { .. } => {}
                Received::Consumed => touched = true,
                // The server had its keys first.
                Received::Dropped(DropReason::NoKeys) => {}
                Received::Dropped(_) if is_rtp => tally.findings.strange += 1,
                Received::Dropped(_) => {}
            }
        }
        touched
    }
}

impl Check {
    /// Gives the time since the last packet.
    fn take(
        &mut self,
        ssrc: Ssrc,
        payload: &[u8],
        arrived: Duration,
        tally: &mut Tally,
    ) -> Option<Duration> {
        self.checker
            .take(ssrc, payload, arrived, &mut tally.findings);
        let last = self.last.replace(arrived)?;
        Some(arrived.saturating_sub(last))
    }
}
