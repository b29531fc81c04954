//! The quality of received speech by PESQ (ITU-T P.862.2), which compares it with the original.

use super::clips::{self, Clip};
use super::script::{Encoding, Script};
use super::{EncodeError, HEARD_RATE, SAID_RATE};

/// The silence before the first sentence, and after each one, in seconds.
const LEAD_S: f64 = 2.0;
const PAUSE_S: f64 = 1.5;

/// The margin before and after the compared sentences, in seconds, for the delay of a server.
pub(crate) const BEFORE_S: f64 = 0.2;
pub(crate) const AFTER_S: f64 = 0.8;

/// Consecutive sentences.
#[derive(Debug)]
pub(crate) struct Sentences {
    /// Their speaker.
    pub(crate) speaker: &'static str,
    clips: Vec<Clip>,
}

impl Sentences {
    /// Creates sentences spoken by espeak-ng, or else synthetic ones.
    pub(crate) fn new() -> Self {
        let (speaker, clips) = clips::clips();
        Self { speaker, clips }
    }

    /// Encodes all sentences, with a mark at the start of each.
    pub(crate) fn script(&self, encoding: Encoding) -> Result<Script, EncodeError> {
        let silence = |seconds: f64| vec![0.0f32; (seconds * SAID_RATE as f64) as usize];
        let (mut sound, mut marks) = (silence(LEAD_S), Vec::new());
        for clip in &self.clips {
            marks.push(sound.len() as f64 / SAID_RATE as f64);
            sound.extend(&clip.said);
            sound.extend(silence(PAUSE_S));
        }
        Script::recorded(&sound, &marks, encoding)
    }

    /// Returns their length in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let clips = self.clips.iter().map(|clip| clip.seconds() + PAUSE_S);
        LEAD_S + clips.sum::<f64>()
    }

    /// Returns each sentence with its length in seconds, at [`HEARD_RATE`].
    pub(crate) fn clips(&self) -> impl Iterator<Item = (&[f32], f64)> {
        let clips = self.clips.iter();
        clips.map(|clip| (clip.reference.as_slice(), clip.seconds()))
    }
}

/// Returns the score of received sound against the original, both at [`HEARD_RATE`]: MOS-LQO, from
/// 1 (bad) to 4.64. Returns `None` if there is nothing to compare.
pub(crate) fn score(said: &[f32], heard: &[f32]) -> Option<f64> {
    let before = vec![0i16; (BEFORE_S * HEARD_RATE as f64) as usize];
    let whole = |sample: &f32| {
        (f64::from(*sample) * 32_767.0)
            .round()
            .clamp(-32_768.0, 32_767.0) as i16
    };
    let after = vec![0i16; (AFTER_S * HEARD_RATE as f64) as usize];
    let said: Vec<i16> = before
        .into_iter()
        .chain(said.iter().map(whole))
        .chain(after)
        .collect();
    let heard: Vec<i16> = heard.iter().map(whole).collect();
    pesq::pesq_wb(&said, &heard).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::speech::hearing::Hearing;
    use portunus_dsp::AudioCodec;

    const OPUS: Encoding = Encoding {
        codec: AudioCodec::Opus,
        bitrate: 32_000,
        dtx: false,
        expected_loss: 0,
        rate: 16_000,
    };

    fn padded(sound: &[f32], before: f64) -> Vec<f32> {
        let silence = |seconds: f64| vec![0.0; (seconds * HEARD_RATE as f64) as usize];
        [silence(before), sound.to_vec(), silence(AFTER_S)].concat()
    }

    #[test]
    fn what_is_the_same_scores_best_and_what_is_worse_scores_less() {
        let sentences = Sentences::new();
        let (said, _) = sentences.clips().next().unwrap();
        let same = score(said, &padded(said, BEFORE_S)).unwrap();
        let later = score(said, &padded(said, BEFORE_S + 0.12)).unwrap();
        assert!(same > 4.5 && later > 4.4, "{same} {later}");
        let mut random = 1u32;
        let mut noisy = |strength: f32| {
            let noisy: Vec<f32> = padded(said, BEFORE_S)
                .into_iter()
                .map(|sample| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    sample + strength * (random as f32 / u32::MAX as f32 - 0.5)
                })
                .collect();
            score(said, &noisy).unwrap()
        };
        let (little, much) = (noisy(0.01), noisy(0.2));
        assert!(
            same > little && little > much && much < 2.0,
            "{little} {much}"
        );
        assert_eq!(score(said, &[]), None);
    }

    #[test]
    fn lost_packets_cost_quality_and_more_of_them_more() {
        let sentences = Sentences::new();
        let script = sentences.script(OPUS).unwrap();
        let (said, seconds) = sentences.clips().next().unwrap();
        let heard = |every: usize| {
            let mut hearing = Hearing::new(AudioCodec::Opus).unwrap();
            let mut sound = Vec::new();
            for (n, packet) in script.packets.iter().enumerate() {
                let is_lost = n % every == every - 1;
                hearing.hear(if is_lost { &[] } else { &packet.payload }, &mut sound);
            }
            let place = |at: f64| ((LEAD_S + at) * HEARD_RATE as f64) as usize;
            let piece = sound
                .get(place(-BEFORE_S)..place(seconds + AFTER_S))
                .unwrap();
            score(said, piece).unwrap()
        };
        let (all, most, few) = (heard(usize::MAX), heard(20), heard(5));
        assert!(
            all > 3.5 && all > most + 0.2 && most > few,
            "{all} {most} {few}"
        );
    }
}
