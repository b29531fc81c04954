//! One participant, run by a load thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::{DropReason, Protocol, Received, Transport, TransportEvent};
use portunus_rtp::rtcp::{
    Compound, CompoundWriter, Packet, ReceiverReportWriter, RembWriter, ReportBlock,
};
use portunus_rtp::{Pt, Ssrc};
use portunus_srtp::Profile;
use portunus_udp::{Received as Arrival, SendBatch};
use smallvec::SmallVec;

use super::answering::{Agreed, IceRestart};
use super::check::Check;
use super::count::Count;
use super::ear::{Ear, Hearing, Kept, Said};
use super::feedback::{FEEDBACKS, Feedback};
use super::id::PeerId;
use super::preparation::Prepared;
use super::sender::Sender;
use super::tally::Tally;
use super::voice::Voice;
use super::way::Way;
use crate::machine::wall_clock;
use crate::source::Lateness;

/// The SSRC of reports by browsers that send nothing.
const RECEIVER: Ssrc = Ssrc(1);

/// The interval of receiver reports.
const REPORTS: Duration = Duration::from_secs(1);

/// The most streams in one receiver report.
const MAX_BLOCKS: usize = 31;

/// The longest datagram that is sent, in bytes.
const MAX_DATAGRAM: usize = 1_500;

/// A participant.
pub(super) struct Peer {
    count: Count,
    packets: u64,
    way: Way,
    address: SocketAddr,
    checker: Option<Box<Check>>,
    ear: Option<Box<Ear>>,
    transport: Box<Transport>,
    sender: Option<Box<Sender>>,
    voice: Option<Box<Voice>>,
    reports: bool,
    limit_bps: Option<u64>,
    next_report: Option<Instant>,
    feedback: Option<Box<Feedback>>,
    next_feedback: Option<Instant>,
    /// Payload types without media: retransmissions, and probes that look like these.
    repairs: SmallVec<[Pt; 2]>,
    /// The transport may have something to send or to report.
    is_stirred: bool,
    /// It was there when a storm started.
    pub(super) is_veteran: bool,
    /// The deadline in the timer queue.
    pub(super) scheduled: Option<Instant>,
}

/// A change that others have to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// ICE and DTLS are complete.
    Connected(Option<Profile>),
    /// The participant ended, with the reason.
    Ended(String),
}

impl Peer {
    pub(super) fn new(
        prepared: Prepared,
        way: Way,
        check: bool,
        reports: bool,
        limit_bps: Option<u64>,
        hearing: Option<Hearing>,
    ) -> Self {
        let Prepared {
            address,
            transport,
            sender,
            voice,
            receives,
            ..
        } = prepared;
        let feedback = receives.numbered_by;
        let feedback = feedback.map(|by| Box::new(Feedback::new(by, limit_bps)));
        Self {
            count: Count::default(),
            packets: 0,
            way,
            address,
            checker: check.then(Box::default),
            ear: hearing.map(|hearing| Box::new(Ear::new(hearing))),
            transport,
            sender,
            voice,
            reports,
            // A participant behind a link does not know its rate.
            limit_bps: limit_bps.filter(|_| feedback.is_none()),
            next_report: None,
            feedback,
            next_feedback: None,
            repairs: receives.repairs,
            is_stirred: true,
            is_veteran: false,
            scheduled: None,
        }
    }

    /// Returns whether packets must be read whole. Otherwise, the starts of messages are enough.
    pub(super) fn reads_all(&self) -> bool {
        self.checker.is_some() || self.feedback.is_some() || self.keeps()
    }

    fn keeps(&self) -> bool {
        self.ear.as_ref().is_some_and(|ear| ear.keeps())
    }

    /// Returns the packets expected since the last call, if it is in an audio room.
    pub(super) fn due(&mut self, clock: Duration) -> u64 {
        self.ear.as_mut().map_or(0, |ear| ear.due(clock))
    }

    /// Returns its way to the server.
    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of received media packets.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets that it misses, and the longest wait since the last call for
    /// one that had been sent. `None` if it does not check packets.
    pub(super) fn take_checked(&mut self) -> Option<(i64, Duration)> {
        let check = self.checker.as_mut()?;
        Some((check.lost, check.take_longest_wait()))
    }

    /// Returns the time since the last packet, if it checks packets or is in an audio room.
    pub(super) fn silent(&self, now: Duration) -> Option<Duration> {
        match &self.ear {
            Some(ear) => ear.silent(now),
            None => Some(now.saturating_sub(self.checker.as_ref()?.last?)),
        }
    }

