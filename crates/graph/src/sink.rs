//! A sink: an outgoing track of a peer, and how packets are written for it.

use std::mem;
use std::time::Duration;

use portunus_rtp::extension::{AbsSendTime, PlayoutDelay, TransportCc};
use portunus_rtp::header::HeaderTemplate;
use portunus_rtp::{
    ExtensionKind, ExtensionMap, ExtensionSet, Fields, Mid, Pt, Ssrc, red, write_header,
};
use portunus_sdp::negotiated::{Codec, NegotiatedMedia};
use smallvec::SmallVec;

use super::{Numbering, Packet, PictureIds, RewrittenDescriptor, Sent};

/// The values that differ each time a packet is sent.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// When the packet leaves.
    pub send_time: AbsSendTime,
    /// The peer's next transport-wide sequence number.
    pub transport_seq: u16,
    /// The playout delay to set, in units of 10 ms.
    pub playout_delay: Option<(u16, u16)>,
}

/// An outgoing track of a peer. The fields that each packet needs come first.
#[derive(Debug)]
#[repr(C)]
pub struct Sink {
    /// The header of packets without extensions to pass on.
    template: Option<HeaderTemplate>,
    /// The slot of the route that feeds it.
    pub route: Option<usize>,
    ssrc: Ssrc,
    /// The RTP clock, in Hz.
    pub clock_rate: u32,
    /// The extensions of a source that are passed on.
    relays: ExtensionSet,
    /// Packets carry transport-wide sequence numbers.
    pub is_numbered: bool,
    /// The peer takes media on this m-line.
    pub sends: bool,
    payloads: SmallVec<[(Codec, Pt, Option<Pt>); 3]>,
    extensions: ExtensionMap,
    mid: Mid,
    rtx_ssrc: Option<Ssrc>,
    /// The numbers of its packets.
    pub numbering: Numbering,
}

impl Sink {
    /// The size of the part at the start that each packet reads.
    pub const HEAD: usize = mem::offset_of!(Self, numbering) + Numbering::HEAD;

    /// Returns the sink of an m-line.
    pub fn new(media: &NegotiatedMedia) -> Self {
        let mut sink = Self {
            mid: media.mid,
            ssrc: media.local_ssrc,
            rtx_ssrc: None,
            payloads: SmallVec::new(),
            extensions: ExtensionMap::default(),
            relays: ExtensionSet::EMPTY,
            template: None,
            is_numbered: false,
            clock_rate: 90_000,
            sends: false,
            // The first sequence number should be random (RFC 3550 section 5.1), as the SSRC is.
            numbering: Numbering::starting_after(media.local_ssrc.0 as u16),
            route: None,
        };
        sink.configure(media);
        sink
    }

    /// Whether it is the stream of this m-line, and not of one that the m-line has replaced.
    pub fn is_of(&self, media: &NegotiatedMedia) -> bool {
        self.ssrc == media.local_ssrc
    }

    /// Applies a renegotiation of the same stream. The numbering goes on.
    pub fn configure(&mut self, media: &NegotiatedMedia) {
        let payloads = media.payloads.iter().map(|p| (p.codec, p.pt, p.rtx));
        let payloads: SmallVec<[(Codec, Pt, Option<Pt>); 3]> = payloads.collect();
        let before = (self.mid, self.rtx_ssrc, self.extensions);
        if before != (media.mid, media.local_rtx_ssrc, media.extensions)
            || self.payloads != payloads
        {
            self.numbering.forget_sent();
        }
        self.mid = media.mid;
        self.rtx_ssrc = media.local_rtx_ssrc;
        self.payloads = payloads;
        self.extensions = media.extensions;
        self.clock_rate = media.payloads.first().map_or(90_000, |p| p.clock_rate);
        self.sends = media.send && !media.disabled;
        if !self.sends {
            // Packets that are not sent meanwhile must leave no gap: SRTP loses count after 32,768.
            self.numbering.interrupt();
        }
        let kinds = self.extensions.iter().map(|(kind, _)| kind);
        self.relays = kinds.filter(|kind| relayed(*kind, false)).collect();
        self.is_numbered =
            self.repeats_freely() && self.extensions.id(ExtensionKind::TransportCc).is_some();
        self.template = HeaderTemplate::new(&self.extensions, self.mid, self.repeats_freely());
    }

