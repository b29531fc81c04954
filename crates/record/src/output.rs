//! A recording's file. All of it is blocking.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use portunus_files::mjr::{FrameWriter, UnixMicros};
use portunus_media::{DataPayload, Tapped, TappedMessage, TappedPacket};
use portunus_rtp::{ExtensionKind, Ssrc};
use rustix::fs::OFlags;

use crate::place::Places;
use crate::{RecordError, RecordedMedia, RecorderConfig, RecordingSpec};

/// How long a recording of video waits for its first keyframe before it begins without.
const KEYFRAME_WAIT: Duration = Duration::from_secs(5);

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    /// As it was asked for.
    name: String,
    /// Where it is while it is written, and then.
    paths: (PathBuf, PathBuf),
    media: RecordedMedia,
    writer: FrameWriter,
    clock: Clock,
    /// When the first packet came, as long as a keyframe is awaited.
    waits: Option<Option<Instant>>,
    packet: Vec<u8>,
    buffer: Vec<u8>,
    written: Written,
    /// Bytes that the file may have.
    limit: u64,
    /// MiB that stay free.
    keep_free: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    /// Frames that the format has no room for.
    pub(crate) too_long: u64,
}

/// Tells the time of day of what came at a monotonic time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Instant,
    is: UnixMicros,
}

impl Clock {
    fn now() -> Self {
        Self {
            start: Instant::now(),
            is: SystemTime::now().into(),
        }
    }

    fn at(&self, time: Instant) -> UnixMicros {
        // Whole microseconds only at the end: distances stay what they are.
        let is = u128::from(self.is.0) * 1_000;
        let after = time.saturating_duration_since(self.start).as_nanos();
        let before = self.start.saturating_duration_since(time).as_nanos();
        let micros = is.saturating_add(after).saturating_sub(before) / 1_000;
        UnixMicros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Output {
    /// Makes the file, and its folder.
    pub(crate) fn create(
        (config, places): (&RecorderConfig, &Places),
        path: &Path,
        spec: &RecordingSpec,
    ) -> Result<Self, RecordError> {
        let name = || spec.name.clone();
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => RecordError::Exists(name()),
            _ => RecordError::Create {
                name: name(),
                error,
            },
        };
        let made = places.make_folder(path);
        let path = made.map_err(|error| RecordError::Create {
            name: name(),
            error,
        })?;
        if let Some(folder) = path.parent() {
            check_room(rustix::fs::statvfs(folder), config.keep_free_mb, name)?;
        }
        let temporary = match config.temporary.as_str() {
            "" => path.clone(),
            suffix => PathBuf::from(format!("{}.{suffix}", path.display())),
        };
        let mut options = OpenOptions::new();
        if config.overwrite {
            // What a link leads to is not ours to empty.
            let flags = OFlags::NOFOLLOW.bits().cast_signed();
            options
                .write(true)
                .create(true)
                .truncate(true)
                .custom_flags(flags);
        } else {
            if temporary != path && path.symlink_metadata().is_ok() {
                return Err(RecordError::Exists(name()));
            }
            options.write(true).create_new(true);
        }
        let file = options.open(&temporary).map_err(failed)?;
        let clock = Clock::now();
        let mut buffer = Vec::new();
        let writer = FrameWriter::new(spec.media.info(clock.is), &mut buffer);
        let mut this = Self {
            file,
            name: name(),
            paths: (temporary, path),
            media: spec.media.clone(),
            writer,
            clock,
            waits: spec.media.has_keyframes().then_some(None),
            packet: Vec::new(),
            buffer,
            written: Written::default(),
            limit: match config.max_file_bytes {
                0 => u64::MAX,
                limit => limit,
            },
            keep_free: config.keep_free_mb,
        };
        this.flush()?;
        Ok(this)
    }

    /// Writes what there is, and has room.
    pub(crate) fn write(&mut self, batch: &[Tapped]) -> Result<(), RecordError> {
        let room = rustix::fs::fstatvfs(&self.file);
        check_room(room, self.keep_free, || self.name.clone())?;
        for tapped in batch {
            let before = self.buffer.len();
            let frame = match tapped {
                Tapped::Packet(packet) => self.put_packet(packet),
                Tapped::Message(message) => self.put_message(message),
            };
            match frame {
                Some(Ok(())) => self.written.frames += 1,
                Some(Err(_)) => self.written.too_long += 1,
                None => {}
            }
            if self.written.bytes.saturating_add(self.buffer.len() as u64) > self.limit {
                // Whole frames only.
                self.buffer.truncate(before);
                self.written.frames = self.written.frames.saturating_sub(1);
                self.flush()?;
                return Err(RecordError::Full {
                    name: self.name.clone(),
                    limit: self.limit,
                });
            }
        }
        self.flush()
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> Written {
        self.written
    }

    /// Gives the file, complete or as far as it came, the name that it is to have.
    pub(crate) fn finish(self) -> Result<Written, RecordError> {
        let (temporary, path) = &self.paths;
        if temporary != path {
            fs::rename(temporary, path).map_err(|error| RecordError::Write {
                name: self.name.clone(),
                error,
            })?;
        }
        Ok(self.written)
    }

    /// None: it does not belong into the file.
    fn put_packet(&mut self, packet: &TappedPacket) -> Option<Result<(), ()>> {
        let pt = self.media.payload_type(packet.codec())?;
        if let Some(since) = &mut self.waits {
            let since = *since.get_or_insert(packet.arrival());
            let waited = packet.arrival().saturating_duration_since(since);
            if !packet.is_keyframe() && waited < KEYFRAME_WAIT {
                return None;
            }
            self.waits = None;
        }
        self.writer.set_info(|info| {
            let known = ExtensionKind::ALL.into_iter();
            let numbered = known.filter_map(|kind| Some((packet.extensions().id(kind)?, kind)));
            info.extensions = numbered
                .map(|(id, kind)| (id, kind.uri().to_owned()))
                .collect();
        });
        packet.write_to(Some(pt), &mut self.packet);
        if self.packet.is_empty() {
            return None;
        }
        // RFC 3550 section 5.1.
        if let (Some(Ssrc(ssrc)), Some(field)) = (self.media.ssrc(), self.packet.get_mut(8..12)) {
            field.copy_from_slice(&ssrc.to_be_bytes());
        }
        let at = self.clock.at(packet.arrival());
        let put = self.writer.packet(at, &self.packet, &mut self.buffer);
        Some(put.map_err(drop))
    }

    fn put_message(&mut self, message: &TappedMessage) -> Option<Result<(), ()>> {
        let bytes = match &message.payload {
            DataPayload::Text(text) => text.as_bytes(),
            DataPayload::Binary(bytes) => bytes,
        };
        let at = self.clock.at(message.arrival);
        let put = self.writer.message(at, bytes, &mut self.buffer);
        Some(put.map_err(drop))
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.file.write_all(&self.buffer);
        let bytes = self.buffer.len() as u64;
        self.buffer.clear();
        written.map_err(|error| RecordError::Write {
            name: self.name.clone(),
            error,
        })?;
        self.written.bytes += bytes;
        Ok(())
    }
}

/// Whether the disk has so many MiB to spare; one that does not say is taken to have them.
fn check_room(
    disk: rustix::io::Result<rustix::fs::StatVfs>,
    keep: u64,
    name: impl Fn() -> String,
) -> Result<(), RecordError> {
    let free = disk.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free >> 20 < keep {
        true => Err(RecordError::NoRoom { name: name(), keep }),
        false => Ok(()),
    }
}
