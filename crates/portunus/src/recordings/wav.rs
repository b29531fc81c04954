//! Decodes a recording of sound into a WAV file.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::time::Duration;

use hound::{SampleFormat, WavSpec, WavWriter};
use opusic_c::{Channels, Decoder, SampleRate};
use portunus_dsp::g711::{self, Law};
use portunus_files::assembly::Step;
use portunus_files::convert::{ConvertError, Converted, Recordings, assemble};
use portunus_files::mjr::Medium;

/// The samples of the longest Opus packet: 120 ms.
const LONGEST: usize = 5_760;
/// Times further ahead of the present sample are filled with silence.
const BEHIND: Duration = Duration::from_millis(40);
/// The longest file, whose sizes have 32 bits.
const LONGEST_FILE: u64 = 4_000_000_000;

/// Writes the sound of `recordings`, which is Opus or G.711.
pub(super) fn write(
    recordings: &mut Recordings,
    out: &mut File,
    progress: &mut dyn FnMut(f32),
) -> Result<Converted, ConvertError> {
    let audio = recordings
        .infos()
        .filter(|info| info.medium == Medium::Audio);
    let codecs: Vec<_> = audio.map(|info| info.codec.clone()).collect();
    let codec = match codecs.as_slice() {
        [] => return Err(ConvertError::Nothing("audio")),
        [codec] => codec.as_str(),
        _ => return Err(ConvertError::TooMany("recording of audio")),
    };
    // Video does not matter, but would start new files.
    let sound = match recordings.infos().any(|info| info.medium == Medium::Video) {
        true => {
            return Err(ConvertError::TooMany(
                "kind of media, and .wav is for audio",
            ));
        }
        false => Sound::of(codec)?,
    };
    let mut writer = Writer::new(sound, BufWriter::new(out))?;
    let mut converted = Converted {
        parts: 1,
        ..Converted::default()
    };
    let assembled = assemble(recordings, None, progress, &mut |_, step| {
        if let Step::Frame(frame) = step {
            writer.put(frame.at, frame.data)?;
            converted.frames += 1;
        }
        Ok(())
    })?;
    converted.duration = writer.duration();
    writer.finish()?;
    if converted.frames == 0 {
        return Err(ConvertError::Nothing("packet of audio"));
    }
    converted.lost = assembled.lost;
    converted.gaps = assembled.gaps;
    Ok(converted)
}

/// The decoder.
enum Sound {
    Opus(Box<Decoder>),
    G711(Law),
}

impl Sound {
    fn of(codec: &str) -> Result<Self, ConvertError> {
        match codec {
            "opus" => {
                let decoder = Decoder::new(Channels::Stereo, SampleRate::Hz48000);
                let decoder = decoder.map_err(|_| io::Error::other("no decoder of Opus"))?;
                Ok(Sound::Opus(Box::new(decoder)))
            }
            "pcmu" => Ok(Sound::G711(Law::Mu)),
            "pcma" => Ok(Sound::G711(Law::A)),
            _ => Err(ConvertError::Nothing("Opus and no G.711")),
        }
    }

    const fn form(&self) -> (u32, u16) {
        match self {
            Sound::Opus(_) => (48_000, 2),
            Sound::G711(_) => (8_000, 1),
        }
    }
}

struct Writer<W: Write + Seek> {
    sound: Sound,
    wav: WavWriter<W>,
    rate: u32,
    channels: u16,
    /// Samples of each channel so far.
    samples: u64,
    decoded: Vec<f32>,
}

impl<W: Write + Seek> Writer<W> {
    fn new(sound: Sound, out: W) -> Result<Self, ConvertError> {
        let (rate, channels) = sound.form();
        let spec = WavSpec {
            channels,
            sample_rate: rate,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        Ok(Self {
            sound,
            wav: WavWriter::new(out, spec).map_err(of_wav)?,
            rate,
            channels,
            samples: 0,
            decoded: Vec::new(),
        })
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.samples as f64 / f64::from(self.rate))
    }

    fn put(&mut self, at: Duration, packet: &[u8]) -> Result<(), ConvertError> {
        if at > self.duration().saturating_add(BEHIND) {
            let until = (at.as_secs_f64() * f64::from(self.rate)) as u64;
            self.check(until)?;
            for _ in 0..until.saturating_sub(self.samples) * u64::from(self.channels) {
                self.wav.write_sample(0_i16).map_err(of_wav)?;
            }
            self.samples = self.samples.max(until);
        }
        self.decoded.clear();
        match &mut self.sound {
            Sound::Opus(decoder) => {
                self.decoded
                    .resize(LONGEST * usize::from(self.channels), 0.0);
                // Invalid Opus becomes concealment by the decoder.
                let count = decoder
                    .decode_float_to_slice(packet, &mut self.decoded, false)
                    .unwrap_or(0);
                self.decoded.truncate(count * usize::from(self.channels));
            }
            Sound::G711(law) => g711::decode(*law, packet, &mut self.decoded),
        }
        let count = self.decoded.len() as u64 / u64::from(self.channels.max(1));
        self.check(self.samples.saturating_add(count))?;
        for sample in &self.decoded {
            // `as` saturates, and converts NaN to 0.
            let sample = (sample * 32_767.0).round() as i16;
            self.wav.write_sample(sample).map_err(of_wav)?;
        }
        self.samples = self.samples.saturating_add(count);
        Ok(())
    }

    /// Whether a file can have so many samples.
    fn check(&self, samples: u64) -> Result<(), ConvertError> {
        let bytes = samples.saturating_mul(u64::from(self.channels) * 2);
        match bytes > LONGEST_FILE {
            true => Err(io::Error::other("WAV files end at 4 GB").into()),
            false => Ok(()),
        }
    }

    fn finish(self) -> Result<(), ConvertError> {
        self.wav.finalize().map_err(of_wav)
    }
}

fn of_wav(error: hound::Error) -> ConvertError {
    match error {
        hound::Error::IoError(error) => error.into(),
        error => io::Error::other(error).into(),
    }
}
