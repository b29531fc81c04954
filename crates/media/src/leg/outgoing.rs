//! What is sent to a far end: one encrypted stream of the sources that are routed into the leg, and
//! of our tones.

use std::time::{Duration, Instant};

use portunus_graph::{Packet, Sent, SourceFormat, SourceKey};
use portunus_rtc::streams::{Burst, NtpClock, SendStream, SenderClock, SenderFigures};
use portunus_rtp::rtcp::ReportBlock;
use portunus_rtp::telephone_event::{self, Detector, Pressed, TelephoneEvent};
use portunus_rtp::{ExtensionKind, ExtensionMap, Fields, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::Sealer;
use smallvec::SmallVec;

use super::status::FarReport;
use super::tones::{Tone, Tones};
use super::{LegPayload, LegRemote, SrtpKey};
use crate::RouteOptions;
use crate::outlet::{Cut, Encodings, Taken};

/// The assumed round trip before the far end has reported one.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// The outcome of writing a packet of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// A datagram of this length.
    Datagram(usize),
    /// Nothing, as the packet is not to be sent.
    Nothing,
    /// The far end does not take its codec.
    Unshared,
}

/// The state of the sending direction.
#[derive(Debug)]
pub(crate) struct Outgoing {
    ssrc: Ssrc,
    stream: SendStream,
    cut: Cut,
    payloads: SmallVec<[LegPayload; 4]>,
    extensions: ExtensionMap,
    key: Option<SrtpKey>,
    sealer: Option<Sealer>,
    /// The roll-over counter at which the present key started. For the far end it is 0.
    epoch: u64,
    /// The highest number sent with the key.
    highest: SeqNo,
    /// Packets before this number may have been written differently, so they are not sent again.
    agreed_at: SeqNo,
    pub(crate) tones: Tones,
    /// The timestamp of the present tone.
    tone_at: u32,
    detector: Option<Detector>,
    /// The encoding of the last packet, and what was added to its timestamp.
    mapped: Option<(u8, u32)>,
}

impl Outgoing {
    /// Returns the initial state. `hears` detects keys of the near side.
    pub(crate) fn new(ssrc: Ssrc, hears: bool) -> Self {
        Self {
            ssrc,
            stream: SendStream::new(ssrc, None),
            cut: Cut::new(RouteOptions::default(), Encodings::Best, rand::random()),
            payloads: SmallVec::new(),
            extensions: ExtensionMap::default(),
            key: None,
            sealer: None,
            epoch: 0,
            highest: SeqNo(0),
            agreed_at: SeqNo(0),
            tones: Tones::default(),
            tone_at: 0,
            detector: hears.then(Detector::default),
            mapped: None,
        }
    }

    /// Applies what was agreed on. SRTP continues if the key is the same.
    pub(crate) fn set(&mut self, remote: &LegRemote) {
        let is_same = *self.payloads == *remote.outgoing && self.extensions == remote.extensions;
        self.payloads = SmallVec::from_slice(&remote.outgoing);
        self.extensions = remote.extensions;
        let key = remote.srtp.as_ref().map(|srtp| &srtp.outgoing);
        if self.key.as_ref() == key && is_same {
            return;
        }
        self.agreed_at = SeqNo(self.highest.0.saturating_add(1));
        if self.key.as_ref() == key {
            return;
        }
        let had = self.key.is_some();
        self.sealer = key.and_then(SrtpKey::sealer);
        self.key = key.cloned();
        let rolled = u64::from(self.highest.roc());
        if had && rolled > self.epoch {
            // With a new key, some far ends reset the roll-over counter to 0, others keep it. With
            // a new SSRC it is 0 for all.
            self.epoch = rolled;
            self.ssrc = Ssrc(rand::random());
            self.stream = SendStream::new(self.ssrc, None);
        }
    }

    /// Our SSRC.
    pub(crate) fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Whether keys of the near side are detected.
    pub(crate) fn hears(&self) -> bool {
        self.detector.is_some()
    }

    /// Sets the options of the selection. Returns whether this has opened the gate.
    pub(crate) fn set_options(&mut self, source: Option<SourceKey>, options: RouteOptions) -> bool {
        self.cut.set_options(source.unwrap_or_default(), options)
    }

    /// Leaves a source, because the next packet is of another one.
    pub(crate) fn leave(&mut self, source: SourceKey) {
        self.cut.leave(source);
        self.mapped = None;
    }

    /// Returns the encoding that a keyframe is needed of, but not too often.
    pub(crate) fn keyframe_wanted(&mut self, encodings: u8, now: Instant) -> Option<u8> {
        self.cut.keyframe_wanted(encodings, now)
    }

    /// Returns the encoding whose keyframe the far end waits for. `None` means any.
    pub(crate) fn encoding(&self) -> Option<u8> {
        self.cut.encoding()
    }

