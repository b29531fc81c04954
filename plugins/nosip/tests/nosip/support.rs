//! A server with the plugin, and requests to it.

use std::sync::Arc;

use portunus_core::media::leg::LegGates;
use portunus_core::testing::{Line, Requested, TestClient, TestServer, everywhere, jsep};
use portunus_core::{CoreConfig, HandleId, Networks, Plugin, SessionId};
use portunus_nosip::{NoSip, NoSipConfig};
use serde_json::{Value, json};

pub(crate) const PACKAGE: &str = "janus.plugin.nosip";

pub(crate) fn server_in(networks: Networks, config: NoSipConfig) -> TestServer {
    TestServer::with(CoreConfig::default(), |media| {
        let nosip = NoSip::new(&config, media.clone(), networks, None);
        vec![Arc::new(nosip) as Arc<dyn Plugin>]
    })
}

pub(crate) fn server() -> TestServer {
    let config = NoSipConfig {
        local_ip: Some("127.0.0.1".to_owned()),
        ..NoSipConfig::default()
    };
    server_in(everywhere(), config)
}

pub(crate) async fn ask(client: &mut TestClient, body: Value, jsep: Option<Value>) -> Value {
    client.message(body, jsep).await;
    client.event().await
}

/// The result of a request that has to be answered with this event.
pub(crate) async fn result(
    client: &mut TestClient,
    body: Value,
    jsep: Option<Value>,
    event: &str,
) -> Value {
    let answer = ask(client, body, jsep).await;
    assert_eq!(answer["nosip"], "event", "{answer}");
    assert_eq!(answer["result"]["event"], event, "{answer}");
    answer["result"].clone()
}

/// The code and the text of a refusal.
pub(crate) async fn refusal(
    client: &mut TestClient,
    body: Value,
    jsep: Option<Value>,
) -> (u64, String) {
    let answer = ask(client, body, jsep).await;
    let code = answer["error_code"].as_u64();
    let text = answer["error"].as_str().map(str::to_owned);
    code.zip(text).unwrap_or_else(|| panic!("{answer}"))
}

/// SDP of a far end, with audio, and video where it has a port.
pub(crate) fn far(audio: &str, video: u16) -> String {
    let video = match video {
        0 => String::new(),
        port => format!(
            "m=video {port} RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack pli\r\n"
        ),
    };
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {audio}\r\na=rtpmap:111 opus/48000/2\r\n{video}"
    )
}

pub(crate) const OPUS: &str = "6000 RTP/AVP 111";

pub(crate) fn process(kind: &str, sdp: &str) -> Value {
    json!({ "request": "process", "type": kind, "sdp": sdp })
}

pub(crate) fn offer(lines: &[Line]) -> Option<Value> {
    Some(jsep("offer", "aaaa", lines))
}

pub(crate) const BOTH: [Line; 2] = [Line::Audio, Line::Video];

/// A call that the client made.
pub(crate) async fn called(server: &TestServer) -> TestClient {
    let mut client = server.attach(PACKAGE).await;
    result(
        &mut client,
        json!({ "request": "generate" }),
        offer(&BOTH),
        "generated",
    )
    .await;
    client
        .message(process("answer", &far(OPUS, 6002)), None)
        .await;
    let (processed, answer) = client.event_with_jsep().await;
    assert_eq!(processed["result"]["event"], "processed", "{processed}");
    assert_eq!(answer.unwrap()["type"], "answer");
    client
}

pub(crate) async fn state(server: &TestServer, client: &TestClient) -> Value {
    let (session, handle) = (SessionId(client.session), HandleId(client.handle));
    server.gateway.query(session, handle).await.unwrap()
}

pub(crate) fn gates(requested: &Requested) -> Vec<LegGates> {
    requested.legs.iter().map(|leg| leg.gates).collect()
}