    /// Whether the extensions that change with each sending may be written. A packet that is sent
    /// again with its own number must stay the same, as SRTP would repeat its nonce.
    fn repeats_freely(&self) -> bool {
        self.has_rtx() || !self.is_video()
    }

    /// Whether retransmissions use a stream of their own (RTX).
    #[inline]
    pub fn has_rtx(&self) -> bool {
        self.rtx_ssrc.is_some() && self.payloads.iter().any(|(_, _, rtx)| rtx.is_some())
    }

    /// Writes a packet, except for the unchanged end of its payload. Returns the lengths of the
    /// header and of all that was written, and that end.
    #[inline]
    pub fn write<'p>(
        &self,
        packet: &'p Packet,
        sent: &Sent,
        stamp: &Stamp,
        out: &mut [u8],
    ) -> Option<((usize, usize), &'p [u8])> {
        let red = self.redundant(packet);
        let pt = match red {
            Some((pt, _)) => pt,
            None => self.payload_type(packet)?.0,
        };
        let fields = Fields {
            marker: packet.marker(sent.part.top),
            padding: packet.padding > 0,
            pt,
            sequence: sent.out.wire(),
            timestamp: packet.header.timestamp.wrapping_add(sent.timestamp_offset),
            ssrc: self.ssrc,
        };
        let header_len = match &self.template {
            Some(template)
                if !packet.carried.meets(self.relays) && stamp.playout_delay.is_none() =>
            {
                let transport_seq = TransportCc(stamp.transport_seq);
                template.write(&fields, stamp.send_time, transport_seq, out)?
            }
            _ => self.write_header(packet, sent, &fields, stamp, self.repeats_freely(), out)?,
        };
        if let Some((_, own)) = red {
            let payload = packet.whole_payload();
            let headers = red::headers_len(payload)?;
            let (start, tail) = payload.split_at_checked(headers)?;
            let len = header_len + headers;
            let target = out.get_mut(header_len..len)?;
            target.copy_from_slice(start);
            red::set_payload_types(target, own);
            return Some(((header_len, len), tail));
        }
        let payload = packet.padded_payload();
        let changed = if packet.ids.is_some() && sent.ids_offset != PictureIds::default() {
            DESCRIPTOR.min(payload.len())
        } else {
            0
        };
        let (start, tail) = payload.split_at_checked(changed)?;
        let len = write_payload(packet, sent, start, header_len, out)?;
        Some(((header_len, len), tail))
    }

    /// Writes a packet for the RTX stream (RFC 4588 section 4), with number `rtx_seq`.
    #[inline]
    pub fn write_rtx(
        &self,
        packet: &Packet,
        sent: &Sent,
        rtx_seq: u16,
        stamp: &Stamp,
        out: &mut [u8],
    ) -> Option<(usize, usize)> {
        let (_, rtx_pt) = self.payload_type(packet)?;
        let fields = Fields {
            marker: packet.marker(sent.part.top),
            padding: false,
            pt: rtx_pt?,
            sequence: rtx_seq,
            timestamp: packet.header.timestamp.wrapping_add(sent.timestamp_offset),
            ssrc: self.rtx_ssrc?,
        };
        let header_len = self.write_header(packet, sent, &fields, stamp, true, out)?;
        let original = out.get_mut(header_len..header_len + 2)?;
        original.copy_from_slice(&sent.out.wire().to_be_bytes());
        let len = write_payload(packet, sent, packet.payload(), header_len + 2, out)?;
        Some((header_len, len))
    }

    fn is_video(&self) -> bool {
        self.clock_rate == 90_000
    }

    /// Returns the payload types of redundant audio and of the audio in it, if the packet has some
    /// and the peer takes it.
    #[inline]
    fn redundant(&self, packet: &Packet) -> Option<(Pt, Pt)> {
        if !packet.is_redundant() || self.payloads.len() < 2 {
            return None;
        }
        let pt = |codec| {
            let mut payloads = self.payloads.iter();
            payloads.find(|it| it.0 == codec).map(|(_, pt, _)| *pt)
        };
        Some((pt(Codec::Red)?, pt(packet.codec)?))
    }

    /// Whether the sink has a payload type for a packet.
    #[inline]
    pub fn takes(&self, packet: &Packet) -> bool {
        self.payload_type(packet).is_some()
    }

    /// Returns the payload type for the codec of a packet, preferably with the same number, and its
    /// RTX.
    #[inline]
    fn payload_type(&self, packet: &Packet) -> Option<(Pt, Option<Pt>)> {
        if let [(codec, pt, rtx)] = self.payloads.as_slice() {
            return (*codec == packet.codec).then_some((*pt, *rtx));
        }
        let mut fits = self
            .payloads
            .iter()
            .filter(|(codec, _, _)| *codec == packet.codec);
        let same = fits.clone().find(|(_, pt, _)| *pt == packet.header.pt);
        same.or_else(|| fits.next()).map(|(_, pt, rtx)| (*pt, *rtx))
    }

    /// Writes a header. `timed` adds the extensions that change with each sending.
    fn write_header(
        &self,
        packet: &Packet,
        sent: &Sent,
        fields: &Fields,
        stamp: &Stamp,
        timed: bool,
        out: &mut [u8],
    ) -> Option<usize> {
        let send_time = stamp.send_time.to_bytes();
        let transport_seq = TransportCc(stamp.transport_seq).to_bytes();
        let delay = stamp
            .playout_delay
            .map(|(min, max)| playout_delay(min, max).to_bytes());
        let rewritten = RewrittenDescriptor::of(packet, sent);
        let mut list: SmallVec<[(u8, &[u8]); 10]> = SmallVec::new();
        let number = |kind| self.extensions.id(kind);
        if let Some(id) = number(ExtensionKind::Mid) {
            list.push((id, self.mid.as_bytes()));
        }
        if timed {
            if let Some(id) = number(ExtensionKind::AbsSendTime) {
                list.push((id, &send_time));
            }
            if let Some(id) = number(ExtensionKind::TransportCc) {
                list.push((id, &transport_seq));
            }
            if let (Some(id), Some(delay)) = (number(ExtensionKind::PlayoutDelay), &delay) {
                list.push((id, delay));
            }
        }
        for (id, value) in packet.header.extensions(&packet.data) {
            let Some(kind) = packet
                .extensions
                .kind(id)
                .filter(|kind| relayed(*kind, timed && delay.is_some()))
            else {
                continue;
            };
            let value = match (&rewritten, kind) {
                (Some(descriptor), ExtensionKind::DependencyDescriptor) => descriptor.bytes(),
                _ => value,
            };
            // Each only once, however often a hostile source repeats it: some are longer than they
            // came.
            if let Some(id) = number(kind).filter(|id| list.iter().all(|(other, _)| other != id)) {
                list.push((id, value));
            }
        }
        write_header(out, fields, list.iter().copied()).ok()
    }
}

