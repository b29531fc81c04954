//! A leg without its sockets: datagrams and times in; datagrams, events and the next deadline out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::streams::{NtpClock, SenderClock};
use portunus_rtp::rtcp::{self, Compound, Packet as Rtcp, ReportBlock};
use portunus_rtp::telephone_event::{Detector, Pressed, TelephoneEvent};
use portunus_rtp::{Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::incoming::{Came, Incoming, NotTaken};
use super::outgoing::{Outgoing, Wrote};
use super::reports::Report;
use super::tones::{Tone, Tones};
use super::{
    KeyframeAsking, LegEvent, LegGates, LegId, LegNews, LegRemote, LegRtcp, LegSide, LegStatus,
    LegTones,
};
use crate::RouteOptions;
use crate::graph::{Packet, SourceFormat, SourceKey};
use crate::ingest::Refused;

/// Between two reports, on average (RFC 3550 section 6.2).
const REPORTS: Duration = Duration::from_secs(5);
/// The first one comes sooner: it puts streams in step with each other.
const FIRST_REPORT: Duration = Duration::from_millis(500);
/// Keyframe requests of the far end that come sooner after the one before are not passed on.
const KEYFRAMES: Duration = Duration::from_millis(500);
/// Packets that a datagram of RTCP may ask for again.
const LOST: usize = 128;
/// Errors of RTP without a packet between them after which the far end is gone.
const ERRORS: u32 = 100;

/// What an RTP datagram was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datagram {
    /// A packet of so many bytes in the clear, to be relayed.
    Packet(usize),
    /// RTCP, which was dealt with.
    Rtcp(Told),
    /// The gate is closed.
    Ignored,
}

/// What RTCP of the far end told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// It needs a keyframe of what it is sent.
    pub(crate) keyframe: bool,
    /// NTP time and timestamp of its sender report.
    pub(crate) clock: Option<(u64, u32)>,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A report: [`LegState::report`].
    Report,
    /// A tone for the far end: [`Outgoing::write_tone`].
    FarTone,
    /// A tone for the near side, with its payload type.
    NearTone(Tone, Pt),
}

/// A leg.
#[derive(Debug)]
pub(crate) struct LegState {
    id: LegId,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) status: Arc<LegStatus>,
    tell: mpsc::Sender<LegNews>,
    cname: String,
    gates: LegGates,
    /// How it selects, but for the gate.
    options: RouteOptions,
    shares_port: bool,
    keyframes: KeyframeAsking,
    fir: u8,
    /// What the near side is to hear, and the timestamp of what it hears now.
    near: Tones,
    near_at: Option<u32>,
    /// The keys of a source that are passed on, and the clock of their durations.
    keys: Detector,
    keys_clock: u32,
    /// Since when there is a far end.
    since: Option<Instant>,
    silence: Option<Duration>,
    is_silent: bool,
    is_heard: bool,
    report_at: Option<Instant>,
    asked: Option<Instant>,
    /// What the far end has lost, by the numbers that it is to leave again with.
    lost: SmallVec<[SeqNo; 16]>,
    /// In a row.
    errors: u32,
    has_failed: bool,
    has_left: bool,
}

impl LegState {
    pub(crate) fn new(
        id: LegId,
        new: (Option<Duration>, bool, bool),
        tell: mpsc::Sender<LegNews>,
        status: Arc<LegStatus>,
    ) -> Self {
        let (silence, hears_source, hears_unknown) = new;
        Self {
            id,
            incoming: Incoming::new(hears_unknown),
            outgoing: Outgoing::new(status.ssrc(), hears_source),
            status,
            tell,
            cname: format!("portunus-{:x}", id.serial),
            gates: LegGates::OPEN,
            options: RouteOptions::default(),
            shares_port: false,
            keyframes: KeyframeAsking::default(),
            fir: 0,
            near: Tones::default(),
            near_at: None,
            keys: Detector::default(),
            keys_clock: 8_000,
            since: None,
            silence,
            is_silent: false,
            is_heard: false,
            report_at: None,
            asked: None,
            lost: SmallVec::new(),
            errors: 0,
            has_failed: false,
            has_left: false,
        }
    }

