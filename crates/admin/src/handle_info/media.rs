//! The m-lines of a PeerConnection.

use portunus_media::{LayerStats, MediaStats, PeerStats, StreamStats};
use portunus_sdp::NegotiatedMedia;
use portunus_sdp::negotiated::{Codec, Kind};
use serde_json::{Map, Value, json};

use super::millis;
use super::webrtc::{Msid, msids};
use portunus_core::events::{link_quality, media_link_quality};
use portunus_core::{ConnectionFacts, ExtensionKind, Mid, Object, RidOrder};

/// The names of encodings, lowest first.
const ENCODINGS: [&str; 3] = ["main", "sim1", "sim2"];

/// All m-lines, by mid.
pub(super) fn all(connection: &ConnectionFacts, stats: &PeerStats) -> Value {
    let local = connection.local.as_deref().map(msids).unwrap_or_default();
    let remote = connection.remote.as_deref().map(msids).unwrap_or_default();
    let negotiated = connection.negotiated.as_ref();
    let negotiated = negotiated.map_or(&[][..], |it| it.media.as_slice());
    let line = |media: &MediaStats| {
        let line = Line {
            media,
            negotiated: negotiated.iter().find(|it| it.mid == media.mid),
            rid_order: connection.rid_order,
            local: find(&local, media.mid),
            remote: find(&remote, media.mid),
        };
        (media.mid.as_str().to_owned(), line.to_json())
    };
    Value::Object(stats.media.iter().map(line).collect::<Map<_, _>>())
}

fn find<'a>(msids: &[Msid<'a>], mid: Mid) -> Option<Msid<'a>> {
    msids.iter().find(|known| known.mid == mid).copied()
}

struct Line<'a> {
    media: &'a MediaStats,
    negotiated: Option<&'a NegotiatedMedia>,
    rid_order: RidOrder,
    /// The ids of stream and track.
    local: Option<Msid<'a>>,
    remote: Option<Msid<'a>>,
}

impl Line<'_> {
    fn to_json(&self) -> Value {
        let media = self.media;
        let kind = match media.kind {
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Data => "data",
        };
        let line = Object::new()
            .with("type", kind)
            .with("mindex", media.index)
            .with("mid", media.mid.as_str());
        if media.kind == Kind::Data {
            return line.with("stats", data_stats(media)).into();
        }
        line.with_some("msid", self.msid())
            .with("do_nacks", media.nacks)
            .with("nack-queue-ms", millis(media.nack_queue))
            .with("ssrc", self.ssrcs())
            .with_some("rid-simulcast", self.rids())
            .with(
                "direction",
                json!({ "send": media.send, "recv": media.receive }),
            )
            .with("codecs", codecs(media))
            .with("rtcp", rtcp(media))
            .with("stats", stats(media))
            .with_some("layers", media.layers.as_ref().map(layers))
            .with("received", streams(media))
            .with("sent", stream(&media.sent, None))
            .into()
    }

    fn msid(&self) -> Option<Value> {
        let local = self.local.map(|Msid { stream, track, .. }| {
            Object::new()
                .with("local-stream", stream)
                .with("local-track", track)
        });
        let remote = self.remote.map(|Msid { stream, track, .. }| {
            Object::new()
                .with("remote-stream", stream)
                .with("remote-track", track)
        });
        let known = local.is_some() || remote.is_some();
        let msid = Object::new()
            .with_all(local.unwrap_or_default())
            .with_all(remote.unwrap_or_default());
        known.then(|| msid.into())
    }

    /// The payload types that are known.
    fn ssrcs(&self) -> Value {
        const PEER: [(&str, &str); 3] = [
            ("ssrc-peer", "ssrc-peer-rtx"),
            ("ssrc-peer-sim-1", "ssrc-peer-sim-1-rtx"),
            ("ssrc-peer-sim-2", "ssrc-peer-sim-2-rtx"),
        ];
        let sent = &self.media.sent;
        let agreed = self.negotiated;
        let ours = sent.ssrc.or_else(|| agreed.map(|it| it.local_ssrc));
        let rtx = sent.rtx_ssrc.or_else(|| agreed?.local_rtx_ssrc);
        let ssrcs = Object::new()
            .with_some("ssrc", ours.map(|ssrc| ssrc.0))
            .with_some("ssrc-rtx", rtx.map(|ssrc| ssrc.0));
        let received = self.media.received.iter().zip(PEER);
        let ssrcs = received.fold(ssrcs, |ssrcs, (stream, (name, rtx))| {
            ssrcs
                .with_some(name, stream.ssrc.map(|ssrc| ssrc.0))
                .with_some(rtx, stream.rtx_ssrc.map(|ssrc| ssrc.0))
        });
        ssrcs.into()
    }

    fn rids(&self) -> Option<Value> {
        if self.media.rids.is_empty() {
            return None;
        }
        let rids = self.media.rids.iter().map(|rid| Value::from(rid.as_str()));
        let extension = |kind| self.negotiated.and_then(|it| it.extensions.id(kind));
        let order = match self.rid_order {
            RidOrder::Hml => "hml",
            RidOrder::Lmh => "lmh",
        };
        let rids = Object::new()
            .with("rid", rids.collect::<Value>())
            .with_some("rid-ext-id", extension(ExtensionKind::Rid))
            .with_some("ridrtx-ext-id", extension(ExtensionKind::RepairedRid))
            .with("rid-order", order);
        Some(rids.into())
    }
}

