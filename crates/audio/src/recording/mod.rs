//! Recordings of mixes. Each has a thread that writes it. A slow disk loses frames that find no
//! room in the queue, and delays nobody.

mod spec;

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use hound::{SampleFormat, WavSpec, WavWriter};
use portunus_dsp::{AudioCodec, Encoding, Format, MixId, Mixture, Room};
use portunus_files::opus::{OggOpusError, OggOpusWriter, OpusHead, OpusTags, OpusTime};
use portunus_record::{RecordError, RecordedFile, Recorder};
use tokio::sync::mpsc;

pub use spec::{MixRecording, RecordingFormat, RecordingId};

use crate::{AudioError, AudioEvent};

/// The frames that may wait to be written: 5 s.
const WAITING: usize = 250;
/// The interval between writes, and between updates of the header.
const PERIOD: Duration = Duration::from_millis(200);
const HEADER: Duration = Duration::from_secs(5);
/// The longest WAV file: its header counts in 32 bits.
const LONGEST_WAV: u64 = u32::MAX as u64 - 65_536;
/// The limit of missing frames that are filled with silence: ten minutes. Longer gaps mean that the
/// machine was suspended.
const MOST_MISSING: u32 = 30_000;
/// The length of a frame in Ogg's time.
const FRAME: OpusTime = OpusTime(960);
/// The encoding of a mix in a file.
const ENCODING: Encoding = Encoding {
    codec: AudioCodec::Opus,
    bitrate: None,
    complexity: 9,
    fec: false,
    expected_loss: 0,
};

/// An open file, with its thread.
#[derive(Debug)]
pub(crate) struct MixFile {
    format: RecordingFormat,
    name: String,
    shared: Arc<Shared>,
}

/// The state that the room and the writing thread share.
#[derive(Debug)]
struct Shared {
    frames: ArrayQueue<Frame>,
    /// Used buffers.
    spare: ArrayQueue<Vec<u8>>,
    dropped: AtomicU64,
    stopped: AtomicBool,
    ended: OnceLock<Option<Arc<AudioError>>>,
    heir: Mutex<Option<Heir>>,
}

/// The data of 20 ms.
#[derive(Debug)]
struct Frame {
    /// The missing frames before it, for which the file is silent.
    missing: u32,
    bytes: Vec<u8>,
}

/// The recipient of the end after the room is gone. The writing thread tells it.
#[derive(Debug)]
struct Heir {
    recording: RecordingId,
    file: String,
    to: mpsc::Sender<AudioEvent>,
}

impl Shared {
    fn heir(&self) -> std::sync::MutexGuard<'_, Option<Heir>> {
        self.heir.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MixFile {
    /// Makes the file, and starts the thread that writes it. It blocks.
    pub(crate) fn create(
        recorder: &Recorder,
        what: &MixRecording,
        format: Format,
    ) -> Result<Self, AudioError> {
        let longest = match what.format {
            RecordingFormat::Wav => LONGEST_WAV,
            RecordingFormat::OggOpus => u64::MAX,
        };
        Self::within(recorder, what, format, longest)
    }

    /// Makes a file with this limit of bytes.
    fn within(
        recorder: &Recorder,
        what: &MixRecording,
        format: Format,
        longest: u64,
    ) -> Result<Self, AudioError> {
        let (dir, name) = (what.dir.as_deref(), what.name.as_str());
        let extension = what.format.extension();
        let whose = what.whose.clone();
        let recorder = whose.map_or_else(|| recorder.clone(), |it| recorder.on_behalf_of(it));
        let file = recorder.create_file(dir, name, extension)?;
        let name = file.file_name();
        let writer = Writer::new(&file, what.format, format).map_err(|error| file.failed(error))?;
        let shared = Arc::new(Shared {
            frames: ArrayQueue::new(WAITING),
            spare: ArrayQueue::new(WAITING),
            dropped: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            ended: OnceLock::new(),
            heir: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let builder = thread::Builder::new().name("audio-record".to_owned());
        builder
            .spawn(move || write_all(file, writer, longest, &of_thread))
            .map_err(AudioError::Thread)?;
        Ok(Self {
            format: what.format,
            name,
            shared,
        })
    }

    /// The name of the file, without folders.
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }
}

impl Drop for MixFile {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
    }
}

/// The room's side of a recording.
#[derive(Debug)]
pub(crate) struct Recording {
    id: RecordingId,
    file: MixFile,
    /// The mix that is written as it is encoded.
    mix: Option<MixId>,
    /// Whether this tick had a frame.
    came: bool,
    /// The frames missing since the last one.
    missing: u32,
    stopped: bool,
}

impl Recording {
    /// Has a room provide the data.
    pub(crate) fn begin(
        id: RecordingId,
        file: MixFile,
        room: &mut Room,
    ) -> Result<Self, AudioError> {
        let mix = match file.format {
            RecordingFormat::Wav => {
                room.listen(None, true)?;
                None
            }
            RecordingFormat::OggOpus => Some(room.subscribe(Mixture::Everyone, ENCODING, false)?),
        };
        Ok(Self {
            id,
            file,
            mix,
            came: false,
            missing: 0,
            stopped: false,
        })
    }