    /// Takes what is agreed on now.
    pub(crate) fn set_remote(&mut self, remote: &LegRemote, now: Instant) {
        let before = self.incoming.rtp.current();
        self.incoming.set(remote);
        self.outgoing.set(remote);
        self.status.set_ssrc(self.outgoing.ssrc());
        self.shares_port = remote.rtcp == LegRtcp::Mux;
        self.keyframes = remote.keyframes;
        if before != self.incoming.rtp.current() {
            (self.errors, self.has_failed) = (0, false);
        }
        let is_there = self.incoming.rtp.current().is_some();
        match (is_there, self.since) {
            (true, None) => {
                self.since = Some(now);
                self.report_at = Some(now + FIRST_REPORT);
            }
            (false, Some(_)) => (self.since, self.report_at) = (None, None),
            _ => {}
        }
    }

    /// Opens and closes its ways; says whether that to the far end was opened by that.
    pub(crate) fn set_gates(
        &mut self,
        gates: LegGates,
        source: Option<SourceKey>,
        now: Instant,
    ) -> bool {
        let opens = gates.receive && !self.gates.receive;
        self.gates = gates;
        if opens && self.since.is_some() {
            self.since = Some(now);
        }
        self.apply(source)
    }

    /// How it selects among the layers of its source.
    pub(crate) fn set_options(&mut self, options: RouteOptions, source: Option<SourceKey>) {
        self.options = options;
        self.apply(source);
    }

    /// How it selects, but for the gate.
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

    /// Takes a datagram that came by the port of RTP. It is opened in place.
    pub(crate) fn take_rtp(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        now: Instant,
    ) -> Result<Datagram, NotTaken> {
        if self.shares_port && rtcp::is_rtcp(datagram) {
            return self
                .take_rtcp(from, datagram, true, now)
                .map(Datagram::Rtcp);
        }
        if !self.gates.receive {
            return Ok(Datagram::Ignored);
        }
        let came = self.incoming.take_rtp(from, datagram, now)?;
        self.errors = 0;
        self.has_left = false;
        self.tell_of(&came, from);
        Ok(Datagram::Packet(came.len))
    }

    #[inline]
    fn tell_of(&mut self, came: &Came, from: SocketAddr) {
        if came.moved {
            self.tell(LegEvent::Moved(from));
        }
        if !self.is_heard || self.is_silent {
            (self.is_heard, self.is_silent) = (true, false);
            self.tell(LegEvent::Heard);
        }
        for key in came.pressed.into_iter().flatten() {
            self.tell_key(LegSide::FarEnd, key, came.clock_rate);
        }
    }

