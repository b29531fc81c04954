//! Refusals: each wrong type, each code, and the order of the checks.

use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, merge, offer};

/// The types of members, with a value of another type.
const TYPES: [(&str, &str); 6] = [
    ("t", "a string"),
    ("b", "a boolean"),
    ("n", "a positive integer"),
    ("i", "an integer"),
    ("a", "an array"),
    ("o", "an object"),
];

/// The members of requests in the order of the checks, with their types. A star marks required
/// ones.
const REQUESTS: [(&str, &str); 23] = [
    (
        "create",
        "permanent:b description:t secret:t pin:t is_private:b allowed:a sampling_rate:n sampling:n \
         spatial_audio:b audiolevel_ext:b audiolevel_event:b audio_active_packets:n \
         audio_level_average:n default_expectedloss:n default_bitrate:n denoise:b record:b \
         record_file:t record_dir:t mjrs:b mjrs_dir:t allow_rtp_participants:b groups:a signed_tokens:b \
         room:n",
    ),
    (
        "edit",
        "secret:t new_description:t new_secret:t new_pin:t new_is_private:b new_record_dir:t \
         new_mjrs_dir:t permanent:b room*:n",
    ),
    ("destroy", "secret:t permanent:b room*:n"),
    ("exists", "room*:n"),
    ("allowed", "secret:t action*:t allowed:a room*:n"),
    ("listparticipants", "room*:n"),
    ("mute", "secret:t room*:n id*:n"),
    ("unmute", "secret:t room*:n id*:n"),
    ("mute_room", "secret:t room*:n"),
    ("unmute_room", "secret:t room*:n"),
    ("kick", "secret:t room*:n id*:n"),
    ("kick_all", "secret:t room*:n"),
    ("denoise_enable", "secret:t room*:n id*:n"),
    ("denoise_disable", "secret:t room*:n id*:n"),
    (
        "suspend",
        "secret:t pause_events:b stop_record:b room*:n id*:n",
    ),
    ("resume", "secret:t record:b filename:t room*:n id*:n"),
    (
        "rtp_forward",
        "secret:t ssrc:n codec:t ptype:n port*:n host*:t host_family:t srtp_suite:n srtp_crypto:t \
         always_on:b group:t room*:n",
    ),
    ("stop_rtp_forward", "secret:t stream_id*:n room*:n"),
    ("listforwarders", "secret:t room*:n"),
    (
        "play_file",
        "secret:t filename*:t file_id:t group:t loop:b room*:n",
    ),
    ("is_playing", "secret:t file_id*:t room*:n"),
    ("stop_file", "secret:t file_id*:t room*:n"),
    ("stop_all_files", "secret:t room*:n"),
];

const EVENTED: [(&str, &str); 2] = [
    (
        "join",
        "pin:t token:t secret:t group:t display:t muted:b suspended:b pause_events:b codec:t bitrate:n \
         quality:n expected_loss:n volume:n spatial_position:n audio_level_average:n \
         audio_active_packets:n denoise:b record:b filename:t generate_offer:b rtp:o room*:n id:n",
    ),
    (
        "configure",
        "muted:b display:t bitrate:n quality:n expected_loss:n volume:n spatial_position:n denoise:b \
         group:t record:b filename:t generate_offer:b update:b rtp:o",
    ),
];

/// Splits an entry into names, whether they are required, and types.
fn members(of: &str) -> Vec<(&str, bool, &str)> {
    of.split_whitespace()
        .map(|member| {
            let (name, kind) = member.split_once(':').unwrap();
            let wanted = TYPES.iter().find(|(short, _)| *short == kind).unwrap().1;
            (name.trim_end_matches('*'), name.ends_with('*'), wanted)
        })
        .collect()
}

/// Returns a value of the right type.
fn right(wanted: &str) -> Value {
    match wanted {
        "a string" => json!("x"),
        "a boolean" => json!(false),
        "an array" => json!([]),
        "an object" => json!({}),
        _ => json!(1),
    }
}

/// Returns requests with one wrong member each, and all before it right, with the refusals.
fn wrong(name: &str, of: &str) -> Vec<(Value, u64, String)> {
    let mut cases = Vec::new();
    let mut before = json!({ "request": name });
    for (member, needed, wanted) in members(of) {
        if needed {
            let text = format!("Missing mandatory element ({member})");
            cases.push((before.clone(), 483, text));
        }
        for value in [json!(null), json!(-1.5), json!({ "x": 1 }), json!([1])] {
            let fits = match wanted {
                "an object" => value.is_object(),
                "an array" => value.is_array(),
                _ => false,
            };
            if !fits {
                let mut request = before.clone();
                merge(&mut request, json!({ member: value }));
                let text = format!("Invalid element type ({member} should be {wanted})");
                cases.push((request, 484, text));
            }
        }
        merge(&mut before, json!({ member: right(wanted) }));
    }
    cases
}