fn data_stats(media: &MediaStats) -> Value {
    let messages = media.messages.unwrap_or_default();
    json!({
        "in": { "packets": messages.received.packets, "bytes": messages.received.bytes },
        "out": { "packets": messages.sent.packets, "bytes": messages.sent.bytes },
    })
}

fn codecs(media: &MediaStats) -> Value {
    // RED is listed beside the codec that it repeats.
    let red = media.payloads.iter().find(|it| it.codec == Codec::Red);
    let main = media.payloads.iter().find(|it| it.codec != Codec::Red);
    Object::new()
        .with_some("pt", main.map(|it| it.pt.0))
        .with_some("opus-red-pt", red.map(|it| it.pt.0))
        .with_some("rtx-pt", main.and_then(|it| it.rtx).map(|pt| pt.0))
        .with_some("codec", main.map(|it| codec(it.codec)))
        .into()
}

/// Returns the codec's name as in Janus.
fn codec(codec: Codec) -> &'static str {
    match codec {
        Codec::Opus => "opus",
        Codec::MultiOpus => "multiopus",
        Codec::G722 => "g722",
        Codec::Pcmu => "pcmu",
        Codec::Pcma => "pcma",
        Codec::L16 => "l16",
        Codec::Isac => "isac16",
        Codec::Red => "red",
        Codec::TelephoneEvent => "telephone-event",
        Codec::ComfortNoise => "CN",
        Codec::Vp8 => "vp8",
        Codec::Vp9 => "vp9",
        Codec::H264 => "h264",
        Codec::H265 => "h265",
        Codec::Av1 => "av1",
    }
}

/// Returns the RTCP statistics, an object for each encoding. Sent media is in the first one.
fn rtcp(media: &MediaStats) -> Value {
    let base = media.payloads.first().map_or(0, |it| it.clock_rate);
    let silent = StreamStats::default();
    let first = media.received.first().unwrap_or(&silent);
    let sent = &media.sent;
    let main = json!({
        "base": base,
        "rtt": sent.rtt.map_or(0, millis),
        "lost": first.lost,
        "lost-by-remote": sent.lost,
        "jitter-local": millis(first.jitter),
        "jitter-remote": millis(sent.jitter),
        "in-link-quality": link_quality(first),
        "in-media-link-quality": media_link_quality(first),
        "out-link-quality": link_quality(sent),
        "out-media-link-quality": media_link_quality(sent),
    });
    let others = media.received.iter().zip(ENCODINGS).skip(1);
    let others = others.fold(Object::new().with("main", main), |all, (stream, name)| {
        let one = json!({
            "base": base,
            "lost": stream.lost,
            "lost-by-remote": 0,
            "jitter-local": millis(stream.jitter),
            "jitter-remote": 0,
            "in-link-quality": link_quality(stream),
            "in-media-link-quality": media_link_quality(stream),
            "out-link-quality": link_quality(&silent),
            "out-media-link-quality": media_link_quality(&silent),
        });
        all.with(name, one)
    });
    others.into()
}

