//! Session descriptions (type 8), and the states of PeerConnections (type 16).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use portunus_media::{DtlsState, IceCause, IceState, SelectedPair};
use serde::Serialize;

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

/// There is always one stream with one component (BUNDLE and rtcp-mux).
#[derive(Debug, Serialize)]
struct Component {
    stream_id: u8,
    component_id: u8,
}

const COMPONENT: Component = Component {
    stream_id: 1,
    component_id: 1,
};

/// A description.
#[derive(Debug, Serialize)]
pub(crate) struct Description<'a> {
    owner: &'static str,
    jsep: Jsep<'a>,
}

#[derive(Debug, Serialize)]
struct Jsep<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    sdp: &'a str,
}

/// The client's description, as it came.
pub(crate) fn remote_jsep(kind: JsepKind, sdp: &str) -> Description<'_> {
    description("remote", kind, sdp)
}

/// The server's description, as it is sent.
pub(crate) fn local_jsep(kind: JsepKind, sdp: &str) -> Description<'_> {
    description("local", kind, sdp)
}

fn description<'a>(owner: &'static str, kind: JsepKind, sdp: &'a str) -> Description<'a> {
    let kind = kind.as_str();
    Description {
        owner,
        jsep: Jsep { kind, sdp },
    }
}

/// The ICE agent's state.
#[derive(Debug, Serialize)]
pub(crate) struct Ice {
    ice: &'static str,
    #[serde(flatten)]
    component: Component,
}

/// The ICE agent's state.
pub(crate) fn ice(state: IceState) -> Ice {
    let ice = match state {
        IceState::Gathering => "gathering",
        IceState::Connecting => "connecting",
        IceState::Connected => "connected",
        IceState::Ready => "ready",
        IceState::Disconnected => "disconnected",
        IceState::Failed => "failed",
    };
    Ice {
        ice,
        component: COMPONENT,
    }
}

/// A candidate.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Candidate<'a> {
    LocalCandidate(&'a str),
    RemoteCandidate(&'a str),
}

/// A candidate of either side.
#[derive(Debug, Serialize)]
pub(crate) struct Trickled<'a> {
    #[serde(flatten)]
    candidate: Candidate<'a>,
    #[serde(flatten)]
    component: Component,
}

/// A candidate of the server, as the text after `a=`.
pub(crate) fn local_candidate(text: &str) -> Trickled<'_> {
    Trickled {
        candidate: Candidate::LocalCandidate(bare(text)),
        component: COMPONENT,
    }
}

/// A candidate of the client, as the text after `a=`.
pub(crate) fn remote_candidate(text: &str) -> Trickled<'_> {
    Trickled {
        candidate: Candidate::RemoteCandidate(bare(text)),
        component: COMPONENT,
    }
}

fn bare(candidate: &str) -> &str {
    candidate.strip_prefix("candidate:").unwrap_or(candidate)
}

/// The selected pair of candidates.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    #[serde(rename = "selected-pair")]
    text: String,
    candidates: Candidates,
    #[serde(flatten)]
    component: Component,
}

#[derive(Debug, Serialize)]
struct Candidates {
    local: Side,
    remote: Side,
}

/// A candidate of one side, by its parts.
#[derive(Debug, Serialize)]
struct Side {
    address: IpAddr,
    port: u16,
    #[serde(rename = "type")]
    kind: &'static str,
    transport: &'static str,
    family: u8,
}

/// Returns the selected pair of candidates.
pub(crate) fn selected_pair(pair: &SelectedPair) -> Pair {
    let side = |address: SocketAddr, kind| Side {
        address: address.ip(),
        port: address.port(),
        kind,
        transport: pair.carrier.name(),
        family: if address.is_ipv4() { 4 } else { 6 },
    };
    let local = side(pair.local, pair.local_kind());
    let remote = side(pair.remote, pair.remote_kind);
    Pair {
        text: format!("{local} <-> {remote}"),
        candidates: Candidates { local, remote },
        component: COMPONENT,
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Side {
            address,
            port,
            kind,
            transport,
            ..
        } = self;
        write!(f, "{address}:{port} [{kind},{transport}]")
    }
}

