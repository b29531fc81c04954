//! Detects who talks from audio levels (RFC 6464), averaged over a number of packets.

use portunus_rtp::extension::AudioLevel;
use portunus_rtp::{ExtensionKind, ExtensionMap, Header};

/// When a participant counts as talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkDetection {
    /// The number of packets in a window, at least 1.
    pub packets: u32,
    /// The threshold of the average level in -dBov. 0 is the loudest, 127 is silence.
    pub level: u8,
}

/// Detects talking in one source.
#[derive(Debug)]
pub struct TalkDetector {
    detection: TalkDetection,
    heard: u32,
    sum: u64,
    talking: bool,
}

/// The participant has started or stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkChange {
    /// Whether the participant talks now.
    pub talking: bool,
    /// The average of the window, in hundredths of -dBov.
    pub average: u16,
}

impl TalkDetector {
    /// Returns a detector in its initial state: not talking.
    pub fn new(detection: TalkDetection) -> Self {
        TalkDetector {
            detection,
            heard: 0,
            sum: 0,
            talking: false,
        }
    }

    /// Changes the settings. The state stays as it is until the next window ends.
    pub fn set(&mut self, detection: TalkDetection) {
        self.detection = detection;
        (self.heard, self.sum) = (0, 0);
    }

    /// Takes the level of a packet in -dBov. Returns a change of the state.
    #[inline]
    pub fn hear(&mut self, level: u8) -> Option<TalkChange> {
        self.heard += 1;
        self.sum += u64::from(level);
        if self.heard < self.detection.packets {
            return None;
        }
        let heard = u64::from(self.heard);
        let talking = self.sum < u64::from(self.detection.level) * heard;
        let average = (self.sum * 100).checked_div(heard).unwrap_or_default();
        (self.heard, self.sum) = (0, 0);
        if talking == self.talking {
            return None;
        }
        self.talking = talking;
        Some(TalkChange {
            talking,
            average: u16::try_from(average).unwrap_or(u16::MAX),
        })
    }
}

/// Returns the audio level of a packet in -dBov, if the packet has one.
#[inline]
pub fn level(header: &Header, packet: &[u8], extensions: &ExtensionMap) -> Option<u8> {
    let id = extensions.id(ExtensionKind::AudioLevel)?;
    let level = AudioLevel::parse(header.extension(packet, id)?)?;
    Some(level.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector() -> TalkDetector {
        TalkDetector::new(TalkDetection {
            packets: 4,
            level: 25,
        })
    }

    #[test]
    fn a_window_that_is_loud_enough_on_average_is_talking() {
        let mut detector = detector();
        let changes: Vec<_> = [127, 20, 20, 20, 24, 24, 24, 24, 0, 0, 0, 0, 25, 25, 25, 25]
            .into_iter()
            .filter_map(|level| detector.hear(level))
            .collect();
        let change = |talking, average| TalkChange { talking, average };
        assert_eq!(changes, [change(true, 2_400), change(false, 2_500)]);
    }

    #[test]
    fn other_settings_start_another_window() {
        let mut detector = detector();
        for _ in 0..3 {
            assert_eq!(detector.hear(0), None);
        }
        detector.set(TalkDetection {
            packets: 1,
            level: 10,
        });
        assert!(detector.hear(9).is_some_and(|change| change.talking));
        assert!(detector.hear(127).is_some_and(|change| !change.talking));
    }
}
