//! Each request with what it asks for, and with each mistake.

use portunus_core::testing::stranger;
use serde_json::{Value, json};

use crate::stage::{Stage, TALKER, code};

#[tokio::test(start_paused = true)]
async fn settings_are_changed_answered_and_told() {
    let stage = Stage::new();
    for (verb, member, value, told, status) in [
        (
            "set_session_timeout",
            "timeout",
            json!(7),
            "timeout",
            "session_timeout",
        ),
        ("set_log_level", "level", json!(5), "level", "log_level"),
        (
            "set_log_timestamps",
            "timestamps",
            json!(false),
            "log_timestamps",
            "log_timestamps",
        ),
        (
            "set_log_colors",
            "colors",
            json!(true),
            "log_colors",
            "log_colors",
        ),
        (
            "set_locking_debug",
            "debug",
            json!(true),
            "locking_debug",
            "locking_debug",
        ),
        (
            "set_refcount_debug",
            "debug",
            json!(true),
            "refcount_debug",
            "refcount_debug",
        ),
        (
            "set_min_nack_queue",
            "min_nack_queue",
            json!(300),
            "min_nack_queue",
            "min_nack_queue",
        ),
        (
            "set_nack_optimizations",
            "nack_optimizations",
            json!(true),
            "nack-optimizations",
            "nack-optimizations",
        ),
        (
            "set_no_media_timer",
            "no_media_timer",
            json!(3),
            "no_media_timer",
            "no_media_timer",
        ),
        (
            "set_slowlink_threshold",
            "slowlink_threshold",
            json!(9),
            "slowlink_threshold",
            "slowlink_threshold",
        ),
    ] {
        let mut members = json!({});
        members[member] = value.clone();
        let reply = stage.ask(verb, members.clone()).await;
        let mut expected = json!({ "janus": "success", "transaction": "t" });
        expected[told] = value.clone();
        assert_eq!(reply, expected, "{verb}");
        // Verbs are the same in upper case.
        assert_eq!(stage.ask(&verb.to_uppercase(), members).await, expected);
        let reply = stage.ask("get_status", json!({})).await;
        assert_eq!(reply["status"][status], value, "{verb}: {reply}");
        assert_eq!(code(&stage.ask(verb, json!({})).await), 456, "{verb}");
        for wrong in [json!("x"), json!(null), json!([]), json!({}), json!(1.5)] {
            let mut members = json!({});
            members[member] = wrong.clone();
            assert_eq!(code(&stage.ask(verb, members).await), 467, "{verb} {wrong}");
        }
        let other = if value.is_boolean() {
            json!(1)
        } else {
            json!(-1)
        };
        let mut members = json!({});
        members[member] = other;
        assert_eq!(code(&stage.ask(verb, members).await), 467, "{verb}");
    }
    assert_eq!(
        code(&stage.ask("set_log_level", json!({ "level": 8 })).await),
        467
    );
    let capped = stage
        .ask("set_min_nack_queue", json!({ "min_nack_queue": 5000 }))
        .await;
    assert_eq!(capped["min_nack_queue"], 1000);
    assert_eq!(capped["warning"], "min_nack_queue is 1000 at most");
    let day = stage
        .ask("set_no_media_timer", json!({ "no_media_timer": 90_000 }))
        .await;
    assert_eq!(day["no_media_timer"], 86_400);
    assert_eq!(day["warning"], "no_media_timer is 86400 at most");
    let info = stage.ask("info", json!({})).await;
    assert_eq!(info["session-timeout"], 7);
}

#[tokio::test(start_paused = true)]
async fn the_status_has_every_member() {
    let stage = Stage::new();
    let reply = stage.ask("get_status", json!({})).await;
    for (name, is_right) in [
        ("token_auth", Value::is_boolean as fn(&Value) -> bool),
        ("session_timeout", Value::is_u64),
        ("reclaim_session_timeout", Value::is_u64),
        ("candidates_timeout", Value::is_u64),
        ("log_level", Value::is_u64),
        ("log_timestamps", Value::is_boolean),
        ("log_colors", Value::is_boolean),
        ("locking_debug", Value::is_boolean),
        ("refcount_debug", Value::is_boolean),
        ("min_nack_queue", Value::is_u64),
        ("nack-optimizations", Value::is_boolean),
        ("no_media_timer", Value::is_u64),
        ("slowlink_threshold", Value::is_u64),
    ] {
        assert!(is_right(&reply["status"][name]), "{name} in {reply}");
    }
}