#[tokio::test]
async fn each_wrong_member_is_told_in_the_order_of_the_documentation() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (name, of) in REQUESTS {
        for (request, expected, text) in wrong(name, of) {
            let refused = client.request(request.clone()).await;
            assert_eq!(code(&refused), expected, "{request}: {refused}");
            assert_eq!(refused["error"], text, "{request}");
        }
    }
    let mut member = world.join(1, json!({})).await;
    for (name, of) in EVENTED {
        let client = if name == "join" {
            &mut client
        } else {
            &mut member
        };
        for (request, expected, text) in wrong(name, of) {
            let refused = ask(client, request.clone()).await;
            assert_eq!(code(&refused), expected, "{request}: {refused}");
            assert_eq!(refused["error"], text, "{request}");
        }
    }
}

#[tokio::test]
async fn requests_that_there_are_not_and_no_requests_are_refused() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (request, expected) in [
        (json!({ "request": "list_forwarders" }), 482),
        (json!({ "request": "x" }), 482),
        (json!({}), 483),
        (json!({ "request": 1 }), 484),
    ] {
        assert_eq!(code(&client.request(request).await), expected);
    }
    // The case of a name makes no difference.
    assert!(client.request(json!({ "request": "LIST" })).await["list"].is_array());
}

#[tokio::test]
async fn rooms_that_there_are_not_are_told_before_secrets_and_people() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut client = world.attach().await;
    world.join(1, json!({})).await;
    let nobody = ["exists", "create", "join"];
    let more = json!({
        "action": "add", "port": 1, "host": "127.0.0.1", "stream_id": 1, "filename": "f", "file_id": "f",
    });
    for (name, of) in REQUESTS {
        if nobody.contains(&name) {
            continue;
        }
        let ask = |members: Value| {
            let mut request = json!({ "request": name });
            merge(&mut request, more.clone());
            merge(&mut request, members);
            request
        };
        let refused = client.request(ask(json!({ "room": 5, "id": 1 }))).await;
        assert_eq!(code(&refused), 485, "{name}");
        assert_eq!(refused["error"], "No such room (5)");
        if name == "listparticipants" {
            continue;
        }
        for (secret, expected, text) in [
            (json!({}), 483, "Missing mandatory element (secret)"),
            (json!({ "secret": "x" }), 489, "Unauthorized (wrong secret)"),
        ] {
            let mut members = json!({ "room": ROOM, "id": 1 });
            merge(&mut members, secret);
            let refused = client.request(ask(members)).await;
            assert_eq!(code(&refused), expected, "{name}: {refused}");
            assert_eq!(refused["error"], text);
        }
        if of.contains("id*:n") && !of.contains("stream_id") {
            let members = json!({ "room": ROOM, "id": 7, "secret": "s" });
            let refused = client.request(ask(members)).await;
            assert_eq!(code(&refused), 492, "{name}: {refused}");
            assert_eq!(refused["error"], "No such user 7 in room 1234");
        }
    }
    // A missing name counts as an unknown room.
    for request in [
        json!({ "request": "enable_recording", "record": true }),
        json!({ "request": "enable_mjrs", "mjrs": true }),
    ] {
        let refused = client.request(request).await;
        assert_eq!(
            (code(&refused), &refused["error"]),
            (485, &json!("No such room (0)"))
        );
    }
}

#[tokio::test]
async fn a_room_that_cannot_be_is_refused_in_order() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (members, expected, text) in [
        (
            json!({ "allowed": ["a", 1], "groups": [1] }),
            484,
            "Invalid element in the allowed array (not a string)",
        ),
        (
            json!({ "groups": ["a", 1], "permanent": true }),
            484,
            "Invalid element in the groups array (not a string)",
        ),
        (
            json!({ "groups": ["a", "b", "c", "d", "e", "f"] }),
            484,
            "Invalid value (groups: 5 at most)",
        ),
        (
            json!({ "room": ROOM, "permanent": true }),
            499,
            "No file is configured for permanent rooms (audiobridge.save)",
        ),
        (
            json!({ "room": ROOM, "sampling_rate": 1 }),
            486,
            "Room 1234 already exists",
        ),
        (
            json!({ "sampling_rate": 44_100 }),
            499,
            "Unsupported sampling rate 44100",
        ),
        (json!({ "sampling": 1 }), 499, "Unsupported sampling rate 1"),
    ] {
        let mut request = json!({ "request": "create" });
        merge(&mut request, members);
        let refused = client.request(request).await;
        assert_eq!(code(&refused), expected, "{refused}");
        assert_eq!(refused["error"], text);
    }
}

