//! A leg without its sockets: takes datagrams and times, returns datagrams, events and the next
//! deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_graph::{Packet, RouteOptions, SourceFormat, SourceKey};
use portunus_rtc::streams::{NtpClock, SenderClock};
use portunus_rtp::rtcp::{self, Compound, Packet as Rtcp, ReportBlock};
use portunus_rtp::telephone_event::Pressed;
use portunus_rtp::{Pt, SeqNo};
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::incoming::{Incoming, NotTaken, Received};
use super::keys::Keys;
use super::news::News;
use super::outgoing::{Outgoing, Written};
use super::presence::Presence;
use super::reports::Report;
use super::rtcp::RtcpState;
use super::tones::Tone;
use super::{LegEvent, LegGates, LegId, LegNews, LegRemote, LegSide, LegStatus, LegTones};
use crate::ingest::Refused;

/// The content of a datagram to the port of RTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datagram {
    /// A decrypted packet of this length, to be relayed.
    Packet(usize),
    /// RTCP, which was processed.
    Rtcp(RtcpFeedback),
    /// Nothing, as the gate is closed.
    Ignored,
}

/// What RTCP of the far end said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RtcpFeedback {
    /// The far end needs a keyframe.
    pub(crate) keyframe: bool,
    /// The NTP time and the timestamp of a sender report.
    pub(crate) clock: Option<(u64, u32)>,
}

/// A task that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A report: [`LegState::report`].
    Report,
    /// A tone for the far end: [`Outgoing::write_tone`].
    FarTone,
    /// A tone for the near side, with its payload type.
    NearTone(Tone, Pt),
}

/// What a leg publishes, and whom it hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LegOptions {
    /// See [`super::NewLeg::silence`].
    pub(crate) silence: Option<Duration>,
    /// See [`super::NewLeg::hears_source`].
    pub(crate) hears_source: bool,
    /// See [`super::NewLeg::hears_unknown`].
    pub(crate) hears_unknown: bool,
}

/// What a datagram of RTCP says besides its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReportContents {
    /// It asks for a keyframe.
    pub(crate) keyframe: bool,
    /// It says that nothing more is sent.
    pub(crate) bye: bool,
}

/// The source of what is sent, as far as reports need it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportSource<'a> {
    pub(crate) format: Option<&'a SourceFormat>,
    /// The clocks of its encodings.
    pub(crate) clocks: &'a [Option<SenderClock>],
}

/// A leg.
#[derive(Debug)]
pub(crate) struct LegState {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) status: Arc<LegStatus>,
    news: News,
    presence: Presence,
    rtcp: RtcpState,
    keys: Keys,
    gates: LegGates,
    /// How it selects, except for the gate.
    options: RouteOptions,
}

impl LegState {
    /// Returns a leg that knows no far end yet. `tell` gets its events.
    pub(crate) fn new(
        id: LegId,
        options: LegOptions,
        tell: mpsc::Sender<LegNews>,
        status: Arc<LegStatus>,
    ) -> Self {
        Self {
            incoming: Incoming::new(options.hears_unknown),
            outgoing: Outgoing::new(status.ssrc(), options.hears_source),
            status,
            news: News::new(id, tell),
            presence: Presence::new(options.silence),
            rtcp: RtcpState::new(id),
            keys: Keys::default(),
            gates: LegGates::OPEN,
            options: RouteOptions::default(),
        }
    }

    /// Applies what was agreed on with the far end.
    pub(crate) fn set_remote(&mut self, remote: &LegRemote, now: Instant) {
        let before = self.incoming.rtp.current();
        self.incoming.set(remote);
        self.outgoing.set(remote);
        self.status.set_ssrc(self.outgoing.ssrc());
        self.rtcp.set(remote);
        if before != self.incoming.rtp.current() {
            self.presence.forget_errors();
        }
        let is_there = self.incoming.rtp.current().is_some();
        match (is_there, self.presence.is_known()) {
            (true, false) => {
                self.presence.set_since(Some(now));
                self.rtcp.start(now);
            }
            (false, true) => {
                self.presence.set_since(None);
                self.rtcp.stop();
            }
            _ => {}
        }
    }

    /// Opens and closes the gates. Returns whether this has opened the one to the far end.
    pub(crate) fn set_gates(
        &mut self,
        gates: LegGates,
        source: Option<SourceKey>,
        now: Instant,
    ) -> bool {
        let opens = gates.receive && !self.gates.receive;
        self.gates = gates;
        if opens && self.presence.is_known() {
            self.presence.set_since(Some(now));
        }
        self.apply(source)
    }

    /// Sets how layers of the source are selected.
    pub(crate) fn set_options(&mut self, options: RouteOptions, source: Option<SourceKey>) {
        self.options = options;
        self.apply(source);
    }

