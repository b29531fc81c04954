use super::Fields;
use crate::extension::{AbsSendTime, TransportCc};
use crate::{ExtensionKind, ExtensionMap, Mid};

/// The bytes that [`HeaderTemplate::write`] may change.
const ROOM: usize = 32;
/// The bytes of extension elements in a template.
const ELEMENTS: usize = 16;
/// The profile of the one-byte form (RFC 8285 section 4.2), and the length of the elements in
/// words.
const PREFIX: u64 = 0xbede_0000 | (ELEMENTS as u64 / 4);

/// A header in which only the fixed fields, abs-send-time and the transport-wide sequence number
/// differ from packet to packet. It is made once for a stream, and written in a few wide stores.
///
/// With extensions, it is 32 bytes long, padded after the elements (RFC 8285 section 4.1.2): a
/// whole number of AES blocks costs less to authenticate than a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderTemplate {
    /// The elements, the first byte the most significant.
    elements: u128,
    any: bool,
    send_time: Place,
    transport_seq: Place,
}

/// The place of a value among the first eight bytes of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    /// The mask of the value's written bits. 0 if the extension was not negotiated.
    mask: u32,
    shift: u8,
}

impl Place {
    #[inline]
    fn put(self, value: u32) -> u64 {
        u64::from(value & self.mask) << (self.shift & 63)
    }
}

impl HeaderTemplate {
    /// Makes a template with the `mid` and, if `timed`, the two variable extensions, as far as
    /// `map` has ids for them. Returns `None` if they do not fit, or their ids need the two-byte
    /// form.
    pub fn new(map: &ExtensionMap, mid: Mid, timed: bool) -> Option<Self> {
        let mut template = Self {
            elements: 0,
            any: false,
            send_time: Place::default(),
            transport_seq: Place::default(),
        };
        let mut at = 0;
        if timed {
            if let Some(id) = map.id(ExtensionKind::AbsSendTime) {
                let shift = template.put(&mut at, id, &[0; 3])?;
                template.send_time = Place {
                    mask: 0x00ff_ffff,
                    shift,
                };
            }
            if let Some(id) = map.id(ExtensionKind::TransportCc) {
                let shift = template.put(&mut at, id, &[0; 2])?;
                template.transport_seq = Place {
                    mask: 0xffff,
                    shift,
                };
            }
        }
        if let Some(id) = map.id(ExtensionKind::Mid) {
            template.put(&mut at, id, mid.as_bytes())?;
        }
        template.any = at > 0;
        Some(template)
    }

    /// Appends an element. Returns the distance of its value's last byte from the end of the first
    /// eight.
    fn put(&mut self, at: &mut usize, id: u8, value: &[u8]) -> Option<u8> {
        let len = u8::try_from(value.len()).ok()?.checked_sub(1)?;
        if !(1..=14).contains(&id) || len > 15 || *at + 1 + value.len() > ELEMENTS {
            return None;
        }
        for byte in std::iter::once((id << 4) | len).chain(value.iter().copied()) {
            self.elements |= u128::from(byte) << (8 * (ELEMENTS - 1 - *at));
            *at += 1;
        }
        // Only values in the first eight bytes use it.
        Some(8 * (ELEMENTS / 2).saturating_sub(*at) as u8)
    }

