//! The stream of an outlet: which packets of a source it takes, and how they are numbered.

use std::time::Instant;

use portunus_graph::{
    Demand, Numbering, Packet, Part, RewrittenDescriptor, Selection, Selector, Sent, SourceFormat,
    SourceKey,
};
use portunus_rtp::{ExtensionKind, Fields, Pt, SeqNo, Ssrc, header, write_header};

use crate::RouteOptions;

/// Which simulcast encodings of a source an outlet takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encodings {
    /// The best one up to [`RouteOptions::substream`], as one stream. It starts with the best
    /// flowing encoding, and changes at keyframes.
    #[default]
    Best,
    /// This one (0 is the lowest), with all its layers.
    Only(u8),
    /// This one, with the layers up to those of the [`RouteOptions`].
    Layers(u8),
}

/// The selection and numbering of an outlet. Numbers and timestamps stay continuous over changes of
/// the encoding and closed gates.
#[derive(Debug)]
pub(crate) struct Cut {
    options: RouteOptions,
    encodings: Encodings,
    selector: Selector,
    numbering: Numbering,
    ssrc: Option<Ssrc>,
}

/// A packet that was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) sent: Sent,
    /// The SSRC of the first packet that was taken.
    pub(crate) ssrc: Ssrc,
}

impl Cut {
    /// Returns a stream whose first sequence number follows `after`.
    pub(crate) fn new(options: RouteOptions, encodings: Encodings, after: u16) -> Self {
        Self {
            options,
            encodings,
            selector: match encodings {
                Encodings::Layers(_) => Selector::default(),
                Encodings::Best | Encodings::Only(_) => Selector::starting_best(),
            },
            numbering: Numbering::starting_after(after),
            ssrc: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.options.enabled
    }

    /// Changes the options. Returns whether this has opened the gate.
    pub(crate) fn set_options(&mut self, source: SourceKey, options: RouteOptions) -> bool {
        let opened = options.enabled && !self.options.enabled;
        self.options = options;
        if opened {
            self.selector.restart();
            // Packets that were not taken meanwhile leave no gap.
            self.numbering.forget(source);
        }
        opened
    }

    /// Leaves a source, because the next packet is of another one.
    pub(crate) fn leave(&mut self, source: SourceKey) {
        self.selector.restart();
        self.numbering.forget(source);
    }

    /// Drops a packet, whatever the options, without a gap in the numbers.
    pub(crate) fn skip(&mut self, source: SourceKey, packet: &Packet) {
        self.numbering.skip(source, packet);
    }

    /// Inserts a packet of our own. Returns its number and the present timestamp, by a clock of
    /// `clock_rate` Hz.
    pub(crate) fn insert(&mut self, clock_rate: u32, now: Instant) -> (SeqNo, u32) {
        self.numbering.insert(clock_rate, now)
    }

    /// Returns how the packet with this number was sent, if that is recent enough.
    pub(crate) fn sent(&self, out: SeqNo) -> Option<Sent> {
        self.numbering.sent(out)
    }

    /// Takes a packet, if the outlet selects it.
    pub(crate) fn take(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        format: &SourceFormat,
    ) -> Option<Taken> {
        if !self.options.enabled {
            return None;
        }
        let part = match self.encodings {
            Encodings::Only(encoding) | Encodings::Layers(encoding)
                if packet.encoding != encoding =>
            {
                return None;
            }
            Encodings::Only(_) => Part::default(),
            Encodings::Best | Encodings::Layers(_) => {
                let encodings = self.choices(format.encodings);
                match self.selector.select(packet, encodings, &self.options) {
                    Selection::Forward(part) => part,
                    Selection::Skip => {
                        self.numbering.skip(source, packet);
                        return None;
                    }
                    Selection::Other => return None,
                }
            }
        };
        // Padding and keep-alives end here.
        if packet.payload().is_empty() {
            self.numbering.skip(source, packet);
            return None;
        }
        let sent = self
            .numbering
            .forward(source, packet, format.clock_rate, part)?;
        let ssrc = *self.ssrc.get_or_insert(packet.header.ssrc);
        Some(Taken { sent, ssrc })
    }

    /// Returns the encoding that a keyframe is needed of, but not too often.
    pub(crate) fn keyframe_wanted(&mut self, encodings: u8, now: Instant) -> Option<u8> {
        let choices = self.choices(encodings);
        let mut wanted = || self.selector.keyframe_wanted(choices, &self.options, now);
        match self.encodings {
            _ if !self.options.enabled => None,
            Encodings::Best => wanted(),
            Encodings::Layers(encoding) => wanted().map(|_| encoding),
            Encodings::Only(_) => None,
        }
    }

    /// The number of encodings that it chooses among.
    fn choices(&self, encodings: u8) -> u8 {
        match self.encodings {
            Encodings::Best => encodings,
            Encodings::Only(_) | Encodings::Layers(_) => 1,
        }
    }

    /// Returns what its receiver can see of a source with `encodings` encodings.
    pub(crate) fn demand(&self, encodings: u8) -> Demand {
        match self.encodings {
            Encodings::Best => Demand::up_to(&self.options, encodings),
            Encodings::Only(encoding) | Encodings::Layers(encoding) => {
                Demand::only(&self.options, encoding)
            }
        }
    }

    /// Returns the encoding whose keyframe the receiver waits for. `None` means any.
    pub(crate) fn encoding(&self) -> Option<u8> {
        match self.encodings {
            Encodings::Only(encoding) | Encodings::Layers(encoding) => Some(encoding),
            Encodings::Best => self.selector.encoding(),
        }
    }
}

/// The payload to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// With the source's padding, and without redundancy.
    Padded,
    /// With redundancy, and without padding.
    Redundant,
}

