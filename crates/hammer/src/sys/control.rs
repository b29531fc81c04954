//! Control messages (cmsg(3)) in a fixed, aligned buffer.

use std::mem;
use std::time::Duration;

/// Room for the control messages of one datagram.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(super) struct ControlBuffer([u8; 64]);

const HEADER: usize = mem::size_of::<libc::cmsghdr>();
const ALIGN: usize = mem::align_of::<libc::cmsghdr>();

/// What the kernel says of a datagram.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The size of the datagrams that were joined.
    pub(super) segment: Option<usize>,
    /// When it came, since 1970.
    pub(super) at: Option<Duration>,
}

impl ControlBuffer {
    pub(super) const EMPTY: Self = Self([0; 64]);
    pub(super) const BYTES: usize = mem::size_of::<Self>();

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Asks for segments of `segment` bytes; returns the length.
    pub(super) fn segment(&mut self, segment: u16) -> usize {
        const LEN: usize = HEADER + mem::size_of::<u16>();
        let header = libc::cmsghdr {
            cmsg_len: LEN,
            cmsg_level: libc::SOL_UDP,
            cmsg_type: libc::UDP_SEGMENT,
        };
        const { assert!(LEN <= Self::BYTES) };
        // SAFETY: the assertion above leaves room for both, and unaligned writes of plain integers into
        // bytes are always valid.
        unsafe {
            let start = self.0.as_mut_ptr();
            start.cast::<libc::cmsghdr>().write_unaligned(header);
            start.add(HEADER).cast::<u16>().write_unaligned(segment);
        }
        LEN.next_multiple_of(ALIGN)
    }

    /// Reads the first `len` bytes.
    pub(super) fn facts(&self, len: usize) -> Facts {
        let mut facts = Facts::default();
        let mut rest = self.0.get(..len).unwrap_or_default();
        while let Some((level, kind, data, next)) = split(rest) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let segment = first(data).map(i32::from_ne_bytes);
                    facts.segment = segment.and_then(|bytes| usize::try_from(bytes).ok());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => facts.at = time(data),
                _ => {}
            }
            rest = next;
        }
        facts
    }
}

fn time(data: &[u8]) -> Option<Duration> {
    let seconds = i64::from_ne_bytes(first(data)?);
    let nanoseconds = i64::from_ne_bytes(data.get(8..).and_then(first)?);
    let seconds = u64::try_from(seconds).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanoseconds).ok()?))
}

fn first<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk::<N>().copied()
}

/// Splits the first message off: its level, type and data, and what follows.
fn split(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(first(bytes)?);
    let level = i32::from_ne_bytes(bytes.get(8..).and_then(first)?);
    let kind = i32::from_ne_bytes(bytes.get(12..).and_then(first)?);
    let data = bytes.get(HEADER..len)?;
    let next = len.checked_next_multiple_of(ALIGN)?;
    Some((level, kind, data, bytes.get(next..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_lengths_end_the_walk() {
        for byte in [0, 1, 16, 255] {
            let buffer = ControlBuffer([byte; 64]);
            assert_eq!(buffer.facts(64), Facts::default());
            assert_eq!(buffer.facts(1_000), Facts::default());
        }
    }
}