    /// Writes a header at the start of `out`. Returns its length: 12 or 32 bytes. Returns `None` if
    /// `out` has fewer than 32 bytes.
    #[inline]
    pub fn write(
        &self,
        fields: &Fields,
        send_time: AbsSendTime,
        transport_seq: TransportCc,
        out: &mut [u8],
    ) -> Option<usize> {
        let out: &mut [u8; ROOM] = out.first_chunk_mut()?;
        let first = 0x80 | (u64::from(fields.padding) << 5) | (u64::from(self.any) << 4);
        let second = (u64::from(fields.marker) << 7) | u64::from(fields.pt.0 & 0x7f);
        let start = first << 56
            | second << 48
            | u64::from(fields.sequence) << 32
            | u64::from(fields.timestamp);
        let ssrc = u64::from(fields.ssrc.0) << 32;
        let (words, _) = out.as_chunks_mut::<8>();
        let [w0, w1, w2, w3] = words else {
            return None;
        };
        *w0 = start.to_be_bytes();
        if !self.any {
            *w1 = ssrc.to_be_bytes();
            return Some(super::FIXED_HEADER_LEN);
        }
        let changing = self.send_time.put(send_time.ticks())
            | self.transport_seq.put(u32::from(transport_seq.0));
        *w1 = (ssrc | PREFIX).to_be_bytes();
        *w2 = ((self.elements >> 64) as u64 | changing).to_be_bytes();
        *w3 = (self.elements as u64).to_be_bytes();
        Some(ROOM)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use crate::{Header, Pt, Ssrc};

    const FIELDS: Fields = Fields {
        marker: true,
        padding: false,
        pt: Pt(96),
        sequence: 0x1234,
        timestamp: 0x0102_0304,
        ssrc: Ssrc(0xdead_beef),
    };

    fn map(numbers: &[(ExtensionKind, u8)]) -> ExtensionMap {
        let mut map = ExtensionMap::default();
        for (kind, id) in numbers {
            map.set(*kind, *id);
        }
        map
    }

    fn write(template: &HeaderTemplate) -> Vec<u8> {
        let mut out = [0xaa; 64];
        let send_time = AbsSendTime::parse(&[0x11, 0x22, 0x33]).unwrap();
        let len = template
            .write(&FIELDS, send_time, TransportCc(0xabcd), &mut out)
            .unwrap();
        out[..len].to_vec()
    }

    #[test]
    fn it_writes_what_the_general_writer_would() {
        let numbers = map(&[
            (ExtensionKind::Mid, 4),
            (ExtensionKind::AbsSendTime, 2),
            (ExtensionKind::TransportCc, 3),
        ]);
        let mid = Mid::new("video").unwrap();
        let written = write(&HeaderTemplate::new(&numbers, mid, true).unwrap());
        let header = Header::parse(&written).unwrap();
        assert_eq!(written.len(), 32);
        assert_eq!(header.header_len(), 32);
        assert!(header.marker);
        assert_eq!((header.pt, header.sequence), (FIELDS.pt, FIELDS.sequence));
        assert_eq!(
            (header.timestamp, header.ssrc),
            (FIELDS.timestamp, FIELDS.ssrc)
        );
        let values: Vec<_> = header.extensions(&written).collect();
        let expected: [(u8, &[u8]); 3] =
            [(2, &[0x11, 0x22, 0x33]), (3, &[0xab, 0xcd]), (4, b"video")];
        assert_eq!(values, expected);
    }

    #[test]
    fn what_changes_from_sending_to_sending_can_be_left_out() {
        let numbers = map(&[(ExtensionKind::Mid, 1), (ExtensionKind::AbsSendTime, 2)]);
        let mid = Mid::new("0").unwrap();
        let written = write(&HeaderTemplate::new(&numbers, mid, false).unwrap());
        let header = Header::parse(&written).unwrap();
        let expected: [(u8, &[u8]); 1] = [(1, b"0")];
        assert_eq!(header.extensions(&written).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn without_extensions_the_header_is_the_fixed_one() {
        let mid = Mid::new("0").unwrap();
        let written = write(&HeaderTemplate::new(&ExtensionMap::default(), mid, true).unwrap());
        assert_eq!(written.len(), 12);
        assert_eq!(
            Header::parse(&written)
                .unwrap()
                .extensions(&written)
                .count(),
            0
        );
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_general_writer() {
        let mid = Mid::new("0123456789abcdef").unwrap();
        let long = map(&[(ExtensionKind::Mid, 1)]);
        assert_eq!(HeaderTemplate::new(&long, mid, true), None);
        let mid = Mid::new("0").unwrap();
        let two_byte = map(&[(ExtensionKind::Mid, 15)]);
        assert_eq!(HeaderTemplate::new(&two_byte, mid, true), None);
        let template = HeaderTemplate::new(&map(&[]), mid, true).unwrap();
        let mut short = [0; 31];
        assert_eq!(
            template.write(
                &FIELDS,
                AbsSendTime::from_ntp(0),
                TransportCc(0),
                &mut short
            ),
            None
        );
    }
}