/// Enough for any VP8 descriptor (RFC 7741 section 4.2: 6 bytes) and the numbers of any VP9 one
/// (RFC 9628 section 4.2: up to byte 5), and a whole AES block.
const DESCRIPTOR: usize = 16;

/// Writes the payload, or its start, with the picture numbers of the sink. Returns where it ends.
fn write_payload(
    packet: &Packet,
    sent: &Sent,
    payload: &[u8],
    at: usize,
    out: &mut [u8],
) -> Option<usize> {
    let target = out.get_mut(at..at + payload.len())?;
    target.copy_from_slice(payload);
    if let Some(ids) = packet.ids {
        ids.plus(sent.ids_offset).write(packet.codec, target);
    }
    Some(at + payload.len())
}

/// Returns a playout delay given in units of 10 ms.
fn playout_delay(min: u16, max: u16) -> PlayoutDelay {
    let duration = |units: u16| Duration::from_millis(u64::from(units) * 10);
    PlayoutDelay {
        min: duration(min),
        max: duration(max),
    }
}

/// Whether an extension is passed on from sender to receiver. Others are written anew on each hop.
fn relayed(kind: ExtensionKind, own_playout_delay: bool) -> bool {
    match kind {
        ExtensionKind::AudioLevel
        | ExtensionKind::VideoOrientation
        | ExtensionKind::DependencyDescriptor
        | ExtensionKind::AbsCaptureTime
        | ExtensionKind::VideoLayersAllocation => true,
        ExtensionKind::PlayoutDelay => !own_playout_delay,
        ExtensionKind::Mid
        | ExtensionKind::Rid
        | ExtensionKind::RepairedRid
        | ExtensionKind::AbsSendTime
        | ExtensionKind::TransportCc => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use std::time::Instant;

    use portunus_rtc::testing::{audio, video};
    use portunus_rtp::{Header, SeqNo};

    use super::*;
    use crate::{Inspector, Part, SourceKey};

    /// A VP9 packet of a keyframe, whose descriptor has a structure longer than what is copied of a
    /// payload.
    fn keyframe(seq: u16, picture: u16, tl0: u8) -> Packet {
        let [high, low] = picture.to_be_bytes();
        let mut payload = vec![0b1010_1010, 0x80 | high, low, 0x10, tl0, 0b1011_1000];
        // Six sizes, and a group of three pictures.
        payload.extend_from_slice(&[7; 24]);
        payload.extend_from_slice(&[3, 0b0000_0100, 3, 0b0010_0100, 1, 0b0010_0100, 1]);
        payload.extend_from_slice(&[0x82, 0x49, 0x83, 0x42]);
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(98),
            sequence: seq,
            timestamp: 2,
            ssrc: Ssrc(3),
        };
        let mut packet = Packet::empty(Instant::now());
        packet.data = vec![0; 12];
        write_header(&mut packet.data, &fields, []).unwrap();
        packet.data.extend_from_slice(&payload);
        packet.header = Header::parse(&packet.data).unwrap();
        (packet.seq, packet.codec) = (SeqNo(seq.into()), Codec::Vp9);
        let mut inspector = Inspector::default();
        let extensions = ExtensionMap::default();
        packet.describe(inspector.inspect(Codec::Vp9, &packet.header, &packet.data, &extensions));
        packet
    }

    #[test]
    fn vp9_numbers_go_on_whatever_follows_them_and_repeats_have_the_same() {
        let mut line = video("0", 1_000);
        line.payloads[0].codec = Codec::Vp9;
        let mut sink = Sink::new(&line);
        let mut last = None;
        for (source, packet) in [(1, keyframe(10, 0x7fff, 255)), (2, keyframe(77, 0x1234, 9))] {
            assert!(packet.layers.keyframe && packet.layers.start && packet.layers.svc);
            let source = SourceKey(source);
            let sent = sink
                .numbering
                .forward(source, &packet, 90_000, Part::default());
            last = sent.map(|sent| (packet, sent));
        }
        let (packet, sent) = last.unwrap();
        let mut expected = packet.payload().to_vec();
        expected[1..5].copy_from_slice(&[0x80, 0, 0x10, 0]);
        let stamp = Stamp {
            send_time: AbsSendTime::from_duration(Duration::ZERO),
            transport_seq: 0,
            playout_delay: None,
        };
        let mut out = [0; 256];
        let ((header, len), tail) = sink.write(&packet, &sent, &stamp, &mut out).unwrap();
        assert_eq!([&out[header..len], tail].concat(), expected);
        let repeated = sink.numbering.sent(sent.out).unwrap();
        let (header, len) = sink
            .write_rtx(&packet, &repeated, 1, &stamp, &mut out)
            .unwrap();
        assert_eq!(out[header + 2..len], expected);
    }

    #[test]
    fn redundancy_goes_to_those_who_take_it_and_plain_audio_to_the_others() {
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(63),
            sequence: 1,
            timestamp: 960,
            ssrc: Ssrc(3),
        };
        let mut packet = Packet::empty(Instant::now());
        packet.data = vec![0; 12];
        write_header(&mut packet.data, &fields, []).unwrap();
        // A redundant block of two bytes, and the packet's own audio.
        let red = [0xef, 0x0f, 0x00, 2, 0x6f, 4, 5, 6, 7, 8];
        packet.data.extend_from_slice(&red);
        packet.header = Header::parse(&packet.data).unwrap();
        packet.set_codec(Codec::Red);
        assert!(packet.is_redundant() && packet.codec == Codec::Opus);
        assert_eq!(packet.payload(), [6, 7, 8]);
        let mut opaque = Packet {
            data: packet.data.clone(),
            header: packet.header,
            is_opaque: true,
            ..Packet::empty(Instant::now())
        };
        opaque.set_codec(Codec::Red);
        assert!(!opaque.is_redundant() && opaque.codec == Codec::Red);
        let stamp = Stamp {
            send_time: AbsSendTime::from_duration(Duration::ZERO),
            transport_seq: 0,
            playout_delay: None,
        };
        let written = |payloads: &[(Codec, u8)]| {
            let mut line = audio("0", 1_000);
            let opus = line.payloads[0].clone();
            line.payloads.clear();
            for (codec, pt) in payloads {
                line.payloads.push(portunus_sdp::negotiated::Payload {
                    pt: Pt(*pt),
                    codec: *codec,
                    ..opus.clone()
                });
            }
            let mut sink = Sink::new(&line);
            let sent = sink
                .numbering
                .forward(SourceKey(1), &packet, 48_000, Part::default());
            let mut out = [0; 256];
            let ((header, len), tail) = sink
                .write(&packet, &sent.unwrap(), &stamp, &mut out)
                .unwrap();
            (out[1] & 0x7f, [&out[header..len], tail].concat())
        };
        let own = [0xe0 | 4, 0x0f, 0x00, 2, 0x64, 4, 5, 6, 7, 8];
        let both = [(Codec::Red, 62), (Codec::Opus, 100)];
        assert_eq!(written(&both), (62, own.to_vec()));
        assert_eq!(written(&both[1..]), (100, vec![6, 7, 8]));
    }

    #[test]
    fn a_descriptor_that_is_repeated_leaves_once() {
        let mut line = video("0", 1_000);
        line.extensions.set(ExtensionKind::DependencyDescriptor, 12);
        let mut sink = Sink::new(&line);
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(98),
            sequence: 1,
            timestamp: 2,
            ssrc: Ssrc(3),
        };
        let long = [0xc0; 200];
        let repeated = std::iter::repeat_n((5, &[][..]), 100);
        let elements = std::iter::once((5, &long[..])).chain(repeated);
        let mut packet = Packet::empty(Instant::now());
        packet.data = vec![0; 1_200];
        let len = write_header(&mut packet.data, &fields, elements).unwrap();
        packet.data.truncate(len);
        packet.data.extend_from_slice(&[1, 2, 3]);
        packet.header = Header::parse(&packet.data).unwrap();
        let mut numbers = ExtensionMap::default();
        numbers.set(ExtensionKind::DependencyDescriptor, 5);
        packet.set_extensions(numbers);
        packet.codec = line.payloads[0].codec;
        packet.frame = Some(7);
        let sent = sink
            .numbering
            .forward(SourceKey(1), &packet, 90_000, Part::default());
        let sent = Sent {
            frame_offset: 9,
            ..sent.unwrap()
        };
        let stamp = Stamp {
            send_time: AbsSendTime::from_duration(Duration::ZERO),
            transport_seq: 0,
            playout_delay: None,
        };
        let mut out = [0; 2_048];
        sink.write(&packet, &sent, &stamp, &mut out).unwrap();
        let written = Header::parse(&out).unwrap();
        let descriptors = written.extensions(&out).filter(|(id, _)| *id == 12);
        let descriptors: Vec<&[u8]> = descriptors.map(|(_, value)| value).collect();
        assert_eq!(descriptors.len(), 1);
        assert_eq!(descriptors[0].len(), long.len());
        assert_eq!(descriptors[0][1..3], [0, 16]);
    }
}
