use super::Fields;
use crate::extension::{AbsSendTime, TransportCc};
use crate::{ExtensionKind, ExtensionMap, Mid};

/// Bytes that [`HeaderTemplate::write`] may touch.
const ROOM: usize = 32;
/// Bytes of extension elements that a template holds.
const ELEMENTS: usize = 16;
/// Profile of the one-byte form (RFC 8285 section 4.2).
const ONE_BYTE: u16 = 0xbede;

/// A header of which only the fixed fields, abs-send-time and the transport-wide sequence number
/// differ from packet to packet: made once for a stream, written in a few wide stores.
///
/// With extensions it is 32 bytes long, padded behind the elements (RFC 8285 section 4.1.2): a whole
/// number of AES blocks costs less to authenticate than a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderTemplate {
    /// The elements, the first byte the most significant.
    elements: u128,
    any: bool,
    /// How far the values are shifted to stand in their places.
    send_time: Option<u8>,
    transport_seq: Option<u8>,
}

impl HeaderTemplate {
    /// A template with the `mid` and, if `timed`, the two extensions that change, as far as `map` has
    /// numbers for them. None: they do not fit, or their numbers need the two-byte form.
    pub fn new(map: &ExtensionMap, mid: Mid, timed: bool) -> Option<Self> {
        let mut template = Self {
            elements: 0,
            any: false,
            send_time: None,
            transport_seq: None,
        };
        let mut at = 0;
        if timed {
            if let Some(id) = map.id(ExtensionKind::AbsSendTime) {
                template.send_time = Some(template.put(&mut at, id, &[0; 3])?);
            }
            if let Some(id) = map.id(ExtensionKind::TransportCc) {
                template.transport_seq = Some(template.put(&mut at, id, &[0; 2])?);
            }
        }
        if let Some(id) = map.id(ExtensionKind::Mid) {
            template.put(&mut at, id, mid.as_bytes())?;
        }
        template.any = at > 0;
        Some(template)
    }

    /// Appends an element; returns the shift of its value's last byte.
    fn put(&mut self, at: &mut usize, id: u8, value: &[u8]) -> Option<u8> {
        let len = u8::try_from(value.len()).ok()?.checked_sub(1)?;
        if !(1..=14).contains(&id) || len > 15 || *at + 1 + value.len() > ELEMENTS {
            return None;
        }
        let mut shift = 0;
        for byte in std::iter::once((id << 4) | len).chain(value.iter().copied()) {
            shift = 8 * (ELEMENTS - 1 - *at) as u8;
            self.elements |= u128::from(byte) << shift;
            *at += 1;
        }
        Some(shift)
    }

    /// Writes a header without padding bit at the start of `out` and returns its length: 12 or 32
    /// bytes. None: `out` has fewer than 32 bytes.
    #[inline]
    pub fn write(
        &self,
        fields: &Fields,
        send_time: AbsSendTime,
        transport_seq: TransportCc,
        out: &mut [u8],
    ) -> Option<usize> {
        let out: &mut [u8; ROOM] = out.first_chunk_mut()?;
        let first = 0x80 | (u8::from(self.any) << 4);
        let second = (u8::from(fields.marker) << 7) | (fields.pt.0 & 0x7f);
        let mut head = u128::from(first) << 120
            | u128::from(second) << 112
            | u128::from(fields.sequence) << 96
            | u128::from(fields.timestamp) << 64
            | u128::from(fields.ssrc.0) << 32;
        if !self.any {
            let (whole, _) = out.split_first_chunk_mut::<16>()?;
            *whole = head.to_be_bytes();
            return Some(super::FIXED_HEADER_LEN);
        }
        head |= u128::from(ONE_BYTE) << 16 | (ELEMENTS as u128 / 4);
        let mut elements = self.elements;
        if let Some(shift) = self.send_time {
            let [a, b, c] = send_time.to_bytes();
            elements |= u128::from(u32::from_be_bytes([0, a, b, c])) << shift;
        }
        if let Some(shift) = self.transport_seq {
            elements |= u128::from(transport_seq.0) << shift;
        }
        let (start, end) = out.split_first_chunk_mut::<16>()?;
        *start = head.to_be_bytes();
        *end.first_chunk_mut()? = elements.to_be_bytes();
        Some(ROOM)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
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