    /// Takes a datagram of RTCP. It is opened in place.
    pub(crate) fn take_rtcp(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        shared: bool,
        now: Instant,
    ) -> Result<Told, NotTaken> {
        if datagram.len() < 8 || datagram.first().is_none_or(|first| first >> 6 != 2) {
            return Err(Refused::Malformed.into());
        }
        let len = self.incoming.open_rtcp(from, shared, datagram)?;
        let mut told = Told::default();
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
                    let left = LOST.saturating_sub(self.lost.len());
                    for wire in nack.lost().take(left) {
                        self.lost.extend(self.outgoing.lost(wire, now));
                    }
                }
                Ok(Rtcp::Pli(_)) => is_asked = true,
                Ok(Rtcp::Fir(fir)) => is_asked |= fir.entries().len() > 0,
                Ok(Rtcp::Bye(bye)) => {
                    let ssrc = self.incoming.ssrc();
                    if bye.ssrcs().any(|of| Some(of) == ssrc)
                        && !std::mem::replace(&mut self.has_left, true)
                    {
                        self.tell(LegEvent::Bye);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let recent = |at| now.saturating_duration_since(at) < KEYFRAMES;
        if is_asked && !self.asked.is_some_and(recent) {
            self.asked = Some(now);
            told.keyframe = true;
            self.tell(LegEvent::KeyframeWanted);
        }
        Ok(told)
    }

    /// What is to be sent again, once.
    pub(crate) fn take_lost(&mut self) -> SmallVec<[SeqNo; 16]> {
        std::mem::take(&mut self.lost)
    }

    fn take_blocks(&mut self, blocks: impl Iterator<Item = ReportBlock>, now: Instant) {
        for block in blocks {
            if self.outgoing.reported(&block, now) {
                let (lost, jitter, round_trip) = self.outgoing.far_figures();
                self.status.note_far(lost, jitter, round_trip);
            }
        }
    }

    /// Makes a datagram of a packet of the source, if there is somewhere to send it to.
    #[inline]
    pub(crate) fn write(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        format: &SourceFormat,
        out: &mut [u8],
    ) -> Wrote {
        if self.incoming.rtp.current().is_none() {
            return Wrote::Nothing;
        }
        self.outgoing.write(source, packet, format, out)
    }

    /// Tells of keys that the near side presses, if that is wanted.
    pub(crate) fn hear(&mut self, packet: &Packet, now: Instant) {
        let (pressed, clock_rate) = self.outgoing.heard(packet, now);
        for key in pressed.into_iter().flatten() {
            self.tell_key(LegSide::Near, key, clock_rate);
        }
    }

    /// The keys that are passed on are of another source.
    pub(crate) fn begin_keys(&mut self) {
        self.keys = Detector::default();
    }

    /// Passes the keys on that were let go by a packet of their source.
    pub(crate) fn take_key(&mut self, packet: &Packet, clock_rate: u32, now: Instant) {
        if packet.codec != Codec::TelephoneEvent {
            return;
        }
        let Ok(event) = TelephoneEvent::parse(packet.payload()) else {
            return;
        };
        self.keys_clock = clock_rate.max(1);
        let place = (packet.header.timestamp, packet.header.marker);
        for key in self.keys.take(event, place, now) {
            self.pass_key(key, now);
        }
    }

    fn pass_key(&mut self, key: Pressed, now: Instant) {
        let seconds = f64::from(key.duration) / f64::from(self.keys_clock);
        let mut tones = LegTones::new(&[key.event], LegSide::FarEnd);
        // Clients do not say by which of several clocks they count.
        tones.duration = tones.duration.max(Duration::from_secs_f64(seconds));
        self.add_tones(&tones, now);
        if self.outgoing.hears() {
            self.tell_key(LegSide::Near, key, self.keys_clock);
        }
    }

    /// Presses keys.
    pub(crate) fn add_tones(&mut self, tones: &LegTones, now: Instant) {
        match tones.to {
            LegSide::FarEnd => self.outgoing.tones.add(tones, now),
            LegSide::Near => self.near.add(tones, now),
        }
    }

    /// The timestamp of the tone that the near side hears.
    pub(crate) fn near_tone_at(&self) -> Option<u32> {
        self.near_at
    }

    /// The near side begins to hear a tone, if it can be told with which timestamp.
    pub(crate) fn near_tone_begins(&mut self, timestamp: Option<u32>) {
        self.near_at = timestamp;
    }

    /// A socket of RTP had an error.
    pub(crate) fn had_error(&mut self) {
        self.status.note_error();
        self.errors = self.errors.saturating_add(1);
        if self.errors >= ERRORS && !std::mem::replace(&mut self.has_failed, true) {
            self.tell(LegEvent::Failed);
        }
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let all = [
            self.report_at,
            self.silent_at(),
            self.incoming.deadline(),
            self.outgoing.deadline(),
            self.near.deadline(),
            self.keys.deadline(),
        ];
        all.into_iter().flatten().min()
    }

    fn silent_at(&self) -> Option<Instant> {
        let since = self
            .since
            .filter(|_| !self.is_silent && self.gates.receive)?;
        let last = self.incoming.last().map_or(since, |last| last.max(since));
        Some(last + self.silence?)
    }

    /// What is due now, once each; events are told.
    pub(crate) fn timeout(&mut self, now: Instant) -> SmallVec<[Due; 3]> {
        let mut due = SmallVec::new();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.silent_at()) {
            self.is_silent = true;
            self.tell(LegEvent::Silent);
        }
        if let Some((key, clock_rate)) = self.incoming.timeout(now) {
            self.tell_key(LegSide::FarEnd, key, clock_rate);
        }
        if let Some((key, clock_rate)) = self.outgoing.timeout(now) {
            self.tell_key(LegSide::Near, key, clock_rate);
        }
        if let Some(key) = self.keys.timeout(now) {
            self.pass_key(key, now);
        }
        if is_due(self.outgoing.tones.deadline()) {
            due.push(Due::FarTone);
        }
        if is_due(self.near.deadline()) {
            match self.incoming.events() {
                Some(events) => {
                    let tone = self.near.poll(events.clock_rate, now);
                    due.extend(tone.map(|tone| Due::NearTone(tone, events.pt)));
                }
                // Nobody can hear them.
                None => self.near.clear(),
            }
        }
        if is_due(self.report_at) {
            // Not in step with others (RFC 3550 section 6.3.1).
            let factor = rand::random_range(0.5..1.5);
            self.report_at = Some(now + REPORTS.mul_f64(factor));
            due.push(Due::Report);
        }
        due
    }

