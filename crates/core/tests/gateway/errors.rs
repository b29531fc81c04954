use serde_json::{Value, json};

use crate::world::{PROBE, World};

/// A request (ids are filled in where they are named), and the code and reason of its reply.
fn table() -> Vec<(Value, u64, &'static str)> {
    let candidate = "candidate:1 1 udp 1 192.0.2.1 5000 typ host";
    vec![
        (json!([]), 456, "Missing mandatory element (transaction)"),
        (
            json!({ "janus": "ping" }),
            456,
            "Missing mandatory element (transaction)",
        ),
        (
            json!({ "transaction": "t" }),
            456,
            "Missing mandatory element (janus)",
        ),
        (
            json!({ "janus": 1, "transaction": "t" }),
            467,
            "Invalid element type (janus should be a string)",
        ),
        (
            json!({ "janus": "ping", "transaction": 1 }),
            467,
            "Invalid element type (transaction should be a string)",
        ),
        (
            json!({ "janus": "create", "transaction": "t", "id": -1 }),
            467,
            "Invalid element type (id should be a positive integer)",
        ),
        (
            json!({ "janus": "create", "transaction": "t", "id": "1" }),
            467,
            "Invalid element type (id should be a positive integer)",
        ),
        (
            json!({ "janus": "attach", "transaction": "t" }),
            457,
            "Unhandled request 'attach' at this path",
        ),
        (
            json!({ "janus": "dance", "transaction": "t" }),
            457,
            "Unhandled request 'dance' at this path",
        ),
        (
            json!({ "janus": "dance", "transaction": "t", "session_id": "S" }),
            453,
            "Unknown request 'dance'",
        ),
        (
            json!({ "janus": "keepalive", "transaction": "t", "session_id": 1 }),
            458,
            "No such session 1",
        ),
        (
            json!({ "janus": "message", "transaction": "t", "handle_id": 2 }),
            458,
            "Session not found",
        ),
        (
            json!({ "janus": "message", "transaction": "t", "session_id": "S", "handle_id": "x" }),
            459,
            "Handle not found",
        ),
        (
            json!({ "janus": "attach", "transaction": "t", "session_id": "S" }),
            456,
            "Missing mandatory element (plugin)",
        ),
        (
            json!({ "janus": "attach", "transaction": "t", "session_id": "S", "plugin": "none" }),
            460,
            "No such plugin 'none'",
        ),
        (
            json!({
                "janus": "attach", "transaction": "t", "session_id": "S", "plugin": PROBE,
                "opaque_id": 1,
            }),
            467,
            "Invalid element type (opaque_id should be a string)",
        ),
        (
            json!({ "janus": "attach", "transaction": "t", "session_id": "S", "handle_id": "H" }),
            457,
            "Unhandled request 'attach' at this path",
        ),
        (
            json!({ "janus": "destroy", "transaction": "t", "session_id": "S", "handle_id": "H" }),
            457,
            "Unhandled request 'destroy' at this path",
        ),
        (
            json!({ "janus": "message", "transaction": "t", "session_id": "S" }),
            457,
            "Unhandled request 'message' at this path",
        ),
        (
            json!({ "janus": "trickle", "transaction": "t", "session_id": "S" }),
            457,
            "Unhandled request 'trickle' at this path",
        ),
        (
            json!({ "janus": "hangup", "transaction": "t", "session_id": "S" }),
            457,
            "Unhandled request 'hangup' at this path",
        ),
        (
            json!({ "janus": "detach", "transaction": "t", "session_id": "S" }),
            457,
            "Unhandled request 'detach' at this path",
        ),
        (
            handle("message", json!({})),
            456,
            "Missing mandatory element (body)",
        ),
        (
            handle("message", json!({ "body": "x" })),
            467,
            "Invalid element type (body should be an object)",
        ),
        (jsep(json!("x")), 455, "Invalid jsep object"),
        (
            jsep(json!({ "sdp": "v=0" })),
            456,
            "JSEP error: missing mandatory element (type)",
        ),
        (
            jsep(json!({ "type": "offer" })),
            456,
            "JSEP error: missing mandatory element (sdp)",
        ),
        (
            jsep(json!({ "type": "offer", "sdp": "v=0", "trickle": "no" })),
            467,
            "JSEP error: invalid element type (trickle should be a boolean)",
        ),
        (
            jsep(json!({ "type": "offer", "sdp": 1 })),
            467,
            "JSEP error: invalid element type (sdp should be a string)",
        ),
        (
            jsep(json!({ "type": "rollback", "sdp": "v=0" })),
            464,
            "JSEP error: unknown message type 'rollback'",
        ),
        (
            jsep(json!({ "type": "offer", "sdp": "hello" })),
            465,
            "Invalid SDP (doesn't start with v=)",
        ),
        (
            handle("trickle", json!({})),
            456,
            "Missing mandatory element (candidate|candidates)",
        ),
        (
            handle("trickle", json!({ "candidate": {}, "candidates": [] })),
            454,
            "Can't have both candidate and candidates",
        ),
        (
            handle("trickle", json!({ "candidates": {} })),
            467,
            "candidates is not an array",
        ),
        (
            handle(
                "trickle",
                json!({ "candidate": { "candidate": candidate } }),
            ),
            456,
            "Trickle error: missing mandatory element (sdpMid or sdpMLineIndex)",
        ),
        (
            handle("trickle", json!({ "candidate": { "sdpMid": "0" } })),
            456,
            "Trickle error: missing mandatory element (candidate)",
        ),
        (
            handle(
                "trickle",
                json!({ "candidate": { "sdpMid": 0, "candidate": candidate } }),
            ),
            467,
            "Trickle error: invalid element type (sdpMid should be a string)",
        ),
        (
            handle(
                "trickle",
                json!({ "candidate": { "sdpMLineIndex": -1, "candidate": candidate } }),
            ),
            467,
            "Trickle error: invalid element type (sdpMLineIndex should be a positive integer)",
        ),
        (
            handle(
                "trickle",
                json!({ "candidate": { "sdpMid": "0", "candidate": 1 } }),
            ),
            467,
            "Trickle error: invalid element type (candidate should be a string)",
        ),
    ]
}

