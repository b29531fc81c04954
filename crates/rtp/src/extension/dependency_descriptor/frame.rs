use super::bits::BitReader;
use super::structure::MAX_DECODE_TARGETS;
use crate::RtpError;

/// The fields of every descriptor, which need no structure (section A.8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MandatoryFields {
    /// The packet is the first of its frame.
    pub start_of_frame: bool,
    /// The packet is the last of its frame. A frame is one spatial layer, not the picture.
    pub end_of_frame: bool,
    /// The template that the frame follows, 6 bits.
    pub template_id: u8,
    /// The frame number, which increases by one with each frame of any layer.
    pub frame_number: u16,
}

impl MandatoryFields {
    /// The bytes of the fields.
    pub const LEN: usize = 3;

    /// Parses the start of an element's value.
    pub fn parse(value: &[u8]) -> Result<Self, RtpError> {
        let actual = value.len();
        let Some(&[first, n0, n1]) = value.first_chunk() else {
            return Err(RtpError::Truncated {
                expected: Self::LEN,
                actual,
            });
        };
        Ok(Self {
            start_of_frame: first & 0x80 != 0,
            end_of_frame: first & 0x40 != 0,
            template_id: first & 0x3f,
            frame_number: u16::from_be_bytes([n0, n1]),
        })
    }

    /// Sets the frame number in an element's value, as for a relay that appends one stream to
    /// another. References are relative and stay. A truncated value stays too.
    pub fn set_frame_number(value: &mut [u8], frame_number: u16) {
        if let Some(number) = value.get_mut(1..Self::LEN) {
            number.copy_from_slice(&frame_number.to_be_bytes());
        }
    }
}

/// The role of a frame in a decode target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indication {
    /// It is not part of the target and need not be sent.
    NotPresent = 0,
    /// No later frame of the target needs it.
    Discardable = 1,
    /// The target can be decoded from here on, so a receiver may switch to it.
    Switch = 2,
    /// It is part of the target.
    Required = 3,
}

/// A frame's indication for each decode target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Indications(u64);

impl Indications {
    /// Returns the indication for decode target `target`, or not present if there is no such
    /// target.
    pub fn of(self, target: u8) -> Indication {
        match self.0.checked_shr(u32::from(target) * 2).unwrap_or(0) & 3 {
            0 => Indication::NotPresent,
            1 => Indication::Discardable,
            2 => Indication::Switch,
            _ => Indication::Required,
        }
    }

    /// Returns whether the frame is part of any decode target in the mask `targets`.
    pub fn is_present_in(self, targets: u32) -> bool {
        (0..MAX_DECODE_TARGETS as u8)
            .any(|target| targets & (1 << target) != 0 && self.of(target) != Indication::NotPresent)
    }

    pub(super) fn read(bits: &mut BitReader<'_>, decode_targets: u8) -> Option<Self> {
        (0..decode_targets).try_fold(Self(0), |all, target| {
            Some(Self(all.0 | (u64::from(bits.read(2)?) << (target * 2))))
        })
    }
}

/// The frames that a frame refers to, as differences of frame numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameDiffs {
    len: u8,
    diffs: [u16; 8],
}

impl FrameDiffs {
    /// Returns the differences: at most 8, each 1 to 4,096.
    pub fn as_slice(&self) -> &[u16] {
        self.diffs.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub(super) fn push(&mut self, diff: u16) -> Option<()> {
        *self.diffs.get_mut(usize::from(self.len))? = diff;
        self.len += 1;
        Some(())
    }
}

/// The distance of each chain's last frame, as a difference of frame numbers. 0 means that the
/// chain starts here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainDiffs {
    len: u8,
    diffs: [u8; MAX_DECODE_TARGETS],
}

impl ChainDiffs {
    /// Returns the differences by the index of the chain.
    pub fn as_slice(&self) -> &[u8] {
        self.diffs.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub(super) fn read(bits: &mut BitReader<'_>, chains: u8, width: usize) -> Option<Self> {
        let mut this = Self {
            len: chains,
            ..Self::default()
        };
        for diff in this.diffs.iter_mut().take(usize::from(chains)) {
            *diff = bits.read(width)? as u8;
        }
        Some(this)
    }
}
