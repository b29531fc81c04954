//! What an Opus packet says about itself (RFC 6716 section 3.1).

use super::OpusTime;

/// The longest that a packet plays.
pub(super) const MAX_DURATION: OpusTime = OpusTime(5_760);

/// How long a packet plays. Nothing if it is malformed or longer than 120 ms.
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

/// The first byte of a packet: the mode and the length of its frames, its channels, and how many frames there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Toc(pub u8);

impl Toc {
    /// How long each frame is.
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

    /// The shortest frames of 10 ms or less in the same mode and bandwidth.
    pub(super) fn briefest(self) -> Toc {
        let config = self.0 >> 3;
        let config = match config {
            12..=15 => config & !1,
            _ => config & !3,
        };
        Toc(config << 3 | self.0 & 0b100)
    }

    /// Frames of this kind, in a packet that says how many there are, all of the same length in bytes.
    pub(super) fn of_many(self) -> Toc {
        Toc(self.0 | 3)
    }

    /// Frames of 20 ms (or 2.5 ms) of full bandwidth in CELT mode, with the same channels.
    pub(super) fn celt(self, length: CeltFrame) -> Toc {
        let config = match length {
            CeltFrame::Short => 28,
            CeltFrame::Long => 31,
        };
        Toc(config << 3 | self.0 & 0b100)
    }
}

/// Lengths of frames in CELT mode.
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
