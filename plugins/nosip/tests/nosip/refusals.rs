//! Requests that are refused.

use portunus_core::Networks;
use portunus_core::testing::{Line, jsep};
use portunus_nosip::NoSipConfig;
use serde_json::{Value, json};

use crate::support::{
    BOTH, OPUS, PACKAGE, far, offer, process, refusal, result, server, server_in,
};

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_the_codes_that_clients_know() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let with = |request: &str, more: Value| {
        let mut body = json!({ "request": request });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let audio = || offer(&[Line::Audio]);
    let nowhere = far(OPUS, 0).replace("c=IN IP4 127.0.0.1\r\n", "");
    let mut e2ee = jsep("offer", "aaaa", &[Line::Audio]);
    e2ee["e2ee"] = json!(true);
    let forward = |stream: Value| with("rtp_forward", json!({ "streams": [stream] }));
    for (body, jsep, code, text) in [
        (
            with("dance", json!({})),
            None,
            442,
            "Unknown request (dance)",
        ),
        (json!({}), None, 443, "Missing mandatory element (request)"),
        (with("generate", json!({})), None, 446, "Missing SDP"),
        (
            with("generate", json!({ "srtp": 1 })),
            audio(),
            444,
            "Invalid element type (srtp should be a string)",
        ),
        (
            with("generate", json!({})),
            offer(&[Line::Audio, Line::Data]),
            446,
            "The NoSIP plugin does not support DataChannels",
        ),
        (
            with("generate", json!({})),
            Some(e2ee),
            444,
            "Media encryption unsupported by this plugin",
        ),
        (
            with("generate", json!({ "srtp": "dtls" })),
            audio(),
            444,
            "Invalid element (srtp can only be sdes_optional or sdes_mandatory)",
        ),
        (
            with(
                "generate",
                json!({ "srtp": "sdes_optional", "srtp_profile": "NULL" }),
            ),
            audio(),
            444,
            "Invalid element (unsupported SRTP profile)",
        ),
        (
            with("process", json!({})),
            None,
            443,
            "Missing mandatory element (type)",
        ),
        (
            with("process", json!({ "type": "offer" })),
            None,
            443,
            "Missing mandatory element (sdp)",
        ),
        (
            process("pranswer", &far(OPUS, 0)),
            None,
            446,
            "Missing or invalid SDP type",
        ),
        (process("offer", ""), None, 446, "Missing SDP"),
        (
            process("offer", "hello"),
            None,
            446,
            "Error parsing SDP: it does not begin with v=0",
        ),
        (
            process("answer", &far(OPUS, 0)),
            None,
            445,
            "Wrong state (no offer to answer)",
        ),
        (
            process("offer", &far("0 RTP/AVP 111", 0)),
            None,
            447,
            "No audio and no video being negotiated",
        ),
        (
            process("offer", &nowhere),
            None,
            447,
            "No remote IP addresses",
        ),
        (
            process(
                "offer",
                &format!(
                    "{}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n",
                    far(OPUS, 0)
                ),
            ),
            None,
            446,
            "The NoSIP plugin does not support DataChannels",
        ),
        (
            with("recording", json!({ "audio": true })),
            None,
            443,
            "Missing mandatory element (action)",
        ),
        (
            with("recording", json!({ "action": "pause", "audio": true })),
            None,
            444,
            "Invalid action (should be start|stop)",
        ),
        (
            with("recording", json!({ "action": "start" })),
            None,
            449,
            "Invalid request (at least one of audio, video, peer_audio and peer_video should be true)",
        ),
        (
            with("rtp_forward", json!({ "streams": [] })),
            None,
            443,
            "Missing mandatory element (streams)",
        ),
        (
            forward(json!({ "type": "data", "host": "127.0.0.1", "port": 5004 })),
            None,
            444,
            "Invalid element (type)",
        ),
        (
            forward(json!({ "type": "audio", "port": 5004 })),
            None,
            443,
            "Missing mandatory element (host)",
        ),
        (
            with("stop_rtp_forward", json!({ "stream_id": 7 })),
            None,
            451,
            "No such stream (7)",
        ),
    ] {
        let refused = refusal(&mut client, body.clone(), jsep).await;
        assert_eq!(refused, (code, text.to_owned()), "{body}");
    }
    // What was refused leaves nothing behind.
    result(
        &mut client,
        json!({ "request": "generate" }),
        offer(&BOTH),
        "generated",
    )
    .await;
}

#[tokio::test]
async fn far_ends_are_where_the_server_may_send_to() {
    let config = NoSipConfig {
        public: true,
        ..NoSipConfig::default()
    };
    let server = server_in(Networks::default(), config);
    // Strangers may call there, where that is said.
    let mut client = server.attach_stranger(PACKAGE).await;
    let (code, text) = refusal(&mut client, process("offer", &far(OPUS, 0)), None).await;
    assert_eq!(code, 447);
    assert!(
        text.contains("127.0.0.1") && text.contains("outgoing_networks"),
        "{text}"
    );
    let public = far(OPUS, 0).replace("c=IN IP4 127.0.0.1", "c=IN IP4 1.1.1.1");
    let elsewhere = format!("{public}a=rtcp:99 IN IP4 10.0.0.1\r\n");
    assert_eq!(
        refusal(&mut client, process("offer", &elsewhere), None)
            .await
            .0,
        447
    );
    client.message(process("offer", &public), None).await;
    assert!(client.event_with_jsep().await.1.is_some());
    let forward = json!({ "request": "rtp_forward", "streams": [{ "type": "audio", "host": "1.1.1.1", "port": 5004 }] });
    assert_eq!(refusal(&mut client, forward.clone(), None).await.0, 499);
    let mut trusted = server.attach(PACKAGE).await;
    result(&mut trusted, forward, None, "rtp_forward").await;
    let inside = json!({ "request": "rtp_forward", "streams": [{ "type": "audio", "host": "10.0.0.1", "port": 5004 }] });
    assert_eq!(refusal(&mut trusted, inside, None).await.0, 444);
}