    /// Takes a received message. Returns whether it needs attention: the transport changed, or this
    /// was the first media packet.
    pub(super) fn take(
        &mut self,
        id: PeerId,
        now: Instant,
        arrival: Arrival<'_>,
        tally: &mut Tally,
    ) -> bool {
        let before = self.packets;
        self.is_stirred |= match &mut self.checker {
            _ if self.ear.is_some() => self.hear(id, now, arrival, tally),
            None => self.count(now, arrival, tally),
            Some(_) => self.check(now, arrival, tally),
        };
        self.is_stirred || before == 0 && self.packets > 0
    }

    /// Handles the deadline of [`Peer::poll_timeout`].
    pub(super) fn handle_timeout(
        &mut self,
        id: PeerId,
        now: Instant,
        out: &mut SendBatch,
        tally: &mut Tally,
        lateness: &Lateness,
    ) {
        if let Some(sender) = &mut self.sender
            && sender.poll_timeout().is_some_and(|due| due <= now)
        {
            let sent = sender.send(now, &self.transport, &self.way, out, lateness);
            if self.packets > 0 {
                tally.sent += sent;
            }
        }
        if let Some(voice) = &mut self.voice
            && voice.poll_timeout().is_some_and(|due| due <= now)
            && let Some(at) = voice.send(now, &self.transport, &self.way, out, lateness)
        {
            tally.heard.said.push(Said { peer: id, at });
        }
        if self.next_report.is_some_and(|due| due <= now) {
            self.next_report = Some(now + REPORTS);
            self.report(out);
        }
        if self.next_feedback.is_some_and(|due| due <= now) {
            self.next_feedback = Some(now + FEEDBACKS);
            self.report_arrivals(out);
        }
        if self.transport.poll_timeout().is_some_and(|due| due <= now) {
            self.transport.handle_timeout(now);
            self.is_stirred = true;
        }
    }

