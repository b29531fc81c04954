//! What an Opus packet and its header say about themselves.

use super::Nanos;

/// How long a packet plays (RFC 6716 section 3.1). Nothing if it is malformed or longer than 120 ms.
pub(super) fn packet_duration(packet: &[u8]) -> Option<Nanos> {
    let toc = *packet.first()?;
    let (config, code) = (toc >> 3, toc & 3);
    // In microseconds.
    let frame = match config {
        0..=11 => [10_000, 20_000, 40_000, 60_000].get(usize::from(config % 4)),
        12..=15 => [10_000, 20_000].get(usize::from(config % 2)),
        _ => [2_500, 5_000, 10_000, 20_000].get(usize::from(config % 4)),
    }?;
    let frames = match code {
        0 => 1,
        1 | 2 => 2,
        _ => i64::from(packet.get(1)? & 0x3f),
    };
    let micros = frame * frames;
    (1..=120_000)
        .contains(&micros)
        .then_some(micros.saturating_mul(1_000))
}

/// The number of channels that an identification header names, if it is one (RFC 7845 section 5.1).
pub(super) fn channels_of_head(head: &[u8]) -> Option<u8> {
    let rest = head.strip_prefix(b"OpusHead")?;
    // Version, then channels; the fixed part is 19 bytes.
    (head.len() >= 19).then_some(())?;
    rest.get(1).copied().filter(|channels| *channels > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn durations() {
        for (packet, micros) in [
            (&[0xfc, 1][..], 20_000),
            (&[0x80], 2_500),
            (&[0x18], 60_000),
            (&[0x79], 40_000),
            (&[0xfb, 3], 60_000),
        ] {
            assert_eq!(packet_duration(packet), Some(micros * 1_000), "{packet:?}");
        }
        for packet in [&[][..], &[0xff], &[0xff, 0], &[0x1b, 3]] {
            assert_eq!(packet_duration(packet), None, "{packet:?}");
        }
    }

    #[test]
    fn heads() {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
        assert_eq!(channels_of_head(head), Some(2));
        assert_eq!(channels_of_head(&head[..18]), None);
        assert_eq!(
            channels_of_head(b"OpusTags\x01\x02\x38\x01\x80\xbb\0\0\0\0\0"),
            None
        );
    }
}
