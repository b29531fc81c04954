//! The dominant speaker: one publisher, until another one takes over.
//!
//! It follows Volfin and Cohen (2012). The media plane measures the share of speech over three
//! lengths of time. A challenger has to be ahead of the dominant speaker over all of them. A cough
//! is loud, but short. A word of agreement does not last a second. A long speech ends by silence.

use std::collections::HashMap;
use std::time::Duration;

use portunus_media::SpeechActivity;
use portunus_rtp::Mid;
use tokio::time::Instant;

use crate::PersonId;

/// The age from which on a report does not count. Reports come every 200 ms.
const FRESH: Duration = Duration::from_millis(700);
/// The least time before another speaker takes over.
const HOLD: Duration = Duration::from_millis(800);
/// The activity of a speaker: 9 dB above the noise, 400 ms of the last second.
const SPEAKS: SpeechActivity = SpeechActivity {
    immediate: 3,
    medium: 4,
    long: 1,
};
/// The lead that a challenger needs over each length of time, in the logarithm of the odds.
const AHEAD: [f64; 3] = [1.0, 1.0, -2.0];

/// Finds the dominant speaker of a room. It has no clock.
#[derive(Debug, Default)]
pub(super) struct Dominant {
    heard: HashMap<(PersonId, Mid), (SpeechActivity, Instant)>,
    /// The dominant speaker, and since when.
    now: Option<(PersonId, Instant)>,
}

impl Dominant {
    /// Notes the activity of a stream. Returns whether `id` becomes the dominant speaker.
    pub(super) fn hear(
        &mut self,
        id: &PersonId,
        mid: Mid,
        activity: SpeechActivity,
        now: Instant,
    ) -> bool {
        let key = (id.clone(), mid);
        match activity {
            SpeechActivity::SILENT => self.heard.remove(&key),
            activity => self.heard.insert(key, (activity, now)),
        };
        let speaks = activity.immediate >= SPEAKS.immediate
            && activity.medium >= SPEAKS.medium
            && activity.long >= SPEAKS.long;
        if !speaks {
            return false;
        }
        match &self.now {
            Some((dominant, _)) if dominant == id => return false,
            Some((_, since)) if now.duration_since(*since) < HOLD => return false,
            Some((dominant, _)) if !takes_over(activity, self.activity_of(dominant, now)) => {
                return false;
            }
            Some(_) | None => {}
        }
        self.now = Some((id.clone(), now));
        true
    }

    /// Forgets somebody who has stopped publishing.
    pub(super) fn forget(&mut self, id: &PersonId) {
        self.heard.retain(|(known, _), _| known != id);
        self.now.take_if(|(dominant, _)| dominant == id);
    }

    /// Returns the dominant speaker.
    pub(super) fn id(&self) -> Option<&PersonId> {
        self.now.as_ref().map(|(id, _)| id)
    }

