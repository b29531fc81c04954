//! Recordings of mixes. A thread for each writes it: a slow disk loses what finds no room in a queue, and delays nobody.

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
use portunus_record::{RecordError, RecordedFile, Recorder, Whose};
use tokio::sync::mpsc;

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
    /// Whose it is, for those who are told of complete files; none: they are not.
    pub whose: Option<Whose>,
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
/// Frames that are made up for at most where some are missing: ten minutes. More were never due, since the machine stood still.
const MOST_MISSING: u32 = 30_000;
/// A frame in Ogg's time.
const FRAME: OpusTime = OpusTime(960);
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
    frames: ArrayQueue<Frame>,
    /// Buffers that were used.
    spare: ArrayQueue<Vec<u8>>,
    dropped: AtomicU64,
    stopped: AtomicBool,
    ended: OnceLock<Option<Arc<AudioError>>>,
    heir: Mutex<Option<Heir>>,
}

/// What is written of 20 ms.
#[derive(Debug)]
struct Frame {
    /// So many frames before it are missing: the file is silent for as long.
    missing: u32,
    bytes: Vec<u8>,
}

/// Who is told of the end by the thread itself, since the room is gone.
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
    /// Makes the file, and a thread that writes it. It blocks.
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

    /// The same, with the bytes of frames that the file's form has room for.
    fn within(
        recorder: &Recorder,
        what: &MixRecording,
        format: Format,
        longest: u64,
    ) -> Result<Self, AudioError> {
        let place = (what.dir.as_deref(), what.name.as_str());
        let extension = what.format.extension();
        let whose = what.whose.clone();
        let recorder = whose.map_or_else(|| recorder.clone(), |it| recorder.on_behalf_of(it));
        let file = recorder.create_file(place, extension)?;
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
            .spawn(move || write_all(file, (writer, longest), &of_thread))
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
    /// This tick has had its frame.
    came: bool,
    /// Frames that are missing since the last one.
    missing: u32,
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
            came: false,
            missing: 0,
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
        self.came = true;
        let missing = std::mem::take(&mut self.missing);
        if shared.frames.push(Frame { missing, bytes }).is_err() {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            self.missing = missing.saturating_add(1);
        }
    }

    /// A tick of a room with somebody in it is over. A mix may have had no packet in it: what it is of was lost, say.
    pub(crate) fn end_frame(&mut self) {
        if !std::mem::take(&mut self.came) {
            self.miss(1);
        }
    }

    /// So many frames will never come: the file stays in step with the clock.
    pub(crate) fn miss(&mut self, frames: u32) {
        self.missing = self.missing.saturating_add(frames);
    }

    /// The room is gone: the end of what is still being written is told to `to`, at once or when it comes.
    pub(crate) fn bequeath(&self, to: mpsc::Sender<AudioEvent>) {
        let mut heir = self.file.shared.heir();
        if self.has_ended() {
            // Whoever has as much to take in has lost count.
            let _ = to.try_send(self.told());
        } else {
            *heir = Some(Heir {
                recording: self.id,
                file: self.file.name(),
                to,
            });
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
fn write_all(file: RecordedFile, (writer, longest): (Writer, u64), shared: &Shared) {
    let written = write_until_stopped(&file, (writer, longest), shared);
    let finished = file.finish(written.as_ref().err());
    let error = match written.and_then(|end| finished.map(|()| end)) {
        Ok(End::Stopped) => None,
        Ok(End::Longest) => Some(AudioError::Longest),
        Err(error) => Some(error.into()),
    };
    let error = error.map(Arc::new);
    // It is set once, here.
    let _ = shared.ended.set(error.clone());
    let heir = shared.heir().take();
    if let Some(Heir {
        recording,
        file,
        to,
    }) = heir
    {
        // Nobody takes it any more while the server ends.
        let _ = to.blocking_send(AudioEvent::RecordingEnded {
            recording,
            file,
            error,
        });
    }
}

/// How a file has come to its end in order.
enum End {
    Stopped,
    /// No more fits into its form.
    Longest,
}

fn write_until_stopped(
    file: &RecordedFile,
    (mut writer, longest): (Writer, u64),
    shared: &Shared,
) -> Result<End, RecordError> {
    let allowed = file.limit().unwrap_or(u64::MAX);
    let limit = allowed.min(longest);
    let (mut bytes, mut right) = (0_u64, Instant::now());
    let (mut dropped, mut is_full) = (0, false);
    let mut length: u64 = 0;
    loop {
        // What was put in before the stop is written.
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

/// Writes a file of one of the forms.
enum Writer {
    /// With the samples of a frame, of all channels.
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

    /// Bytes that so many missing frames take.
    fn gap_len(&self, missing: u32) -> u64 {
        match self {
            Writer::Wav(_, frame) => 2 * u64::from(*frame) * u64::from(missing),
            // Next to nothing: a decoder is told that nothing came.
            Writer::OggOpus(_) => 0,
        }
    }

    /// Writes a frame, and before it the silence of those that are missing.
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
                    // It is of our own encoder, and would be left out.
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
