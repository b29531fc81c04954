//! Control messages (cmsg(3)) in a fixed, aligned buffer.

use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::address::unmap;

/// Space for the control messages of one datagram: packet info, a segment size and a timestamp.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct ControlBuffer([u8; 96]);

impl ControlBuffer {
    pub(crate) const fn new() -> Self {
        Self([0; 96])
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    pub(crate) const fn capacity() -> usize {
        mem::size_of::<ControlBuffer>()
    }

    /// Writes the source address to send from, if any, and the segment size, above 0. Returns the
    /// length.
    pub(crate) fn encode(&mut self, source: Option<IpAddr>, dual: bool, segment: u16) -> usize {
        let mut writer = Writer {
            buffer: &mut self.0,
            at: 0,
        };
        match source {
            None => {}
            Some(IpAddr::V4(ip)) if !dual => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(ip.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                writer.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            Some(IpAddr::V4(ip)) => writer.push_v6(ip.to_ipv6_mapped()),
            Some(IpAddr::V6(ip)) => writer.push_v6(ip),
        }
        if segment > 0 {
            writer.push(libc::SOL_UDP, libc::UDP_SEGMENT, segment);
        }
        writer.at
    }

    /// Reads the first `len` bytes.
    pub(crate) fn decode(&self, len: usize) -> Facts {
        let mut facts = Facts::default();
        let mut rest = self.0.get(..len).unwrap_or_default();
        while let Some((message, next)) = Message::split(rest) {
            let data = message.data;
            match (message.level, message.kind) {
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    facts.local = first::<16>(data).map(|ip| unmap(Ipv6Addr::from(ip)));
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let spec_dst = data.get(4..).and_then(first::<4>);
                    facts.local = spec_dst.map(|ip| IpAddr::V4(Ipv4Addr::from(ip)));
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    facts.segment =
                        first::<4>(data).and_then(|s| u16::try_from(i32::from_ne_bytes(s)).ok());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => facts.at = time(data),
                _ => {}
            }
            rest = next;
        }
        facts
    }
}

/// The kernel's information on a datagram.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The destination address.
    pub(crate) local: Option<IpAddr>,
    /// The size of the joined datagrams.
    pub(crate) segment: Option<u16>,
    /// The arrival time, since 1970.
    pub(crate) at: Option<Duration>,
}

fn time(data: &[u8]) -> Option<Duration> {
    let seconds = i64::from_ne_bytes(first(data)?);
    let nanoseconds = i64::from_ne_bytes(data.get(8..).and_then(first)?);
    let seconds = u64::try_from(seconds).ok()?;
    let nanoseconds = u32::try_from(nanoseconds).ok();
    Some(Duration::new(
        seconds,
        nanoseconds.filter(|ns| *ns < 1_000_000_000)?,
    ))
}

const HEADER: usize = mem::size_of::<libc::cmsghdr>();
const ALIGN: usize = mem::align_of::<libc::cmsghdr>();

fn first<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk::<N>().copied()
}

/// A control message.
struct Message<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
}

impl<'a> Message<'a> {
    /// Splits the first message off.
    #[inline]
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let len = usize::from_ne_bytes(first(bytes)?);
        let message = Message {
            level: i32::from_ne_bytes(bytes.get(8..).and_then(first)?),
            kind: i32::from_ne_bytes(bytes.get(12..).and_then(first)?),
            data: bytes.get(HEADER..len)?,
        };
        let next = len.checked_next_multiple_of(ALIGN)?;
        Some((message, bytes.get(next..).unwrap_or_default()))
    }
}

struct Writer<'a> {
    buffer: &'a mut [u8; 96],
    at: usize,
}

impl Writer<'_> {
    fn push_v6(&mut self, ip: Ipv6Addr) {
        let info = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr {
                s6_addr: ip.octets(),
            },
            ipi6_ifindex: 0,
        };
        self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
    }

    fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        let size = mem::size_of::<T>();
        let space = (HEADER + size).next_multiple_of(ALIGN);
        assert!(
            self.at + space <= self.buffer.len(),
            "control buffer too small"
        );
        let header = libc::cmsghdr {
            cmsg_len: HEADER + size,
            cmsg_level: level,
            cmsg_type: kind,
        };
        // SAFETY: the assertion above leaves room for header and value at `at`, and unaligned
        // writes of plain integers into bytes are always valid.
        unsafe {
            let start = self.buffer.as_mut_ptr().add(self.at);
            start.cast::<libc::cmsghdr>().write_unaligned(header);
            start.add(HEADER).cast::<T>().write_unaligned(value);
        }
        self.at += space;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn packet_info_survives_the_round_trip() {
        for (ip, dual) in [
            ("192.0.2.1", true),
            ("192.0.2.1", false),
            ("2001:db8::2", true),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let mut buffer = ControlBuffer::new();
            let len = buffer.encode(Some(ip), dual, 1200);
            assert_eq!(buffer.decode(len).local, Some(ip));
        }
        assert_eq!(ControlBuffer::new().encode(None, false, 0), 0);
    }

    #[test]
    fn nonsense_lengths_end_the_walk() {
        for byte in [0, 1, 16, 0xff] {
            let buffer = ControlBuffer([byte; 96]);
            assert_eq!(buffer.decode(96), Facts::default());
            assert_eq!(buffer.decode(1_000), Facts::default());
        }
    }
}
