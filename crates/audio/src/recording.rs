//! Recordings of mixes. A thread for each writes it: a slow disk loses what finds no room in a queue, and delays nobody.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use hound::{SampleFormat, WavSpec, WavWriter};
use portunus_dsp::{AudioCodec, Encoding, Format, MixId, Mixture, Room};
use portunus_files::opus::{OggOpusError, OggOpusWriter, OpusHead, OpusTags};
use portunus_record::{RecordError, RecordedFile, Recorder};

use crate::{AudioError, AudioEvent};

/// A recording of a room: whoever begins it gives the number, each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordingId(pub u64);

/// How all that is heard in a room is recorded, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixRecording {
    /// The folder, as clients may name it: see `portunus_record::RecorderConfig`. None: the configured one.
    pub dir: Option<String>,
    /// The file's name. Its end (`.wav`, `.opus`) is added if it has none.
    pub name: String,
    /// The form of the file.
    pub format: RecordingFormat,
}

/// The form of a recorded mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordingFormat {
    /// 16-bit PCM at the room's rate and channels.
    #[default]
    Wav,
    /// Opus in Ogg (RFC 7845).
    OggOpus,
}

impl RecordingFormat {
    const fn extension(self) -> &'static str {
        match self {
            RecordingFormat::Wav => "wav",
            RecordingFormat::OggOpus => "opus",
        }
    }
}

/// Frames that wait to be written: 5 s.
const WAITING: usize = 250;
/// How often what waits is written, and how often the header is made right.
const PERIOD: Duration = Duration::from_millis(200);
const HEADER: Duration = Duration::from_secs(5);
/// The longest WAV file: its header counts in 32 bits.
const LONGEST_WAV: u64 = u32::MAX as u64 - 65_536;
/// How a mix is encoded for a file.
const ENCODING: Encoding = Encoding {
    codec: AudioCodec::Opus,
    bitrate: None,
    complexity: 9,
    fec: false,
    expected_loss: 0,
};

/// A file that is open, with its thread.
#[derive(Debug)]
pub(crate) struct MixFile {
    format: RecordingFormat,
    name: String,
    shared: Arc<Shared>,
}

/// What the room and the thread that writes have in common.
#[derive(Debug)]
struct Shared {
    frames: ArrayQueue<Vec<u8>>,
    /// Buffers that were used.
    spare: ArrayQueue<Vec<u8>>,
    dropped: AtomicU64,
    stopped: AtomicBool,
    ended: OnceLock<Option<Arc<AudioError>>>,
}

impl MixFile {
    /// Makes the file, and a thread that writes it. It blocks.
    pub(crate) fn create(
        recorder: &Recorder,
        what: &MixRecording,
        format: Format,
    ) -> Result<Self, AudioError> {
        let place = (what.dir.as_deref(), what.name.as_str());
        let extension = what.format.extension();
        let file = recorder.create_file(place, extension)?;
        let name = file.file_name();
        let writer = Writer::new(&file, what.format, format).map_err(|error| file.failed(error))?;
        let shared = Arc::new(Shared {
            frames: ArrayQueue::new(WAITING),
            spare: ArrayQueue::new(WAITING),
            dropped: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            ended: OnceLock::new(),
        });
        let of_thread = Arc::clone(&shared);
        let builder = thread::Builder::new().name("audio-record".to_owned());
        builder
            .spawn(move || write_all(file, writer, &of_thread))
            .map_err(AudioError::Thread)?;
        Ok(Self {
            format: what.format,
            name,
            shared,
        })
    }

    /// Its name, without folders.
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }
}

impl Drop for MixFile {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
    }
}

/// A recording, as the room has it.
#[derive(Debug)]
pub(crate) struct Recording {
    id: RecordingId,
    file: MixFile,
    /// The mix that is written as it is encoded.
    mix: Option<MixId>,
    stopped: bool,
}

impl Recording {
    /// Has a room give what is to be recorded.
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
            stopped: false,
        })
    }

    /// A frame of sound, of all or of a group.
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

    /// A packet of a mix.
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
        if shared.frames.push(bytes).is_err() {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was heard until now is written, and no more.
    pub(crate) fn stop(&mut self, room: &mut Room) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.mix {
            Some(mix) => room.unsubscribe(mix, false),
            // Only of a group could it be refused.
            None => drop(room.listen(None, false)),
        }
        self.file.shared.stopped.store(true, Ordering::Release);
    }

    /// The file is complete, or will never be.
    pub(crate) fn has_ended(&self) -> bool {
        self.file.shared.ended.get().is_some()
    }

    /// What is to be told of one that has ended.
    pub(crate) fn told(&self) -> AudioEvent {
        AudioEvent::RecordingEnded {
            recording: self.id,
            file: self.file.name(),
            error: self.file.shared.ended.get().cloned().flatten(),
        }
    }
}

/// Writes what there is, until the recording is stopped or something is wrong.
fn write_all(file: RecordedFile, writer: Writer, shared: &Shared) {
    let written = write_until_stopped(&file, writer, shared);
    let finished = file.finish(written.is_ok());
    let error = written.and(finished).err();
    // It is set once, here.
    let _ = shared.ended.set(error.map(|error| Arc::new(error.into())));
}

fn write_until_stopped(
    file: &RecordedFile,
    mut writer: Writer,
    shared: &Shared,
) -> Result<(), RecordError> {
    let limit = file.limit().unwrap_or(u64::MAX).min(writer.longest());
    let (mut bytes, mut right) = (0_u64, Instant::now());
    let (mut dropped, mut is_full) = (0, false);
    loop {
        // What was put in before the stop is written.
        let stopped = shared.stopped.load(Ordering::Acquire);
        let (mut new, mut frames) = (0, 0);
        while let Some(frame) = shared.frames.pop() {
            let len = frame.len() as u64;
            is_full |= bytes.saturating_add(new).saturating_add(len) > limit;
            if !is_full {
                writer.write(&frame).map_err(|error| file.failed(error))?;
                (new, frames) = (new + len, frames + 1);
            }
            let _ = shared.spare.push(frame);
        }
        let lost = shared.dropped.load(Ordering::Relaxed);
        file.count(new, frames, lost - dropped);
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
        true => Err(file.full(limit)),
        false => Ok(()),
    }
}

/// Writes a file of one of the forms.
enum Writer {
    Wav(WavWriter<BufWriter<File>>),
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
                Writer::Wav(writer.map_err(io_error)?)
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

    /// Bytes of frames that the form has room for.
    fn longest(&self) -> u64 {
        match self {
            Writer::Wav(_) => LONGEST_WAV,
            Writer::OggOpus(_) => u64::MAX,
        }
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Writer::Wav(writer) => {
                let samples = frame.as_chunks::<2>().0.iter();
                for sample in samples.map(|bytes| i16::from_le_bytes(*bytes)) {
                    writer.write_sample(sample).map_err(io_error)?;
                }
                Ok(())
            }
            Writer::OggOpus(writer) => match writer.packet(writer.end(), frame) {
                Ok(_) => Ok(()),
                Err(OggOpusError::Io(error)) => Err(error),
                // It is of our own encoder, and would be left out.
                Err(error) => Err(io::Error::other(error)),
            },
        }
    }

    /// The file could end here.
    fn make_right(&mut self) -> io::Result<()> {
        match self {
            Writer::Wav(writer) => writer.flush().map_err(io_error),
            // It can always.
            Writer::OggOpus(_) => Ok(()),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Writer::Wav(writer) => writer.finalize().map_err(io_error),
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
