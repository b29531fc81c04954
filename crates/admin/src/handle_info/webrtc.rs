//! The `webrtc` object: ICE, DTLS, header extensions, bandwidth.

use portunus_media::{
    BandwidthStats, CandidateStats, DtlsState, IceState, PacerStats, PairStats, PeerStats, Sample,
};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint, FingerprintHash};
use serde_json::{Map, Value, json};

use super::{media, micros, whole_micros};
use portunus_core::{ConnectionFacts, Gateway, Mid, Object};

pub(super) fn webrtc(gateway: &Gateway, connection: &ConnectionFacts, stats: &PeerStats) -> Value {
    let extensions = stats.extensions.iter();
    let extensions = extensions.map(|(kind, id)| (kind.uri().to_owned(), Value::from(*id)));
    let bwe = Object::new()
        .with("twcc", stats.transport_cc.is_some())
        .with_some("twcc-ext-id", stats.transport_cc);
    Object::new()
        .with("ice", ice(gateway, connection, stats))
        .with("dtls", dtls(gateway, connection, stats))
        .with("extensions", extensions.collect::<Map<_, _>>())
        .with("bwe", Value::from(bwe))
        .with_some(
            "too-large",
            (stats.too_large > 0).then_some(stats.too_large),
        )
        .with("media", media::all(connection, stats))
        .with_some("bandwidth", stats.bandwidth.as_ref().map(bandwidth))
        .with_some("pacer", stats.pacer.as_ref().map(pacer))
        .with_some("remb", stats.remb)
        .with("pairs", stats.ice.pairs.iter().map(pair).collect::<Value>())
        .with(
            "datagrams",
            json!({ "received": stats.received_datagrams, "refused": stats.refused }),
        )
        .with("series", series(&stats.series))
        .into()
}

fn ice(gateway: &Gateway, connection: &ConnectionFacts, stats: &PeerStats) -> Value {
    let ice = &stats.ice;
    let at = |since| micros(gateway, connection.created).saturating_add(whole_micros(since));
    let local = match ice.local.is_empty() {
        true => gateway.media().candidates(connection.peer),
        false => ice.local.as_slice().into(),
    };
    let ignored = ice.ignored_mdns.saturating_add(ice.ignored_tcp);
    let state = ice.state.unwrap_or(IceState::Gathering);
    Object::new()
        .with("stream_id", 1)
        .with("component_id", 1)
        .with("state", ice_state(state))
        .with_some("failed-detected", ice.disconnected.map(at))
        .with_some("icetimer-started", ice.disconnected.map(|_| true))
        .with_some("gathered", ice.gathered.map(at))
        .with_some("connected", ice.connected.map(at))
        .with("local-candidates", bare(&local))
        .with("remote-candidates", bare(&ice.remote))
        .with_some("ignored-candidates", (ignored > 0).then_some(ignored))
        .with_some("selected-pair", selected(stats))
        .with("ready", u8::from(connection.up))
        .with_some("round_trip", ice.round_trip.map(|rtt| rtt.as_secs_f64()))
        .into()
}

fn ice_state(state: IceState) -> &'static str {
    match state {
        IceState::Gathering => "gathering",
        IceState::Connecting => "connecting",
        IceState::Connected => "connected",
        IceState::Ready => "ready",
        IceState::Disconnected => "disconnected",
        IceState::Failed => "failed",
    }
}

/// Returns candidates without their prefix in SDP.
fn bare(candidates: &[String]) -> Value {
    let bare = |text: &String| {
        let text = text.strip_prefix("candidate:").unwrap_or(text);
        Value::from(text)
    };
    candidates.iter().map(bare).collect()
}

fn selected(stats: &PeerStats) -> Option<String> {
    let path = stats.ice.selected?;
    let nominated = stats.ice.pairs.iter().find(|pair| pair.nominated);
    let end = |candidate: CandidateStats| {
        let (address, kind) = (candidate.address, candidate.kind);
        let carrier = candidate.carrier.name();
        format!("{}:{} [{kind},{carrier}]", address.ip(), address.port())
    };
    let known = |address, kind| CandidateStats {
        address,
        kind,
        carrier: path.carrier,
    };
    let (local, remote) = match nominated {
        Some(pair) => (pair.local, pair.remote),
        None => (known(path.local, "host"), known(path.remote, "prflx")),
    };
    Some(format!("{} <-> {}", end(local), end(remote)))
}

fn dtls(gateway: &Gateway, connection: &ConnectionFacts, stats: &PeerStats) -> Value {
    let dtls = &stats.dtls;
    let at = |since| micros(gateway, connection.created).saturating_add(whole_micros(since));
    let agreed = connection.negotiated.as_ref().map(|it| &it.transport);
    let remote = dtls.remote_fingerprints.first();
    let remote = remote.or_else(|| agreed?.fingerprints.first());
    let role = dtls.role.or_else(|| Some(agreed?.dtls_role));
    let role = match role {
        Some(DtlsRole::Client) => "active",
        Some(DtlsRole::Server) => "passive",
        None => "actpass",
    };
    let state = match dtls.state {
        None => "created",
        Some(DtlsState::Trying) => "trying",
        Some(DtlsState::Connected) => "connected",
        Some(DtlsState::Failed) => "failed",
    };
    let connected = dtls.state == Some(DtlsState::Connected);
    let traffic = json!({
        "in": { "packets": dtls.received.packets, "bytes": dtls.received.bytes },
        "out": { "packets": dtls.sent.packets, "bytes": dtls.sent.bytes },
    });
    Object::new()
        .with("fingerprint", digest(&connection.fingerprint))
        .with_some("remote-fingerprint", remote.map(digest))
        .with_some("remote-fingerprint-hash", remote.map(hash))
        .with("dtls-role", role)
        .with("dtls-state", state)
        .with("retransmissions", dtls.retransmissions)
        .with("valid", connected)
        .with_some("srtp-profile", dtls.srtp_profile)
        .with("ready", connected)
        .with_some("handshake-started", dtls.started.map(at))
        .with_some("connected", dtls.connected.map(at))
        .with("sctp-association", stats.sctp)
        .with("stats", traffic)
        .into()
}