fn handle(verb: &str, members: Value) -> Value {
    let mut request =
        json!({ "janus": verb, "transaction": "t", "session_id": "S", "handle_id": "H" });
    request
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    request
}

fn jsep(jsep: Value) -> Value {
    handle("message", json!({ "body": {}, "jsep": jsep }))
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    for (mut request, code, reason) in table() {
        for (member, text, id) in [("session_id", "S", session), ("handle_id", "H", handle)] {
            if request.get(member) == Some(&json!(text)) {
                request[member] = id.into();
            }
        }
        let reply = client.ask(request.clone()).await;
        assert_eq!(reply["janus"], "error", "{request}");
        assert_eq!(
            reply["error"],
            json!({ "code": code, "reason": reason }),
            "{request}"
        );
        let known = request.get("session_id").filter(|id| id.is_u64());
        assert_eq!(reply.get("session_id"), known, "{request}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let mut client = World::new().connect();
    let bare = ["5", "-1.5", "\"ping\"", "null", "true"];
    let broken = ["", "{", "\u{0}", "{\"janus\":\"ping\",}", "nonsense"];
    for text in broken.into_iter().chain(bare) {
        let reply = client.ask_raw(text).await;
        assert_eq!(reply["error"]["code"], 454, "{text:?}");
        let reason = reply["error"]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("Invalid Janus API request - "),
            "{reason}"
        );
        assert_eq!(reply.get("transaction"), None);
    }
}

#[tokio::test]
async fn an_unknown_handle_is_named_in_the_reason() {
    let mut client = World::new().connect();
    let session = client.create().await;
    let request = json!({
        "janus": "message", "transaction": "t", "session_id": session, "handle_id": 7,
    });
    let reply = client.ask(request).await;
    let reason = format!("No such handle 7 in session {session}");
    assert_eq!(reply["error"], json!({ "code": 459, "reason": reason }));
    assert_eq!(reply["transaction"], "t");
}

#[tokio::test]
async fn refusals_are_counted_by_kind() {
    let world = World::new();
    let mut client = world.connect();
    client.ask_raw("{").await;
    client.ask_raw("[]").await;
    client
        .ask(json!({ "janus": "keepalive", "transaction": "t", "session_id": 1 }))
        .await;
    let counted: Vec<_> = world
        .gateway
        .counters()
        .snapshot()
        .bad_requests
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| (kind.as_str(), count))
        .collect();
    assert_eq!(counted, [("json", 1), ("element", 1), ("address", 1)]);
}
