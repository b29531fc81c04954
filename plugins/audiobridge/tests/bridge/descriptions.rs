//! Offers and answers.

use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, offer};

fn sdp(jsep: Option<Value>) -> String {
    jsep.unwrap()["sdp"].as_str().unwrap().to_owned()
}

fn lines<'a>(sdp: &'a str, start: &str) -> Vec<&'a str> {
    sdp.lines().filter(|line| line.starts_with(start)).collect()
}

#[tokio::test]
async fn what_is_refused_changes_nothing_and_is_told_to_nobody() {
    let world = World::new(json!({})).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    // The client made the offer.
    let configure = json!({
        "request": "configure", "muted": true, "display": "Ann", "generate_offer": true,
    });
    ann.event().await;
    assert_eq!(code(&ask(&mut ann, configure).await), 493);
    bob.expect_silence().await;
    let shown = world.participants().await[0].clone();
    assert_eq!(shown["muted"], false);
    assert!(shown["display"].is_null());
}

#[tokio::test]
async fn the_first_audio_is_taken_and_nothing_else() {
    let world = World::new(json!({ "sampling_rate": 48_000, "spatial_audio": true })).await;
    let mut ann = world.join(1, json!({})).await;
    let all = [Line::Video, Line::Audio, Line::Audio, Line::Data];
    ann.message(
        json!({ "request": "configure" }),
        Some(jsep("offer", "ufra1", &all)),
    )
    .await;
    let (event, answer) = ann.event_with_jsep().await;
    assert_eq!(event["result"], "ok", "{event}");
    let answer = sdp(answer);
    let ports: Vec<_> = lines(&answer, "m=")
        .iter()
        .map(|line| line.split(' ').nth(1).unwrap() != "0")
        .collect();
    assert_eq!(ports, [false, true, false, false], "{answer}");
    assert_eq!(lines(&answer, "s="), ["s=AudioBridge 1234"]);
    assert_eq!(
        lines(&answer, "a=fmtp:111"),
        ["a=fmtp:111 maxplaybackrate=48000; stereo=1; sprop-stereo=1; useinbandfec=1"]
    );
    let extensions = lines(&answer, "a=extmap:");
    assert_eq!(extensions.len(), 2, "{extensions:?}");
    assert!(extensions.iter().any(|it| it.ends_with("sdes:mid")));
    assert!(extensions.iter().any(|it| it.ends_with("ssrc-audio-level")));
    assert!(answer.contains("a=msid:janus janus1"), "{answer}");
}

#[tokio::test]
async fn the_answers_of_a_connection_have_one_id_and_grow() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let mut origin = async || {
        let (_, answer) = offer(&mut ann, json!({ "request": "configure" })).await;
        let answer = sdp(answer);
        let origin: Vec<_> = lines(&answer, "o=")[0]
            .split(' ')
            .map(str::to_owned)
            .collect();
        (origin[1].clone(), origin[2].clone())
    };
    let (first, second) = (origin().await, origin().await);
    assert_eq!(first.0, second.0);
    assert_eq!((first.1.as_str(), second.1.as_str()), ("1", "2"));
    assert!(
        first.0.parse::<u64>().unwrap() > 1_000_000_000_000_000,
        "microseconds"
    );
}

#[tokio::test]
async fn directions_are_mirrored() {
    let world = World::new(json!({})).await;
    for (offered, answered) in [
        ("sendonly", "recvonly"),
        ("recvonly", "sendonly"),
        ("inactive", "inactive"),
    ] {
        let mut client = world.attach().await;
        ask(&mut client, json!({ "request": "join", "room": ROOM })).await;
        let mut offer = jsep("offer", "ufra1", &[Line::Audio]);
        let text = offer["sdp"].as_str().unwrap().replace("sendrecv", offered);
        offer["sdp"] = json!(text);
        client
            .message(json!({ "request": "configure" }), Some(offer))
            .await;
        let answer = sdp(client.event_with_jsep().await.1);
        let expected = format!("a={answered}");
        assert!(answer.lines().any(|line| line == expected), "{answer}");
    }
}