/// The members of each request: their names, whether they are required, and values of wrong types.
const MEMBERS: &[(&str, &str, bool)] = &[
    ("accept_new_sessions", "accept", true),
    ("message_plugin", "plugin", true),
    ("message_plugin", "request", false),
    ("query_transport", "transport", true),
    ("query_transport", "request", false),
    ("query_eventhandler", "handler", true),
    ("query_eventhandler", "request", false),
    ("query_logger", "logger", true),
    ("query_logger", "request", false),
    ("custom_event", "schema", true),
    ("custom_event", "data", true),
    ("custom_logline", "line", true),
    ("custom_logline", "level", false),
    ("resolve_address", "address", true),
    ("test_stun", "address", true),
    ("test_stun", "port", true),
    ("test_stun", "localport", false),
    ("overview", "offset", false),
    ("overview", "limit", false),
    ("overview", "search", false),
    ("overview", "sort", false),
];

/// The members of a request that is right, as far as its types go.
fn right(verb: &str) -> Value {
    match verb {
        "accept_new_sessions" => json!({ "accept": true }),
        "message_plugin" => json!({ "plugin": TALKER, "request": {} }),
        "query_transport" => json!({ "transport": "x", "request": {} }),
        "query_eventhandler" => json!({ "handler": "x", "request": {} }),
        "query_logger" => json!({ "logger": "x", "request": {} }),
        "custom_event" => json!({ "schema": "s", "data": {} }),
        "custom_logline" => json!({ "line": "l", "level": 4 }),
        "resolve_address" => json!({ "address": "127.0.0.1" }),
        "test_stun" => json!({ "address": "127.0.0.1", "port": 9, "localport": 0 }),
        _ => json!({}),
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_are_missing_or_of_a_wrong_type_are_told() {
    let stage = Stage::new();
    for (verb, member, is_required) in MEMBERS {
        if *is_required {
            let mut members = right(verb);
            members.as_object_mut().unwrap().remove(*member);
            let reply = stage.ask(verb, members).await;
            assert_eq!(code(&reply), 456, "{verb} without {member}: {reply}");
        }
        // No member may be of two of these types.
        for wrong in [json!(null), json!([[]]), json!(-1)] {
            let mut members = right(verb);
            members[member] = wrong.clone();
            let reply = stage.ask(verb, members).await;
            assert_eq!(code(&reply), 467, "{verb} with {member} {wrong}: {reply}");
            let reason = reply["error"]["reason"].as_str().unwrap();
            assert!(reason.contains(member), "{verb}: {reason}");
        }
    }
    let sort = stage.ask("overview", json!({ "sort": "name" })).await;
    assert_eq!(code(&sort), 467);
    let port = json!({ "address": "127.0.0.1", "port": 65536 });
    assert_eq!(code(&stage.ask("test_stun", port).await), 467);
}

#[tokio::test(start_paused = true)]
async fn envelopes_are_checked_first() {
    let stage = Stage::new();
    for (request, expected) in [
        (json!({}), 456),
        (json!({ "janus": "ping" }), 456),
        (json!({ "transaction": "t" }), 456),
        (json!({ "janus": 1, "transaction": "t" }), 467),
        (json!({ "janus": "ping", "transaction": 1 }), 467),
        (json!([]), 456),
        (json!("ping"), 454),
    ] {
        assert_eq!(code(&stage.raw(&request).await), expected, "{request}");
    }
}

const SERVER: &[&str] = &[
    "get_status",
    "accept_new_sessions",
    "message_plugin",
    "query_transport",
    "query_eventhandler",
    "query_logger",
    "custom_event",
    "custom_logline",
    "list_sessions",
    "resolve_address",
    "test_stun",
    "loops_info",
    "overview",
    "workers_info",
    "subscribe_events",
    "unsubscribe_events",
    "set_log_level",
];
const SESSION: &[&str] = &["destroy_session", "list_handles"];
const HANDLE: &[&str] = &[
    "handle_info",
    "detach_handle",
    "hangup_webrtc",
    "start_pcap",
    "stop_pcap",
    "start_text2pcap",
    "stop_text2pcap",
];

#[tokio::test(start_paused = true)]
async fn requests_at_another_level_are_refused() {
    let stage = Stage::new();
    let client = stage.attach().await;
    let (session, handle) = (Some(client.session), Some(client.handle));
    let at_server = (None, None);
    let at_session = (session, None);
    let at_handle = (session, handle);
    for (verbs, levels) in [
        (SERVER, [at_session, at_handle]),
        (SESSION, [at_server, at_handle]),
        (HANDLE, [at_server, at_session]),
        (
            &["fly", "create", "attach", "message"],
            [at_server, at_session],
        ),
        (&["fly", "trickle", "keepalive"], [at_session, at_handle]),
    ] {
        for verb in verbs {
            for level in levels {
                let reply = stage.ask_at(verb, level, right(verb)).await;
                assert_eq!(code(&reply), 457, "{verb} at {level:?}");
                let reason = format!("Unhandled request '{verb}' at this path");
                assert_eq!(reply["error"]["reason"], reason);
            }
        }
    }
    // Some verbs mean different requests at two levels.
    let timeout = json!({ "timeout": 5 });
    let reply = stage
        .ask_at("set_session_timeout", at_handle, timeout)
        .await;
    assert_eq!(code(&reply), 457);
}

#[tokio::test(start_paused = true)]
async fn sessions_and_handles_that_there_are_not_are_told() {
    let stage = Stage::new();
    let client = stage.attach().await;
    for verb in SESSION.iter().chain(HANDLE) {
        let nobody = (Some(client.session + 1), Some(client.handle));
        assert_eq!(code(&stage.ask_at(verb, nobody, json!({})).await), 458);
    }
    for verb in HANDLE {
        let none = (Some(client.session), Some(client.handle + 1));
        let reply = stage.ask_at(verb, none, json!({})).await;
        assert_eq!(code(&reply), 459);
        assert_eq!(reply["session_id"], client.session);
    }
    let mut request = json!({ "janus": "handle_info", "transaction": "t" });
    request["session_id"] = client.session.into();
    request["handle_id"] = "abc".into();
    assert_eq!(code(&stage.raw(&request).await), 458);
}

#[tokio::test(start_paused = true)]
async fn with_a_secret_it_has_to_be_shown_but_for_info_and_ping() {
    let stage = Stage::locked("s3");
    for verb in ["info", "ping", "Info"] {
        assert_eq!(code(&stage.ask(verb, json!({})).await), 0, "{verb}");
    }
    for verb in SERVER.iter().chain(&["fly"]) {
        for secret in [None, Some(json!("s4")), Some(json!(3)), Some(json!(""))] {
            let mut members = right(verb);
            if let Some(secret) = &secret {
                members["admin_secret"] = secret.clone();
            }
            let reply = stage.ask(verb, members).await;
            assert_eq!(code(&reply), 403, "{verb} {secret:?}");
            assert_eq!(
                reply["error"]["reason"],
                "Unauthorized request (wrong or missing secret/token)"
            );
        }
    }
    // Nor is it told what there is.
    let reply = stage
        .ask_at("list_handles", (Some(5), None), json!({}))
        .await;
    assert_eq!(code(&reply), 403);
    let shown = json!({ "admin_secret": "s3" });
    assert_eq!(code(&stage.ask("list_sessions", shown.clone()).await), 0);
    let fly = stage.ask("fly", shown.clone()).await;
    assert_eq!(code(&fly), 457);
    // From anywhere.
    let mut request = shown;
    request["janus"] = "list_sessions".into();
    request["transaction"] = "t".into();
    assert_eq!(code(&stage.raw_from(stranger(), &request).await), 0);
    let counted = stage.administration.totals();
    assert!(counted.refused > 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_secret_strangers_are_refused() {
    let stage = Stage::new();
    let request = json!({ "janus": "list_sessions", "transaction": "t" });
    assert_eq!(code(&stage.raw_from(stranger(), &request).await), 403);
    assert_eq!(code(&stage.raw(&request).await), 0);
    let ping = json!({ "janus": "ping", "transaction": "t" });
    assert_eq!(code(&stage.raw_from(stranger(), &ping).await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_started_changed_and_undone() {
    let stage = Stage::new();
    let status = async || stage.ask("get_status", json!({})).await["status"]["drain"].clone();
    assert_eq!(status().await, json!({ "draining": false }));
    let started = stage.ask("drain", json!({})).await;
    let expected = json!({
        "janus": "success", "transaction": "t", "already": false, "draining": true,
        "since": 0.0, "ending": false, "sessions": 0, "calls": 0,
    });
    assert_eq!(started, expected);
    let again = stage.ask("drain", json!({ "deadline": 600 })).await;
    assert_eq!(
        (&again["already"], &again["deadline"]),
        (&json!(true), &json!(600.0))
    );
    assert_eq!(status().await["deadline"], 600.0);
    for (wrong, expected) in [
        (json!("soon"), 467),
        (json!(-1), 467),
        (json!(604_801), 467),
    ] {
        let refused = stage.ask("drain", json!({ "deadline": wrong })).await;
        assert_eq!(code(&refused), expected, "{refused}");
    }
    assert_eq!(status().await["deadline"], 600.0);
    let expected = json!({
        "janus": "success", "transaction": "t", "already": false, "draining": false,
    });
    assert_eq!(stage.ask("undrain", json!({})).await, expected);
    assert_eq!(stage.ask("undrain", json!({})).await["already"], true);
    // A drain that a signal has started cannot be undone.
    stage
        .world
        .gateway
        .drain_before_end(std::time::Duration::ZERO)
        .await;
    assert_eq!(code(&stage.ask("undrain", json!({})).await), 490);
    assert_eq!(stage.ask("drain", json!({})).await["ending"], true);
}
