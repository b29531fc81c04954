//! Participants that have left a while ago, for clients that were not connected meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use livekit_protocol::ParticipantInfo;
use tokio::time::Instant;

/// How long they are kept. A client that is away for longer has to join anew.
const KEPT: Duration = Duration::from_secs(60);

/// The most that are kept.
const MAX_DEPARTED: usize = 1_024;

/// The last descriptions of participants that have left, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Departed(VecDeque<(Instant, ParticipantInfo)>);

impl Departed {
    pub(super) fn add(&mut self, info: ParticipantInfo, now: Instant) {
        self.0.push_back((now, info));
        while let Some((at, _)) = self.0.front() {
            if self.0.len() <= MAX_DEPARTED && now.duration_since(*at) <= KEPT {
                break;
            }
            self.0.pop_front();
        }
    }

    /// Returns those who have left and not come back: `is_there` tells by the identity.
    pub(super) fn gone(&self, is_there: impl Fn(&str) -> bool) -> Vec<ParticipantInfo> {
        let gone = self.0.iter().map(|(_, info)| info);
        gone.filter(|info| !is_there(&info.identity))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_come_back_is_not_gone() {
        let (mut departed, start) = (Departed::default(), Instant::now());
        for (identity, after) in [("al", 0), ("bo", 59), ("cy", 61)] {
            let info = ParticipantInfo {
                identity: identity.to_owned(),
                ..ParticipantInfo::default()
            };
            departed.add(info, start + Duration::from_secs(after));
        }
        let gone = departed.gone(|identity| identity == "cy");
        let gone: Vec<&str> = gone.iter().map(|info| &*info.identity).collect();
        assert_eq!(gone, ["bo"]);
    }
}
