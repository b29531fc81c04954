//! The common parts of all packets: the first four bytes, padding, and writing.

use crate::{RtpError, Ssrc};

const PREFIX_LEN: usize = 4;

/// A packet without padding, whose content has not been parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub packet_type: u8,
    /// The count of reports or sources, or the format of a feedback message.
    pub count: u8,
    /// The bytes after the first four.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Splits the first packet off `bytes`.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), RtpError> {
        let actual = bytes.len();
        let Some((&[first, packet_type, l0, l1], after)) = bytes.split_first_chunk() else {
            return Err(RtpError::Truncated {
                expected: PREFIX_LEN,
                actual,
            });
        };
        if first >> 6 != 2 {
            return Err(RtpError::Version(first >> 6));
        }
        let len = usize::from(u16::from_be_bytes([l0, l1])) * 4;
        let Some((mut body, rest)) = after.split_at_checked(len) else {
            return Err(RtpError::Truncated {
                expected: PREFIX_LEN + len,
                actual,
            });
        };
        if first & 0x20 != 0 {
            let padding = body.last().copied().unwrap_or(0);
            let error = RtpError::Padding { padding, room: len };
            let unpadded = len
                .checked_sub(usize::from(padding))
                .filter(|_| padding > 0);
            body = body.get(..unpadded.ok_or(error)?).ok_or(error)?;
        }
        Ok((
            Self {
                packet_type,
                count: first & 0x1f,
                body,
            },
            rest,
        ))
    }

    /// Returns the body's first `N` bytes and the rest.
    pub fn split_body<const N: usize>(&self) -> Result<(&'a [u8; N], &'a [u8]), RtpError> {
        let error = RtpError::Truncated {
            expected: N,
            actual: self.body.len(),
        };
        self.body.split_first_chunk().ok_or(error)
    }

    /// Reads the fields that all feedback messages have (RFC 4585 section 6.1).
    pub fn feedback(&self) -> Result<FeedbackFields<'a>, RtpError> {
        let (&[s0, s1, s2, s3, m0, m1, m2, m3], control) = self.split_body()?;
        Ok(FeedbackFields {
            sender: Ssrc(u32::from_be_bytes([s0, s1, s2, s3])),
            media: Ssrc(u32::from_be_bytes([m0, m1, m2, m3])),
            control,
        })
    }
}

/// The fields of a feedback message.
#[derive(Debug, Clone, Copy)]
pub struct FeedbackFields<'a> {
    /// The sender of the message.
    pub sender: Ssrc,
    /// The media source that it is about.
    pub media: Ssrc,
    /// The feedback control information.
    pub control: &'a [u8],
}

/// A packet that can be written.
pub trait WritePacket {
    /// Returns the bytes of the packet.
    fn size(&self) -> usize;

    /// Writes the packet at the start of `out`. Returns its size.
    fn write_into(&self, out: &mut [u8]) -> Result<usize, RtpError>;
}

/// The content of a packet. The frame around it is written here.
pub(super) trait Body {
    const PACKET_TYPE: u8;

    /// Returns the count of reports or sources (at most 31), or the format of a feedback message.
    fn count(&self) -> usize;

    /// Returns the bytes after the first four: a multiple of four.
    fn len(&self) -> usize;

    /// Writes into `out`, which has [`Self::len`] bytes. Returns `None` if they do not suffice.
    fn write(&self, out: Out<'_>) -> Option<()>;
}

impl<T: Body> WritePacket for T {
    fn size(&self) -> usize {
        PREFIX_LEN + self.len()
    }

    fn write_into(&self, out: &mut [u8]) -> Result<usize, RtpError> {
        let (size, available) = (self.size(), out.len());
        let no_room = RtpError::NoRoom {
            needed: size,
            available,
        };
        let Ok(count @ 0..=31) = u8::try_from(self.count()) else {
            return Err(RtpError::OutOfRange("count"));
        };
        let words = u16::try_from(self.len() / 4).map_err(|_| RtpError::OutOfRange("length"))?;
        let [l0, l1] = words.to_be_bytes();
        let packet = out.get_mut(..size).ok_or(no_room)?;
        let (prefix, body) = packet.split_first_chunk_mut().ok_or(no_room)?;
        *prefix = [0x80 | count, T::PACKET_TYPE, l0, l1];
        self.write(Out(body)).ok_or(no_room)?;
        Ok(size)
    }
}

/// The unwritten bytes of a body.
pub(super) struct Out<'a>(&'a mut [u8]);

impl Out<'_> {
    pub fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.0.split_off_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(())
    }

    pub fn put_u16(&mut self, value: u16) -> Option<()> {
        self.put(&value.to_be_bytes())
    }

    pub fn put_u32(&mut self, value: u32) -> Option<()> {
        self.put(&value.to_be_bytes())
    }

    pub fn put_ssrc(&mut self, ssrc: Ssrc) -> Option<()> {
        self.put_u32(ssrc.0)
    }

    /// Zeroes the rest.
    pub fn pad(self) -> Option<()> {
        self.0.fill(0);
        Some(())
    }
}

/// Joins packets in one datagram.
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> CompoundWriter<'a> {
    /// Writes from the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// Appends `packet`. If it does not fit, the packets before stay.
    pub fn push(&mut self, packet: &impl WritePacket) -> Result<(), RtpError> {
        self.len += packet.write_into(self.out.get_mut(self.len..).unwrap_or_default())?;
        Ok(())
    }

    /// Returns the bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes free.
    pub fn room(&self) -> usize {
        self.out.len().saturating_sub(self.len)
    }

    /// Returns the datagram as far as it is written.
    pub fn as_bytes(&self) -> &[u8] {
        self.out.get(..self.len).unwrap_or_default()
    }
}
