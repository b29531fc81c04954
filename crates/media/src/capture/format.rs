//! The format of packets in a capture file: pcap, or text for text2pcap.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use portunus_rtc::Direction;

use super::CaptureFormat;
use super::observer::Captured;

/// The first bytes of a pcap file with times in microseconds, in the byte order of the file.
const MAGIC: u32 = 0xa1b2_c3d4;
/// Version 2.4.
const VERSION: [u16; 2] = [2, 4];
/// The maximum length of a packet.
const SNAP_LENGTH: u32 = 65_535;
/// Packets start with an IP header (LINKTYPE_RAW).
const RAW_IP: u32 = 101;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const HOP_LIMIT: u8 = 64;

/// Writes the header of a file.
pub(super) fn begin(format: CaptureFormat, out: &mut Vec<u8>) {
    match format {
        CaptureFormat::Text2pcap => {}
        CaptureFormat::Pcap => {
            out.extend(MAGIC.to_le_bytes());
            out.extend(VERSION.into_iter().flat_map(u16::to_le_bytes));
            // Times are UTC, of unstated accuracy.
            out.extend([0; 8]);
            out.extend(SNAP_LENGTH.to_le_bytes());
            out.extend(RAW_IP.to_le_bytes());
        }
    }
}

/// Writes a packet.
pub(super) fn packet(format: CaptureFormat, captured: &Captured, out: &mut Vec<u8>) {
    match format {
        CaptureFormat::Pcap => pcap(captured, out),
        CaptureFormat::Text2pcap => text(captured, out),
    }
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn pcap(captured: &Captured, out: &mut Vec<u8>) {
    let path = captured.path;
    let (from, to) = match captured.direction {
        Direction::Incoming => (path.remote, path.local),
        Direction::Outgoing => (path.local, path.remote),
    };
    let head = match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => IPV4_HEADER,
        _ => IPV6_HEADER,
    };
    let around = head + UDP_HEADER;
    let length = |bytes: usize| u32::try_from(bytes.saturating_add(around)).unwrap_or(u32::MAX);
    let at = since_epoch(captured.at);
    let (kept, whole) = (length(captured.bytes.len()), length(captured.len));
    for word in [at.as_secs() as u32, at.subsec_micros(), kept, whole] {
        out.extend(word.to_le_bytes());
    }
    let datagram = captured.len.saturating_add(UDP_HEADER);
    let datagram = u16::try_from(datagram).unwrap_or(u16::MAX);
    match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = [0; IPV4_HEADER];
            let total = datagram.saturating_add(IPV4_HEADER as u16).to_be_bytes();
            let [
                version,
                _,
                t0,
                t1,
                ..,
                ttl,
                protocol,
                _,
                _,
                s0,
                s1,
                s2,
                s3,
                d0,
                d1,
                d2,
                d3,
            ] = &mut header;
            // Version 4, a header of five words.
            (*version, *ttl, *protocol) = (0x45, HOP_LIMIT, UDP);
            [*t0, *t1] = total;
            [*s0, *s1, *s2, *s3] = source.octets();
            [*d0, *d1, *d2, *d3] = destination.octets();
            let sum = checksum(header.iter().copied()).to_be_bytes();
            let [.., c0, c1, _, _, _, _, _, _, _, _] = &mut header;
            [*c0, *c1] = sum;
            out.extend(header);
            // No checksum: IPv4 allows that.
            udp((from, to), datagram, 0, out);
        }
        (source, destination) => {
            let (source, destination) = (in_ipv6(source), in_ipv6(destination));
            out.extend([0x60, 0, 0, 0]);
            out.extend(datagram.to_be_bytes());
            out.extend([UDP, HOP_LIMIT]);
            out.extend(source.octets());
            out.extend(destination.octets());
            udp(
                (from, to),
                datagram,
                udp_checksum(captured, (source, destination), (from, to), datagram),
                out,
            );
        }
    }
    out.extend(&captured.bytes);
}

fn udp((from, to): (SocketAddr, SocketAddr), length: u16, checksum: u16, out: &mut Vec<u8>) {
    for word in [from.port(), to.port(), length, checksum] {
        out.extend(word.to_be_bytes());
    }
}

