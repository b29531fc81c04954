//! The operator's view: events, handles, the configuration.

use portunus_core::Mid;
use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use portunus_core::events::{EventFilter, EventKind};
use portunus_core::media::Event;
use portunus_core::testing::Line;
use portunus_recordplay::RecordPlayConfig;
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, ask, play, record};

#[tokio::test]
async fn event_handlers_are_told() {
    for events in [true, false] {
        let world = World::with(|config| config.events = events, |_| {}).await;
        let watcher = world.server.watch(EventFilter {
            kinds: EventKind::Plugins.into(),
            plugins: Vec::new(),
        });
        let mut client = world.attach().await;
        record(&mut client, &[Line::Audio], json!({ "id": 1 })).await;
        ask(&mut client, json!({ "request": "stop" })).await;
        let told: Vec<_> = std::iter::from_fn(|| watcher.try_recv())
            .map(|event| watcher.to_json(&event)["event"].clone())
            .collect();
        let event = |name: &str| json!({ "plugin": PACKAGE, "data": { "event": name, "id": 1 } });
        match events {
            true => assert_eq!(told, [event("recording"), event("done")]),
            false => assert_eq!(told, [] as [Value; 0]),
        }
    }
}

#[tokio::test]
async fn administrators_see_what_a_handle_does() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let none = json!({ "type": "none", "hangingup": 0, "destroyed": 0 });
    assert_eq!(world.state(&client).await, none);
    record(&mut client, &[Line::Audio], json!({ "id": 2 })).await;
    let recorder = json!({
        "type": "recorder", "recording_id": 2, "recording_name": "demo", "hangingup": 0, "destroyed": 0,
    });
    assert_eq!(world.state(&client).await, recorder);
    let mut other = world.attach().await;
    play(&mut other, 1).await;
    let state = world.state(&other).await;
    assert_eq!(
        (&state["type"], &state["recording_name"]),
        (&json!("player"), &json!("Recording of 1"))
    );
}

#[tokio::test]
async fn a_slow_link_is_told_from_the_clients_view() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio, Line::Video], json!({})).await;
    for (audio, from_client) in [(true, true), (false, true), (false, false)] {
        world.happen(slow_link(audio, from_client)).await;
        let mut told = Value::Null;
        while told["status"] != "slow_link" {
            told = match client.next().await {
                event if event["janus"] == "event" => event["plugindata"]["data"]["result"].clone(),
                _ => Value::Null,
            };
        }
        assert_eq!(told["uplink"], i32::from(from_client));
        assert_eq!(told["media"], if audio { "audio" } else { "video" });
        let bitrate = (!audio).then_some(1_048_576);
        assert_eq!(told["current-bitrate"].as_u64(), bitrate);
    }
}

fn slow_link(audio: bool, from_client: bool) -> Event {
    Event::SlowLink {
        mid: Mid::new("0").unwrap(),
        audio,
        uplink: from_client,
        lost: 50,
    }
}

#[tokio::test]
async fn settings_are_those_of_the_handle() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let told = |bitrate: u64, interval: u64| {
        json!({
            "recordplay": "configure", "status": "ok",
            "settings": { "video-keyframe-interval": interval, "video-bitrate-max": bitrate },
        })
    };
    let configure = |more: Value| {
        let mut body = json!({ "request": "configure" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    assert_eq!(
        client.request(configure(json!({}))).await,
        told(1_048_576, 15_000)
    );
    let changed = configure(json!({ "video-bitrate-max": 5, "video-keyframe-interval": 0 }));
    assert_eq!(client.request(changed).await, told(5, 0));
    assert_eq!(client.request(configure(json!({}))).await, told(5, 0));
    let mut other = world.attach().await;
    assert_eq!(
        other.request(configure(json!({}))).await,
        told(1_048_576, 15_000)
    );
}

fn read(text: &str) -> Result<RecordPlayConfig, Vec<String>> {
    let read = configuration::read(text, |file| {
        file.section("recordplay", RecordPlayConfig::read)
    });
    read.map_err(|mistakes| mistakes.iter().map(Mistake::to_string).collect())
}

#[test]
fn the_section_is_read_and_printed() {
    let text = "[recordplay]\npath = \"/srv/rec\"\nadmin_key = \"k\"\nprivate = true\n\
                events = false\nserve = false\npublic = true\n";
    let config = read(text).unwrap();
    let mut printed = Printed::default();
    printed.section("recordplay", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
    assert_eq!(read("").unwrap(), RecordPlayConfig::default());
}

#[test]
fn mistakes_have_their_lines() {
    for (line, key) in [("path = \"\"", "path"), ("folder = \"x\"", "folder")] {
        let mistakes = read(&format!("[recordplay]\n{line}\n")).unwrap_err();
        let begin = format!("line 2: recordplay.{key}: ");
        assert!(
            mistakes.len() == 1 && mistakes[0].starts_with(&begin),
            "{mistakes:?}"
        );
    }
}