    /// How layers of the source are selected, except for the gate.
    pub(crate) fn options(&self) -> &RouteOptions {
        &self.options
    }

    fn apply(&mut self, source: Option<SourceKey>) -> bool {
        let enabled = self.options.enabled && self.gates.send;
        let options = RouteOptions {
            enabled,
            ..self.options.clone()
        };
        self.outgoing.set_options(source, options)
    }

    /// Takes a datagram to the port of RTP, and decrypts it in place.
    pub(crate) fn take_rtp(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        now: Instant,
    ) -> Result<Datagram, NotTaken> {
        if self.rtcp.shares_port() && rtcp::is_rtcp(datagram) {
            return self
                .take_rtcp(from, datagram, true, now)
                .map(Datagram::Rtcp);
        }
        if !self.gates.receive {
            return Ok(Datagram::Ignored);
        }
        let came = self.incoming.take_rtp(from, datagram, now)?;
        self.publish_packet(&came, from);
        Ok(Datagram::Packet(came.len))
    }

    #[inline]
    fn publish_packet(&mut self, came: &Received, from: SocketAddr) {
        if came.moved {
            self.news.publish(LegEvent::Moved(from));
        }
        if self.presence.note_packet() {
            self.news.publish(LegEvent::Heard);
        }
        for key in came.pressed.into_iter().flatten() {
            let by = LegSide::FarEnd;
            self.news.publish_key(by, key, came.clock_rate);
        }
    }

