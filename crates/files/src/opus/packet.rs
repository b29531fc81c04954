//! The properties of an Opus packet (RFC 6716 section 3.1).

use super::OpusTime;

/// The longest duration of a packet.
pub(super) const MAX_DURATION: OpusTime = OpusTime(5_760);

/// Returns the duration of a packet, or `None` if it is malformed or longer than 120 ms.
pub fn packet_duration(packet: &[u8]) -> Option<OpusTime> {
    let toc = Toc(*packet.first()?);
    let frames = match toc.0 & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u64::from(packet.get(1)? & 0x3f),
    };
    let duration = OpusTime(toc.frame().0.saturating_mul(frames));
    (OpusTime(1)..=MAX_DURATION)
        .contains(&duration)
        .then_some(duration)
}

/// The first byte of a packet: mode, length, channels and number of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Toc(pub u8);

impl Toc {
    /// Returns the length of each frame.
    pub(super) fn frame(self) -> OpusTime {
        let config = self.0 >> 3;
        let length = usize::from(config % 4);
        let samples = match config {
            0..=11 => [480, 960, 1_920, 2_880].get(length),
            12..=15 => [480, 960].get(length % 2),
            _ => [120, 240, 480, 960].get(length),
        };
        OpusTime(samples.copied().unwrap_or(960))
    }

    /// Returns the shortest frames, of 10 ms or less, with the same mode and bandwidth.
    pub(super) fn briefest(self) -> Toc {
        let config = self.0 >> 3;
        let config = match config {
            12..=15 => config & !1,
            _ => config & !3,
        };
        Toc(config << 3 | self.0 & 0b100)
    }

    /// Returns frames of this kind, in a packet with an explicit number of frames of equal length.
    pub(super) fn of_many(self) -> Toc {
        Toc(self.0 | 3)
    }

    /// Returns frames of 20 ms or 2.5 ms of CELT mode with full bandwidth and the same channels.
    pub(super) fn celt(self, length: CeltFrame) -> Toc {
        let config = match length {
            CeltFrame::Short => 28,
            CeltFrame::Long => 31,
        };
        Toc(config << 3 | self.0 & 0b100)
    }
}

/// The lengths of frames in CELT mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CeltFrame {
    /// 2.5 ms.
    Short,
    /// 20 ms.
    Long,
}

#[cfg(test)]
mod tests {
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
            let samples = OpusTime(micros * 48 / 1_000);
            assert_eq!(packet_duration(packet), Some(samples), "{packet:?}");
        }
        for packet in [&[][..], &[0xff], &[0xff, 0], &[0x1b, 3]] {
            assert_eq!(packet_duration(packet), None, "{packet:?}");
        }
    }

    #[test]
    fn celt_keeps_the_channels() {
        let stereo = Toc(0b0100_1100);
        assert_eq!(stereo.celt(CeltFrame::Short).frame(), OpusTime(120));
        assert_eq!(stereo.celt(CeltFrame::Long), Toc(0xfc));
        assert_eq!(Toc(0).celt(CeltFrame::Long).of_many(), Toc(0xfb));
    }
}
