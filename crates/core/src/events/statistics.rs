//! Statistics of PeerConnections (type 32, subtype 3).

use std::time::Duration;

use portunus_media::{MediaStats, PayloadStats, StreamStats};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Kind;
use serde::Serialize;

/// The subtype of statistics.
pub(crate) const STATISTICS: u8 = 3;

/// The statistics of an m-line, or of a further encoding of it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Figures<'a> {
    Data(Data<'a>),
    Media(Media<'a>),
}

/// Statistics of data channels.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Data<'a> {
    mid: &'a str,
    mindex: usize,
    media: &'static str,
    packets_received: u64,
    packets_sent: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

/// Statistics of audio or video.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Media<'a> {
    mid: &'a str,
    mindex: usize,
    media: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_values: Option<Times>,
    lost: u64,
    lost_by_remote: u64,
    jitter_local: u64,
    jitter_remote: u64,
    in_link_quality: u8,
    in_media_link_quality: u8,
    out_link_quality: u8,
    out_media_link_quality: u8,
    packets_received: u64,
    packets_sent: u64,
    bytes_received: u64,
    bytes_sent: u64,
    bytes_received_lastsec: u64,
    bytes_sent_lastsec: u64,
    nacks_received: u64,
    nacks_sent: u64,
    retransmissions_received: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remb_bitrate: Option<u64>,
}

/// The values that a round trip was computed from.
#[derive(Debug, Serialize)]
struct Times {
    ntp: u32,
    lsr: u32,
    dlsr: u32,
}

/// Returns the statistics of a PeerConnection: of each m-line, and of each further simulcast
/// encoding. `remb` is the client's last estimate of its downlink.
pub(crate) fn of_lines(lines: &[MediaStats], remb: Option<u64>) -> Vec<Figures<'_>> {
    let mut all = Vec::with_capacity(lines.len());
    for line in lines {
        if line.kind == Kind::Data {
            all.push(Figures::Data(data(line)));
            continue;
        }
        all.push(Figures::Media(main(line, remb)));
        let further = line.received.iter().enumerate().skip(1);
        all.extend(further.map(|(n, stream)| Figures::Media(simulcast(line, n, stream))));
    }
    all
}

fn data(line: &MediaStats) -> Data<'_> {
    let messages = line.messages.unwrap_or_default();
    Data {
        mid: line.mid.as_str(),
        mindex: line.index,
        media: "data",
        packets_received: messages.received.packets,
        packets_sent: messages.sent.packets,
        bytes_received: messages.received.bytes,
        bytes_sent: messages.sent.bytes,
    }
}

/// Returns the statistics of an m-line, with the first incoming encoding.
fn main(line: &MediaStats, remb: Option<u64>) -> Media<'_> {
    let none = StreamStats::default();
    let received = line.received.first().unwrap_or(&none);
    let sent = &line.sent;
    let name = match line.kind {
        Kind::Audio => "audio",
        Kind::Video | Kind::Data => "video",
    };
    Media {
        codec: codec(line).map(CodecName::name),
        rtt: Some(milliseconds(sent.rtt.unwrap_or_default())),
        rtt_values: sent.rtt_times.map(|times| Times {
            ntp: times.ntp,
            lsr: times.last_sr,
            dlsr: times.delay,
        }),
        remb_bitrate: remb.filter(|_| line.index == 0),
        ..streams(line, name, received, sent)
    }
}

/// Returns the statistics of a further incoming encoding: `video-sim1` is the second, `video-sim2`
/// the third.
fn simulcast<'a>(line: &'a MediaStats, n: usize, received: &StreamStats) -> Media<'a> {
    let name = match n {
        1 => "video-sim1",
        _ => "video-sim2",
    };
    streams(line, name, received, &StreamStats::default())
}

fn streams<'a>(
    line: &'a MediaStats,
    name: &'static str,
    received: &StreamStats,
    sent: &StreamStats,
) -> Media<'a> {
    Media {
        mid: line.mid.as_str(),
        mindex: line.index,
        media: name,
        codec: None,
        base: line.payloads.first().map(|payload| payload.clock_rate),
        rtt: None,
        rtt_values: None,
        lost: received.lost,
        lost_by_remote: sent.lost,
        jitter_local: milliseconds(received.jitter),
        jitter_remote: milliseconds(sent.jitter),
        in_link_quality: link_quality(received),
        in_media_link_quality: media_link_quality(received),
        out_link_quality: link_quality(sent),
        out_media_link_quality: media_link_quality(sent),
        packets_received: received.packets,
        packets_sent: sent.packets,
        bytes_received: received.bytes,
        bytes_sent: sent.bytes,
        bytes_received_lastsec: received.bytes_last_second,
        bytes_sent_lastsec: sent.bytes_last_second,
        nacks_received: sent.nacks,
        nacks_sent: received.nacks,
        retransmissions_received: received.retransmissions,
        remb_bitrate: None,
    }
}

/// Returns the codec in use, if the API has a name for it.
fn codec(line: &MediaStats) -> Option<CodecName> {
    let name = |payload: &PayloadStats| {
        let is_it = |name: &CodecName| {
            name.codec() == payload.codec && name.clock_rate() == payload.clock_rate
        };
        CodecName::ALL.into_iter().find(is_it)
    };
    line.payloads.iter().find_map(name)
}

/// Returns the share of packets that arrived, in percent. Without packets it is 100.
pub fn link_quality(stream: &StreamStats) -> u8 {
    if stream.packets == 0 {
        100
    } else {
        stream.link_quality
    }
}

/// As [`link_quality`], after retransmissions.
pub fn media_link_quality(stream: &StreamStats) -> u8 {
    if stream.packets == 0 {
        100
    } else {
        stream.media_link_quality
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
