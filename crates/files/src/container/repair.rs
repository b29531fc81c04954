//! Repair of torn files.

use std::io::{Read, Seek, Write};

use super::Repaired;
use crate::demux::Input;
use crate::{FileError, matroska, mp4};

/// Reads a file whose writer did not come to its end, or whose end is lost, and writes what is whole of it as a complete file, with index,
/// duration and sizes. What comes behind the first damage is left out. It takes any WebM, Matroska and fragmented
/// MP4.
pub fn repair(
    input: impl Read + Seek + Send + 'static,
    out: &mut dyn Write,
) -> Result<Repaired, FileError> {
    let mut input = Input::new(Box::new(input))?;
    let mut start = [0; 8];
    let found = input.read_up_to(&mut start)?;
    input.seek(0)?;
    match start {
        _ if found == 0 => Err(FileError::Empty),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => matroska::repair(input, out),
        [_, _, _, _, b'f', b't', b'y', b'p'] => mp4::repair(input, out),
        _ => Err(FileError::Unsupported(
            "only WebM, Matroska and MP4 are repaired",
        )),
    }
}
