/// The rotation that a receiver has to apply to the video (3GPP TS 26.114 section 7.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VideoOrientation {
    /// The camera faces away from the user.
    pub back_camera: bool,
    /// The video is mirrored horizontally.
    pub flipped: bool,
    /// The rotation to apply.
    pub rotation: Rotation,
}

/// A clockwise rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// No rotation.
    #[default]
    Deg0,
    /// A quarter turn.
    Deg90,
    /// A half turn.
    Deg180,
    /// Three quarters of a turn.
    Deg270,
}

impl VideoOrientation {
    /// Parses an element's value. Returns `None` if it is empty.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let byte = *value.first()?;
        let rotation = match byte & 3 {
            0 => Rotation::Deg0,
            1 => Rotation::Deg90,
            2 => Rotation::Deg180,
            _ => Rotation::Deg270,
        };
        Some(Self {
            back_camera: byte & 8 != 0,
            flipped: byte & 4 != 0,
            rotation,
        })
    }

    /// Returns the element's value.
    pub fn to_bytes(self) -> [u8; 1] {
        [(u8::from(self.back_camera) << 3) | (u8::from(self.flipped) << 2) | self.rotation as u8]
    }
}

impl Rotation {
    /// Returns the rotation in degrees.
    pub const fn degrees(self) -> u16 {
        self as u16 * 90
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_round_trips() {
        for byte in 0..16 {
            assert_eq!(
                VideoOrientation::parse(&[byte]).map(VideoOrientation::to_bytes),
                Some([byte])
            );
        }
        let turned = VideoOrientation::parse(&[0x0b]);
        assert_eq!(
            turned.map(|o| (o.back_camera, o.rotation.degrees())),
            Some((true, 270))
        );
        assert_eq!(VideoOrientation::parse(&[]), None);
    }
}
