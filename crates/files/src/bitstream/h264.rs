//! H.264: sequence parameter sets (ITU-T H.264 section 7.3.2.1.1), and the avcC record.

use mp4_atom::{Atom, Avcc, AvccExt};

use super::bits::Bits;
use super::{Picture, Setup, nal};

const SEQUENCE_PARAMETER_SET: u8 = 7;
const PICTURE_PARAMETER_SET: u8 = 8;
/// The profiles with fields for chroma and bit depth.
const HIGH_PROFILES: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// The fields of a sequence parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sequence {
    profile: u8,
    compatibility: u8,
    level: u8,
    /// Chroma format and bit depths, in a high profile.
    high: Option<(u8, u8, u8)>,
    picture: Picture,
}

/// Reads the setup and the picture size of an access unit, or of its parameter sets alone.
pub(super) fn read_setup(access_unit: &[u8], before: Option<&Setup>) -> Option<(Setup, Picture)> {
    let known = match before {
        Some(Setup::H264 { sps, pps }) => Some((sps, pps)),
        _ => None,
    };
    let of_kind = |kind: u8| {
        let units = nal::units(access_unit);
        units.filter(move |unit| unit.first().is_some_and(|head| head & 0x1f == kind))
    };
    setup(
        nal::sets(of_kind(SEQUENCE_PARAMETER_SET), known.map(|sets| sets.0))?,
        nal::sets(of_kind(PICTURE_PARAMETER_SET), known.map(|sets| sets.1))?,
    )
}

fn setup(sps: Vec<Vec<u8>>, pps: Vec<Vec<u8>>) -> Option<(Setup, Picture)> {
    let picture = picture(&sps)?;
    Some((Setup::H264 { sps, pps }, picture))
}

/// Returns the setup for `sprop-parameter-sets`.
pub(super) fn setup_of_sets(sets: Vec<Vec<u8>>) -> Option<Setup> {
    let is_sequence = |set: &Vec<u8>| {
        set.first()
            .is_some_and(|head| head & 0x1f == SEQUENCE_PARAMETER_SET)
    };
    let (sps, pps) = sets.into_iter().partition(is_sequence);
    setup(sps, pps).map(|(setup, _)| setup)
}

pub(super) fn picture(sps: &[Vec<u8>]) -> Option<Picture> {
    Some(read_sequence(sps.first()?)?.picture)
}

/// Returns the profile with its constraints.
pub(super) fn profile(sps: &[Vec<u8>]) -> Option<(u8, u8)> {
    let sequence = read_sequence(sps.first()?)?;
    Some((sequence.profile, sequence.compatibility))
}

pub(crate) fn avcc(sps: &[Vec<u8>], pps: &[Vec<u8>]) -> Option<Avcc> {
    let sequence = read_sequence(sps.first()?)?;
    let ext = sequence.high.map(|(chroma_format, luma, chroma)| AvccExt {
        chroma_format,
        bit_depth_luma: luma,
        bit_depth_chroma: chroma,
        sequence_parameter_sets_ext: Vec::new(),
    });
    Some(Avcc {
        configuration_version: 1,
        avc_profile_indication: sequence.profile,
        profile_compatibility: sequence.compatibility,
        avc_level_indication: sequence.level,
        length_size: 4,
        sequence_parameter_sets: sps.to_vec(),
        picture_parameter_sets: pps.to_vec(),
        ext: ext.filter(|_| matches!(sequence.profile, 100 | 110 | 122 | 144 | 244)),
    })
}

/// Returns the record without a box.
pub(super) fn avcc_bytes(sps: &[Vec<u8>], pps: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    avcc(sps, pps)?.encode_body(&mut bytes).ok()?;
    Some(bytes)
}

fn read_sequence(unit: &[u8]) -> Option<Sequence> {
    let mut bits = Bits::of_unit(unit.get(1..)?);
    let profile = bits.byte(8)?;
    let compatibility = bits.byte(8)?;
    let level = bits.byte(8)?;
    bits.golomb_to(31)?;
    let (mut chroma_format, mut planes, mut high) = (1, false, None);
    if HIGH_PROFILES.contains(&profile) {
        chroma_format = bits.golomb_to(3)?;
        if chroma_format == 3 {
            planes = bits.flag()?;
        }
        let luma = bits.golomb_to(6)? + 8;
        let chroma = bits.golomb_to(6)? + 8;
        high = Some((chroma_format as u8, luma as u8, chroma as u8));
        bits.skip(1)?;
        if bits.flag()? {
            skip_scaling(&mut bits, chroma_format)?;
        }
    }
    bits.golomb()?;
    skip_order_count(&mut bits)?;
    // Reference frames, and whether frame numbers have gaps.
    bits.golomb()?;
    bits.skip(1)?;
    let width = bits.golomb()?.checked_add(1)?.checked_mul(16)?;
    let map_height = bits.golomb()?.checked_add(1)?.checked_mul(16)?;
    let frames_only = bits.flag()?;
    if !frames_only {
        bits.skip(1)?;
    }
    let fields = if frames_only { 1 } else { 2 };
    let height = map_height.checked_mul(fields)?;
    bits.skip(1)?;
    let mut crop = [0; 4];
    if bits.flag()? {
        for side in &mut crop {
            *side = bits.golomb()?;
        }
    }
    let [left, right, top, bottom] = crop;
    // The units of cropping (equations 7-19 to 7-22).
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
        cropped(height, top, bottom, down * fields)?,
    )?;
    Some(Sequence {
        profile,
        compatibility,
        level,
        high,
        picture,
    })
}

/// Skips scaling lists (section 7.3.2.1.1.1).
fn skip_scaling(bits: &mut Bits<'_>, chroma_format: u32) -> Option<()> {
    for list in 0..if chroma_format == 3 { 12 } else { 8 } {
        if !bits.flag()? {
            continue;
        }
        let mut next = 8;
        for _ in 0..if list < 6 { 16 } else { 64 } {
            next = (next + bits.signed_golomb()?).rem_euclid(256);
            if next == 0 {
                break;
            }
        }
    }
    Some(())
}

/// Skips the order of pictures.
fn skip_order_count(bits: &mut Bits<'_>) -> Option<()> {
    match bits.golomb_to(2)? {
        0 => drop(bits.golomb()?),
        1 => {
            bits.skip(1)?;
            bits.signed_golomb()?;
            bits.signed_golomb()?;
            for _ in 0..bits.golomb_to(255)? {
                bits.signed_golomb()?;
            }
        }
        _ => {}
    }
    Some(())
}
