//! The RTP header (RFC 3550 section 5.1): parsed once into offsets, edited in place, written.

mod template;
mod writer;

use std::ops::Range;

use crate::extension::{ExtensionForm, Extensions};
use crate::{Pt, RtpError, Ssrc};

pub use template::HeaderTemplate;
pub use writer::{Fields, write_header};

/// The bytes of the fixed part of the header.
pub const FIXED_HEADER_LEN: usize = 12;

/// The fields of a packet's header, and the places of its parts.
///
/// It is small, `Copy` and borrows nothing: parse a packet once and pass this on with the bytes.
/// The accessors that take the packet return nothing for a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The marker bit: the last packet of a video frame, the first of a talk spurt.
    pub marker: bool,
    /// The payload type.
    pub pt: Pt,
    /// The sequence number on the wire.
    pub sequence: u16,
    /// The timestamp in units of the codec's clock rate.
    pub timestamp: u32,
    /// The synchronisation source.
    pub ssrc: Ssrc,
    padding: bool,
    csrc_count: u8,
    extension_profile: u16,
    extension_start: u16,
    payload_start: u16,
    payload_end: u16,
}

impl Header {
    /// Parses a decrypted packet and removes its padding from the payload's range.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self, RtpError> {
        Self::parse_encrypted(packet)?.decrypted(packet)
    }

    /// Completes [`Self::parse_encrypted`]: `packet` is the same packet decrypted, without its
    /// authentication tag. Removes its padding from the payload's range.
    #[inline]
    pub fn decrypted(mut self, packet: &[u8]) -> Result<Self, RtpError> {
        let actual = packet.len();
        self.payload_end = u16::try_from(actual).map_err(|_| RtpError::TooLong { actual })?;
        let Some(room) = self.payload_end.checked_sub(self.payload_start) else {
            return Err(RtpError::Truncated {
                expected: self.header_len(),
                actual,
            });
        };
        if self.padding {
            let padding = packet.last().copied().filter(|_| room > 0).unwrap_or(0);
            if padding == 0 || u16::from(padding) > room {
                let room = usize::from(room);
                return Err(RtpError::Padding { padding, room });
            }
            self.payload_end -= u16::from(padding);
        }
        Ok(self)
    }

    /// Parses a packet whose payload is still encrypted. The payload's range reaches to the end of
    /// the packet and includes padding and authentication tag.
    #[inline]
    pub fn parse_encrypted(packet: &[u8]) -> Result<Self, RtpError> {
        let actual = packet.len();
        let payload_end = u16::try_from(actual).map_err(|_| RtpError::TooLong { actual })?;
        let Some((fixed, rest)) = packet.split_first_chunk::<FIXED_HEADER_LEN>() else {
            return Err(RtpError::Truncated {
                expected: FIXED_HEADER_LEN,
                actual,
            });
        };
        let [first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3] = *fixed;
        if first >> 6 != 2 {
            return Err(RtpError::Version(first >> 6));
        }
        let csrc_count = first & 0x0f;
        let csrc_len = usize::from(csrc_count) * 4;
        let mut header_len = FIXED_HEADER_LEN + csrc_len;
        let mut extension_profile = 0;
        let mut extension_start = header_len;
        if first & 0x10 != 0 {
            let prefix = rest
                .get(csrc_len..)
                .and_then(|bytes| bytes.first_chunk::<4>());
            let Some(&[p0, p1, l0, l1]) = prefix else {
                return Err(RtpError::Truncated {
                    expected: header_len + 4,
                    actual,
                });
            };
            extension_profile = u16::from_be_bytes([p0, p1]);
            extension_start = header_len + 4;
            header_len = extension_start + usize::from(u16::from_be_bytes([l0, l1])) * 4;
        }
        if header_len > actual {
            return Err(RtpError::Truncated {
                expected: header_len,
                actual,
            });
        }
        Ok(Self {
            marker: second & 0x80 != 0,
            pt: Pt(second & 0x7f),
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: Ssrc(u32::from_be_bytes([i0, i1, i2, i3])),
            padding: first & 0x20 != 0,
            csrc_count,
            extension_profile,
            // Both are at most `actual`, which fits.
            extension_start: extension_start as u16,
            payload_start: header_len as u16,
            payload_end,
        })
    }

    /// Returns the bytes before the payload: fixed part, contributing sources and extensions.
    pub fn header_len(&self) -> usize {
        usize::from(self.payload_start)
    }

    /// Returns the range of the payload in the packet.
    pub fn payload_range(&self) -> Range<usize> {
        usize::from(self.payload_start)..usize::from(self.payload_end)
    }

    /// Returns the payload, without padding if a decrypted packet was parsed.
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.payload_range()).unwrap_or_default()
    }

    /// Returns the payload for editing in place.
    pub fn payload_mut<'a>(&self, packet: &'a mut [u8]) -> &'a mut [u8] {
        packet.get_mut(self.payload_range()).unwrap_or_default()
    }

    /// Returns whether the padding bit is set.
    pub fn has_padding(&self) -> bool {
        self.padding
    }

    /// Returns the contributing sources in order (at most 15).
    pub fn csrcs<'a>(&self, packet: &'a [u8]) -> impl Iterator<Item = Ssrc> + 'a {
        let end = FIXED_HEADER_LEN + usize::from(self.csrc_count) * 4;
        let (csrcs, _) = packet
            .get(FIXED_HEADER_LEN..end)
            .unwrap_or_default()
            .as_chunks::<4>();
        csrcs.iter().map(|bytes| Ssrc(u32::from_be_bytes(*bytes)))
    }

    /// Returns the 16 bits "defined by profile" of the header extension, or 0 without one.
    pub fn extension_profile(&self) -> u16 {
        self.extension_profile
    }

    /// Returns the range of the header extension's elements. Empty without any.
    pub fn extension_range(&self) -> Range<usize> {
        let start = usize::from(self.extension_start);
        // Without an extension, both are the end of the contributing sources.
        start..usize::from(self.payload_start)
    }

    /// Returns the header extension's elements in order (RFC 8285). Empty for other profiles.
    pub fn extensions<'a>(&self, packet: &'a [u8]) -> Extensions<'a> {
        match ExtensionForm::from_profile(self.extension_profile) {
            Some(form) => {
                Extensions::new(form, packet.get(self.extension_range()).unwrap_or_default())
            }
            None => Extensions::default(),
        }
    }

    /// Returns the value of the first element with this id.
    pub fn extension<'a>(&self, packet: &'a [u8], id: u8) -> Option<&'a [u8]> {
        self.extensions(packet)
            .find(|(i, _)| *i == id)
            .map(|(_, value)| value)
    }

    /// Returns the value of the first element with this id, for editing in place.
    pub fn extension_mut<'a>(&self, packet: &'a mut [u8], id: u8) -> Option<&'a mut [u8]> {
        let form = ExtensionForm::from_profile(self.extension_profile)?;
        let elements = packet.get_mut(self.extension_range())?;
        let mut walk = Extensions::new(form, elements);
        let len = walk.find(|(i, _)| *i == id)?.1.len();
        let end = elements.len().checked_sub(walk.remaining())?;
        elements.get_mut(end.checked_sub(len)?..end)
    }
}

