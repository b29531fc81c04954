//! What was heard in audio rooms.

use serde::{Deserialize, Serialize};

use super::Delays;
use crate::figures::percent;

/// What those who listen heard in a time of constant load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sound {
    /// Participants that decoded what they got.
    pub listeners: u32,
    /// Of the talkers whom each of them should hear, how many it heard, by their pilots; none if nobody was to be heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_share: Option<f64>,
    /// Talkers among them who heard themselves.
    #[serde(default)]
    pub own_heard: u32,
    /// Packets, of all participants, whose time stamp did not follow from their number.
    #[serde(default)]
    pub jumps: u64,
    /// Packets that were not sent because there was silence (DTX).
    #[serde(default)]
    pub omitted: u64,
    /// Chirps that should have been heard.
    #[serde(default)]
    pub chirps: u64,
    /// Chirps that were.
    #[serde(default)]
    pub chirps_heard: u64,
    /// From mouth to ear: what the server adds to how long sound takes that is sent and decoded directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mouth_to_ear: Option<Delays>,
}

impl Sound {
    /// What makes it doubtful whether so many participants heard what they should.
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

/// How well recorded sentences were heard whose packets were lost and held up on the way to the server: MOS-LQO of PESQ
/// (ITU-T P.862.2), from 1 (bad) to 4.64.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Half of the scores are below it.
    pub median: f64,
    /// The lowest one.
    pub worst: f64,
    /// The highest one.
    pub best: f64,
    /// Sentences that were scored, ...
    pub scored: u32,
    /// ... of so many that were said.
    pub said: u32,
    /// The share of packets that was lost, 0 to 1.
    pub loss_share: f64,
    /// The others were held up for a time from 0 to twice this.
    pub jitter_ms: f64,
    /// Who said them: `espeak-ng`, or `made` where that is not installed.
    pub speaker: String,
}

impl Quality {
    /// Sorts `scores`; none of nothing.
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