#[tokio::test]
async fn joining_is_refused_in_order() {
    let options = json!({
        "pin": "p", "secret": "s", "allowed": ["t"], "groups": ["a", "b"],
    });
    let world = World::new(options).await;
    let mut first = world.attach().await;
    let opened = json!({
        "request": "join", "room": ROOM, "id": 1, "pin": "p", "token": "t", "group": "a",
    });
    assert_eq!(ask(&mut first, opened).await["audiobridge"], "joined");

    let mut client = world.attach().await;
    let mut request = json!({
        "request": "join", "room": 5, "id": 1, "rtp": {}, "secret": "x", "group": "x", "quality": 0,
        "expected_loss": 21, "codec": "x",
    });
    for (mend, expected, text) in [
        (json!({}), 485, "No such room (5)"),
        (
            json!({ "room": ROOM }),
            489,
            "Unauthorized (no plain RTP in this room, see allow_rtp_participants)",
        ),
        (
            json!({ "rtp": null }),
            484,
            "Invalid element type (rtp should be an object)",
        ),
    ] {
        merge(&mut request, mend);
        let refused = ask(&mut client, request.clone()).await;
        assert_eq!(code(&refused), expected, "{refused}");
        assert_eq!(refused["error"], text);
    }
    request.as_object_mut().unwrap().remove("rtp");
    for (mend, expected, text) in [
        (json!({}), 483, "Missing mandatory element (pin)"),
        (json!({ "pin": "x" }), 489, "Unauthorized (wrong pin)"),
        (
            json!({ "pin": "p" }),
            489,
            "Unauthorized (not in the allowed list)",
        ),
        (
            json!({ "token": "x" }),
            489,
            "Unauthorized (not in the allowed list)",
        ),
        (json!({ "token": "t" }), 489, "Unauthorized (wrong secret)"),
        (json!({ "secret": "s" }), 494, "No such group (x)"),
        (
            json!({ "group": "b" }),
            484,
            "Invalid value (quality: 1 to 10)",
        ),
        (
            json!({ "quality": 11 }),
            484,
            "Invalid value (quality: 1 to 10)",
        ),
        (
            json!({ "quality": 10 }),
            484,
            "Invalid value (expected_loss: 0 to 20)",
        ),
        (json!({ "expected_loss": 20 }), 484, "Unsupported codec (x)"),
        (json!({ "codec": "pcma" }), 490, "User ID 1 already exists"),
    ] {
        merge(&mut request, mend);
        let refused = ask(&mut client, request.clone()).await;
        assert_eq!(code(&refused), expected, "{refused}");
        assert_eq!(refused["error"], text);
    }
    request.as_object_mut().unwrap().remove("group");
    let refused = ask(&mut client, request.clone()).await;
    assert_eq!(refused["error"], "Missing mandatory element (group)");
    merge(&mut request, json!({ "id": 2, "group": "b" }));
    assert_eq!(
        ask(&mut client, request.clone()).await["audiobridge"],
        "joined"
    );
    // It is in a room already, whatever else is wrong.
    let refused = ask(&mut client, json!({ "request": "join" })).await;
    assert_eq!(
        (code(&refused), &refused["error"]),
        (491, &json!("Already in a room"))
    );
}

#[tokio::test]
async fn whoever_is_in_no_room_can_do_nothing_in_one() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (name, text) in [
        ("configure", "Can't configure (not in a room)"),
        ("changeroom", "Can't change room (not in a room)"),
        ("leave", "Can't leave (not in a room)"),
    ] {
        let refused = ask(&mut client, json!({ "request": name })).await;
        assert_eq!((code(&refused), &refused["error"]), (487, &json!(text)));
    }
    let reset = client.request(json!({ "request": "resetdecoder" })).await;
    assert_eq!(
        (code(&reset), &reset["error"]),
        (487, &json!("Can't reset (not in a room)"))
    );
    // This needs no room.
    let hung_up = ask(&mut client, json!({ "request": "hangup" })).await;
    assert_eq!(hung_up, json!({ "audiobridge": "hangingup" }));
}

#[tokio::test]
async fn a_configuration_that_cannot_be_changes_nothing() {
    let world = World::new(json!({ "groups": ["a"] })).await;
    let mut client = world.join(1, json!({ "group": "a" })).await;
    for (members, expected) in [
        (json!({ "muted": true, "quality": 0 }), 484),
        (json!({ "muted": true, "expected_loss": 21 }), 484),
        (json!({ "muted": true, "group": "x" }), 494),
    ] {
        let mut request = json!({ "request": "configure" });
        merge(&mut request, members);
        assert_eq!(code(&ask(&mut client, request).await), expected);
    }
    assert_eq!(world.participants().await[0]["muted"], false);
}

#[tokio::test]
async fn media_that_is_encrypted_end_to_end_is_refused() {
    let world = World::new(json!({})).await;
    let mut client = world.join(1, json!({})).await;
    let mut jsep =
        portunus_core::testing::jsep("offer", "ufra1", &[portunus_core::testing::Line::Audio]);
    jsep["e2ee"] = json!(true);
    client
        .message(json!({ "request": "configure" }), Some(jsep))
        .await;
    let refused = client.event().await;
    assert_eq!(
        (code(&refused), &refused["error"]),
        (484, &json!("Media encryption unsupported by this plugin"))
    );
    // The refused request leaves nothing behind.
    let (event, _) = offer(&mut client, json!({ "request": "configure" })).await;
    assert_eq!(event["result"], "ok");
}
