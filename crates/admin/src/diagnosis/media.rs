//! Negotiated media that does not arrive, or arrives without a keyframe.

use std::time::Duration;

use portunus_media::{MediaStats, PeerStats, StreamStats};
use portunus_sdp::negotiated::Kind;

use super::{Cause, lately, name, seconds};

/// Media starts within a second of the handshake. Silence (DTX) still has some packets each second.
const SILENCE: Duration = Duration::from_secs(3);
/// A requested keyframe arrives within a round trip and the time of a picture.
const KEYFRAME_WAIT: Duration = Duration::from_secs(3);
/// The number of unanswered requests that counts as a fault. One or two may be lost.
const KEYFRAMES_ASKED: u32 = 3;

pub(super) fn causes(stats: &PeerStats, causes: &mut Vec<Cause>) {
    let Some(connected) = stats.dtls.connected else {
        return;
    };
    let since = stats.age.saturating_sub(connected);
    for media in stats.media.iter().filter(|media| media.kind != Kind::Data) {
        if since >= SILENCE {
            causes.extend(nothing_comes(media, since));
            causes.extend(nothing_goes(media, since));
        }
        if media.kind == Kind::Video {
            causes.extend(no_keyframe_comes(media, stats));
            causes.extend(no_keyframe_goes(media, stats));
        }
    }
}

/// Whether a stream has had a packet recently.
pub(super) fn flows(stream: &StreamStats) -> bool {
    stream.last_packet_age.is_some_and(|age| age < SILENCE)
}

fn nothing_comes(media: &MediaStats, since: Duration) -> Option<Cause> {
    if !media.receive || media.received.iter().any(flows) {
        return None;
    }
    let came = media.received.iter().filter_map(|one| one.last_packet_age);
    let text = match came.min() {
        Some(age) => format!(
            "No packet of {} has come from the client for {}: it is muted or its device stopped, the page is in the background, or \
             its encoder stands still.",
            name(media),
            seconds(age)
        ),
        None => format!(
            "The client may send {}, but no packet of it has come in {}: it has no track, or its device gives nothing.",
            name(media),
            seconds(since)
        ),
    };
    Some(Cause::new("no-media-from-client", text))
}

fn nothing_goes(media: &MediaStats, since: Duration) -> Option<Cause> {
    if !media.send || flows(&media.sent) {
        return None;
    }
    let text = match media.sent.last_packet_age {
        Some(age) => format!(
            "Nothing of {} has been sent to the client for {}: who sends it is muted or gone, or it is paused.",
            name(media),
            seconds(age)
        ),
        None => format!(
            "Nothing of {} has been sent to the client in {}: nobody sends it, or no keyframe of it has come.",
            name(media),
            seconds(since)
        ),
    };
    Some(Cause::new("no-media-to-client", text))
}

/// Returns a cause if the client ignores keyframe requests of the server.
fn no_keyframe_comes(media: &MediaStats, stats: &PeerStats) -> Option<Cause> {
    let asked = count(stats, |sample| sample.keyframes_asked);
    let is_late = |stream: &&StreamStats| {
        flows(stream)
            && stream.keyframe_requests > 0
            && stream.keyframe_age.is_none_or(|age| age >= KEYFRAME_WAIT)
    };
    let late = media.received.iter().find(is_late)?;
    (asked >= KEYFRAMES_ASKED).then(|| {
        let text = format!(
            "The client was asked for a keyframe of {} {asked} times in the last seconds, and {}: those who watch see nothing, or a \
             picture that stands. Its encoder ignores requests (PLI), or packets of its keyframes are lost: have it make one every two \
             seconds, or send less.",
            name(media),
            none_for("none came", late.keyframe_age),
        );
        Cause::new("no-keyframe-from-client", text)
    })
}

/// Returns a cause if the client waits for a keyframe in vain.
fn no_keyframe_goes(media: &MediaStats, stats: &PeerStats) -> Option<Cause> {
    let asked = count(stats, |sample| sample.keyframes_wanted);
    let waits = media
        .layers
        .is_some_and(|layers| layers.reason == "keyframe");
    let age = media.sent.keyframe_age;
    let is_late = media.send && age.is_none_or(|age| age >= KEYFRAME_WAIT);
    let is_asked = asked >= KEYFRAMES_ASKED && media.sent.keyframe_requests > 0;
    (is_late && (waits || is_asked)).then(|| {
        let text = format!(
            "The client waits for a keyframe of {}: it asked {asked} times in the last seconds, and {}. Who sends the video makes none: \
             look at that PeerConnection, or set what feeds the mountpoint to a keyframe every two seconds.",
            name(media),
            none_for("none was sent", age),
        );
        Cause::new("no-keyframe-to-client", text)
    })
}

fn count(stats: &PeerStats, of: fn(&portunus_media::Sample) -> u8) -> u32 {
    lately(stats)
        .iter()
        .map(|sample| u32::from(of(sample)))
        .sum()
}

fn none_for(what: &str, age: Option<Duration>) -> String {
    match age {
        Some(age) => format!("{what} for {}", seconds(age)),
        None => format!("{what} yet"),
    }
}
