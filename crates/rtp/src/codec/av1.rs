//! The AV1 aggregation header and the OBU elements after it (RTP Payload Format For AV1, section
//! 4.4).

use crate::RtpError;

/// The aggregation header, which is the first byte of each payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Av1 {
    /// The first element continues the last one of the previous packet (Z).
    pub continues: bool,
    /// The last element continues in the next packet (Y).
    pub to_be_continued: bool,
    /// The number of elements if it is 1 to 3; the last one then has no length (W). 0 means that
    /// all have one.
    pub elements: u8,
    /// The packet is the first of a coded video sequence (N).
    pub starts_sequence: bool,
}

const SEQUENCE_HEADER: u8 = 1;

impl Av1 {
    /// Parses the start of a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, RtpError> {
        let byte = *payload.first().ok_or(RtpError::Truncated {
            expected: 1,
            actual: 0,
        })?;
        let header = Self {
            continues: byte & 0x80 != 0,
            to_be_continued: byte & 0x40 != 0,
            elements: (byte >> 4) & 3,
            starts_sequence: byte & 0x08 != 0,
        };
        if header.continues && header.starts_sequence {
            return Err(RtpError::Invalid("aggregation header"));
        }
        Ok(header)
    }

    /// Returns the elements: whole OBUs, or the parts of the first and last that are in this
    /// payload. A malformed element ends them.
    pub fn elements<'a>(&self, payload: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        let (count, mut rest) = (self.elements, payload.get(1..).unwrap_or_default());
        let mut index = 0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            index = if count == 0 { 0 } else { index + 1 };
            let len = if count > 0 && index == count {
                rest.len()
            } else {
                usize::try_from(read_leb128(&mut rest)?).ok()?
            };
            let (element, after) = rest.split_at_checked(len)?;
            rest = after;
            Some(element)
        })
    }

    /// Returns the types of the OBUs that start in this payload.
    pub fn obu_types<'a>(&self, payload: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        let begun = self.elements(payload).skip(usize::from(self.continues));
        begun.filter_map(|obu| Some((obu.first()? >> 3) & 0x0f))
    }

    /// Returns whether a decoder can start with this payload: it starts a coded video sequence, or
    /// has a sequence header, which only keyframes have.
    pub fn is_keyframe(&self, payload: &[u8]) -> bool {
        self.starts_sequence || self.obu_types(payload).any(|kind| kind == SEQUENCE_HEADER)
    }
}

/// Reads at most eight bytes.
pub(crate) fn read_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..56).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Appends `value` in as few bytes as possible.
pub(crate) fn write_leb128(mut value: usize, to: &mut Vec<u8>) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;
    use proptest::prelude::*;

    fn types(payload: &[u8]) -> Vec<u8> {
        Av1::parse(payload).unwrap().obu_types(payload).collect()
    }

    fn is_keyframe(payload: &[u8]) -> bool {
        Av1::parse(payload).unwrap().is_keyframe(payload)
    }

    #[test]
    fn elements_with_and_without_lengths() {
        // A sequence header (3 bytes), then a frame to the end; the same with both lengths.
        assert_eq!(types(&[0x20, 3, 0x08, 0, 0, 0x30, 1]), [1, 6]);
        assert_eq!(types(&[0x00, 3, 0x08, 0, 0, 2, 0x30, 1]), [1, 6]);
        assert_eq!(types(&[0x10, 0x30, 1]), [6]);
        assert!(is_keyframe(&[0x20, 3, 0x08, 0, 0, 0x30, 1]));
        assert!(!is_keyframe(&[0x10, 0x30, 1]));
    }

    #[test]
    fn a_continued_element_is_not_looked_at() {
        assert_eq!(types(&[0xa0, 1, 0x08, 0x30]), [6]);
        assert!(!is_keyframe(&[0x90, 0x08]));
        assert!(Av1::parse(&[0x88]).is_err());
        assert!(Av1::parse(&[]).is_err());
    }

    #[test]
    fn the_first_packet_of_a_sequence_is_a_keyframe() {
        assert!(is_keyframe(&[0x18, 0x10]));
        assert!(is_keyframe(&[0x08]));
    }

    #[test]
    fn lengths_that_lead_nowhere() {
        assert_eq!(types(&[0x00, 0x80, 0x80]).len(), 0);
        assert_eq!(types(&[0x00, 9, 0x08]).len(), 0);
        assert_eq!(
            types(&[0, 255, 255, 255, 255, 255, 255, 255, 255, 255]).len(),
            0
        );
        assert_eq!(types(&[0x00, 0, 1, 0x30]), [6]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(header) = Av1::parse(&payload) {
                prop_assert!(header.elements(&payload).count() <= payload.len());
            }
        }
    }
}