    /// Whether the far end can be asked for a keyframe now.
    pub(crate) fn can_ask(&self) -> bool {
        self.keyframes != KeyframeAsking::Never && self.incoming.ssrc().is_some()
    }

    /// Writes what the far end is told by RTCP: the length of the datagram. With `keyframe` it is asked for one, and `bye` says that
    /// nothing more is sent.
    pub(crate) fn report(
        &mut self,
        (keyframe, bye): (bool, bool),
        source: (Option<&SourceFormat>, &[Option<SenderClock>]),
        (clock, now): (&NtpClock, Instant),
        out: &mut [u8],
    ) -> Option<(usize, SocketAddr)> {
        let to = match self.shares_port {
            true => self.incoming.rtp.current()?,
            false => self.incoming.rtcp.current()?,
        };
        let of: Option<Ssrc> = self.incoming.ssrc().filter(|_| keyframe);
        if of.is_some() && self.keyframes == KeyframeAsking::Fir {
            self.fir = self.fir.wrapping_add(1);
        }
        self.status.note_jitter(self.incoming.jitter());
        let report = Report {
            sent: self.outgoing.report(source.0, source.1, clock, now),
            own: self.outgoing.ssrc(),
            cname: &self.cname,
            received: self.incoming.report(now),
            keyframe: of.map(|ssrc| (ssrc, self.keyframes, self.fir)),
            bye,
        };
        let len = report.write(out).ok()?;
        let len = self.outgoing.seal_rtcp(len, out)?;
        Some((len, to))
    }

    /// Whether RTCP leaves by the port of RTP.
    pub(crate) fn shares_port(&self) -> bool {
        self.shares_port
    }

    fn tell_key(&mut self, by: LegSide, key: Pressed, clock_rate: u32) {
        self.tell(LegEvent::Key {
            by,
            event: key.event,
            duration: key.duration,
            clock_rate,
        });
    }

    fn tell(&self, event: LegEvent) {
        let leg = self.id;
        if self.tell.try_send(LegNews { leg, event }).is_err() {
            tracing::debug!(?event, "an event of a leg finds no room");
        }
    }
}
