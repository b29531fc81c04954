use super::bits::BitReader;
use super::{ChainDiffs, FrameDiffs, Indication, Indications};
use crate::RtpError;

/// The structure of a stream from one keyframe to the next: its layers, its decode targets, and the
/// templates that later frames refer to (section A.8.3 of the AV1 payload format).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateStructure {
    id_offset: u8,
    decode_targets: u8,
    templates: Vec<Template>,
    protecting_chains: [u8; MAX_DECODE_TARGETS],
    chains: u8,
    layers: [DecodeTarget; MAX_DECODE_TARGETS],
    resolutions: Option<[(u32, u32); MAX_SPATIAL_LAYERS]>,
}

/// The defaults of a frame whose descriptor does not override them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Template {
    pub spatial: u8,
    pub temporal: u8,
    pub indications: Indications,
    pub frame_diffs: FrameDiffs,
    pub chain_diffs: ChainDiffs,
}

/// The highest layers of a decode target: a set of frames that can be decoded without others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeTarget {
    /// The highest spatial layer, 0 to 3.
    pub spatial: u8,
    /// The highest temporal layer, 0 to 7.
    pub temporal: u8,
}

pub(super) const MAX_DECODE_TARGETS: usize = 32;
const MAX_TEMPLATES: u32 = 64;
const MAX_SPATIAL_LAYERS: usize = 4;
const MAX_TEMPORAL_LAYERS: u8 = 8;

impl TemplateStructure {
    /// Returns the decode targets by their index (at most 32).
    pub fn decode_targets(&self) -> &[DecodeTarget] {
        self.layers
            .get(..usize::from(self.decode_targets))
            .unwrap_or_default()
    }

    /// Returns the mask of the decode targets that need no layer above these.
    pub fn targets_within(&self, spatial: u8, temporal: u8) -> u32 {
        let within =
            |target: &DecodeTarget| target.spatial <= spatial && target.temporal <= temporal;
        let targets = self.decode_targets().iter().enumerate();
        targets.fold(0, |mask, (i, target)| {
            mask | (u32::from(within(target)) << i)
        })
    }

    /// Returns the mask of all decode targets.
    pub fn all_targets(&self) -> u32 {
        u32::MAX
            .checked_shr(32 - u32::from(self.decode_targets))
            .unwrap_or(0)
    }

    /// Returns the highest spatial layer of all frames.
    pub fn max_spatial(&self) -> u8 {
        self.templates
            .iter()
            .map(|template| template.spatial)
            .max()
            .unwrap_or(0)
    }

    /// Returns the highest temporal layer of all frames.
    pub fn max_temporal(&self) -> u8 {
        self.templates
            .iter()
            .map(|template| template.temporal)
            .max()
            .unwrap_or(0)
    }

    /// Returns width and height in pixels of a spatial layer, if present.
    pub fn resolution(&self, spatial: u8) -> Option<(u32, u32)> {
        let spatial = Some(spatial).filter(|spatial| *spatial <= self.max_spatial())?;
        self.resolutions?.get(usize::from(spatial)).copied()
    }

    /// Returns the chain that a receiver of decode target `target` needs without a gap, or `None`
    /// if there is no such chain.
    pub fn protecting_chain(&self, target: u8) -> Option<u8> {
        let chain = self
            .protecting_chains
            .get(..usize::from(self.decode_targets))?;
        chain
            .get(usize::from(target))
            .copied()
            .filter(|_| self.chains > 0)
    }

    pub(super) fn decode_target_count(&self) -> u8 {
        self.decode_targets
    }

    pub(super) fn chain_count(&self) -> u8 {
        self.chains
    }

    pub(super) fn template(&self, id: u8) -> Option<&Template> {
        self.templates
            .get(usize::from(id.wrapping_sub(self.id_offset) & 0x3f))
    }

    /// Reads `template_dependency_structure()`. Returns `None` if the bits end early.
    pub(super) fn read(bits: &mut BitReader<'_>) -> Option<Result<Self, RtpError>> {
        let id_offset = bits.read(6)? as u8;
        let decode_targets = bits.read(5)? as u8 + 1;
        let mut templates = Vec::new();
        if let Err(error) = read_layers(bits, &mut templates)? {
            return Some(Err(error));
        }
        for template in &mut templates {
            template.indications = Indications::read(bits, decode_targets)?;
        }
        for template in &mut templates {
            while bits.read_flag()? {
                let diff = bits.read(4)? as u16 + 1;
                if template.frame_diffs.push(diff).is_none() {
                    return Some(Err(RtpError::Invalid("number of frame differences")));
                }
            }
        }
        let mut protecting_chains = [0; MAX_DECODE_TARGETS];
        let chains = bits.read_non_symmetric(u32::from(decode_targets) + 1)? as u8;
        if chains > 0 {
            for chain in protecting_chains
                .iter_mut()
                .take(usize::from(decode_targets))
            {
                *chain = bits.read_non_symmetric(u32::from(chains))? as u8;
            }
            for template in &mut templates {
                template.chain_diffs = ChainDiffs::read(bits, chains, 4)?;
            }
        }
        let mut this = Self {
            id_offset,
            decode_targets,
            layers: decode_target_layers(&templates),
            templates,
            protecting_chains,
            chains,
            resolutions: None,
        };
        if bits.read_flag()? {
            let mut resolutions = [(0, 0); MAX_SPATIAL_LAYERS];
            for resolution in resolutions
                .iter_mut()
                .take(usize::from(this.max_spatial()) + 1)
            {
                *resolution = (bits.read(16)? + 1, bits.read(16)? + 1);
            }
            this.resolutions = Some(resolutions);
        }
        Some(Ok(this))
    }
}

/// Reads `template_layers()`: whether each template stays in the previous layer, or goes to the
/// next temporal or spatial layer.
fn read_layers(bits: &mut BitReader<'_>, out: &mut Vec<Template>) -> Option<Result<(), RtpError>> {
    let (mut spatial, mut temporal) = (0, 0);
    for _ in 0..MAX_TEMPLATES {
        out.push(Template {
            spatial,
            temporal,
            indications: Indications::default(),
            frame_diffs: FrameDiffs::default(),
            chain_diffs: ChainDiffs::default(),
        });
        match bits.read(2)? {
            0 => {}
            1 => temporal += 1,
            2 => (spatial, temporal) = (spatial + 1, 0),
            _ => return Some(Ok(())),
        }
        if usize::from(spatial) >= MAX_SPATIAL_LAYERS || temporal >= MAX_TEMPORAL_LAYERS {
            return Some(Err(RtpError::Invalid("template layer")));
        }
    }
    Some(Err(RtpError::Invalid("number of templates")))
}

/// Returns the layers of a decode target: the highest of the templates that are present in it.
fn decode_target_layers(templates: &[Template]) -> [DecodeTarget; MAX_DECODE_TARGETS] {
    let mut layers = [DecodeTarget::default(); MAX_DECODE_TARGETS];
    for (target, layer) in (0..).zip(&mut layers) {
        let is_present = |t: &&Template| t.indications.of(target) != Indication::NotPresent;
        for template in templates.iter().filter(is_present) {
            layer.spatial = layer.spatial.max(template.spatial);
            layer.temporal = layer.temporal.max(template.temporal);
        }
    }
    layers
}
