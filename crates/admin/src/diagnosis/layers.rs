//! Reasons for a smaller picture than possible.

use portunus_media::{BandwidthStats, LayerStats, MediaStats, PeerStats};
use portunus_sdp::negotiated::Kind;

use super::media::flows;
use super::{Cause, bitrate, name};

/// A cap below this is visible: browsers send more for a small moving picture.
const LOW_CAP: u64 = 300_000;

pub(super) fn causes(stats: &PeerStats, causes: &mut Vec<Cause>) {
    for media in stats.media.iter().filter(|media| media.kind == Kind::Video) {
        causes.extend(
            media
                .layers
                .and_then(|layers| sent(media, layers, stats.bandwidth)),
        );
        causes.extend(received(media));
    }
    let sends_video = |media: &MediaStats| media.kind == Kind::Video && media.receive;
    let cap = stats.bitrate_cap.filter(|cap| *cap <= LOW_CAP);
    if let Some(cap) = cap.filter(|_| stats.media.iter().any(sends_video)) {
        let text = format!(
            "The client was told to send no more than {}: the plugin was asked for that (bitrate), or those who watch can take no \
             more.",
            bitrate(cap)
        );
        causes.push(Cause::new("bitrate-cap", text));
    }
}

/// Returns why the client gets no higher layers of a video.
fn sent(media: &MediaStats, layers: LayerStats, link: Option<BandwidthStats>) -> Option<Cause> {
    let (video, gets) = (name(media), gets(&layers));
    let cause = match layers.reason {
        "bandwidth" | "least" | "emptying-queue" | "paused" => {
            let link = link.map_or_else(
                || "The link to the client carries no more".to_owned(),
                carries,
            );
            Cause::new(
                "estimate-low",
                format!(
                    "{link}, so that {video} is sent {gets}. A better network of the client's, or fewer and smaller videos, helps."
                ),
            )
        }
        "holding" => Cause::new(
            "estimate-rising",
            format!(
                "More of {video} would fit than what is sent, {gets}, but the last change was too recent, or a raise failed: wait some seconds."
            ),
        ),
        "priority" => Cause::new(
            "priority-low",
            format!(
                "{video} is sent {gets}, as other videos of the client have a higher priority and come first."
            ),
        ),
        "client-bound" => Cause::new(
            "client-bound",
            format!(
                "{video} is sent {gets}, as the client asked for no more (substream, temporal, spatial_layer)."
            ),
        ),
        "silent" => Cause::new(
            "publisher-low",
            format!(
                "A larger encoding of {video} is due than the one that is sent, {gets}, but who publishes it does not send it: look at \
                 that PeerConnection."
            ),
        ),
        _ => return None,
    };
    Some(cause)
}

/// Returns a cause if the client sends fewer encodings than negotiated.
fn received(media: &MediaStats) -> Option<Cause> {
    let all = media.received.len();
    let flowing = media.received.iter().filter(|one| flows(one)).count();
    let highest = media.received.last().is_some_and(flows);
    (all > 1 && flowing > 0 && !highest).then(|| {
        let rids: Vec<_> = media
            .rids
            .iter()
            .zip(&media.received)
            .filter(|(_, stream)| !flows(stream))
            .map(|(rid, _)| rid.as_str())
            .collect();
        let missing = match rids.as_slice() {
            [] => String::new(),
            rids => format!(" (not {})", rids.join(", ")),
        };
        let text = format!(
            "The client sends {flowing} of {all} encodings of {}{missing}, and not the largest: its uplink or its processor carries no \
             more, its camera is small, or it turned them off.",
            name(media)
        );
        Cause::new("client-sends-low", text)
    })
}

/// Describes the layers that are sent.
fn gets(layers: &LayerStats) -> String {
    let parts = [
        ("encoding", layers.substream),
        ("spatial layer", layers.spatial),
        ("temporal layer", layers.temporal),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter_map(|(what, number)| Some(format!("{what} {}", number?)))
        .collect();
    match parts.is_empty() {
        true => "not at all".to_owned(),
        false => format!("with {} and {}", parts.join(", "), bitrate(layers.bitrate)),
    }
}

fn carries(link: BandwidthStats) -> String {
    let why = match link.set_by {
        "delay" => ": packets wait when more is sent",
        "loss" => ": packets are lost when more is sent",
        "probe" => ": a short attempt with more did not pass",
        "receiver" => ": it says so itself (REMB)",
        "no-feedback" => ": it does not report what comes",
        "start" => ", as far as is known so shortly after its start",
        _ => "",
    };
    format!(
        "The link to the client carries about {}{why}",
        bitrate(link.estimate)
    )
}