fn stats(media: &MediaStats) -> Value {
    let counted = |stream: &StreamStats| {
        let counted = Object::new()
            .with("packets", stream.packets)
            .with("bytes", stream.bytes)
            .with("bytes_lastsec", stream.bytes_last_second)
            .with_some("nacks", media.nacks.then_some(stream.nacks));
        let resent = media.nacks.then_some(stream.retransmissions);
        counted.with_some("retransmissions", resent)
    };
    let silent = StreamStats::default();
    let first = media.received.first().unwrap_or(&silent);
    let others = media
        .received
        .iter()
        .zip(["", "video-simulcast-1", "video-simulcast-2"]);
    let incoming = others.skip(1).fold(counted(first), |all, (stream, name)| {
        all.with(name, Value::from(counted(stream)))
    });
    let sent = &media.sent;
    let outgoing = json!({
        "packets": sent.packets,
        "bytes": sent.bytes,
        "bytes_lastsec": sent.bytes_last_second,
        "nacks": sent.nacks,
    });
    Object::new()
        .with("in", Value::from(incoming))
        .with("out", outgoing)
        .into()
}

fn layers(layers: &LayerStats) -> Value {
    json!({
        "substream": layers.substream,
        "spatial": layers.spatial,
        "temporal": layers.temporal,
        "bitrate": layers.bitrate,
        "reason": layers.reason,
        "asked_of_publisher": layers.asked_of_publisher,
    })
}

/// Returns the incoming streams, lowest encoding first.
fn streams(media: &MediaStats) -> Value {
    let rids = media.rids.iter().map(|rid| Some(rid.as_str()));
    let rids = rids.chain(std::iter::repeat(None));
    let received = media.received.iter().zip(rids);
    received.map(|(it, rid)| stream(it, rid)).collect()
}

/// Returns the statistics that Janus does not have. Times are in seconds.
fn stream(stream: &StreamStats, rid: Option<&str>) -> Value {
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64());
    Object::new()
        .with_some("rid", rid)
        .with_some("ssrc", stream.ssrc.map(|ssrc| ssrc.0))
        .with("packets", stream.packets)
        .with("bytes", stream.bytes)
        .with("bytes_lastsec", stream.bytes_last_second)
        .with("lost", stream.lost)
        .with("lost_lastsec", stream.lost_last_second)
        .with("jitter", stream.jitter.as_secs_f64())
        .with("nacks", stream.nacks)
        .with("retransmissions", stream.retransmissions)
        .with("keyframe_requests", stream.keyframe_requests)
        .with_some("keyframe_age", seconds(stream.keyframe_age))
        .with_some("last_packet_age", seconds(stream.last_packet_age))
        .with_some("round_trip", seconds(stream.rtt))
        .into()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::time::Duration;

    use super::*;

    #[test]
    fn links_on_which_nothing_was_sent_are_good() {
        let line = MediaStats {
            mid: Mid::new("0").unwrap(),
            index: 0,
            kind: Kind::Video,
            send: true,
            receive: true,
            payloads: Vec::new(),
            nacks: true,
            nack_queue: Duration::ZERO,
            rids: Vec::new(),
            received: vec![StreamStats::default(); 2],
            sent: StreamStats::default(),
            layers: None,
            messages: None,
        };
        let told = rtcp(&line);
        for encoding in ["main", "sim1"] {
            for name in [
                "in-link-quality",
                "in-media-link-quality",
                "out-link-quality",
                "out-media-link-quality",
            ] {
                assert_eq!(told[encoding][name], 100, "{encoding}: {name}");
            }
        }
    }
}
