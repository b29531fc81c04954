//! AV1 (RTP Payload Format For AV1, section 4): OBUs without sizes and temporal delimiters, as many
//! per packet as fit, split if necessary.

use crate::RtpError;

const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const PADDING: u8 = 15;
/// The bit in an OBU's header for a following size.
const HAS_SIZE: u8 = 0x02;
const HAS_EXTENSION: u8 = 0x04;
/// The bits of the aggregation header: continued from the previous packet, continues in the next,
/// starts a coded video sequence.
const CONTINUES: u8 = 0x80;
const TO_BE_CONTINUED: u8 = 0x40;
const STARTS_SEQUENCE: u8 = 0x08;
/// The bytes of a length: two hold 16,383.
const LENGTH_LEN: usize = 2;

/// An OBU without its size: its header and its body.
struct Obu<'a> {
    kind: u8,
    header: [u8; 2],
    header_len: usize,
    body: &'a [u8],
}

pub(super) fn packetize(
    unit: &[u8],
    sequence_header: &[u8],
    keyframe: bool,
    max: usize,
    payload: &mut Vec<u8>,
    emit: impl FnMut(&[u8], bool),
) -> Result<(), RtpError> {
    let has_sequence = obus(unit)
        .filter_map(Result::ok)
        .any(|obu| obu.kind == SEQUENCE_HEADER);
    let before = if keyframe && !has_sequence {
        sequence_header
    } else {
        &[]
    };
    let mut packet = Packet {
        payload,
        max,
        emit,
        starts_sequence: keyframe && (has_sequence || !before.is_empty()),
    };
    packet.begin(false);
    for obu in obus(before).chain(obus(unit)) {
        let obu = obu?;
        if !matches!(obu.kind, TEMPORAL_DELIMITER | TILE_LIST | PADDING) {
            packet.push(&obu);
        }
    }
    packet.finish();
    Ok(())
}

/// A payload that is being filled. All elements have a length (W = 0), which costs a byte or two
/// per packet and needs no look-ahead.
struct Packet<'a, E> {
    payload: &'a mut Vec<u8>,
    max: usize,
    emit: E,
    starts_sequence: bool,
}

impl<E: FnMut(&[u8], bool)> Packet<'_, E> {
    fn begin(&mut self, continues: bool) {
        let mut flags = if continues { CONTINUES } else { 0 };
        if std::mem::take(&mut self.starts_sequence) {
            flags |= STARTS_SEQUENCE;
        }
        self.payload.clear();
        self.payload.push(flags);
    }

    /// Appends an OBU, over several packets if necessary.
    fn push(&mut self, obu: &Obu<'_>) {
        let mut header = obu.header.get(..obu.header_len).unwrap_or_default();
        let mut body = obu.body;
        loop {
            let rest = header.len() + body.len();
            let room = (self.max - self.payload.len()).saturating_sub(LENGTH_LEN);
            // A header is not split, and a few bytes are not worth an element.
            if room < rest && room < 16 && self.payload.len() > 1 {
                (self.emit)(self.payload, false);
                self.begin(false);
                continue;
            }
            let len = rest.min(room);
            self.push_length(len);
            self.payload.extend_from_slice(header);
            let (now, later) = body.split_at(len.saturating_sub(header.len()).min(body.len()));
            self.payload.extend_from_slice(now);
            (header, body) = (&[], later);
            if body.is_empty() {
                return;
            }
            if let Some(flags) = self.payload.first_mut() {
                *flags |= TO_BE_CONTINUED;
            }
            (self.emit)(self.payload, false);
            self.begin(true);
        }
    }

    fn push_length(&mut self, len: usize) {
        let low = (len & 0x7f) as u8;
        if len < 0x80 {
            self.payload.push(low);
        } else {
            self.payload
                .extend_from_slice(&[low | 0x80, (len >> 7) as u8]);
        }
    }

    fn finish(mut self) {
        if self.payload.len() > 1 {
            (self.emit)(self.payload, true);
        }
    }
}

