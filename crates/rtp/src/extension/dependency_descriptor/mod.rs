//! The dependency descriptor: layers and references of a frame, readable without the codec (RTP
//! Payload Format For AV1, appendix A).
//!
//! Most descriptors refer to templates in a keyframe's descriptor, so there is a
//! [`DependencyReader`] for each stream. A relay that drops the frames of upper layers need not
//! change the descriptors of the others: frame numbers may have gaps. But it has to signal the
//! decode targets that it still sends, so that the receiver does not wait for the others: see
//! [`TargetsPlace::write`].

mod bits;
mod frame;
mod structure;

use crate::RtpError;
use bits::{BitReader, BitWriter};

pub use frame::{ChainDiffs, FrameDiffs, Indication, Indications, MandatoryFields};
pub use structure::{DecodeTarget, TemplateStructure};

/// Reads the descriptors of one stream, and keeps the structure that they refer to.
///
/// A new structure, which comes with a keyframe, takes an allocation. Other packets take none.
#[derive(Debug, Clone, Default)]
pub struct DependencyReader {
    structure: Option<TemplateStructure>,
    active_targets: u32,
}

/// A descriptor's information on its packet's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DependencyDescriptor {
    /// Frame number, template, and the place of the packet in the frame.
    pub fields: MandatoryFields,
    /// Whether the descriptor has a structure, so that the packet belongs to a keyframe.
    pub has_structure: bool,
    /// The frame's spatial layer, 0 to 3.
    pub spatial: u8,
    /// The frame's temporal layer, 0 to 7.
    pub temporal: u8,
    /// The role of the frame in each decode target.
    pub indications: Indications,
    /// The frames that it refers to.
    pub frame_diffs: FrameDiffs,
    /// The places of the chains' last frames.
    pub chain_diffs: ChainDiffs,
    /// The mask of the decode targets that the sender currently sends.
    pub active_targets: u32,
    /// The place of that mask in the descriptor, present or not.
    pub targets_place: TargetsPlace,
}

/// The place of the mask of decode targets in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetsPlace {
    /// Whether this descriptor has the mask, rather than an earlier one.
    pub is_told: bool,
    /// The bit after flags and structure, where the mask belongs.
    mask_at: u16,
    /// The bit after the last field.
    end: u16,
    decode_targets: u8,
}

/// The bit of the first flag, and the number of flags.
const FLAGS_AT: usize = 8 * MandatoryFields::LEN;
const FLAGS_LEN: usize = 5;

impl DependencyReader {
    /// Makes a reader that waits for the first structure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the current structure.
    pub fn structure(&self) -> Option<&TemplateStructure> {
        self.structure.as_ref()
    }

    /// Reads an element's value. A malformed one does not change the reader.
    pub fn read(&mut self, value: &[u8]) -> Result<DependencyDescriptor, RtpError> {
        let fields = MandatoryFields::parse(value)?;
        let truncated = RtpError::Truncated {
            expected: value.len() + 1,
            actual: value.len(),
        };
        let (descriptor, structure) = self.read_behind(fields, value).ok_or(truncated)??;
        if structure.is_some() {
            self.structure = structure;
        }
        self.active_targets = descriptor.active_targets;
        Ok(descriptor)
    }

    fn read_behind(&self, fields: MandatoryFields, value: &[u8]) -> Option<ReadResult> {
        let mut bits = BitReader::new(value);
        bits.read(FLAGS_AT)?;
        let mut flags = [false; FLAGS_LEN];
        if value.len() > MandatoryFields::LEN {
            for flag in &mut flags {
                *flag = bits.read_flag()?;
            }
        }
        let [
            has_structure,
            tells_active_targets,
            own_dtis,
            own_frame_diffs,
            own_chain_diffs,
        ] = flags;
        let mut brought = None;
        if has_structure {
            match TemplateStructure::read(&mut bits)? {
                Ok(structure) => brought = Some(structure),
                Err(error) => return Some(Err(error)),
            }
        }
        let mask_at = bits.position() as u16;
        let Some(structure) = brought.as_ref().or(self.structure.as_ref()) else {
            return Some(Err(RtpError::Invalid(
                "descriptor before the first structure",
            )));
        };
        let Some(template) = structure.template(fields.template_id) else {
            return Some(Err(RtpError::Invalid("template id")));
        };
        let decode_targets = structure.decode_target_count();
        let active_targets = match (tells_active_targets, has_structure) {
            (true, _) => bits.read(usize::from(decode_targets))?,
            (false, true) => structure.all_targets(),
            (false, false) => self.active_targets,
        };
        let indications = match own_dtis {
            true => Indications::read(&mut bits, decode_targets)?,
            false => template.indications,
        };
        let mut frame_diffs = template.frame_diffs;
        if own_frame_diffs {
            frame_diffs = FrameDiffs::default();
            while let nibbles @ 1.. = bits.read(2)? {
                let diff = bits.read(4 * nibbles as usize)? as u16 + 1;
                if frame_diffs.push(diff).is_none() {
                    return Some(Err(RtpError::Invalid("number of frame differences")));
                }
            }
        }
        let chain_diffs = match own_chain_diffs {
            true => ChainDiffs::read(&mut bits, structure.chain_count(), 8)?,
            false => template.chain_diffs,
        };
        let descriptor = DependencyDescriptor {
            fields,
            has_structure,
            spatial: template.spatial,
            temporal: template.temporal,
            indications,
            frame_diffs,
            chain_diffs,
            active_targets,
            targets_place: TargetsPlace {
                is_told: tells_active_targets,
                mask_at,
                end: bits.position() as u16,
                decode_targets,
            },
        };
        Some(Ok((descriptor, brought)))
    }
}

type ReadResult = Result<(DependencyDescriptor, Option<TemplateStructure>), RtpError>;

impl TargetsPlace {
    /// The most bytes by which [`Self::write`] extends a value.
    pub const MAX_GROWTH: usize = 5;

    /// Writes the descriptor's `value` with the mask `targets` of decode targets that are sent from
    /// now on. Returns its length.
    ///
    /// Use it on all packets with a structure, which otherwise activates all targets, and on those
    /// of the first frames after a change. A receiver keeps the last mask.
    pub fn write(&self, value: &[u8], targets: u32, out: &mut [u8]) -> Result<usize, RtpError> {
        let available = out.len();
        let needed = value.len() + Self::MAX_GROWTH;
        self.rewrite(value, targets, out)
            .ok_or(RtpError::NoRoom { needed, available })
    }

    fn rewrite(&self, value: &[u8], targets: u32, out: &mut [u8]) -> Option<usize> {
        let mut from = BitReader::new(value);
        let mut to = BitWriter::new(out);
        to.copy(&mut from, FLAGS_AT)?;
        let flags = if value.len() > MandatoryFields::LEN {
            from.read(FLAGS_LEN)?
        } else {
            0
        };
        to.write(flags | 0b01000, FLAGS_LEN)?;
        let structure = usize::from(self.mask_at).checked_sub(from.position())?;
        to.copy(&mut from, structure)?;
        to.write(targets, usize::from(self.decode_targets))?;
        if self.is_told {
            from.read(usize::from(self.decode_targets))?;
        }
        let own_fields = usize::from(self.end).checked_sub(from.position())?;
        to.copy(&mut from, own_fields)?;
        Some(to.len())
    }
}

/// Sets the frame number in an element's value, as after a switch between streams.
pub fn set_frame_number(value: &mut [u8], frame_number: u16) {
    if let Some(bytes) = value.get_mut(1..3) {
        bytes.copy_from_slice(&frame_number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
