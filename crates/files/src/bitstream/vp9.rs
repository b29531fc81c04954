//! VP9: uncompressed headers (VP9 bitstream specification, section 6.2).

use super::bits::Bits;
use super::{Picture, Setup};

const KEY_FRAME: bool = false;
const SYNC_CODE: u32 = 0x49_83_42;
const RGB: u8 = 7;

/// Reads the setup of a keyframe: that of the first frame in a superframe, with the size of the
/// largest layer.
pub(super) fn read_setup(keyframe: &[u8]) -> Option<(Setup, Picture)> {
    let mut frames = frames(keyframe);
    let (setup, mut picture) = read_key_frame(frames.next()?)?;
    for frame in frames {
        if let Some(upper) = upper_picture(frame)
            && upper.width > picture.width
        {
            picture = upper;
        }
    }
    Some((setup, picture))
}

/// Returns the frames of a superframe (annex B). Without an index it is one frame.
fn frames(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let index = read_index(data);
    let mut rest = data;
    let whole = index.is_none().then_some(data);
    let sizes = index.into_iter().flat_map(|(sizes, bytes)| {
        sizes.chunks(bytes).map(|size| {
            let size = size.iter().rev();
            size.fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte))
        })
    });
    whole
        .into_iter()
        .chain(sizes.map_while(move |size| rest.split_off(..size)))
}

/// Returns the sizes in a superframe's index, and the bytes of each size.
fn read_index(data: &[u8]) -> Option<(&[u8], usize)> {
    let marker = *data.last()?;
    let bytes = usize::from(marker >> 3 & 3) + 1;
    let len = (usize::from(marker & 7) + 1) * bytes;
    let index = data.get(data.len().checked_sub(len + 2)?..)?;
    let is_index = marker & 0xe0 == 0xc0 && index.first() == Some(&marker);
    is_index.then_some((index.get(1..=len)?, bytes))
}

/// The start of a frame.
struct Start {
    profile: u8,
    is_key: bool,
    is_shown: bool,
    is_resilient: bool,
}

/// Reads the start of a frame that does not only show an existing one.
fn read_start(bits: &mut Bits<'_>) -> Option<Start> {
    if bits.number(2)? != 2 {
        return None;
    }
    let profile = u8::from(bits.flag()?) | u8::from(bits.flag()?) << 1;
    if profile == 3 && bits.flag()? {
        return None;
    }
    let shows_existing = bits.flag()?;
    let is_key = bits.flag()? == KEY_FRAME;
    (!shows_existing).then_some(Start {
        profile,
        is_key,
        is_shown: bits.flag()?,
        is_resilient: bits.flag()?,
    })
}

fn read_key_frame(frame: &[u8]) -> Option<(Setup, Picture)> {
    let mut bits = Bits::new(frame);
    let Start {
        profile, is_key, ..
    } = read_start(&mut bits)?;
    if !is_key || bits.number(24)? != SYNC_CODE {
        return None;
    }
    let bit_depth = match profile >= 2 {
        true if bits.flag()? => 12,
        true => 10,
        false => 8,
    };
    let odd = profile & 1 == 1;
    let (full_range, subsampling) = match bits.byte(3)? == RGB {
        true if !odd => return None,
        true => {
            bits.skip(1)?;
            (true, 3)
        }
        false => {
            let full_range = bits.flag()?;
            let subsampling = match odd {
                true => {
                    let both = (bits.flag()?, bits.flag()?);
                    bits.skip(1)?;
                    match both {
                        (true, false) => 2,
                        (false, false) => 3,
                        _ => return None,
                    }
                }
                false => 1,
            };
            (full_range, subsampling)
        }
    };
    let setup = Setup::Vp9 {
        profile,
        bit_depth,
        subsampling,
        full_range,
    };
    Some((setup, read_size(&mut bits)?))
}

/// Returns the size of an upper layer, if the layer has its own.
fn upper_picture(frame: &[u8]) -> Option<Picture> {
    const REFERENCES: usize = 3;
    let mut bits = Bits::new(frame);
    let start = read_start(&mut bits)?;
    if start.is_key || (!start.is_shown && bits.flag()?) {
        return None;
    }
    if !start.is_resilient {
        bits.skip(2)?;
    }
    // The refreshed slots, and the references with their signs.
    bits.skip(8 + REFERENCES as u32 * 4)?;
    for _ in 0..REFERENCES {
        if bits.flag()? {
            return None;
        }
    }
    read_size(&mut bits)
}

fn read_size(bits: &mut Bits<'_>) -> Option<Picture> {
    Picture::new(bits.number(16)? + 1, bits.number(16)? + 1)
}
