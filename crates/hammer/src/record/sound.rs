//! Measurements of the sound in audio rooms.

use serde::{Deserialize, Serialize};

use super::Delays;
use crate::figures::percent;

/// The sound that listeners heard in a time of constant load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sound {
    /// Participants that decoded what they received.
    pub listeners: u32,
    /// The share of the talkers that listeners heard, by their pilots, of those that they should
    /// hear. `None` if there was nobody to hear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_share: Option<f64>,
    /// Talkers among the listeners who heard themselves.
    #[serde(default)]
    pub own_heard: u32,
    /// Packets, of all participants, whose time stamp did not match their number.
    #[serde(default)]
    pub jumps: u64,
    /// Packets that were not sent because of silence (DTX).
    #[serde(default)]
    pub omitted: u64,
    /// Chirps that should have been heard.
    #[serde(default)]
    pub chirps: u64,
    /// Chirps that were heard.
    #[serde(default)]
    pub chirps_heard: u64,
    /// The mouth-to-ear delay that the server adds to that of sound sent and decoded directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mouth_to_ear: Option<Delays>,
}

impl Sound {
    /// Returns reasons to doubt that `participants` heard what they should.
    pub(crate) fn doubts(&self, participants: u32) -> Vec<String> {
        let mut doubts = Vec::new();
        let mut doubt =
            |text: String| doubts.push(format!("{text} with {participants} participants"));
        if self.own_heard > 0 {
            doubt(format!("{} talkers heard themselves", self.own_heard));
        }
        if let Some(share) = self.heard_share.filter(|share| *share < 1.0) {
            doubt(format!("only {} of the talkers were heard", percent(share)));
        }
        if self.jumps > 0 {
            doubt(format!(
                "the time stamps of {} packets did not follow from their numbers",
                self.jumps
            ));
        }
        if self.chirps_heard < self.chirps {
            let missed = self.chirps - self.chirps_heard;
            doubt(format!("{missed} of {} chirps were not heard", self.chirps));
        }
        doubts
    }
}

/// The quality of recorded sentences whose packets were lost and delayed on the way to the server:
/// MOS-LQO of PESQ (ITU-T P.862.2), from 1 (bad) to 4.64.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The median score.
    pub median: f64,
    /// The lowest score.
    pub worst: f64,
    /// The highest score.
    pub best: f64,
    /// Scored sentences.
    pub scored: u32,
    /// Spoken sentences.
    pub said: u32,
    /// The share of lost packets, 0 to 1.
    pub loss_share: f64,
    /// The mean delay of the other packets, which is between 0 and twice this.
    pub jitter_ms: f64,
    /// The speaker: `espeak-ng`, or `made` if that is not installed.
    pub speaker: String,
}

impl Quality {
    /// Sorts `scores` and summarizes them. Returns `None` for an empty slice.
    pub(crate) fn of(scores: &mut [f64]) -> Option<Self> {
        scores.sort_unstable_by(f64::total_cmp);
        Some(Self {
            median: *scores.get(scores.len() / 2)?,
            worst: *scores.first()?,
            best: *scores.last()?,
            scored: scores.len() as u32,
            ..Self::default()
        })
    }
}