    /// Takes a datagram of RTCP, and decrypts it in place.
    pub(crate) fn take_rtcp(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        shared: bool,
        now: Instant,
    ) -> Result<RtcpFeedback, NotTaken> {
        if datagram.len() < 8 || datagram.first().is_none_or(|first| first >> 6 != 2) {
            return Err(Refused::Malformed.into());
        }
        let len = self.incoming.open_rtcp(from, shared, datagram)?;
        let mut told = RtcpFeedback::default();
        let mut is_asked = false;
        for packet in Compound::new(datagram.get(..len).unwrap_or_default()) {
            match packet {
                Ok(Rtcp::SenderReport(report)) => {
                    self.incoming
                        .sender_report(report.ssrc, report.info.ntp, now);
                    if self.incoming.ssrc() == Some(report.ssrc) {
                        told.clock = Some((report.info.ntp, report.info.rtp));
                    }
                    self.take_blocks(report.blocks(), now);
                }
                Ok(Rtcp::ReceiverReport(report)) => self.take_blocks(report.blocks(), now),
                Ok(Rtcp::Nack(nack)) if nack.media == self.outgoing.ssrc() => {
                    let find = |wire| self.outgoing.lost(wire, now);
                    self.rtcp.note_lost(nack.lost(), find);
                }
                Ok(Rtcp::Pli(_)) => is_asked = true,
                Ok(Rtcp::Fir(fir)) => is_asked |= fir.entries().len() > 0,
                Ok(Rtcp::Bye(bye)) => {
                    let ssrc = self.incoming.ssrc();
                    let is_its_own = bye.ssrcs().any(|of| Some(of) == ssrc);
                    if is_its_own && self.presence.note_bye() {
                        self.news.publish(LegEvent::Bye);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if is_asked && self.rtcp.note_keyframe_request(now) {
            told.keyframe = true;
            self.news.publish(LegEvent::KeyframeWanted);
        }
        Ok(told)
    }

    /// Takes the packets that are to be sent again.
    pub(crate) fn take_lost(&mut self) -> SmallVec<[SeqNo; 16]> {
        self.rtcp.take_lost()
    }

    fn take_blocks(&mut self, blocks: impl Iterator<Item = ReportBlock>, now: Instant) {
        for block in blocks {
            if self.outgoing.reported(&block, now) {
                self.status.note_far(self.outgoing.far_report());
            }
        }
    }

    /// Writes a packet of the source as a datagram, if there is an address to send it to.
    #[inline]
    pub(crate) fn write(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        format: &SourceFormat,
        out: &mut [u8],
    ) -> Written {
        if self.incoming.rtp.current().is_none() {
            return Written::Nothing;
        }
        self.outgoing.write(source, packet, format, out)
    }

    /// Publishes keys that the near side presses, if requested.
    pub(crate) fn hear(&mut self, packet: &Packet, now: Instant) {
        let (pressed, clock_rate) = self.outgoing.heard(packet, now);
        for key in pressed.into_iter().flatten() {
            self.news.publish_key(LegSide::Near, key, clock_rate);
        }
    }

    /// Passes on the keys of another source from now on.
    pub(crate) fn begin_keys(&mut self) {
        self.keys.restart();
    }

    /// Passes on the keys that were released by a packet of their source.
    pub(crate) fn take_key(&mut self, packet: &Packet, clock_rate: u32, now: Instant) {
        for key in self.keys.take(packet, clock_rate, now) {
            self.pass_key(key, now);
        }
    }

    fn pass_key(&mut self, key: Pressed, now: Instant) {
        let tones = self.keys.passed_tone(key);
        self.outgoing.tones.add(&tones, now);
        if self.outgoing.hears() {
            let clock_rate = self.keys.passed_clock();
            self.news.publish_key(LegSide::Near, key, clock_rate);
        }
    }

    /// Presses keys.
    pub(crate) fn add_tones(&mut self, tones: &LegTones, now: Instant) {
        match tones.to {
            LegSide::FarEnd => self.outgoing.tones.add(tones, now),
            LegSide::Near => self.keys.press_near(tones, now),
        }
    }

    /// The timestamp of the tone that the near side hears.
    pub(crate) fn near_tone_at(&self) -> Option<u32> {
        self.keys.near_at()
    }

    /// Sets the timestamp of the tone that the near side starts to hear.
    pub(crate) fn near_tone_begins(&mut self, timestamp: Option<u32>) {
        self.keys.set_near_at(timestamp);
    }

    /// Notes an error of a socket of RTP.
    pub(crate) fn had_error(&mut self) {
        self.status.note_error();
        if self.presence.note_error() {
            self.news.publish(LegEvent::Failed);
        }
    }

    /// When a task is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let all = [
            self.rtcp.deadline(),
            self.silent_at(),
            self.incoming.deadline(),
            self.outgoing.deadline(),
            self.keys.near_deadline(),
            self.keys.passed_deadline(),
        ];
        all.into_iter().flatten().min()
    }

    fn silent_at(&self) -> Option<Instant> {
        let at = self.presence.silent_at(self.incoming.last());
        at.filter(|_| self.gates.receive)
    }

    /// Returns what is due now, once each, and publishes events.
    pub(crate) fn timeout(&mut self, now: Instant) -> SmallVec<[Due; 3]> {
        let mut due = SmallVec::new();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.silent_at()) {
            self.presence.note_silence();
            self.news.publish(LegEvent::Silent);
        }
        if let Some((key, clock_rate)) = self.incoming.timeout(now) {
            self.news.publish_key(LegSide::FarEnd, key, clock_rate);
        }
        if let Some((key, clock_rate)) = self.outgoing.timeout(now) {
            self.news.publish_key(LegSide::Near, key, clock_rate);
        }
        if let Some(key) = self.keys.timeout(now) {
            self.pass_key(key, now);
        }
        if is_due(self.outgoing.tones.deadline()) {
            due.push(Due::FarTone);
        }
        if is_due(self.keys.near_deadline()) {
            let events = self.incoming.events();
            let tone = self.keys.due_near(events, now);
            let near = tone.zip(events);
            due.extend(near.map(|(tone, events)| Due::NearTone(tone, events.pt)));
        }
        if is_due(self.rtcp.deadline()) {
            self.rtcp.schedule_next(now);
            due.push(Due::Report);
        }
        due
    }

    /// Whether the far end can be asked for a keyframe now.
    pub(crate) fn can_ask(&self) -> bool {
        self.rtcp.asks_for_keyframes() && self.incoming.ssrc().is_some()
    }

    /// Writes RTCP for the far end. Returns the length of the datagram, and its destination.
    pub(crate) fn report(
        &mut self,
        contents: ReportContents,
        source: ReportSource<'_>,
        (clock, now): (&NtpClock, Instant),
        out: &mut [u8],
    ) -> Option<(usize, SocketAddr)> {
        let to = match self.rtcp.shares_port() {
            true => self.incoming.rtp.current()?,
            false => self.incoming.rtcp.current()?,
        };
        let media = self.incoming.ssrc().filter(|_| contents.keyframe);
        let keyframe = media.map(|media| self.rtcp.request_keyframe(media));
        self.status.note_jitter(self.incoming.jitter());
        let ReportSource { format, clocks } = source;
        let report = Report {
            sent: self.outgoing.report(format, clocks, clock, now),
            own: self.outgoing.ssrc(),
            cname: self.rtcp.cname(),
            received: self.incoming.report(now),
            keyframe,
            bye: contents.bye,
        };
        let len = report.write(out).ok()?;
        let len = self.outgoing.seal_rtcp(len, out)?;
        Some((len, to))
    }

    /// Whether RTCP uses the port of RTP.
    pub(crate) fn shares_port(&self) -> bool {
        self.rtcp.shares_port()
    }
}
