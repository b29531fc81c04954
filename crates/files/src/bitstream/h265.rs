//! H.265: sequence parameter sets (ITU-T H.265 section 7.3.2.2), and the hvcC record.

use mp4_atom::{Atom, HvcCArray, Hvcc};

use super::bits::Bits;
use super::{Picture, Setup, nal};

const VIDEO_PARAMETER_SET: u8 = 32;
const SEQUENCE_PARAMETER_SET: u8 = 33;
const PICTURE_PARAMETER_SET: u8 = 34;

/// The fields of a sequence parameter set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sequence {
    sub_layers: u8,
    nested: bool,
    profile: Profile,
    chroma_format: u8,
    luma_minus8: u8,
    chroma_minus8: u8,
    picture: Picture,
}

/// The general part of profile, tier and level (section 7.3.3), as in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Profile {
    /// Profile space, tier and profile.
    general: u8,
    compatibility: [u8; 4],
    constraints: [u8; 6],
    level: u8,
}

/// Reads the setup and the picture size of an access unit, or of its parameter sets alone.
pub(super) fn read_setup(access_unit: &[u8], before: Option<&Setup>) -> Option<(Setup, Picture)> {
    let known = match before {
        Some(Setup::H265 { vps, sps, pps }) => Some((vps, sps, pps)),
        _ => None,
    };
    let of_kind = |kind: u8| {
        let units = nal::units(access_unit);
        units.filter(move |unit| unit.first().is_some_and(|head| head >> 1 & 0x3f == kind))
    };
    setup(
        nal::sets(of_kind(VIDEO_PARAMETER_SET), known.map(|sets| sets.0))?,
        nal::sets(of_kind(SEQUENCE_PARAMETER_SET), known.map(|sets| sets.1))?,
        nal::sets(of_kind(PICTURE_PARAMETER_SET), known.map(|sets| sets.2))?,
    )
}

/// Returns a setup, if its parameter sets are valid.
pub(super) fn setup(
    vps: Vec<Vec<u8>>,
    sps: Vec<Vec<u8>>,
    pps: Vec<Vec<u8>>,
) -> Option<(Setup, Picture)> {
    let picture = picture(&sps)?;
    Some((Setup::H265 { vps, sps, pps }, picture))
}

pub(super) fn picture(sps: &[Vec<u8>]) -> Option<Picture> {
    Some(read_sequence(sps.first()?)?.picture)
}

/// Returns profile, tier and level. The level does not count in comparisons.
pub(super) fn profile(sps: &[Vec<u8>]) -> Option<Profile> {
    let profile = read_sequence(sps.first()?)?.profile;
    Some(Profile {
        level: 0,
        ..profile
    })
}

pub(crate) fn hvcc(vps: &[Vec<u8>], sps: &[Vec<u8>], pps: &[Vec<u8>]) -> Option<Hvcc> {
    let sequence = read_sequence(sps.first()?)?;
    let profile = sequence.profile;
    let array = |nal_unit_type, sets: &[Vec<u8>]| HvcCArray {
        completeness: true,
        nal_unit_type,
        nalus: sets.to_vec(),
    };
    Some(Hvcc {
        configuration_version: 1,
        general_profile_space: profile.general >> 6,
        general_tier_flag: profile.general & 0x20 != 0,
        general_profile_idc: profile.general & 0x1f,
        general_profile_compatibility_flags: profile.compatibility,
        general_constraint_indicator_flags: profile.constraints,
        general_level_idc: profile.level,
        min_spatial_segmentation_idc: 0,
        parallelism_type: 0,
        chroma_format_idc: sequence.chroma_format,
        bit_depth_luma_minus8: sequence.luma_minus8,
        bit_depth_chroma_minus8: sequence.chroma_minus8,
        avg_frame_rate: 0,
        constant_frame_rate: 0,
        num_temporal_layers: sequence.sub_layers,
        temporal_id_nested: sequence.nested,
        length_size_minus_one: 3,
        arrays: vec![
            array(VIDEO_PARAMETER_SET, vps),
            array(SEQUENCE_PARAMETER_SET, sps),
            array(PICTURE_PARAMETER_SET, pps),
        ],
    })
}

/// Returns the record without a box.
pub(super) fn hvcc_bytes(vps: &[Vec<u8>], sps: &[Vec<u8>], pps: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    hvcc(vps, sps, pps)?.encode_body(&mut bytes).ok()?;
    Some(bytes)
}

fn read_sequence(unit: &[u8]) -> Option<Sequence> {
    let mut bits = Bits::of_unit(unit.get(2..)?);
    bits.skip(4)?;
    let more_layers = bits.byte(3).filter(|layers| *layers < 7)?;
    let nested = bits.flag()?;
    let profile = read_profile(&mut bits, more_layers)?;
    bits.golomb_to(15)?;
    let chroma_format = bits.golomb_to(3)?;
    let planes = chroma_format == 3 && bits.flag()?;
    let (width, height) = (bits.golomb()?, bits.golomb()?);
    let mut crop = [0; 4];
    if bits.flag()? {
        for side in &mut crop {
            *side = bits.golomb()?;
        }
    }
    let [left, right, top, bottom] = crop;
    let (across, down) = match (chroma_format, planes) {
        (1, _) => (2, 2),
        (2, _) => (2, 1),
        _ => (1, 1),
    };
    let cropped = |size: u32, before: u32, after: u32, unit: u32| {
        size.checked_sub(before.checked_add(after)?.checked_mul(unit)?)
    };
    let picture = Picture::new(
        cropped(width, left, right, across)?,
        cropped(height, top, bottom, down)?,
    )?;
    Some(Sequence {
        sub_layers: more_layers + 1,
        nested,
        profile,
        chroma_format: chroma_format as u8,
        // More than 14 bits of depth do not fit the record.
        luma_minus8: bits.golomb_to(6)? as u8,
        chroma_minus8: bits.golomb_to(6)? as u8,
        picture,
    })
}

/// Reads profile, tier and level, and skips those of the lower sub-layers.
fn read_profile(bits: &mut Bits<'_>, more_layers: u8) -> Option<Profile> {
    let mut bytes = [0; 12];
    for byte in &mut bytes {
        *byte = bits.byte(8)?;
    }
    let [general, c0, c1, c2, c3, f0, f1, f2, f3, f4, f5, level] = bytes;
    let mut present = [(false, false); 8];
    for layer in present.iter_mut().take(usize::from(more_layers)) {
        *layer = (bits.flag()?, bits.flag()?);
    }
    if more_layers > 0 {
        bits.skip(2 * (8 - u32::from(more_layers)))?;
    }
    for (has_profile, has_level) in present {
        bits.skip(if has_profile { 88 } else { 0 } + if has_level { 8 } else { 0 })?;
    }
    Some(Profile {
        general,
        compatibility: [c0, c1, c2, c3],
        constraints: [f0, f1, f2, f3, f4, f5],
        level,
    })
}