fn digest(fingerprint: &Fingerprint) -> String {
    let bytes = fingerprint.digest.iter();
    bytes
        .map(|byte| format!("{byte:02X}"))
        .collect::<Vec<_>>()
        .join(":")
}

fn hash(fingerprint: &Fingerprint) -> &'static str {
    match fingerprint.hash {
        FingerprintHash::Sha1 => "sha-1",
        FingerprintHash::Sha256 => "sha-256",
    }
}

fn bandwidth(link: &BandwidthStats) -> Value {
    json!({
        "estimate": link.estimate,
        "budget": link.budget,
        "set_by": link.set_by,
        "queue": link.queue.as_secs_f64(),
        "loss": link.loss,
        "round_trip": link.round_trip.as_secs_f64(),
        "probing": link.probing,
    })
}

fn pacer(pacer: &PacerStats) -> Value {
    json!({ "packets": pacer.packets, "bytes": pacer.bytes, "rate": pacer.rate })
}

fn pair(pair: &PairStats) -> Value {
    let candidate = |it: CandidateStats| {
        json!({
            "address": it.address.ip().to_string(),
            "port": it.address.port(),
            "type": it.kind,
            "transport": it.carrier.name(),
        })
    };
    Object::new()
        .with("local", candidate(pair.local))
        .with("remote", candidate(pair.remote))
        .with("state", pair.state.name())
        .with("nominated", pair.nominated)
        .with_some("round_trip", pair.round_trip.map(|rtt| rtt.as_secs_f64()))
        .with("checks_sent", pair.checks_sent)
        .with("checks_answered", pair.checks_answered)
        .with("checks_received", pair.checks_received)
        .into()
}

/// Returns the last minute as a list for each figure, which is much smaller than an object for each
/// second.
fn series(samples: &[Sample]) -> Value {
    fn list<T: Into<Value>>(samples: &[Sample], figure: impl Fn(&Sample) -> T) -> Value {
        samples
            .iter()
            .map(|sample| figure(sample).into())
            .collect::<Vec<Value>>()
            .into()
    }
    let thousandths = |share: f64| (share * 1_000.0).round() / 1_000.0;
    json!({
        "age": list(samples, |it| thousandths(it.age.as_secs_f64())),
        "bitrate_in": list(samples, |it| it.received),
        "bitrate_out": list(samples, |it| it.sent),
        "loss_in": list(samples, |it| thousandths(it.received_lost)),
        "loss_out": list(samples, |it| thousandths(it.sent_lost)),
        "round_trip": list(samples, |it| it.round_trip.map(|rtt| thousandths(rtt.as_secs_f64()))),
        "estimate": list(samples, |it| it.estimate),
        "substream": list(samples, |it| it.layers.substream),
        "spatial": list(samples, |it| it.layers.spatial),
        "temporal": list(samples, |it| it.layers.temporal),
        "keyframes_asked": list(samples, |it| it.keyframes_asked),
        "keyframes_wanted": list(samples, |it| it.keyframes_wanted),
    })
}

/// The stream and track of an m-line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Msid<'a> {
    pub(super) mid: Mid,
    pub(super) stream: &'a str,
    pub(super) track: &'a str,
}

/// Returns the m-lines of a description with their stream and track (RFC 8830).
pub(super) fn msids(sdp: &str) -> Vec<Msid<'_>> {
    let mut found = Vec::new();
    for section in sdp.split("\nm=").skip(1) {
        let value = |name: &str| {
            let mut lines = section.lines();
            lines.find_map(|line| line.trim_end().strip_prefix(name))
        };
        let mid = value("a=mid:").and_then(Mid::new);
        let msid = value("a=msid:").and_then(|msid| msid.split_once(' '));
        if let (Some(mid), Some((stream, track))) = (mid, msid) {
            found.push(Msid { mid, stream, track });
        }
    }
    found
}

/// Returns the transport profile in the first m-line of a PeerConnection.
pub(super) fn profile(connection: &ConnectionFacts) -> Option<&str> {
    let sdp = connection
        .remote
        .as_deref()
        .or(connection.local.as_deref())?;
    let line = sdp.lines().find_map(|line| line.strip_prefix("m="))?;
    line.split_whitespace().nth(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn streams_and_tracks_are_found_in_descriptions() {
        let sdp = "v=0\r\na=msid-semantic:WMS *\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n\
                   a=msid:stream track\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\n\
                   m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n";
        let expected = Msid {
            mid: Mid::new("0").unwrap(),
            stream: "stream",
            track: "track",
        };
        assert_eq!(msids(sdp), [expected]);
        assert!(msids("").is_empty());
    }

    #[test]
    fn fingerprints_are_written_as_in_descriptions() {
        let fingerprint = Fingerprint {
            hash: FingerprintHash::Sha256,
            digest: vec![0x0a, 0xff],
        };
        assert_eq!(digest(&fingerprint), "0A:FF");
    }
}