    /// Writes a packet of the source as a datagram.
    pub(crate) fn write(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        format: &SourceFormat,
        out: &mut [u8],
    ) -> Written {
        let Some(pt) = self.payload_type(packet) else {
            self.cut.skip(source, packet);
            return Written::Unshared;
        };
        if self.tones.are_sounding() && !format.is_video {
            self.cut.skip(source, packet);
            return Written::Nothing;
        }
        let Some(taken) = self.cut.take(source, packet, format) else {
            return Written::Nothing;
        };
        self.mapped = Some((packet.encoding, taken.sent.timestamp_offset));
        let timestamp = packet
            .header
            .timestamp
            .wrapping_add(taken.sent.timestamp_offset);
        let written = self.write_packet(packet, &taken, (pt, timestamp), out);
        let sealed = written.and_then(|(header, len)| self.seal(taken.sent.out, header, len, out));
        let Some(sealed) = sealed else {
            return Written::Nothing;
        };
        self.note(
            taken.sent.out,
            timestamp,
            packet.payload().len(),
            packet.arrival,
        );
        Written::Datagram(sealed)
    }

    /// Returns keys that were released by a packet of the source, if they are detected, and the
    /// clock of their durations.
    pub(crate) fn heard(&mut self, packet: &Packet, now: Instant) -> ([Option<Pressed>; 2], u32) {
        let mut heard = [None, None];
        let clock_rate = self.clock_of(packet);
        if packet.codec == Codec::TelephoneEvent
            && let Some(detector) = &mut self.detector
            && let Ok(event) = TelephoneEvent::parse(packet.payload())
        {
            let place = (packet.header.timestamp, packet.header.marker);
            let pressed = detector.take(event, place, now);
            for (slot, key) in heard.iter_mut().zip(pressed) {
                *slot = Some(key);
            }
        }
        (heard, clock_rate)
    }

    fn clock_of(&self, packet: &Packet) -> u32 {
        let found = self.payload(packet);
        found.map_or(8_000, |payload| payload.clock_rate)
    }

    fn payload(&self, packet: &Packet) -> Option<&LegPayload> {
        let mut fits = self
            .payloads
            .iter()
            .filter(|payload| payload.codec == packet.codec);
        let same = fits.clone().find(|payload| payload.pt == packet.header.pt);
        same.or_else(|| fits.next())
    }

    /// Returns the payload type for the codec of a packet, preferably with the same number.
    #[inline]
    fn payload_type(&self, packet: &Packet) -> Option<Pt> {
        self.payload(packet).map(|payload| payload.pt)
    }

    fn write_packet(
        &self,
        packet: &Packet,
        taken: &Taken,
        (pt, timestamp): (Pt, u32),
        out: &mut [u8],
    ) -> Option<(usize, usize)> {
        let fields = Fields {
            marker: packet.marker(taken.sent.part.top),
            padding: false,
            pt,
            sequence: taken.sent.out.wire(),
            timestamp,
            ssrc: self.ssrc,
        };
        let passed = [ExtensionKind::AudioLevel, ExtensionKind::VideoOrientation];
        let elements = passed.into_iter().filter_map(|kind| {
            let (to, from) = (self.extensions.id(kind)?, packet.extensions.id(kind)?);
            Some((to, packet.header.extension(&packet.data, from)?))
        });
        let header_len = write_header(out, &fields, elements).ok()?;
        let payload = packet.payload();
        let len = header_len + payload.len();
        let rest = out.get_mut(header_len..len)?;
        rest.copy_from_slice(payload);
        if let Some(ids) = packet.ids {
            ids.plus(taken.sent.ids_offset).write(packet.codec, rest);
        }
        Some((header_len, len))
    }

    /// Returns the number of a packet that the far end has lost, if it is to be sent again.
    pub(crate) fn lost(&mut self, wire: u16, now: Instant) -> Option<SeqNo> {
        let round_trip = self.stream.round_trip().unwrap_or(ROUND_TRIP);
        let seq = self.stream.nacked(wire, round_trip, now)?;
        (seq >= self.agreed_at).then_some(seq)
    }

