//! The packets of hammer in the files of a recording server.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::mjr::{FrameReader, MjrError};
use portunus_files::{Codec, FileError, MediaFile, OpenOptions};
use portunus_rtp::Header;
use portunus_rtp::codec::Vp8;

use crate::source::{AUDIO, STAMP_BYTES, Stamp, VIDEO};

/// Bytes of a `.mjr` file read at once.
const PIECE: usize = 256 << 10;
/// The type of a fragmentation unit (FU-A) in RTP of H.264, whose header has two bytes.
const FU_A: u8 = 28;

/// The content of the files of a folder.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The number of media files.
    pub(super) files: u32,
    /// Their size, including all other files of the folder.
    pub(super) bytes: u64,
    /// Packets in the files, each counted once.
    pub(super) packets: u64,
    /// The files that could not be read to their end, with the reasons.
    pub(super) unreadable: Vec<String>,
}

/// The reason why a file cannot be read to its end.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Container(#[from] FileError),
    #[error(transparent)]
    Mjr(#[from] MjrError),
}

/// Reads all files below `folder`. `since` is the earliest time of the first packet, since 1970.
pub(super) fn look(folder: &Path, since: Duration) -> io::Result<Found> {
    let mut found = Found::default();
    for path in files(folder)? {
        found.bytes += fs::metadata(&path)?.len();
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or("");
        let mut packets = Packets {
            since,
            seen: HashSet::new(),
        };
        let read = match extension {
            "mjr" => packets.of_mjr(&path),
            "webm" | "mkv" | "mp4" | "opus" => packets.of_container(&path),
            _ => continue,
        };
        found.files += 1;
        found.packets += packets.seen.len() as u64;
        if let Err(error) = read {
            let name = path.strip_prefix(folder).unwrap_or(&path);
            found
                .unreadable
                .push(format!("{}: {error}", name.display()));
        }
    }
    Ok(found)
}

/// Returns the current size of `folder`.
pub(super) fn bytes(folder: &Path) -> io::Result<u64> {
    let lengths = files(folder)?.into_iter();
    lengths.map(|path| Ok(fs::metadata(path)?.len())).sum()
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => files.extend(self::files(&entry.path())?),
            false => files.push(entry.path()),
        }
    }
    Ok(files)
}

/// The packets of one file, by stream and number.
struct Packets {
    since: Duration,
    seen: HashSet<(u8, u64)>,
}

impl Packets {
    /// Reads a file in Janus's format, which contains the received packets.
    fn of_mjr(&mut self, path: &Path) -> Result<(), Unread> {
        let mut file = File::open(path)?;
        let (mut reader, mut piece) = (FrameReader::new(), vec![0; PIECE]);
        loop {
            let len = file.read(&mut piece)?;
            reader.push(piece.get(..len).unwrap_or_default());
            while let Some(frame) = reader.next()? {
                let header = Header::parse(frame.bytes);
                let stamp = header
                    .ok()
                    .and_then(|it| Stamp::read(it.payload(frame.bytes)));
                self.add(stamp);
            }
            if len == 0 {
                return Ok(reader.finish()?);
            }
        }
    }

    /// Reads a container, which contains frames. They are played as packets, which differ from the
    /// received ones, and joined again.
    fn of_container(&mut self, path: &Path) -> Result<(), Unread> {
        let options = OpenOptions {
            looping: false,
            ..OpenOptions::default()
        };
        let mut file = MediaFile::open(path, &options)?;
        let codecs: Vec<Codec> = file.tracks().iter().map(|track| track.codec).collect();
        let (mut frame, mut of) = (Vec::new(), None);
        while let Some(packet) = file.next() {
            let packet = packet?;
            let Ok(header) = Header::parse(packet.bytes) else {
                continue;
            };
            let payload = header.payload(packet.bytes);
            let this = Some((packet.track, header.timestamp));
            if of != this {
                self.scan(&frame);
                frame.clear();
                of = this;
            }
            let data = match codecs.get(packet.track) {
                Some(Codec::Vp8) => Vp8::parse(payload).map_or(0, |it| it.descriptor_len()),
                Some(Codec::H264) if payload.first().is_some_and(|it| it & 0x1F == FU_A) => 2,
                _ => 0,
            };
            frame.extend_from_slice(payload.get(data..).unwrap_or_default());
        }
        self.scan(&frame);
        Ok(())
    }

    /// Adds each stamp in a frame. There is one at the end of each former packet.
    fn scan(&mut self, frame: &[u8]) {
        for place in frame.windows(STAMP_BYTES) {
            let stamp = Stamp::read(place);
            self.add(stamp);
        }
    }

    fn add(&mut self, stamp: Option<Stamp>) {
        /// Longer than any run. A stamp with a later time is none.
        const LONGEST: Duration = Duration::from_secs(86_400);
        let streams = [VIDEO, AUDIO].map(|stream| stream as u8);
        let real = |stamp: &Stamp| {
            let since = stamp.sent.checked_sub(self.since);
            streams.contains(&stamp.stream) && since.is_some_and(|it| it < LONGEST)
        };
        if let Some(stamp) = stamp.filter(real) {
            self.seen.insert((stamp.stream, stamp.number));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};

    use super::*;
    use crate::machine::wall_clock;
    use crate::source::{Packets as Source, SourceConfig};
    use crate::traffic::{Sizes, Traffic};

    fn source() -> Source {
        Source::new(&SourceConfig::of(Traffic {
            video_bps: 500_000,
            fps: 25,
            packets_per_frame: Some(3),
            sizes: Sizes::Equal,
            audio_bps: 0,
        }))
    }

    #[test]
    fn each_packet_of_a_recording_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let since = wall_clock();
        let (mut source, mut bytes) = (source(), Vec::new());
        let info = Info::new(Medium::Video, "vp8", UnixMicros(0));
        let mut writer = FrameWriter::new(info, &mut bytes);
        for frame in 0..4 {
            source.frame(|_, packet| {
                let at = UnixMicros(40_000 * frame);
                // The first frame is in it twice.
                let times = if frame == 0 { 2 } else { 1 };
                for _ in 0..times {
                    writer.packet(at, packet, &mut bytes).unwrap();
                }
            });
        }
        let below = folder.path().join("room");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("a.mjr"), &bytes).unwrap();
        fs::write(folder.path().join("room.json"), "{}").unwrap();
        let found = look(folder.path(), since).unwrap();
        assert_eq!((found.files, found.packets), (1, 12));
        assert_eq!(found.bytes, bytes.len() as u64 + 2);
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        // Truncated within a packet.
        fs::write(below.join("a.mjr"), &bytes[..bytes.len() - 1]).unwrap();
        let found = look(folder.path(), since).unwrap();
        assert_eq!((found.packets, found.unreadable.len()), (11, 1));
        // All stamps are of another time.
        let found = look(folder.path(), wall_clock() + Duration::from_secs(1)).unwrap();
        assert_eq!(found.packets, 0);
    }
}