    /// Takes a frame of sound, of the room or of a group.
    pub(crate) fn sound(&mut self, group: Option<usize>, sound: &[f32]) {
        if self.mix.is_some() || group.is_some() {
            return;
        }
        self.put(|bytes| {
            let samples = sound
                .iter()
                .map(|sample| (sample * 32_768.0).round() as i16);
            bytes.extend(samples.flat_map(i16::to_le_bytes));
        });
    }

    /// Takes a packet of a mix.
    pub(crate) fn packet(&mut self, mix: MixId, payload: &[u8]) {
        if self.mix == Some(mix) {
            self.put(|bytes| bytes.extend_from_slice(payload));
        }
    }

    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.stopped {
            return;
        }
        let shared = &self.file.shared;
        let mut bytes = shared.spare.pop().unwrap_or_default();
        bytes.clear();
        fill(&mut bytes);
        self.came = true;
        let missing = std::mem::take(&mut self.missing);
        if shared.frames.push(Frame { missing, bytes }).is_err() {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            self.missing = missing.saturating_add(1);
        }
    }

    /// Ends a tick of a room with participants. A mix may have no packet, if its input was lost.
    pub(crate) fn end_frame(&mut self) {
        if !std::mem::take(&mut self.came) {
            self.miss(1);
        }
    }

    /// Counts frames that were skipped, so that the file stays in step with the clock.
    pub(crate) fn miss(&mut self, frames: u32) {
        self.missing = self.missing.saturating_add(frames);
    }

    /// Has the end reported to `to`, now or later, because the room is gone.
    pub(crate) fn bequeath(&self, to: mpsc::Sender<AudioEvent>) {
        let mut heir = self.file.shared.heir();
        if self.has_ended() {
            // A consumer with a full queue is too slow for this event, too.
            let _ = to.try_send(self.end_event());
        } else {
            *heir = Some(Heir {
                recording: self.id,
                file: self.file.name(),
                to,
            });
        }
    }

    /// Stops after the frames so far.
    pub(crate) fn stop(&mut self, room: &mut Room) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.mix {
            Some(mix) => room.unsubscribe(mix, false),
            // Only a group could be refused.
            None => drop(room.listen(None, false)),
        }
        self.file.shared.stopped.store(true, Ordering::Release);
    }

    /// Whether the file is complete, or has failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.file.shared.ended.get().is_some()
    }

    /// Returns the event about the end.
    pub(crate) fn end_event(&self) -> AudioEvent {
        AudioEvent::RecordingEnded {
            recording: self.id,
            file: self.file.name(),
            error: self.file.shared.ended.get().cloned().flatten(),
        }
    }
}

/// Writes frames until the recording is stopped or fails.
fn write_all(file: RecordedFile, writer: Writer, longest: u64, shared: &Shared) {
    let written = write_until_stopped(&file, writer, longest, shared);
    let finished = file.finish(written.as_ref().err());
    let error = match written.and_then(|end| finished.map(|()| end)) {
        Ok(End::Stopped) => None,
        Ok(End::Longest) => Some(AudioError::Longest),
        Err(error) => Some(error.into()),
    };
    let error = error.map(Arc::new);
    // It is set only here.
    let _ = shared.ended.set(error.clone());
    let heir = shared.heir().take();
    if let Some(Heir {
        recording,
        file,
        to,
    }) = heir
    {
        // While the server ends, nobody may take it.
        let _ = to.blocking_send(AudioEvent::RecordingEnded {
            recording,
            file,
            error,
        });
    }
}

/// The regular end of a file.
enum End {
    Stopped,
    /// The file is full.
    Longest,
}

