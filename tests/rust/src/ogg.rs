//! Ogg Opus files for playback.

use std::fs::File;
use std::path::Path;

use portunus_files::opus::{OggOpusWriter, OpusHead, OpusTags};

/// Writes a file of these packets.
pub fn ogg_opus(path: &Path, packets: impl IntoIterator<Item = Vec<u8>>) {
    let (head, tags) = (OpusHead::default(), OpusTags::default());
    let file = File::create(path).unwrap();
    let mut writer = OggOpusWriter::new(file, 1, &head, &tags).unwrap();
    for packet in packets {
        let at = writer.end();
        writer.packet(at, &packet).unwrap();
    }
    let end = writer.end();
    writer.finish(end).unwrap();
}
