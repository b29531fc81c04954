//! AV1: sequence headers (AV1 bitstream specification, section 5.5), and their av1C record.

use super::bits::Bits;
use super::{Picture, Setup};

const SEQUENCE_HEADER: u8 = 1;
const HAS_SIZE: u8 = 0x02;
const HAS_EXTENSION: u8 = 0x04;
/// The longest sequence header in bytes that fits the room of a container's header.
const MOST_BYTES: usize = 1_024;

/// Reads the setup and the picture size of a temporal unit.
pub(super) fn read_setup(unit: &[u8], before: Option<&Setup>) -> Option<(Setup, Picture)> {
    let mut rest = unit;
    while !rest.is_empty() {
        let whole = rest;
        let (kind, body) = split_obu(&mut rest)?;
        if kind == SEQUENCE_HEADER {
            let obu = whole.get(..whole.len() - rest.len())?;
            let (config, picture) = read_sequence(body)?;
            let setup = Setup::Av1 {
                sequence_header: obu.to_vec(),
                config,
            };
            return (obu.len() <= MOST_BYTES).then_some((setup, picture));
        }
    }
    let known = before.filter(|before| matches!(before, Setup::Av1 { .. }))?;
    Some((known.clone(), known.picture()?))
}

/// Returns the size in an OBU with a sequence header.
pub(super) fn picture(mut obu: &[u8]) -> Option<Picture> {
    let (_, body) = split_obu(&mut obu)?;
    Some(read_sequence(body)?.1)
}

/// Returns the type and the content of the next OBU.
fn split_obu<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let first = *rest.split_off_first()?;
    if first & HAS_EXTENSION != 0 {
        rest.split_off_first()?;
    }
    let len = match first & HAS_SIZE != 0 {
        true => read_leb128(rest)?,
        false => rest.len(),
    };
    Some((first >> 3 & 0x0f, rest.split_off(..len)?))
}

fn read_leb128(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..56).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(value).ok();
        }
    }
    None
}

/// The lengths of the decoder model's fields, in bits.
struct DecoderModel {
    delay: u32,
}

fn read_sequence(body: &[u8]) -> Option<([u8; 4], Picture)> {
    let mut bits = Bits::new(body);
    let profile = bits.byte(3)?;
    bits.skip(1)?;
    let reduced = bits.flag()?;
    let (level, tier) = match reduced {
        true => (bits.byte(5)?, false),
        false => read_operating_points(&mut bits)?,
    };
    let width_bits = bits.number(4)? + 1;
    let height_bits = bits.number(4)? + 1;
    let picture = Picture::new(bits.number(width_bits)? + 1, bits.number(height_bits)? + 1)?;
    if !reduced && bits.flag()? {
        // The lengths of frame numbers.
        bits.skip(4 + 3)?;
    }
    // Superblocks of 128x128, intra filters, intra edges.
    bits.skip(3)?;
    if !reduced {
        skip_tools(&mut bits)?;
    }
    // Super-resolution, CDEF, restoration.
    bits.skip(3)?;
    let color = read_color(&mut bits, profile)?;
    let config = [0x81, profile << 5 | level, u8::from(tier) << 7 | color, 0];
    Some((config, picture))
}

/// Reads all operating points. Returns level and tier of the first one.
fn read_operating_points(bits: &mut Bits<'_>) -> Option<(u8, bool)> {
    let mut model = None;
    if bits.flag()? {
        bits.skip(32 + 32)?;
        if bits.flag()? {
            bits.golomb()?;
        }
        if bits.flag()? {
            let delay = bits.number(5)? + 1;
            bits.skip(32 + 5 + 5)?;
            model = Some(DecoderModel { delay });
        }
    }
    let tells_delay = bits.flag()?;
    let mut first = None;
    for _ in 0..=bits.number(5)? {
        bits.skip(12)?;
        let level = bits.byte(5)?;
        let tier = level > 7 && bits.flag()?;
        first.get_or_insert((level, tier));
        if let Some(model) = &model
            && bits.flag()?
        {
            bits.skip(model.delay * 2 + 1)?;
        }
        if tells_delay && bits.flag()? {
            bits.skip(4)?;
        }
    }
    first
}

/// Skips the tools of sequences that are more than still pictures.
fn skip_tools(bits: &mut Bits<'_>) -> Option<()> {
    // Inter-intra, masked compounds, warped motion, dual filters.
    bits.skip(4)?;
    let orders = bits.flag()?;
    if orders {
        bits.skip(2)?;
    }
    let screen_content = match bits.flag()? {
        true => true,
        false => bits.flag()?,
    };
    // Integer motion vectors: chosen per frame, or by the sequence.
    if screen_content && !bits.flag()? {
        bits.skip(1)?;
    }
    if orders {
        bits.skip(3)?;
    }
    Some(())
}

/// Reads bit depth, monochrome, subsampling and chroma position (section 5.5.2), as the lower seven
/// bits of the record's third byte.
fn read_color(bits: &mut Bits<'_>, profile: u8) -> Option<u8> {
    let high = bits.flag()?;
    let twelve = profile == 2 && high && bits.flag()?;
    let mono = profile != 1 && bits.flag()?;
    let description = match bits.flag()? {
        true => [bits.byte(8)?, bits.byte(8)?, bits.byte(8)?],
        // Unspecified.
        false => [2; 3],
    };
    let (mut across, mut down, mut position) = (true, true, 0);
    if mono {
        bits.skip(1)?;
    } else if description == [1, 13, 0] {
        // RGB.
        (across, down) = (false, false);
    } else {
        bits.skip(1)?;
        (across, down) = match (profile, twelve) {
            (0, _) => (true, true),
            (1, _) => (false, false),
            (_, false) => (true, false),
            (_, true) => {
                let across = bits.flag()?;
                (across, across && bits.flag()?)
            }
        };
        if across && down {
            position = bits.byte(2)?;
        }
    }
    let flags = [high, twelve, mono, across, down];
    let flags = flags
        .into_iter()
        .fold(0, |sum, flag| sum << 1 | u8::from(flag));
    Some(flags << 2 | position)
}