/// Returns the UDP checksum, which IPv6 requires (RFC 8200 section 8.1). It cannot be known for a
/// truncated packet.
fn udp_checksum(
    captured: &Captured,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    (from, to): (SocketAddr, SocketAddr),
    length: u16,
) -> u16 {
    let words = [length, UDP.into(), from.port(), to.port(), length];
    let addresses = source.octets().into_iter().chain(destination.octets());
    let words = words.into_iter().flat_map(u16::to_be_bytes);
    let bytes = addresses.chain(words).chain(captured.bytes.iter().copied());
    match checksum(bytes) {
        0 => u16::MAX,
        sum => sum,
    }
}

fn in_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: impl Iterator<Item = u8>) -> u16 {
    let sum: u64 = bytes
        .enumerate()
        .map(|(n, byte)| u64::from(byte) << if n % 2 == 0 { 8 } else { 0 })
        .sum();
    let mut sum = sum;
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Writes a line: direction, time of day (UTC), offset, bytes.
fn text(captured: &Captured, out: &mut Vec<u8>) {
    let direction = match captured.direction {
        Direction::Incoming => 'I',
        Direction::Outgoing => 'O',
    };
    let at = since_epoch(captured.at);
    let (seconds, micros) = (at.as_secs(), at.subsec_micros());
    let (hours, minutes, seconds) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let mut line = String::with_capacity(32 + 3 * captured.bytes.len());
    // Writing to a string cannot fail.
    let _ = write!(
        line,
        "{direction} {hours:02}:{minutes:02}:{seconds:02}.{micros:06} 000000"
    );
    for byte in &captured.bytes {
        let _ = write!(line, " {byte:02x}");
    }
    line.push('\n');
    out.extend(line.into_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use portunus_rtc::Path;

    use super::*;

    fn captured(local: &str, remote: &str, len: usize) -> Captured {
        Captured {
            at: SystemTime::UNIX_EPOCH + Duration::new(86_400 + 3_723, 45_000),
            direction: Direction::Outgoing,
            path: Path::udp(local.parse().unwrap(), remote.parse().unwrap()),
            len,
            bytes: vec![0x80, 96, 0xff].into(),
        }
    }

    fn written(format: CaptureFormat, captured: &Captured) -> Vec<u8> {
        let mut out = Vec::new();
        packet(format, captured, &mut out);
        out
    }

    #[test]
    fn a_line_of_text() {
        let line = written(
            CaptureFormat::Text2pcap,
            &captured("10.0.0.1:1", "10.0.0.2:2", 3),
        );
        assert_eq!(line, b"O 01:02:03.000045 000000 80 60 ff\n");
    }

    #[test]
    fn a_packet_between_its_real_addresses() {
        let out = written(
            CaptureFormat::Pcap,
            &captured("10.0.0.1:258", "10.0.0.2:2", 1_000),
        );
        let (record, ip) = out.split_at(16);
        assert_eq!(record[8..], [31, 0, 0, 0, 4, 4, 0, 0], "cut, of 1,028");
        assert_eq!(ip[..4], [0x45, 0, 4, 4]);
        assert_eq!(ip[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(checksum(ip[..20].iter().copied()), 0, "it checks");
        assert_eq!(ip[20..28], [1, 2, 0, 2, 3, 240, 0, 0]);
        assert_eq!(ip[28..], [0x80, 96, 0xff]);
    }

    #[test]
    fn the_checksum_of_ipv6_checks() {
        let out = written(CaptureFormat::Pcap, &captured("[::1]:1", "[::2]:2", 3));
        let (_, ip) = out.split_at(16);
        let (header, udp) = ip.split_at(40);
        assert_eq!(header[..8], [0x60, 0, 0, 0, 0, 11, 17, 64]);
        let pseudo = [0, 11, 0, 17].into_iter();
        let all = header[8..].iter().chain(udp).copied().chain(pseudo);
        // An odd number of bytes: the pseudo header stands first.
        let pseudo: Vec<u8> = header[8..].iter().copied().chain([0, 11, 0, 17]).collect();
        let in_order = pseudo.into_iter().chain(udp.iter().copied());
        assert_eq!(checksum(in_order), 0);
        assert_eq!(all.count(), 47);
    }
}