    /// Returns who speaks now, with the activity of each stream.
    pub(super) fn present(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (&PersonId, SpeechActivity)> {
        let fresh = move |at: &Instant| now.duration_since(*at) < FRESH;
        let heard = self.heard.iter();
        let heard = heard.filter(move |(_, (_, at))| fresh(at));
        heard.map(|((id, _), (activity, _))| (id, *activity))
    }

    /// Returns the present activity of somebody, on the stream with the most of it.
    fn activity_of(&self, id: &PersonId, now: Instant) -> SpeechActivity {
        let own = self.heard.iter().filter(|((known, _), _)| known == id);
        let fresh = own.filter(|(_, (_, at))| now.duration_since(*at) < FRESH);
        let activities = fresh.map(|(_, (activity, _))| *activity);
        activities
            .max_by_key(|activity| activity.medium)
            .unwrap_or(SpeechActivity::SILENT)
    }
}

/// Returns whether a challenger is ahead of the dominant speaker over all lengths of time.
fn takes_over(challenger: SpeechActivity, dominant: SpeechActivity) -> bool {
    let lengths = [
        (challenger.immediate, dominant.immediate),
        (challenger.medium, dominant.medium),
        (challenger.long, dominant.long),
    ];
    let ahead = |(challenger, dominant)| odds(challenger) - odds(dominant);
    let mut lengths = lengths.into_iter().map(ahead).zip(AHEAD);
    lengths.all(|(ahead, needed)| ahead > needed)
}

/// Returns the logarithm of the odds of speech for a share of `tenths`.
fn odds(tenths: u8) -> f64 {
    let tenths = f64::from(tenths.min(10));
    ((tenths + 0.5) / (10.5 - tenths)).ln()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn al() -> PersonId {
        "al".into()
    }

    fn bo() -> PersonId {
        "bo".into()
    }

    const REPORT: Duration = Duration::from_millis(200);

    /// A talk, with speech measured as in the media plane, in virtual time.
    struct Talk {
        dominant: Dominant,
        now: Instant,
        start: Instant,
        /// Whether each spoke in the last blocks, the newest last.
        spoken: HashMap<PersonId, Vec<u8>>,
        /// The dominant speakers, and their times.
        changes: Vec<(PersonId, Duration)>,
    }

    impl Talk {
        fn new() -> Self {
            let now = Instant::now();
            Talk {
                dominant: Dominant::default(),
                now,
                start: now,
                spoken: HashMap::new(),
                changes: Vec::new(),
            }
        }

        /// Continues for `time`. In each block the named people speak with this share of voice in
        /// tenths.
        fn goes_on(&mut self, speaking: &[(&PersonId, u8)], time: Duration) {
            let end = self.now + time;
            while self.now < end {
                self.now += REPORT;
                for id in [al(), bo()] {
                    let voiced = speaking.iter().find(|(who, _)| **who == id);
                    let voiced = voiced.map_or(0, |(_, voiced)| *voiced);
                    let spoken = self.spoken.entry(id.clone()).or_default();
                    spoken.push(voiced);
                    let mean = |blocks: usize| {
                        let last: u32 = spoken
                            .iter()
                            .rev()
                            .take(blocks)
                            .map(|v| u32::from(*v))
                            .sum();
                        u8::try_from(last / u32::try_from(blocks).unwrap()).unwrap()
                    };
                    let activity = SpeechActivity {
                        immediate: voiced,
                        medium: mean(5),
                        long: mean(15),
                    };
                    let mid = Mid::new("0").unwrap();
                    if self.dominant.hear(&id, mid, activity, self.now) {
                        self.changes.push((id, self.now - self.start));
                    }
                }
            }
        }

        fn changes(&self) -> Vec<&PersonId> {
            self.changes.iter().map(|(id, _)| id).collect()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_who_speaks_is_dominant_and_stays_it_in_silence() {
        let mut talk = Talk::new();
        talk.goes_on(&[], 5 * SECOND);
        assert!(talk.changes.is_empty());
        talk.goes_on(&[(&al(), 8)], 2 * SECOND);
        talk.goes_on(&[], 60 * SECOND);
        assert_eq!(talk.changes(), [&al()]);
        assert_eq!(talk.dominant.id(), Some(&al()));
    }

    #[test]
    fn a_turn_of_a_conversation_is_seen_within_a_second_and_a_half() {
        let mut talk = Talk::new();
        talk.goes_on(&[(&al(), 8)], 5 * SECOND);
        for (who, place) in [(&bo(), 1), (&al(), 2), (&bo(), 3)] {
            let began = talk.now - talk.start;
            talk.goes_on(&[(who, 8)], 5 * SECOND);
            let (id, at) = talk.changes.get(place).unwrap();
            assert_eq!(id, who);
            assert!(*at - began <= SECOND * 3 / 2, "{:?}", *at - began);
        }
        assert_eq!(talk.changes.len(), 4);
    }

    #[test]
    fn coughs_and_words_between_do_not_take_the_floor() {
        let mut talk = Talk::new();
        talk.goes_on(&[(&al(), 8)], 5 * SECOND);
        for _ in 0..10 {
            talk.goes_on(&[(&al(), 7), (&bo(), 10)], REPORT * 2);
            talk.goes_on(&[(&al(), 7)], 2 * SECOND);
        }
        assert_eq!(talk.changes(), [&al()]);
        // Nor does a cough in a pause.
        for _ in 0..10 {
            talk.goes_on(&[(&bo(), 10)], REPORT);
            talk.goes_on(&[], 2 * SECOND);
        }
        assert_eq!(talk.changes(), [&al()]);
    }

    #[test]
    fn two_who_speak_at_once_do_not_flap() {
        let mut talk = Talk::new();
        talk.goes_on(&[(&al(), 8), (&bo(), 8)], 60 * SECOND);
        assert_eq!(talk.changes(), [&al()]);
        talk.goes_on(&[(&al(), 8), (&bo(), 9)], 60 * SECOND);
        assert_eq!(talk.changes(), [&al()]);
    }

    #[test]
    fn whoever_is_heard_no_more_loses_the_floor_to_the_next() {
        let mut talk = Talk::new();
        talk.goes_on(&[(&al(), 8)], 5 * SECOND);
        // Muted: no reports come at all.
        let mid = Mid::new("0").unwrap();
        let loud = SpeechActivity {
            immediate: 8,
            medium: 4,
            long: 1,
        };
        let heard = |talk: &mut Talk, after: Duration| {
            let now = talk.now + after;
            talk.dominant.hear(&bo(), mid, loud, now)
        };
        assert!(!heard(&mut talk, REPORT));
        assert!(heard(&mut talk, 4 * REPORT));
        talk.dominant.forget(&bo());
        assert_eq!(talk.dominant.id(), None);
    }
}