/// Sets the marker bit in the packet.
pub fn set_marker(packet: &mut [u8], marker: bool) {
    if let Some(byte) = packet.get_mut(1) {
        *byte = (*byte & 0x7f) | (u8::from(marker) << 7);
    }
}

/// Sets the payload type (its low 7 bits) in the packet.
pub fn set_pt(packet: &mut [u8], pt: Pt) {
    if let Some(byte) = packet.get_mut(1) {
        *byte = (*byte & 0x80) | (pt.0 & 0x7f);
    }
}

/// Sets the sequence number in the packet.
pub fn set_sequence(packet: &mut [u8], sequence: u16) {
    if let Some(bytes) = packet.get_mut(2..4) {
        bytes.copy_from_slice(&sequence.to_be_bytes());
    }
}

/// Sets the timestamp in the packet.
pub fn set_timestamp(packet: &mut [u8], timestamp: u32) {
    if let Some(bytes) = packet.get_mut(4..8) {
        bytes.copy_from_slice(&timestamp.to_be_bytes());
    }
}

/// Sets the synchronisation source in the packet.
pub fn set_ssrc(packet: &mut [u8], ssrc: Ssrc) {
    if let Some(bytes) = packet.get_mut(8..12) {
        bytes.copy_from_slice(&ssrc.0.to_be_bytes());
    }
}

/// Fills `tail`, the end of a packet, with padding and its count (1 to 255 bytes; RFC 3550 section
/// 5.1). The header has to be written with [`Fields::padding`] set.
pub fn write_padding(tail: &mut [u8]) -> Result<(), RtpError> {
    let count = u8::try_from(tail.len()).map_err(|_| RtpError::OutOfRange("padding"))?;
    tail.fill(0);
    *tail.last_mut().ok_or(RtpError::OutOfRange("padding"))? = count;
    Ok(())
}

#[cfg(test)]
mod tests;
