//! Control messages (cmsg(3)) in a fixed, aligned buffer.

use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::unmap;

/// Space for the control messages of one datagram: packet info and a segment size.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct ControlBuffer([u8; 96]);

impl ControlBuffer {
    pub(super) const fn new() -> Self {
        Self([0; 96])
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    pub(super) const fn capacity() -> usize {
        mem::size_of::<ControlBuffer>()
    }

    /// Writes the source address to send from and, above 0, the segment size. Returns the length.
    pub(super) fn encode(&mut self, source: IpAddr, dual: bool, segment: u16) -> usize {
        let mut writer = Writer {
            buffer: &mut self.0,
            at: 0,
        };
        match source {
            IpAddr::V4(ip) if !dual => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(ip.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                writer.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V4(ip) => writer.push_v6(ip.to_ipv6_mapped()),
            IpAddr::V6(ip) => writer.push_v6(ip),
        }
        if segment > 0 {
            writer.push(libc::SOL_UDP, libc::UDP_SEGMENT, segment);
        }
        writer.at
    }

    /// Reads the address that a datagram came to, and the segment size if the kernel joined several.
    pub(super) fn decode(&self, len: usize) -> (Option<IpAddr>, Option<u16>) {
        let (mut local, mut segment) = (None, None);
        let mut rest = self.0.get(..len).unwrap_or_default();
        while let Some((level, kind, data, next)) = split(rest) {
            match (level, kind) {
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    local = first::<16>(data).map(|ip| unmap(Ipv6Addr::from(ip)));
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let spec_dst = data.get(4..).and_then(first::<4>);
                    local = spec_dst.map(|ip| IpAddr::V4(Ipv4Addr::from(ip)));
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    segment =
                        first::<4>(data).and_then(|s| u16::try_from(i32::from_ne_bytes(s)).ok());
                }
                _ => {}
            }
            rest = next;
        }
        (local, segment)
    }
}

const HEADER: usize = mem::size_of::<libc::cmsghdr>();
const ALIGN: usize = mem::align_of::<libc::cmsghdr>();

fn first<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk::<N>().copied()
}

/// Splits the first message off: its level, type and data, and what follows.
fn split(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(first(bytes)?);
    let level = i32::from_ne_bytes(bytes.get(8..).and_then(first)?);
    let kind = i32::from_ne_bytes(bytes.get(12..).and_then(first)?);
    let data = bytes.get(HEADER..len)?;
    let next = bytes.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
    Some((level, kind, data, next))
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
        // SAFETY: the assertion above leaves room for header and value at `at`, and unaligned writes
        // of plain integers into bytes are always valid.
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
    #![allow(clippy::unwrap_used)]
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
            let len = buffer.encode(ip, dual, 1200);
            assert_eq!(buffer.decode(len).0, Some(ip));
        }
    }

    #[test]
    fn nonsense_lengths_end_the_walk() {
        let mut buffer = ControlBuffer::new();
        buffer.0 = [0xff; 96];
        assert_eq!(buffer.decode(96), (None, None));
        buffer.0 = [0; 96];
        assert_eq!(buffer.decode(96), (None, None));
    }
}
