//! Figures of PeerConnections (type 32, subtype 3).

use std::time::Duration;

use portunus_media::{MediaStats, MessageStats, PayloadStats, PeerStats, StreamStats};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Kind;
use serde_json::Value;

use crate::Object;

/// The subtype.
pub(crate) const STATISTICS: u8 = 3;

/// The figures of a PeerConnection: an object for each m-line, and one more for each further simulcast encoding.
pub(crate) fn objects(stats: &PeerStats) -> Vec<Value> {
    let of_line = |media: &MediaStats| {
        let remb = stats.remb.filter(|_| media.index == 0);
        let main = match (media.kind, &media.messages) {
            (Kind::Data, messages) => data(media, messages.unwrap_or_default()),
            (Kind::Audio | Kind::Video, _) => main(media, remb),
        };
        let further = media.received.iter().enumerate().skip(1);
        let further = further.map(|(n, stream)| simulcast(media, n, stream));
        [main].into_iter().chain(further).collect::<Vec<_>>()
    };
    stats.media.iter().flat_map(of_line).collect()
}

fn data(media: &MediaStats, messages: MessageStats) -> Value {
    line(media, "data")
        .with("packets-received", messages.received.packets)
        .with("packets-sent", messages.sent.packets)
        .with("bytes-received", messages.received.bytes)
        .with("bytes-sent", messages.sent.bytes)
        .into()
}

/// An m-line with what is sent and, of what comes, the first encoding.
fn main(media: &MediaStats, remb: Option<u64>) -> Value {
    let none = StreamStats::default();
    let received = media.received.first().unwrap_or(&none);
    let sent = &media.sent;
    let times = sent.rtt_times.map(|times| {
        Object::new()
            .with("ntp", times.ntp)
            .with("lsr", times.last_sr)
            .with("dlsr", times.delay)
    });
    let head = line(media, kind(media))
        .with_some("codec", codec(media).map(CodecName::name))
        .with_some("base", clock_rate(media))
        .with("rtt", milliseconds(sent.rtt.unwrap_or_default()))
        .with_some("rtt-values", times.map(Value::from));
    streams(head, received, sent)
        .with_some("remb-bitrate", remb)
        .into()
}

/// A further encoding of what comes: `video-sim1` is the second, `video-sim2` the third.
fn simulcast(media: &MediaStats, n: usize, received: &StreamStats) -> Value {
    let name = match n {
        1 => "video-sim1",
        _ => "video-sim2",
    };
    let head = line(media, name).with_some("base", clock_rate(media));
    streams(head, received, &StreamStats::default()).into()
}

fn line(media: &MediaStats, name: &str) -> Object {
    Object::new()
        .with("mid", media.mid.as_str())
        .with("mindex", media.index)
        .with("media", name)
}

fn kind(media: &MediaStats) -> &'static str {
    match media.kind {
        Kind::Audio => "audio",
        Kind::Video => "video",
        Kind::Data => "data",
    }
}

/// The codec in use, as far as the API has a name for it.
fn codec(media: &MediaStats) -> Option<CodecName> {
    let name = |payload: &PayloadStats| {
        let is_it = |name: &CodecName| {
            name.codec() == payload.codec && name.clock_rate() == payload.clock_rate
        };
        CodecName::ALL.into_iter().find(is_it)
    };
    media.payloads.iter().find_map(name)
}

fn clock_rate(media: &MediaStats) -> Option<u32> {
    let payload = media.payloads.first()?;
    Some(payload.clock_rate)
}

fn streams(head: Object, received: &StreamStats, sent: &StreamStats) -> Object {
    head.with("lost", received.lost)
        .with("lost-by-remote", sent.lost)
        .with("jitter-local", milliseconds(received.jitter))
        .with("jitter-remote", milliseconds(sent.jitter))
        .with("in-link-quality", link_quality(received))
        .with("in-media-link-quality", media_link_quality(received))
        .with("out-link-quality", link_quality(sent))
        .with("out-media-link-quality", media_link_quality(sent))
        .with("packets-received", received.packets)
        .with("packets-sent", sent.packets)
        .with("bytes-received", received.bytes)
        .with("bytes-sent", sent.bytes)
        .with("bytes-received-lastsec", received.bytes_last_second)
        .with("bytes-sent-lastsec", sent.bytes_last_second)
        .with("nacks-received", sent.nacks)
        .with("nacks-sent", received.nacks)
        .with("retransmissions-received", received.retransmissions)
}

/// How well packets arrive, in percent. Where nothing was lost because nothing was sent, all is well.
pub(crate) fn link_quality(stream: &StreamStats) -> u8 {
    if stream.packets == 0 {
        100
    } else {
        stream.link_quality
    }
}

/// The same of media, after what was sent again.
pub(crate) fn media_link_quality(stream: &StreamStats) -> u8 {
    if stream.packets == 0 {
        100
    } else {
        stream.media_link_quality
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
