//! The quality of recorded sentences sent over a lossy path.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::options::Options;
use crate::record::Quality;
use crate::scenario::ScenarioError;
use crate::scenario::crowd::{Act, Crowd, Hall, Layout, Pace, Silence};
use crate::sound_check::Playback;
use crate::speech::{self, Encoding, Sentences, Talker};
use crate::viewer::{Heard, PeerId, Weather};

/// The seed of the first room. Each further room uses the next.
const SEED: u64 = 1;

/// Participants of a room: one says sentences, the other listens.
const PAIR: usize = 2;

/// The time after the last sentence until it has been heard, and the interval of windows.
const REST: Duration = Duration::from_secs(4);
const WINDOW: Duration = Duration::from_secs(1);

/// Fills `rooms` with pairs, and scores what they hear.
pub(super) async fn measure(
    options: &Options,
    rooms: &[Value],
    crowd: &Crowd,
) -> Result<Quality, ScenarioError> {
    let sentences = Sentences::new();
    let encoding = Encoding {
        // Like a browser whose peer reports the loss.
        expected_loss: options.loss.round().min(100.0) as u8,
        ..options.encoding()
    };
    let script = Arc::new(sentences.script(encoding)?);
    let layout = Layout {
        size: PAIR,
        talkers: 1,
        silence: Silence::Listening,
        codec: encoding.codec,
        listening: 1.0,
        weather: Some(Weather {
            loss: options.loss / 100.0,
            jitter: Duration::from_secs_f64(options.jitter / 1e3),
            seed: SEED,
        }),
    };
    let scripts = HashMap::from([(Talker::Voice(0), script)]);
    let hall = Arc::new(Hall::new(rooms.to_vec(), layout, scripts));
    let acts: Arc<[Act]> = vec![Act::Meet(Arc::clone(&hall))].into();
    let pace = Pace {
        per_s: 0.0,
        at_a_time: options.load.joins_at_a_time as usize,
        at_most: None,
    };
    // What was heard before does not count.
    let _ = crowd.load().window().await;
    crowd.join(&acts, rooms.len() * PAIR, pace).await;
    let mut heard = Heard::default();
    let length = Duration::from_secs_f64(sentences.seconds()) + REST;
    let mut windows = length.as_secs_f64().ceil() as u32;
    while windows > 0 {
        sleep(WINDOW).await;
        heard.merge(crowd.load().window().await.heard);
        windows -= 1;
    }
    let roster = hall.roster();
    crowd.leave(crowd.len(), false).await;

    let mut scores = Vec::new();
    for (talker, person) in roster.iter().filter(|(_, person)| person.talks.is_some()) {
        let others = roster
            .iter()
            .filter(|(peer, other)| *peer != talker && other.room == person.room);
        for (listener, _) in others {
            let kept = heard.kept.iter().filter(|packet| packet.peer == *listener);
            let playback = Playback::of(encoding.codec, kept)?;
            scores.extend(score(&sentences, *talker, &heard, &playback));
        }
    }
    let said = (sentences.clips().count() * rooms.len()) as u32;
    let quality = Quality::of(&mut scores).unwrap_or_default();
    Ok(Quality {
        said,
        loss_share: options.loss / 100.0,
        jitter_ms: options.jitter,
        speaker: sentences.speaker.to_owned(),
        ..quality
    })
}

/// Scores each sentence that was heard whole.
fn score(sentences: &Sentences, talker: PeerId, heard: &Heard, playback: &Playback) -> Vec<f64> {
    let said = heard.said.iter().filter(|said| said.peer == talker);
    let scores = sentences
        .clips()
        .zip(said)
        .filter_map(|((clip, seconds), said)| {
            let start = said
                .at
                .checked_sub(Duration::from_secs_f64(speech::BEFORE_S))?;
            let length = Duration::from_secs_f64(speech::BEFORE_S + seconds + speech::AFTER_S);
            let (_, piece) = playback.from(start, length)?;
            speech::score(clip, piece)
        });
    scores.collect()
}

impl Quality {
    /// Formats the figures in one line.
    pub(super) fn to_text(&self) -> String {
        let Self {
            median,
            worst,
            best,
            scored,
            said,
            loss_share,
            jitter_ms,
            speaker,
        } = self;
        format!(
            "speech quality with {} % loss and {jitter_ms} ms jitter: {median:.2} of 4.64 (PESQ MOS-LQO, {worst:.2} to \
             {best:.2}, {scored} of {said} sentences, {speaker})",
            loss_share * 100.0
        )
    }
}
