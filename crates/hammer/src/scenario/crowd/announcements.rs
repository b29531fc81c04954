//! Messages to and from LiveKit servers about tracks and PeerConnections.

use livekit_protocol::{
    AddTrackRequest, SessionDescription, TrackSource, TrackType, TrickleRequest, VideoLayer,
    VideoQuality, signal_request,
};
use serde_json::Value;

use crate::source::SourceConfig;

/// The size that video announces.
const SIZE: (u32, u32) = (1_280, 720);

/// Returns the participant's offer.
pub(super) fn offer_of(sdp: String) -> signal_request::Message {
    signal_request::Message::Offer(SessionDescription {
        r#type: "offer".to_owned(),
        sdp,
        id: 1,
        ..SessionDescription::default()
    })
}

/// Returns the answer to an offer of the server.
pub(super) fn answer(offer: &SessionDescription, sdp: String) -> signal_request::Message {
    signal_request::Message::Answer(SessionDescription {
        r#type: "answer".to_owned(),
        sdp,
        id: offer.id,
        ..SessionDescription::default()
    })
}

/// Returns the candidate of a trickle message.
pub(super) fn candidate(trickle: &TrickleRequest) -> Option<String> {
    let init: Value = serde_json::from_str(&trickle.candidate_init).ok()?;
    let text = init.get("candidate")?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the announcements of an offer's tracks.
pub(super) fn tracks(offer: &str, config: &SourceConfig) -> Vec<AddTrackRequest> {
    let mut tracks = Vec::new();
    for line in offer.split("\nm=").skip(1) {
        let msid = line.lines().find_map(|line| line.strip_prefix("a=msid:"));
        let Some((_, cid)) = msid.and_then(|msid| msid.trim().split_once(' ')) else {
            continue;
        };
        let cid = cid.to_owned();
        tracks.push(match line.starts_with("video") {
            true => video(cid, config),
            false => AddTrackRequest {
                cid,
                r#type: TrackType::Audio.into(),
                source: TrackSource::Microphone.into(),
                // Each packet is counted, so each is sent once.
                disable_red: true,
                ..AddTrackRequest::default()
            },
        });
    }
    tracks
}

fn video(cid: String, config: &SourceConfig) -> AddTrackRequest {
    let (width, height) = SIZE;
    let layer = VideoLayer {
        quality: VideoQuality::High.into(),
        width,
        height,
        bitrate: u32::try_from(config.traffic.video_bps).unwrap_or(u32::MAX),
        ..VideoLayer::default()
    };
    AddTrackRequest {
        cid,
        r#type: TrackType::Video.into(),
        source: TrackSource::Camera.into(),
        width,
        height,
        layers: vec![layer],
        ..AddTrackRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;

    #[test]
    fn tracks_are_announced_by_the_names_in_the_offer() {
        let offer = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=msid:janus janus0\r\n\
                     m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=msid:janus janus1\r\n\
                     m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n";
        let config = SourceConfig::of(Traffic::audio(32_000));
        let tracks = tracks(offer, &config);
        let named = tracks.iter().map(|track| (&*track.cid, track.r#type()));
        let named: Vec<(&str, TrackType)> = named.collect();
        let expected = [("janus0", TrackType::Audio), ("janus1", TrackType::Video)];
        assert_eq!(named, expected);
        let layers = tracks.iter().map(|track| track.layers.len());
        assert_eq!(layers.collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn candidates_are_read_from_json() {
        let of = |candidate_init: &str| {
            candidate(&TrickleRequest {
                candidate_init: candidate_init.to_owned(),
                ..TrickleRequest::default()
            })
        };
        let text = "candidate:1 1 udp 1 192.0.2.1 9 typ host";
        let init = format!(r#"{{"candidate":"{text}","sdpMid":"0"}}"#);
        assert_eq!(of(&init).as_deref(), Some(text));
        for none in ["", "{}", r#"{"candidate":""}"#, "[1]"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