/// Writes a packet: the header with the source's extensions, then the payload. Returns the lengths
/// of the header and of all.
pub(crate) fn write_packet(
    packet: &Packet,
    taken: &Taken,
    (ssrc, pt): (Ssrc, Pt),
    content: Content,
    out: &mut [u8],
) -> Option<(usize, usize)> {
    let payload = match content {
        Content::Padded => packet.padded_payload(),
        Content::Redundant => packet.whole_payload(),
    };
    let header_len = write_head(packet, taken, (ssrc, pt), content, out)?;
    let len = header_len + payload.len();
    let rest = out.get_mut(header_len..len)?;
    rest.copy_from_slice(payload);
    if let Some(ids) = packet.ids {
        ids.plus(taken.sent.ids_offset).write(packet.codec, rest);
    }
    Some((header_len, len))
}

/// Writes the header of a packet, with the source's extensions. Returns its length.
pub(crate) fn write_head(
    packet: &Packet,
    taken: &Taken,
    (ssrc, pt): (Ssrc, Pt),
    content: Content,
    out: &mut [u8],
) -> Option<usize> {
    let header_len = copy_header(packet, taken, out)?;
    let head = out.get_mut(..header_len)?;
    if let Some(first) = head.first_mut() {
        let padding = content == Content::Padded && packet.padding > 0;
        *first = *first & !0x20 | u8::from(padding) << 5;
    }
    let timestamp = packet
        .header
        .timestamp
        .wrapping_add(taken.sent.timestamp_offset);
    header::set_marker(head, packet.marker(taken.sent.part.top));
    header::set_pt(head, pt);
    header::set_sequence(head, taken.sent.out.wire());
    header::set_timestamp(head, timestamp);
    header::set_ssrc(head, ssrc);
    Some(header_len)
}

/// Copies the header, with the dependency descriptor for the receiver. Returns its length, which is
/// at most twice that of the source. A header with several descriptors is copied as it is.
fn copy_header(packet: &Packet, taken: &Taken, out: &mut [u8]) -> Option<usize> {
    let (header, data) = (&packet.header, &packet.data);
    let original = data.get(..header.header_len())?;
    let own = packet.extensions.id(ExtensionKind::DependencyDescriptor);
    let is_own = |(id, _): &(u8, &[u8])| Some(*id) == own;
    let rewritten = RewrittenDescriptor::of(packet, &taken.sent);
    let is_single = || header.extensions(data).filter(is_own).nth(1).is_none();
    let Some(rewritten) = rewritten.filter(|_| is_single()) else {
        out.get_mut(..original.len())?.copy_from_slice(original);
        return Some(original.len());
    };
    let elements = header.extensions(data).map(|(id, value)| match own {
        Some(own) if own == id => (id, rewritten.bytes()),
        _ => (id, value),
    });
    // A new header has no contributing sources: their space is left in front of it.
    let sources = header.csrcs(data).count() * 4;
    let fields = Fields {
        marker: false,
        padding: false,
        pt: header.pt,
        sequence: 0,
        timestamp: 0,
        ssrc: header.ssrc,
    };
    let written = write_header(out.get_mut(sources..)?, &fields, elements).ok()?;
    let kept = original.get(..header::FIXED_HEADER_LEN + sources)?;
    out.get_mut(..kept.len())?.copy_from_slice(kept);
    Some(sources + written)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::time::Instant;

    use portunus_rtp::Header;

    use super::*;

    #[test]
    fn a_header_with_several_descriptors_is_copied_as_it_is() {
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(98),
            sequence: 1,
            timestamp: 2,
            ssrc: Ssrc(3),
        };
        let long = [0xc0; 200];
        for repeated in [0, 100] {
            let repeated = std::iter::repeat_n((5, &[][..]), repeated);
            let elements = std::iter::once((5, &long[..])).chain(repeated);
            let mut packet = Packet::empty(Instant::now());
            packet.data = vec![0; 1_200];
            let len = write_header(&mut packet.data, &fields, elements).unwrap();
            packet.data.truncate(len);
            packet.data.extend_from_slice(&[1, 2, 3]);
            packet.header = Header::parse(&packet.data).unwrap();
            packet
                .extensions
                .set(ExtensionKind::DependencyDescriptor, 5);
            packet.frame = Some(7);
            let sent = Numbering::starting_after(0).forward(
                SourceKey(1),
                &packet,
                90_000,
                Part::default(),
            );
            let taken = Taken {
                sent: Sent {
                    frame_offset: 9,
                    ..sent.unwrap()
                },
                ssrc: Ssrc(3),
            };
            let mut out = [0; 2_048];
            let to = (Ssrc(3), Pt(98));
            let content = Content::Padded;
            let (_, written) = write_packet(&packet, &taken, to, content, &mut out).unwrap();
            assert_eq!(written, packet.data.len());
        }
    }
}