/// Returns the OBUs of a temporal unit. A malformed one is an error, and the last item.
fn obus(unit: &[u8]) -> impl Iterator<Item = Result<Obu<'_>, RtpError>> {
    let mut rest = unit;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let actual = rest.len();
        let obu = split_obu(&mut rest);
        if obu.is_none() {
            rest = &[];
        }
        let expected = actual + 1;
        Some(obu.ok_or(RtpError::Truncated { expected, actual }))
    })
}

fn split_obu<'a>(rest: &mut &'a [u8]) -> Option<Obu<'a>> {
    let first = *rest.split_off_first()?;
    let extension = match first & HAS_EXTENSION != 0 {
        true => Some(*rest.split_off_first()?),
        false => None,
    };
    let len = match first & HAS_SIZE != 0 {
        true => usize::try_from(crate::codec::av1::read_leb128(rest)?).ok()?,
        false => rest.len(),
    };
    Some(Obu {
        kind: (first >> 3) & 0x0f,
        header: [first & !HAS_SIZE, extension.unwrap_or(0)],
        header_len: 1 + usize::from(extension.is_some()),
        body: rest.split_off(..len)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use crate::codec::Av1;
    use crate::packetize::{Packetizer, PayloadFormat};

    /// Reassembles the OBUs of payloads.
    fn reassemble(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut obus: Vec<Vec<u8>> = Vec::new();
        let mut open = false;
        for payload in payloads {
            let header = Av1::parse(payload).unwrap();
            assert_eq!(header.continues, open);
            for (index, element) in header.elements(payload).enumerate() {
                match obus.last_mut().filter(|_| index == 0 && header.continues) {
                    Some(last) => last.extend_from_slice(element),
                    None => obus.push(element.to_vec()),
                }
            }
            open = header.to_be_continued;
        }
        assert!(!open);
        obus
    }

    fn packetize(unit: &[u8], keyframe: bool) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        Packetizer::new(PayloadFormat::Av1 {
            sequence_header: vec![0x0a, 2, 0xaa, 0xbb],
        })
        .packetize(unit, keyframe, |payload, _| payloads.push(payload.to_vec()))
        .unwrap();
        payloads
    }

    fn unit(frame: &[u8]) -> Vec<u8> {
        let len = frame.len();
        let size = [(len & 0x7f) as u8 | 0x80, (len >> 7) as u8];
        [&[0x12, 0, 0x32][..], &size, frame].concat()
    }

    #[test]
    fn a_keyframe_gets_the_sequence_header_that_it_lacks() {
        let frame = vec![3; 4_000];
        let payloads = packetize(&unit(&frame), true);
        assert_eq!(payloads.len(), 4);
        let starts = Av1::parse(&payloads[0]).unwrap();
        assert!(starts.starts_sequence && starts.is_keyframe(&payloads[0]));
        let obus = reassemble(&payloads);
        assert_eq!(obus[0], [0x08, 0xaa, 0xbb]);
        assert_eq!(obus[1], [&[0x30][..], &frame].concat());
    }

    #[test]
    fn a_sequence_header_in_the_stream_is_kept() {
        let unit = [&[0x0a, 1, 9][..], &unit(&[5; 200])].concat();
        let payloads = packetize(&unit, true);
        assert_eq!(payloads.len(), 1);
        let obus = reassemble(&payloads);
        assert_eq!(obus.len(), 2);
        assert_eq!(obus[0], [0x08, 9]);
    }

    #[test]
    fn another_frame_starts_no_sequence() {
        let payloads = packetize(&unit(&[5; 200]), false);
        let header = Av1::parse(&payloads[0]).unwrap();
        assert!(!header.starts_sequence && !header.is_keyframe(&payloads[0]));
    }

    #[test]
    fn sizes_that_reach_too_far() {
        for unit in [&[0x32, 9, 1][..], &[0x36], &[0x32, 0x80]] {
            let mut packetizer = Packetizer::new(PayloadFormat::Av1 {
                sequence_header: Vec::new(),
            });
            assert!(packetizer.packetize(unit, false, |_, _| {}).is_err());
        }
    }
}
