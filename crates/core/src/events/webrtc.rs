//! Descriptions of sessions (type 8), and what becomes of PeerConnections (type 16).

use std::net::SocketAddr;

use portunus_media::{Carrier, DtlsState, IceState, SelectedPair};
use serde_json::{Value, json};

use crate::JsepKind;

/// The subtype of [`ice`].
pub(crate) const ICE: u8 = 1;
/// The subtype of [`local_candidate`].
pub(crate) const LOCAL_CANDIDATE: u8 = 2;
/// The subtype of [`remote_candidate`].
pub(crate) const REMOTE_CANDIDATE: u8 = 3;
/// The subtype of [`selected_pair`].
pub(crate) const SELECTED_PAIR: u8 = 4;
/// The subtype of [`dtls`].
pub(crate) const DTLS: u8 = 5;
/// The subtype of [`up`] and [`hangup`].
pub(crate) const CONNECTION: u8 = 6;

/// There is one stream and one component always (BUNDLE and rtcp-mux).
const STREAM: u8 = 1;
const COMPONENT: u8 = 1;

/// The client's description, as it came.
pub(crate) fn remote_jsep(kind: JsepKind, sdp: &str) -> Value {
    json!({ "owner": "remote", "jsep": { "type": kind.as_str(), "sdp": sdp } })
}

/// Ours, as it is sent.
pub(crate) fn local_jsep(kind: JsepKind, sdp: &str) -> Value {
    json!({ "owner": "local", "jsep": { "type": kind.as_str(), "sdp": sdp } })
}

/// The ICE agent's state.
pub(crate) fn ice(state: IceState) -> Value {
    let state = match state {
        IceState::Gathering => "gathering",
        IceState::Connecting => "connecting",
        IceState::Connected => "connected",
        IceState::Ready => "ready",
        IceState::Disconnected => "disconnected",
        IceState::Failed => "failed",
    };
    json!({ "ice": state, "stream_id": STREAM, "component_id": COMPONENT })
}

/// A candidate of ours, as the text after `a=`.
pub(crate) fn local_candidate(text: &str) -> Value {
    json!({ "local-candidate": bare(text), "stream_id": STREAM, "component_id": COMPONENT })
}

/// A candidate of the client's, as the text after `a=`.
pub(crate) fn remote_candidate(text: &str) -> Value {
    json!({ "remote-candidate": bare(text), "stream_id": STREAM, "component_id": COMPONENT })
}

fn bare(candidate: &str) -> &str {
    candidate.strip_prefix("candidate:").unwrap_or(candidate)
}

/// The pair of candidates that media uses from now on.
pub(crate) fn selected_pair(pair: &SelectedPair) -> Value {
    let carrier = pair.carrier;
    let text = |address: SocketAddr, kind| {
        format!(
            "{}:{} [{kind},{}]",
            address.ip(),
            address.port(),
            carrier.name()
        )
    };
    let (local, remote) = (
        text(pair.local, LOCAL_KIND),
        text(pair.remote, pair.remote_kind),
    );
    json!({
        "selected-pair": format!("{local} <-> {remote}"),
        "candidates": {
            "local": candidate(pair.local, LOCAL_KIND, carrier),
            "remote": candidate(pair.remote, pair.remote_kind, carrier),
        },
        "stream_id": STREAM,
        "component_id": COMPONENT,
    })
}

/// We have candidates of no other kind.
const LOCAL_KIND: &str = "host";

fn candidate(address: SocketAddr, kind: &str, carrier: Carrier) -> Value {
    json!({
        "address": address.ip().to_string(),
        "port": address.port(),
        "type": kind,
        "transport": carrier.name(),
        "family": if address.is_ipv4() { 4 } else { 6 },
    })
}

/// The state of the DTLS handshake, and how many flights had to be sent again.
pub(crate) fn dtls(state: DtlsState, retransmissions: u32) -> Value {
    let state = match state {
        DtlsState::Trying => "trying",
        DtlsState::Connected => "connected",
        DtlsState::Failed => "failed",
    };
    json!({
        "dtls": state,
        "stream_id": STREAM,
        "component_id": COMPONENT,
        "retransmissions": retransmissions,
    })
}

/// Media can flow.
pub(crate) fn up() -> Value {
    json!({ "connection": "webrtcup" })
}

/// The PeerConnection is closed.
pub(crate) fn hangup(reason: &str) -> Value {
    json!({ "connection": "hangup", "reason": reason })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn candidates_have_no_prefix() {
        let text = "candidate:1 1 udp 2113929471 192.0.2.1 10000 typ host";
        let bare = "1 1 udp 2113929471 192.0.2.1 10000 typ host";
        assert_eq!(
            local_candidate(text),
            json!({ "local-candidate": bare, "stream_id": 1, "component_id": 1 })
        );
        assert_eq!(
            remote_candidate(bare),
            json!({ "remote-candidate": bare, "stream_id": 1, "component_id": 1 })
        );
    }

    #[test]
    fn a_pair_is_told_as_text_and_by_its_parts() {
        let pair = SelectedPair {
            local: "192.0.2.1:10000".parse().unwrap(),
            remote: "198.51.100.7:4000".parse().unwrap(),
            carrier: Carrier::Udp,
            remote_kind: "srflx",
        };
        let told = selected_pair(&pair);
        let expected = json!({
            "selected-pair": "192.0.2.1:10000 [host,udp] <-> 198.51.100.7:4000 [srflx,udp]",
            "candidates": {
                "local": {
                    "address": "192.0.2.1", "port": 10000, "type": "host", "transport": "udp", "family": 4,
                },
                "remote": {
                    "address": "198.51.100.7", "port": 4000, "type": "srflx", "transport": "udp", "family": 4,
                },
            },
            "stream_id": 1,
            "component_id": 1,
        });
        assert_eq!(told, expected);
        let pair = SelectedPair {
            local: "[2001:db8::1]:10000".parse().unwrap(),
            remote: "[2001:db8::2]:9".parse().unwrap(),
            carrier: Carrier::Tcp,
            remote_kind: "prflx",
        };
        let told = selected_pair(&pair);
        let remote = json!({
            "address": "2001:db8::2", "port": 9, "type": "prflx", "transport": "tcp", "family": 6,
        });
        assert_eq!(told.pointer("/candidates/remote"), Some(&remote));
        let text = "2001:db8::1:10000 [host,tcp] <-> 2001:db8::2:9 [prflx,tcp]";
        assert_eq!(told.get("selected-pair"), Some(&json!(text)));
    }

    #[test]
    fn the_handshake_says_how_often_it_had_to_repeat_itself() {
        let told = dtls(DtlsState::Connected, 2);
        let expected = json!({
            "dtls": "connected", "stream_id": 1, "component_id": 1, "retransmissions": 2,
        });
        assert_eq!(told, expected);
        assert_eq!(ice(IceState::Ready)["ice"], "ready");
        assert_eq!(
            hangup("ICE failed"),
            json!({ "connection": "hangup", "reason": "ICE failed" })
        );
    }
}
