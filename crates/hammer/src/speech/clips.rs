//! Recorded sentences, spoken by espeak-ng if that is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use rubato::audioadapter_buffers::owned::InterleavedOwned;
use rubato::{Fft, FixedSync, Resampler};

use super::{HEARD_RATE, SAID_RATE, Talker};

/// The program that speaks.
const SPEAKER: &str = "espeak-ng";

/// Its voices and sentences of some eight seconds each.
const SENTENCES: [(&str, &str); 4] = [
    (
        "en-us",
        "The early ferry leaves at six. Bring a warm coat, because the wind on the upper deck is cold even in June.",
    ),
    (
        "en-gb",
        "Three bakers share one oven in the old mill. Nobody remembers who bought the first sack of flour.",
    ),
    (
        "en-us+f3",
        "Please move the yellow boxes next to the door. We shall need them when the piano arrives on Thursday.",
    ),
    (
        "en-gb+f2",
        "A quiet street, a locked gate, and a light in the kitchen. Somebody must have come home before us.",
    ),
];

/// The root mean square of a sentence. Full scale is 1.
const STRENGTH: f64 = 0.07;

/// The length of synthetic sentences, in seconds.
const MADE_S: usize = 8;

/// A recording.
#[derive(Debug)]
pub(super) struct Clip {
    /// Samples at [`SAID_RATE`].
    pub(super) said: Vec<f32>,
    /// Samples at [`HEARD_RATE`].
    pub(super) reference: Vec<f32>,
}

impl Clip {
    /// Returns `None` if the sound cannot be resampled.
    fn new(mut sound: Vec<f32>, rate: usize) -> Option<Self> {
        let power: f64 = sound.iter().map(|s| f64::from(*s).powi(2)).sum();
        let scale = STRENGTH / (power / sound.len().max(1) as f64).sqrt().max(1e-9);
        sound.iter_mut().for_each(|s| *s *= scale as f32);
        Some(Self {
            said: resampled(&sound, rate, SAID_RATE)?,
            reference: resampled(&sound, rate, HEARD_RATE)?,
        })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.said.len() as f64 / SAID_RATE as f64
    }
}

/// Returns the sentences and their speaker.
pub(super) fn clips() -> (&'static str, Vec<Clip>) {
    let spoken: Option<Vec<Clip>> = SENTENCES
        .iter()
        .map(|(voice, text)| spoken(voice, text))
        .collect();
    match spoken {
        Some(clips) => (SPEAKER, clips),
        None => ("made", made()),
    }
}

/// Returns synthetic voices without pilots.
fn made() -> Vec<Clip> {
    let voices = [17, 22, 27, 30].into_iter();
    let clip = |n| {
        let mut sound = Talker::Voice(n).samples();
        sound.truncate(MADE_S * SAID_RATE);
        Clip::new(sound, SAID_RATE)
    };
    voices.filter_map(clip).collect()
}

/// Speaks a text. Returns `None` if that is not possible.
fn spoken(voice: &str, text: &str) -> Option<Clip> {
    let folder = tempfile::tempdir().ok()?;
    let file = folder.path().join("said.wav");
    let mut command = Command::new(SPEAKER);
    command
        .args(["-v", voice, "-s", "155", "-w"])
        .arg(&file)
        .arg(text);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let spoke = command.status().is_ok_and(|status| status.success());
    if spoke { read(&file) } else { None }
}

fn read(file: &Path) -> Option<Clip> {
    let mut wav = hound::WavReader::open(file).ok()?;
    let spec = wav.spec();
    let is_known = spec.channels == 1 && spec.bits_per_sample == 16;
    let samples = wav
        .samples::<i16>()
        .map(|sample| sample.map(|s| f32::from(s) / 32_768.0));
    let sound: Vec<f32> = samples.collect::<Result<_, _>>().ok()?;
    Clip::new(sound, spec.sample_rate as usize).filter(|clip| is_known && !clip.said.is_empty())
}

/// Resamples sound. Returns `None` if that is not possible.
pub(super) fn resampled(sound: &[f32], from: usize, to: usize) -> Option<Vec<f32>> {
    if from == to {
        return Some(sound.to_vec());
    }
    let input = InterleavedOwned::new_from(sound.to_vec(), 1, sound.len()).ok()?;
    let mut resampler = Fft::<f32>::new(from, to, 1_024, 1, FixedSync::Both).ok()?;
    let output = resampler.process_all(&input, sound.len(), None).ok()?;
    Some(output.take_data())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_a_length_at_which_they_can_be_scored() {
        for clips in [clips().1, made()] {
            assert_eq!(clips.len(), 4);
            for clip in clips {
                assert!((4.0..12.0).contains(&clip.seconds()), "{}", clip.seconds());
                let reference = clip.reference.len() as f64 / HEARD_RATE as f64;
                assert!((reference - clip.seconds()).abs() < 0.01);
            }
        }
    }
}
