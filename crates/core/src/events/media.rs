//! Media of PeerConnections (type 32): starts, stops and losses. Statistics are in
//! [`super::statistics`].

use portunus_rtp::Mid;
use serde_json::{Value, json};

use crate::Object;

/// The subtype of [`state`].
pub(crate) const STATE: u8 = 1;
/// The subtype of [`slow_link`].
pub(crate) const SLOW_LINK: u8 = 2;

/// A medium started or stopped. `no_media_ms` is the time without packets after which it counts as
/// stopped.
pub(crate) fn state(
    mid: Mid,
    audio: bool,
    substream: Option<u8>,
    receiving: bool,
    no_media_ms: u32,
) -> Value {
    let seconds = no_media_ms / 1_000;
    Object::new()
        .with("media", medium(audio))
        .with("mid", mid.as_str())
        .with_some("substream", substream)
        .with("receiving", receiving)
        .with_some("seconds", (!receiving && seconds > 1).then_some(seconds))
        .into()
}

/// Packets were lost. `from_client`: those that the client sent.
pub(crate) fn slow_link(mid: Mid, audio: bool, from_client: bool, lost: u32) -> Value {
    // The words are from the server's side: its uplink is what it sends.
    let link = if from_client { "downlink" } else { "uplink" };
    json!({
        "mid": mid.as_str(),
        "media": medium(audio),
        "slow_link": link,
        "lost_lastsec": lost,
    })
}

fn medium(audio: bool) -> &'static str {
    if audio { "audio" } else { "video" }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    #[test]
    fn silence_is_told_with_its_seconds_if_they_are_many() {
        let mid = Mid::new("v").unwrap();
        let coming = json!({ "media": "video", "mid": "v", "substream": 1, "receiving": true });
        assert_eq!(state(mid, false, Some(1), true, 5_000), coming);
        let silent = json!({ "media": "audio", "mid": "v", "receiving": false, "seconds": 5 });
        assert_eq!(state(mid, true, None, false, 5_000), silent);
        let at_once = json!({ "media": "audio", "mid": "v", "receiving": false });
        assert_eq!(state(mid, true, None, false, 1_000), at_once);
    }

    #[test]
    fn the_uplink_is_what_the_server_sends() {
        let mid = Mid::new("0").unwrap();
        let told = slow_link(mid, true, false, 9);
        let expected =
            json!({ "mid": "0", "media": "audio", "slow_link": "uplink", "lost_lastsec": 9 });
        assert_eq!(told, expected);
        assert_eq!(slow_link(mid, true, true, 9)["slow_link"], "downlink");
    }
}
