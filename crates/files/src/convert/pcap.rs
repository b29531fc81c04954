//! Conversion of recordings to a packet capture, for tools such as Wireshark.

use std::io::Write;

use super::{ConvertError, Converted, Recordings};
use crate::mjr::Medium;

/// Packets start with an IPv4 header (LINKTYPE_IPV4 of the tcpdump project).
const LINK_TYPE: u32 = 228;
/// Times are in µs.
const MAGIC: u32 = 0xa1b2_c3d4;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// The port of the first recording. The next ones are two apart, as usual for RTP.
const FIRST_PORT: u16 = 5_004;
/// Source and destination: addresses for documentation (RFC 5737).
const FROM: [u8; 4] = [192, 0, 2, 1];
const TO: [u8; 4] = [192, 0, 2, 2];

/// Writes the RTP packets of `recordings` with their arrivals. The first recording has port 5004,
/// the second one 5006 and so on. Messages are left out.
pub fn to_pcap(
    recordings: &mut Recordings,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(f32),
) -> Result<Converted, ConvertError> {
    let media: Vec<_> = recordings.infos().map(|info| info.medium).collect();
    if media.iter().all(|medium| *medium == Medium::Data) {
        return Err(ConvertError::Nothing("audio or video"));
    }
    let started = recordings.started().0;
    let mut head = Vec::new();
    head.extend(MAGIC.to_le_bytes());
    head.extend(2_u16.to_le_bytes());
    head.extend(4_u16.to_le_bytes());
    head.extend([0; 8]);
    head.extend(u32::from(u16::MAX).to_le_bytes());
    head.extend(LINK_TYPE.to_le_bytes());
    out.write_all(&head)?;
    let mut converted = Converted {
        parts: 1,
        ..Converted::default()
    };
    let mut packet = Vec::new();
    while let Some(frame) = recordings.next()? {
        let whole = IP_HEADER + UDP_HEADER + frame.bytes.len();
        let is_data = media.get(frame.index) == Some(&Medium::Data);
        let Some(len) = u16::try_from(whole).ok().filter(|_| !is_data) else {
            continue;
        };
        let micros = u64::try_from(frame.at.as_micros()).unwrap_or(u64::MAX);
        let at = started.saturating_add(micros);
        packet.clear();
        packet.extend(((at / 1_000_000) as u32).to_le_bytes());
        packet.extend(((at % 1_000_000) as u32).to_le_bytes());
        packet.extend(u32::from(len).to_le_bytes());
        packet.extend(u32::from(len).to_le_bytes());
        packet.extend(ip_header(len));
        let port = FIRST_PORT.saturating_add(u16::try_from(frame.index * 2).unwrap_or(0));
        packet.extend(port.to_be_bytes());
        packet.extend(port.to_be_bytes());
        // Without a checksum, as IPv4 allows.
        packet.extend((len - IP_HEADER as u16).to_be_bytes());
        packet.extend([0; 2]);
        packet.extend_from_slice(frame.bytes);
        out.write_all(&packet)?;
        converted.frames += 1;
        converted.duration = frame.at;
    }
    progress(1.0);
    Ok(converted)
}

fn ip_header(len: u16) -> [u8; IP_HEADER] {
    const UDP: u8 = 17;
    let [high, low] = len.to_be_bytes();
    let [f0, f1, f2, f3] = FROM;
    let [t0, t1, t2, t3] = TO;
    let mut header = [
        0x45, 0, high, low, 0, 0, 0, 0, 64, UDP, 0, 0, f0, f1, f2, f3, t0, t1, t2, t3,
    ];
    let words = header.chunks_exact(2);
    let words = words.map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !(sum as u16);
    if let Some(place) = header.get_mut(10..12) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_with_its_checksum_is_zero() {
        let header = ip_header(1_228);
        let words = header.chunks_exact(2);
        let words = words.map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
