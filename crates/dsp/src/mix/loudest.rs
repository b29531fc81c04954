//! The choice of the loudest participants, if not all can be heard.
//!
//! A participant keeps its place through the pauses between words, until another one is clearly
//! louder. A louder newcomer is heard at once. A microphone with only steady noise gets no place.

use super::voice::VoiceDetector;
use crate::level::SILENCE;

/// By how much a newcomer must be louder to take a place, in dB.
const LOUDER: f32 = 6.0;

/// The decay of loudness in silence, in dB per frame.
const DECAY: f32 = 0.25;

/// The frames without a voice after which a place becomes free.
const HOLD: u16 = 25;

/// The standing of a participant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    voice: VoiceDetector,
    /// In dB above silence, 0 to 127. It rises at once and falls slowly.
    loudness: f32,
    /// Whether the last frame had a voice.
    talks: bool,
    /// The frames for which it still keeps its place.
    hold: u16,
    heard: bool,
}

impl Standing {
    /// Takes the level of the next frame in -dBov, or `None` if there is no frame.
    pub(crate) fn frame(&mut self, level: Option<u8>) {
        self.talks = level.is_some_and(|level| self.voice.frame(level));
        let level = level.unwrap_or(SILENCE).min(SILENCE);
        self.loudness = (self.loudness - DECAY).max(f32::from(SILENCE - level));
        if self.talks {
            self.hold = HOLD;
        } else if self.hold > 0 {
            self.hold -= 1;
        } else {
            self.heard = false;
        }
    }

    /// Corrects the loudness by this many dB, because the level was too high.
    pub(crate) fn lower(&mut self, decibels: f32) {
        self.loudness -= decibels;
    }

    /// Whether it is heard.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    pub(crate) fn set_heard(&mut self, heard: bool) {
        self.heard = heard;
    }

    /// Returns it as a candidate if it is heard, or wants to be. If `all` are heard, even noise
    /// counts.
    pub(crate) fn candidate(&self, who: usize, all: bool) -> Option<Candidate> {
        (all || self.heard || self.talks).then_some(Candidate {
            who,
            loudness: self.loudness,
            heard: self.heard,
        })
    }
}

/// A participant that is heard, or wants to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) who: usize,
    loudness: f32,
    pub(crate) heard: bool,
}

/// Chooses at most `places` of the candidates; 0 means all.
pub(crate) fn choose(candidates: &mut [Candidate], places: usize) {
    if places == 0 || candidates.len() <= places {
        for candidate in candidates {
            candidate.heard = true;
        }
        return;
    }
    let mut heard = candidates.iter().filter(|one| one.heard).count();
    while heard > places {
        let Some(quietest) = quietest_heard(candidates) else {
            return;
        };
        quietest.heard = false;
        heard -= 1;
    }
    while heard < places {
        let Some(loudest) = loudest_waiting(candidates) else {
            return;
        };
        loudest.heard = true;
        heard += 1;
    }
    // Each turn replaces a participant by one that is some dB louder, so the loop ends.
    while let Some(newcomer) = loudest_waiting(candidates).map(|one| *one) {
        let Some(quietest) = quietest_heard(candidates) else {
            return;
        };
        if newcomer.loudness < quietest.loudness + LOUDER {
            return;
        }
        quietest.heard = false;
        if let Some(loudest) = candidates.iter_mut().find(|one| one.who == newcomer.who) {
            loudest.heard = true;
        }
    }
}

fn quietest_heard(candidates: &mut [Candidate]) -> Option<&mut Candidate> {
    candidates
        .iter_mut()
        .filter(|one| one.heard)
        .min_by(|a, b| a.loudness.total_cmp(&b.loudness))
}

fn loudest_waiting(candidates: &mut [Candidate]) -> Option<&mut Candidate> {
    candidates
        .iter_mut()
        .filter(|one| !one.heard)
        .max_by(|a, b| a.loudness.total_cmp(&b.loudness))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs frames of these levels, and returns who is heard after the last one.
    fn run(standings: &mut [Standing], frames: usize, levels: &[Option<u8>]) -> Vec<usize> {
        for _ in 0..frames {
            let mut candidates = Vec::new();
            for (who, (standing, level)) in standings.iter_mut().zip(levels).enumerate() {
                standing.frame(*level);
                candidates.extend(standing.candidate(who, false));
            }
            choose(&mut candidates, 2);
            for candidate in candidates {
                if let Some(standing) = standings.get_mut(candidate.who) {
                    standing.set_heard(candidate.heard);
                }
            }
        }
        standings
            .iter()
            .enumerate()
            .filter_map(|(who, standing)| standing.is_heard().then_some(who))
            .collect()
    }

    #[test]
    fn the_loudest_are_heard() {
        let mut four = vec![Standing::default(); 4];
        let levels = [Some(40), Some(20), Some(60), Some(30)];
        assert_eq!(run(&mut four, 1, &levels), [1, 3]);
    }

    #[test]
    fn noise_brings_nobody_in() {
        let mut four = vec![Standing::default(); 4];
        let levels = [Some(80), Some(20), None, Some(127)];
        assert_eq!(run(&mut four, 100, &levels), [1]);
    }

    #[test]
    fn who_talks_is_not_cut_between_words() {
        let mut three = vec![Standing::default(); 3];
        run(&mut three, 50, &[Some(25), Some(25), Some(45)]);
        assert_eq!(
            run(&mut three, 10, &[Some(80), Some(25), Some(45)]),
            [0, 1],
            "a pause of 200 ms"
        );
        assert_eq!(
            run(&mut three, 30, &[Some(80), Some(25), Some(45)]),
            [1, 2],
            "a pause of 800 ms"
        );
    }

    #[test]
    fn a_louder_newcomer_comes_in_at_once_and_an_equal_one_waits() {
        let mut three = vec![Standing::default(); 3];
        run(&mut three, 50, &[Some(30), Some(20), None]);
        assert_eq!(
            run(&mut three, 100, &[Some(30), Some(20), Some(27)]),
            [0, 1]
        );
        assert_eq!(run(&mut three, 1, &[Some(30), Some(20), Some(23)]), [1, 2]);
    }

    /// Soft words of syllables at -50 dBov that end ever softer, over a floor of -65, with pauses
    /// of 1 s. They are heard from the first frame until a word has faded.
    #[test]
    fn soft_words_are_heard_whole() {
        let syllable = [57, 52, 50, 50, 51, 54, 58, 61, 63];
        let ending = [52, 54, 56, 58, 59, 60, 61, 62, 63, 64];
        let mut one = [Standing::default()];
        run(&mut one, 200, &[Some(65)]);
        for word in 0..20 {
            let levels = syllable.into_iter().cycle().take(27).chain(ending);
            for (at, level) in levels.enumerate() {
                let heard = run(&mut one, 1, &[Some(level)]);
                assert!(at == 0 || heard == [0], "word {word}, frame {at}");
            }
            run(&mut one, 50, &[Some(65)]);
        }
    }

    #[test]
    fn noise_is_heard_where_all_are() {
        let mut noisy = Standing::default();
        noisy.frame(Some(100));
        assert!(noisy.candidate(0, false).is_none());
        assert!(noisy.candidate(0, true).is_some());
    }

    #[test]
    fn all_are_heard_where_there_is_no_limit() {
        let mut candidates: Vec<_> = (0..100)
            .map(|who| Candidate {
                who,
                loudness: 1.0,
                heard: false,
            })
            .collect();
        choose(&mut candidates, 0);
        assert!(candidates.iter().all(|one| one.heard));
    }
}
