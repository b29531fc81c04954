//! Repair of torn files.

use std::io::{Read, Seek, Write};

use super::Repaired;
use crate::demux::Input;
use crate::{FileError, matroska, mp4};

/// Reads a file without a regular end, or with a torn one, and writes its intact content as a
/// complete file, with index, duration and sizes. Content after the first damage is dropped. It
/// accepts any WebM, Matroska and fragmented MP4.
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