    /// Returns the next deadline for [`Peer::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let sender = self
            .sender
            .as_ref()
            .and_then(|sender| sender.poll_timeout());
        let voice = self.voice.as_ref().and_then(|voice| voice.poll_timeout());
        let (report, feedback) = (self.next_report, self.next_feedback);
        [
            self.transport.poll_timeout(),
            sender,
            voice,
            report,
            feedback,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Adds a candidate of the server.
    pub(super) fn add_candidate(&mut self, text: &str, now: Instant) {
        // A candidate that cannot be read counts as absent. Others may suffice.
        let _ = self.transport.add_remote_candidate(text, now);
        self.is_stirred = true;
    }

    /// Takes the result of a later negotiation. Its limit stays as it is.
    pub(super) fn agree(&mut self, agreed: Agreed, now: Instant) {
        let Agreed { receives, restart } = agreed;
        if let Some(IceRestart { local, remote }) = restart.map(|restart| *restart) {
            self.transport.restart_ice(local, false, now);
            // A candidate that cannot be read counts as absent. Others may suffice.
            let _ = self.transport.set_remote(&remote, now);
            self.is_stirred = true;
        }
        self.repairs = receives.repairs;
        if let Some(by) = receives.numbered_by.filter(|_| self.feedback.is_none()) {
            self.feedback = Some(Box::new(Feedback::new(by, self.limit_bps.take())));
            self.next_feedback = Some(now + FEEDBACKS);
        }
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, out: &mut SendBatch) {
        self.transport.close();
        self.is_stirred = true;
        self.flush(out, &mut Vec::new());
    }

    /// Sends what waits, and collects events.
    pub(super) fn flush(&mut self, out: &mut SendBatch, news: &mut Vec<News>) {
        if !std::mem::take(&mut self.is_stirred) {
            return;
        }
        while let Some(room) = out.room(&self.way).get_mut(..MAX_DATAGRAM)
            && let Some(transmit) = self.transport.poll_transmit(room)
        {
            let to = self.way.destination(out, transmit.destination);
            out.commit(transmit.len, &to);
        }
        self.way.leave(out);
        while let Some(event) = self.transport.poll_event() {
            match event {
                TransportEvent::Connected { profile } => {
                    let now = Instant::now();
                    if let Some(sender) = &mut self.sender {
                        sender.start(now);
                    }
                    if let Some(voice) = &mut self.voice {
                        voice.start(now);
                    }
                    self.next_report = self.reports.then_some(now + REPORTS);
                    self.next_feedback = self.feedback.is_some().then_some(now + FEEDBACKS);
                    news.push(News::Connected(profile));
                }
                TransportEvent::Failed(reason) => news.push(News::Ended(reason.to_string())),
                TransportEvent::Closed => news.push(News::Ended("closed by the server".to_owned())),
                _ => {}
            }
        }
    }

    /// Sends transport-wide feedback, if any is due.
    fn report_arrivals(&mut self, batch: &mut SendBatch) {
        let Some((feedback, pair)) = self.feedback.as_mut().zip(self.transport.selected_pair())
        else {
            return;
        };
        let to = self.way.destination(batch, pair.remote);
        let Some(buf) = batch.room(&self.way).get_mut(..MAX_DATAGRAM) else {
            return;
        };
        let mut out = CompoundWriter::new(buf);
        if !feedback.write(wall_clock(), RECEIVER, &mut out) || out.is_empty() {
            return;
        }
        let len = out.len();
        if let Ok(len) = self.transport.seal_rtcp(len, buf) {
            batch.commit(len, &to);
            self.way.leave(batch);
        }
    }

    /// Sends receiver reports, like browsers each second, and the limit with the first one.
    fn report(&mut self, batch: &mut SendBatch) {
        let blocks = self.count.report();
        let mut reports = blocks.chunks(MAX_BLOCKS);
        let first = reports.next().unwrap_or_default();
        self.send_report(batch, first, self.limit_bps);
        for blocks in reports {
            self.send_report(batch, blocks, None);
        }
    }

    /// Sends a datagram with a report and a limit.
    fn send_report(&mut self, batch: &mut SendBatch, blocks: &[ReportBlock], limit: Option<u64>) {
        let Some(to) = self.transport.selected_pair().map(|pair| pair.remote) else {
            return;
        };
        let to = self.way.destination(batch, to);
        let Some(buf) = batch.room(&self.way).get_mut(..MAX_DATAGRAM) else {
            return;
        };
        let mut out = CompoundWriter::new(buf);
        let report = ReceiverReportWriter {
            ssrc: RECEIVER,
            blocks,
        };
        if !blocks.is_empty() {
            // This number of blocks always fits.
            let _ = out.push(&report);
        }
        if let Some(bitrate) = limit {
            let ssrcs: Vec<Ssrc> = self.count.ssrcs().take(MAX_BLOCKS).collect();
            let remb = RembWriter {
                sender: RECEIVER,
                bitrate,
                ssrcs: &ssrcs,
            };
            // Without room, the last limit remains valid.
            let _ = out.push(&remb);
        }
        if out.is_empty() {
            return;
        }
        let len = out.len();
        if let Ok(len) = self.transport.seal_rtcp(len, buf) {
            batch.commit(len, &to);
            self.way.leave(batch);
        }
    }

    fn count(&mut self, now: Instant, arrival: Arrival<'_>, tally: &mut Tally) -> bool {
        let mut touched = false;
        let Arrival {
            remote,
            data,
            len,
            stride,
            at,
            ..
        } = arrival;
        if data.len() < len && Protocol::of(data) == Some(Protocol::Rtp) {
            self.count_run(data, len, stride, tally);
            return false;
        }
        for datagram in data.chunks_mut(stride) {
            match Protocol::of(datagram) {
                Some(Protocol::Rtp) => {
                    if let Some(feedback) = &mut self.feedback
                        && !feedback.take(datagram, at.unwrap_or_else(wall_clock))
                    {
                        continue;
                    }
                    let bytes = datagram.len();
                    self.count_run(datagram, bytes, bytes, tally);
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

    /// Counts a message of `len` bytes by its first packet.
    fn count_run(&mut self, first: &[u8], len: usize, stride: usize, tally: &mut Tally) {
        let packets = len.div_ceil(stride.max(1)) as u64;
        self.count.take_run(first, packets);
        let [_, second, ..] = *first else { return };
        if !self.repairs.contains(&Pt(second & 0x7f)) {
            self.packets += packets;
            tally.packets += packets;
            tally.bytes += len as u64;
        }
    }

    /// Sends a keyframe if the server requests it.
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

    /// Takes a packet in an audio room. All participants follow the clear headers, and some keep
    /// the payload.
    fn hear(&mut self, id: PeerId, now: Instant, arrival: Arrival<'_>, tally: &mut Tally) -> bool {
        let Arrival {
            remote,
            data,
            len,
            stride,
            at,
            ..
        } = arrival;
        let at = at.unwrap_or_else(wall_clock);
        let mut touched = false;
        let counts_gaps = self.is_veteran || !tally.of_veterans;
        // Of a message of several packets that is not read whole, only the starts are there.
        let unread = len.saturating_sub(data.len()).div_ceil(stride.max(1));
        tally.packets += unread as u64;
        self.packets += unread as u64;
        for datagram in data.chunks_mut(stride.max(1)) {
            let bytes = datagram.len() as u64;
            let kind = Protocol::of(datagram);
            if kind != Some(Protocol::Rtp) {
                if kind.is_some() {
                    self.transport.receive(now, self.address, remote, datagram);
                    touched |= kind != Some(Protocol::Rtcp);
                }
                continue;
            }
            self.count.take(datagram);
            self.packets += 1;
            tally.packets += 1;
            tally.bytes += bytes;
            let Some(ear) = &mut self.ear else {
                continue;
            };
            let gap = ear.silent(at).filter(|_| counts_gaps);
            tally.longest_gap = tally.longest_gap.max(gap.unwrap_or_default());
            let number = ear.take(datagram, at, &mut tally.findings, &mut tally.heard);
            if !ear.keeps() {
                continue;
            }
            match self.transport.receive(now, self.address, remote, datagram) {
                Received::Rtp { len, header, .. } => {
                    let payload = header.payload(datagram.get(..len).unwrap_or_default());
                    tally.heard.kept.extend(number.map(|number| Kept {
                        peer: id,
                        number,
                        timestamp: header.timestamp,
                        at,
                        payload: payload.to_vec(),
                    }));
                }
                // The server had its keys first.
                Received::Dropped(DropReason::NoKeys) => {}
                Received::Dropped(_) => tally.findings.strange += 1,
                Received::Rtcp { .. } | Received::Consumed => {}
            }
        }
        touched
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
                if let Some(feedback) = &mut self.feedback {
                    // Participants that check have no limit, so all packets pass.
                    feedback.take(datagram, arrived);
                }
            }
            match self.transport.receive(now, self.address, remote, datagram) {
                Received::Rtp { header, .. } if self.repairs.contains(&header.pt) => {}
                Received::Rtp { len, header, .. } => {
                    let packet = datagram.get(..len).unwrap_or_default();
                    let payload = header.payload(packet);
                    if let Some(check) = &mut self.checker
                        && let Some(gap) =
                            check.take(header.ssrc, payload, arrived, &mut tally.findings)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::net::IpAddr;

    use portunus_rtp::header::{Fields, write_header};
    use portunus_sdp::Direction;

    use super::*;
    use crate::source::VideoCodec;
    use crate::viewer::Factory;

    #[test]
    fn repairs_are_no_media() {
        let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], true).unwrap();
        let (_, offer) = factory
            .offer(
                None,
                Direction::SendOnly,
                false,
                Some(VideoCodec::Vp8),
                false,
            )
            .unwrap();
        let repair = offer
            .lines()
            .find_map(|line| line.strip_prefix("a=rtpmap:")?.strip_suffix(" rtx/90000"))
            .and_then(|pt| pt.parse().ok())
            .unwrap();
        let (mut prepared, answer) = factory.answer(&offer, None).unwrap();
        assert!(answer.contains("rtx/90000"));
        let way = Way::Own(prepared.socket.take().unwrap());
        let remote = prepared.address;
        let mut peer = Peer::new(prepared, way, false, false, None, None);
        let mut tally = Tally::default();
        for (number, pt) in [96, repair, 96, repair].into_iter().enumerate() {
            let mut packet = [0; 100];
            let fields = Fields {
                marker: false,
                padding: false,
                pt: Pt(pt),
                sequence: number as u16,
                timestamp: 0,
                ssrc: Ssrc(pt.into()),
            };
            write_header(&mut packet, &fields, std::iter::empty::<(u8, &[u8])>()).unwrap();
            let arrival = Arrival {
                remote,
                local: None,
                data: &mut packet,
                len: 100,
                stride: 100,
                at: None,
            };
            peer.take(0, Instant::now(), arrival, &mut tally);
        }
        assert_eq!((tally.packets, tally.bytes, peer.packets()), (2, 200, 2));
    }
}
