/// The audio level of a packet (RFC 6464).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioLevel {
    /// Whether the sender classifies it as voice.
    pub voice: bool,
    /// The level below overload in dB. 0 is the loudest, 127 is silence.
    pub level: u8,
}

impl AudioLevel {
    /// Parses an element's value. Returns `None` if it is empty.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let byte = *value.first()?;
        Some(Self {
            voice: byte & 0x80 != 0,
            level: byte & 0x7f,
        })
    }

    /// Returns the element's value. A level above 127 is written as 127.
    pub fn to_bytes(self) -> [u8; 1] {
        [(u8::from(self.voice) << 7) | self.level.min(127)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_round_trips() {
        for byte in 0..=255 {
            assert_eq!(
                AudioLevel::parse(&[byte]).map(AudioLevel::to_bytes),
                Some([byte])
            );
        }
        assert_eq!(
            AudioLevel::parse(&[0x8a]),
            Some(AudioLevel {
                voice: true,
                level: 10
            })
        );
        assert_eq!(
            AudioLevel {
                voice: false,
                level: 200
            }
            .to_bytes(),
            [127]
        );
        assert_eq!(AudioLevel::parse(&[]), None);
    }
}