/// The state of the DTLS handshake, with the number of repeated flights.
#[derive(Debug, Serialize)]
pub(crate) struct Dtls {
    dtls: &'static str,
    #[serde(flatten)]
    component: Component,
    retransmissions: u32,
}

/// Returns the state of the DTLS handshake, with the number of repeated flights.
pub(crate) fn dtls(state: DtlsState, retransmissions: u32) -> Dtls {
    let dtls = match state {
        DtlsState::Trying => "trying",
        DtlsState::Connected => "connected",
        DtlsState::Failed => "failed",
    };
    Dtls {
        dtls,
        component: COMPONENT,
        retransmissions,
    }
}

/// Media can flow, or the PeerConnection is closed for a reason.
#[derive(Debug, Serialize)]
pub(crate) struct Connection<'a> {
    connection: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Why ICE failed: a code and a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// Media can flow.
pub(crate) fn up() -> Connection<'static> {
    Connection {
        connection: "webrtcup",
        reason: None,
        cause: None,
        text: None,
    }
}

/// The PeerConnection is closed.
pub(crate) fn hangup<'a>(reason: &'a str, cause: Option<&'a IceCause>) -> Connection<'a> {
    Connection {
        connection: "hangup",
        reason: Some(reason),
        cause: cause.map(|cause| cause.code),
        text: cause.map(|cause| cause.text.as_str()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_media::Carrier;
    use serde_json::{Value, json};

    use super::*;

    fn written(body: impl Serialize) -> Value {
        serde_json::to_value(body).unwrap()
    }

    #[test]
    fn candidates_have_no_prefix() {
        let text = "candidate:1 1 udp 2113929471 192.0.2.1 10000 typ host";
        let bare = "1 1 udp 2113929471 192.0.2.1 10000 typ host";
        assert_eq!(
            written(local_candidate(text)),
            json!({ "local-candidate": bare, "stream_id": 1, "component_id": 1 })
        );
        assert_eq!(
            written(remote_candidate(bare)),
            json!({ "remote-candidate": bare, "stream_id": 1, "component_id": 1 })
        );
    }

    #[test]
    fn a_pair_is_told_as_text_and_by_its_parts() {
        let pair = SelectedPair {
            is_relayed: false,
            local: "192.0.2.1:10000".parse().unwrap(),
            remote: "198.51.100.7:4000".parse().unwrap(),
            carrier: Carrier::Udp,
            remote_kind: "srflx",
        };
        let told = written(selected_pair(&pair));
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
            is_relayed: false,
            local: "[2001:db8::1]:10000".parse().unwrap(),
            remote: "[2001:db8::2]:9".parse().unwrap(),
            carrier: Carrier::Tcp,
            remote_kind: "prflx",
        };
        let told = written(selected_pair(&pair));
        let remote = json!({
            "address": "2001:db8::2", "port": 9, "type": "prflx", "transport": "tcp", "family": 6,
        });
        assert_eq!(told.pointer("/candidates/remote"), Some(&remote));
        let text = "2001:db8::1:10000 [host,tcp] <-> 2001:db8::2:9 [prflx,tcp]";
        assert_eq!(told.get("selected-pair"), Some(&json!(text)));
    }

    #[test]
    fn the_handshake_says_how_often_it_had_to_repeat_itself() {
        let told = written(dtls(DtlsState::Connected, 2));
        let expected = json!({
            "dtls": "connected", "stream_id": 1, "component_id": 1, "retransmissions": 2,
        });
        assert_eq!(told, expected);
        assert_eq!(written(ice(IceState::Ready))["ice"], "ready");
        assert_eq!(
            written(hangup("DTLS alert", None)),
            json!({ "connection": "hangup", "reason": "DTLS alert" })
        );
        let cause = IceCause {
            code: "unreachable",
            text: "Nothing came.".to_owned(),
        };
        assert_eq!(
            written(hangup("ICE failed", Some(&cause))),
            json!({ "connection": "hangup", "reason": "ICE failed", "cause": "unreachable", "text": "Nothing came." })
        );
    }
}