#[tokio::test]
async fn a_codec_that_is_not_offered_is_answered_all_the_same() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({ "codec": "pcma" })).await;
    let (event, answer) = offer(&mut ann, json!({ "request": "configure" })).await;
    assert_eq!(event["result"], "ok");
    let answer = sdp(answer);
    assert!(lines(&answer, "m=audio")[0].ends_with(" 0"), "{answer}");
    assert!(answer.lines().any(|line| line == "a=inactive"), "{answer}");
}

#[tokio::test]
async fn redundancy_is_taken_where_the_client_has_it() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let (_, answer) = offer(&mut ann, json!({ "request": "configure" })).await;
    // Opus stays first, as in the offer.
    let answer = sdp(answer);
    assert!(
        lines(&answer, "m=audio")[0].ends_with(" 111 63"),
        "{answer}"
    );
}

#[tokio::test]
async fn the_plugin_offers_where_it_is_asked_to() {
    let world = World::new(json!({})).await;
    let mut ann = world.attach().await;
    let join = json!({ "request": "join", "room": ROOM, "id": 1, "generate_offer": true });
    ann.message(join, None).await;
    let (joined, offered) = ann.event_with_jsep().await;
    assert_eq!(joined["audiobridge"], "joined");
    assert_eq!(offered.as_ref().unwrap()["type"], "offer");
    let text = sdp(offered);
    assert_eq!(lines(&text, "m=audio").len(), 1);
    assert!(lines(&text, "m=audio")[0].ends_with(" 111"), "{text}");
    assert!(
        text.contains("a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level"),
        "{text}"
    );
    assert!(text.lines().any(|line| line == "a=sendrecv"), "{text}");
    assert_eq!(lines(&text, "s="), ["s=AudioBridge 1234"]);

    let answer = jsep("answer", "ufra1", &[Line::Audio]);
    ann.message(json!({ "request": "configure" }), Some(answer))
        .await;
    let (done, none) = ann.event_with_jsep().await;
    assert_eq!((&done["result"], none), (&json!("ok"), None));
    world.up(*world.server.peers().last().unwrap()).await;
    assert_eq!(ann.next().await["janus"], "webrtcup");
    assert_eq!(world.participants().await[0]["setup"], true);
    assert_eq!(world.state(&ann).await["plugin-offer"], true);

    // It is the plugin's turn to offer again.
    let (refused, _) = offer(&mut ann, json!({ "request": "configure" })).await;
    assert_eq!(
        (code(&refused), &refused["error"]),
        (493, &json!("Received an offer on a plugin-offered session"))
    );
    ann.message(json!({ "request": "configure", "update": true }), None)
        .await;
    let (done, again) = ann.event_with_jsep().await;
    assert_eq!(done["result"], "ok");
    assert_eq!(again.unwrap()["type"], "offer");
}

#[tokio::test]
async fn an_update_is_nothing_to_those_who_offered() {
    let world = World::new(json!({})).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let update = json!({ "request": "configure", "update": true });
    ann.message(update, None).await;
    let (done, none) = ann.event_with_jsep().await;
    assert_eq!((&done["result"], none), (&json!("ok"), None));
    let generate = json!({ "request": "configure", "generate_offer": true });
    assert_eq!(code(&ask(&mut ann, generate).await), 493);
}

#[tokio::test]
async fn g711_is_offered_with_its_own_numbers() {
    let world = World::new(json!({})).await;
    for (codec, pt) in [("pcma", " 8"), ("pcmu", " 0")] {
        let mut client = world.attach().await;
        let join = json!({
            "request": "join", "room": ROOM, "generate_offer": true, "codec": codec,
        });
        client.message(join, None).await;
        let offered = sdp(client.event_with_jsep().await.1);
        assert!(lines(&offered, "m=audio")[0].ends_with(pt), "{offered}");
    }
}