fn write_until_stopped(
    file: &RecordedFile,
    mut writer: Writer,
    longest: u64,
    shared: &Shared,
) -> Result<End, RecordError> {
    let allowed = file.limit().unwrap_or(u64::MAX);
    let limit = allowed.min(longest);
    let (mut bytes, mut right) = (0_u64, Instant::now());
    let (mut dropped, mut is_full) = (0, false);
    let mut length: u64 = 0;
    loop {
        // Frames that were queued before the stop are written.
        let stopped = shared.stopped.load(Ordering::Acquire);
        let (mut new, mut frames) = (0, 0);
        while let Some(Frame {
            missing,
            bytes: frame,
        }) = shared.frames.pop()
        {
            let missing = missing.min(MOST_MISSING);
            let len = (frame.len() as u64).saturating_add(writer.gap_len(missing));
            is_full |= bytes.saturating_add(new).saturating_add(len) > limit;
            if !is_full {
                let written = writer.write(missing, &frame);
                written.map_err(|error| file.failed(error))?;
                (new, frames) = (new + len, frames + 1);
                length = length.saturating_add(u64::from(missing) + 1);
            }
            let _ = shared.spare.push(frame);
        }
        let lost = shared.dropped.load(Ordering::Relaxed);
        file.count(new, frames, lost - dropped);
        file.lasts(Duration::from_millis(length.saturating_mul(20)));
        if dropped == 0 && lost > 0 {
            tracing::warn!(
                file = file.file_name(),
                "the disk is too slow: frames are left out of the recording"
            );
        }
        (bytes, dropped) = (bytes + new, lost);
        if stopped || is_full {
            break;
        }
        if right.elapsed() >= HEADER {
            right = Instant::now();
            file.check_room()?;
            writer.make_right().map_err(|error| file.failed(error))?;
        }
        thread::sleep(PERIOD);
    }
    writer.finish().map_err(|error| file.failed(error))?;
    match is_full {
        true if longest < allowed => Ok(End::Longest),
        true => Err(file.full(limit)),
        false => Ok(End::Stopped),
    }
}

/// Writes a file in one of the formats.
enum Writer {
    /// The samples of a frame, of all channels.
    Wav(WavWriter<BufWriter<File>>, u32),
    OggOpus(OggOpusWriter<File>),
}

impl Writer {
    fn new(file: &RecordedFile, form: RecordingFormat, format: Format) -> io::Result<Self> {
        let file = file.file().try_clone()?;
        let channels = format.channels.count() as u16;
        Ok(match form {
            RecordingFormat::Wav => {
                let spec = WavSpec {
                    channels,
                    sample_rate: format.rate.hertz(),
                    bits_per_sample: 16,
                    sample_format: SampleFormat::Int,
                };
                let writer = WavWriter::new(BufWriter::new(file), spec);
                Writer::Wav(writer.map_err(io_error)?, format.frame_len() as u32)
            }
            RecordingFormat::OggOpus => {
                let head = OpusHead {
                    channels: channels as u8,
                    input_rate: format.rate.hertz(),
                    ..OpusHead::default()
                };
                let serial = rand::random();
                let writer = OggOpusWriter::new(file, serial, &head, &OpusTags::default());
                Writer::OggOpus(writer?)
            }
        })
    }

    /// Returns the bytes of so many missing frames.
    fn gap_len(&self, missing: u32) -> u64 {
        match self {
            Writer::Wav(_, frame) => 2 * u64::from(*frame) * u64::from(missing),
            // A gap takes no bytes: the decoder conceals it.
            Writer::OggOpus(_) => 0,
        }
    }

    /// Writes a frame, after silence for the missing ones.
    fn write(&mut self, missing: u32, frame: &[u8]) -> io::Result<()> {
        match self {
            Writer::Wav(writer, silent) => {
                for _ in 0..u64::from(*silent) * u64::from(missing) {
                    writer.write_sample(0_i16).map_err(io_error)?;
                }
                let samples = frame.as_chunks::<2>().0.iter();
                for sample in samples.map(|bytes| i16::from_le_bytes(*bytes)) {
                    writer.write_sample(sample).map_err(io_error)?;
                }
                Ok(())
            }
            Writer::OggOpus(writer) => {
                let gap = OpusTime(FRAME.0.saturating_mul(missing.into()));
                match writer.packet(writer.end().plus(gap), frame) {
                    Ok(_) => Ok(()),
                    Err(OggOpusError::Io(error)) => Err(error),
                    // The encoder is our own, so its packets are valid.
                    Err(error) => Err(io::Error::other(error)),
                }
            }
        }
    }

    /// The file could end here.
    fn make_right(&mut self) -> io::Result<()> {
        match self {
            Writer::Wav(writer, _) => writer.flush().map_err(io_error),
            // It can always.
            Writer::OggOpus(_) => Ok(()),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Writer::Wav(writer, _) => writer.finalize().map_err(io_error),
            Writer::OggOpus(writer) => {
                let end = writer.end();
                writer.finish(end).map(drop).map_err(io::Error::other)
            }
        }
    }
}

fn io_error(error: hound::Error) -> io::Error {
    match error {
        hound::Error::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
