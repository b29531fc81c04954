//! What all packets share: the first four bytes, padding, and how a packet is written.

use crate::{RtpError, Ssrc};

const PREFIX_LEN: usize = 4;

/// A packet as framed: padding removed, content not looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub packet_type: u8,
    /// Count of reports or sources, or the format of a feedback message.
    pub count: u8,
    /// What follows the first four bytes.
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

    /// The body's first `N` bytes and what follows them.
    pub fn split_body<const N: usize>(&self) -> Result<(&'a [u8; N], &'a [u8]), RtpError> {
        let error = RtpError::Truncated {
            expected: N,
            actual: self.body.len(),
        };
        self.body.split_first_chunk().ok_or(error)
    }

    /// The two sources that a feedback message starts with: its sender and the media's
    /// (RFC 4585 section 6.1), and what follows them.
    pub fn feedback(&self) -> Result<(Ssrc, Ssrc, &'a [u8]), RtpError> {
        let (&[s0, s1, s2, s3, m0, m1, m2, m3], control) = self.split_body()?;
        let sender = Ssrc(u32::from_be_bytes([s0, s1, s2, s3]));
        Ok((sender, Ssrc(u32::from_be_bytes([m0, m1, m2, m3])), control))
    }
}

/// A packet to be sent.
pub trait WritePacket {
    /// Bytes that the packet takes.
    fn size(&self) -> usize;

    /// Writes the packet at the start of `out` and returns its size.
    fn write_into(&self, out: &mut [u8]) -> Result<usize, RtpError>;
}

/// What a writer knows of its packet; the frame around it is written here.
pub(super) trait Body {
    const PACKET_TYPE: u8;

    /// Count of reports or sources (at most 31), or the format of a feedback message.
    fn count(&self) -> usize;

    /// Bytes after the first four: a multiple of four.
    fn len(&self) -> usize;

    /// Writes into `out`, which has [`Self::len`] bytes; none if they do not suffice.
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

/// The bytes of a body that are not written yet.
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

    /// Zeroes what is left.
    pub fn pad(self) -> Option<()> {
        self.0.fill(0);
        Some(())
    }
}

/// Puts packets behind each other into one datagram.
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

    /// Appends `packet`. If it does not fit, what was written before stays as it is.
    pub fn push(&mut self, packet: &impl WritePacket) -> Result<(), RtpError> {
        self.len += packet.write_into(self.out.get_mut(self.len..).unwrap_or_default())?;
        Ok(())
    }

    /// Bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes still free.
    pub fn room(&self) -> usize {
        self.out.len().saturating_sub(self.len)
    }

    /// The datagram as far as it is written.
    pub fn as_bytes(&self) -> &[u8] {
        self.out.get(..self.len).unwrap_or_default()
    }
}