    /// Writes the same datagram again of a packet that `find` returns.
    pub(crate) fn write_again<'a>(
        &mut self,
        seq: SeqNo,
        find: impl FnOnce(&Sent) -> Option<&'a Packet>,
        out: &mut [u8],
    ) -> Option<usize> {
        let sent = self.cut.sent(seq)?;
        let packet = find(&sent)?;
        let pt = self.payload_type(packet)?;
        let timestamp = packet.header.timestamp.wrapping_add(sent.timestamp_offset);
        let taken = Taken {
            sent,
            ssrc: self.ssrc,
        };
        let (header, len) = self.write_packet(packet, &taken, (pt, timestamp), out)?;
        let sealed = self.seal(seq, header, len, out)?;
        self.stream.sent_again();
        Some(sealed)
    }

    fn seal(&mut self, seq: SeqNo, header: usize, len: usize, out: &mut [u8]) -> Option<usize> {
        let sealed = match (&self.sealer, &self.key) {
            (Some(sealer), _) => {
                let index = SeqNo(seq.0.checked_sub(self.epoch << 16)?);
                sealer.seal_rtp(index, header, len, out).ok()?
            }
            (None, None) => len,
            // Packets that should be encrypted never leave without encryption.
            (None, Some(_)) => return None,
        };
        self.highest = self.highest.max(seq);
        Some(sealed)
    }

    fn note(&mut self, seq: SeqNo, timestamp: u32, bytes: usize, now: Instant) {
        let mut burst = Burst::default();
        burst.add(seq, timestamp, bytes);
        self.stream.sent(&burst, now);
    }

    /// Writes the tone that is due as a datagram.
    pub(crate) fn write_tone(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let Some(events) = super::event_payload(&self.payloads) else {
            // Nobody can hear them.
            self.tones.clear();
            return None;
        };
        let tone: Tone = self.tones.poll(events.clock_rate, now)?;
        let (seq, timestamp) = self.cut.insert(events.clock_rate, now);
        if tone.begins {
            self.tone_at = timestamp;
        }
        let timestamp = self.tone_at.wrapping_add(tone.offset);
        let fields = Fields {
            marker: tone.begins,
            padding: false,
            pt: events.pt,
            sequence: seq.wire(),
            timestamp,
            ssrc: self.ssrc,
        };
        let header = write_header(out, &fields, []).ok()?;
        let len = header + telephone_event::LEN;
        out.get_mut(header..len)?
            .copy_from_slice(&tone.payload.to_bytes());
        let sealed = self.seal(seq, header, len, out)?;
        self.note(seq, timestamp, telephone_event::LEN, now);
        Some(sealed)
    }

    /// Encrypts a compound packet of RTCP.
    pub(crate) fn seal_rtcp(&mut self, len: usize, out: &mut [u8]) -> Option<usize> {
        match (&mut self.sealer, &self.key) {
            (Some(sealer), _) => sealer.seal_rtcp(len, out).ok(),
            (None, None) => Some(len),
            (None, Some(_)) => None,
        }
    }

    /// Returns the sender report, if something was sent since the last one. `clocks` are those of
    /// the source's encodings.
    pub(crate) fn report(
        &mut self,
        format: Option<&SourceFormat>,
        clocks: &[Option<SenderClock>],
        clock: &NtpClock,
        now: Instant,
    ) -> Option<SenderFigures> {
        let clock_rate = format.map_or_else(|| self.clock_rate(), |format| format.clock_rate);
        let known = self.mapped.and_then(|(encoding, offset)| {
            let mut known = clocks.get(usize::from(encoding)).copied().flatten()?;
            known.timestamp = known.timestamp.wrapping_add(offset);
            Some(known)
        });
        self.stream.report(known, clock_rate, clock, now)
    }

    /// The RTP clock of what is sent, in Hz.
    fn clock_rate(&self) -> u32 {
        let first = self.payloads.first();
        first.map_or(8_000, |payload| payload.clock_rate)
    }

    /// Takes a report block of the far end. Returns whether it is about our stream.
    pub(crate) fn reported(&mut self, block: &ReportBlock, now: Instant) -> bool {
        if block.ssrc != self.ssrc {
            return false;
        }
        self.stream.receiver_report(
            block.cumulative_lost.cast_unsigned(),
            block.jitter,
            block.last_sr,
            block.delay_since_last_sr,
            now,
        );
        true
    }

    /// Returns lost packets, jitter and round trip, as the far end reports them.
    pub(crate) fn far_report(&self) -> FarReport {
        let lost = u32::try_from(self.stream.counters().lost).unwrap_or(u32::MAX);
        let jitter = f64::from(self.stream.remote_jitter()) / f64::from(self.clock_rate().max(1));
        let jitter = Duration::try_from_secs_f64(jitter).unwrap_or_default();
        FarReport {
            lost,
            jitter,
            round_trip: self.stream.round_trip(),
        }
    }

    /// When a pressed key of the near side counts as released, or a tone is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let detector = self.detector.as_ref().and_then(Detector::deadline);
        [detector, self.tones.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns a key that counts as released, and the clock of its duration.
    pub(crate) fn timeout(&mut self, now: Instant) -> Option<(Pressed, u32)> {
        let pressed = self.detector.as_mut()?.timeout(now)?;
        let events = super::event_payload(&self.payloads);
        Some((pressed, events.map_or(8_000, |events| events.clock_rate)))
    }
}
