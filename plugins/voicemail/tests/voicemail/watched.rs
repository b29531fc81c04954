//! The operator's view: events, handles, messages to the plugin, the configuration.

use std::path::Path;
use std::time::{Duration, Instant};

use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use portunus_core::events::{EventFilter, EventKind};
use portunus_core::{Plugin, Reply};
use portunus_voicemail::VoiceMailConfig;
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, detached, record, say};

#[tokio::test]
async fn event_handlers_are_told_of_each_message() {
    for events in [true, false] {
        let world = World::with(|mail| mail.events = events, |_| {});
        let watcher = world.server.watch(EventFilter {
            kinds: EventKind::Plugins.into(),
            plugins: Vec::new(),
        });
        let mut completed = world.recorder.completed();
        let mut client = world.attach().await;
        record(&mut client).await;
        // A file without content is deleted.
        say(&world.tap(), Instant::now(), 0..1);
        client.message(json!({ "request": "stop" }), None).await;
        client.event().await;
        detached(&mut client).await;
        let told: Vec<_> = std::iter::from_fn(|| watcher.try_recv())
            .map(|event| watcher.to_json(&event)["event"].clone())
            .collect();
        let event = |name: &str| json!({ "plugin": PACKAGE, "data": { "event": name } });
        match events {
            true => assert_eq!(told, [event("starting"), event("done")]),
            false => assert_eq!(told, [] as [Value; 0]),
        }
        // The server reports the complete file, with an owner if events are on.
        let file = completed.recv().await.unwrap();
        assert_eq!(file.plugin, events.then_some(PACKAGE));
        assert_eq!([file.file], world.files()[..]);
    }
}

#[tokio::test]
async fn administrators_see_what_is_recorded() {
    let world = World::new();
    let mut client = world.attach().await;
    let idle = json!({ "state": "idle", "hangingup": 0, "destroyed": 0 });
    assert_eq!(world.state(&client).await, idle);
    record(&mut client).await;
    let state = world.state(&client).await;
    let id = state["id"].as_u64().unwrap();
    assert_eq!(state["state"], "recording");
    assert!(state["start_time"].as_u64().unwrap() > 1_600_000_000_000_000);
    let file = Path::new(state["filename"].as_str().unwrap());
    assert_eq!(world.files(), [file]);

    let ask = |body: Value| match world.plugin.admin(body) {
        Some(Reply::Success(answer)) => answer,
        other => panic!("{other:?}"),
    };
    let list = ask(json!({ "request": "List" }));
    let recorded = json!([{ "id": id, "start_time": state["start_time"] }]);
    assert_eq!(list["recording"], recorded);
    assert_eq!(list["base"], "/recordings/");
    assert_eq!(
        Path::new(list["path"].as_str().unwrap()),
        file.parent().unwrap()
    );
    for (body, code) in [
        (json!(7), 461),
        (json!({}), 463),
        (json!({ "request": 7 }), 464),
        (json!({ "request": "record" }), 462),
    ] {
        assert_eq!(ask(body)["error_code"], code);
    }
    client.on_handle("detach", json!({})).await;
    world.recorder.finished().await;
    while ask(json!({ "request": "list" }))["recording"] != json!([]) {
        tokio::task::yield_now().await;
    }
}

fn read(text: &str) -> Result<VoiceMailConfig, Vec<String>> {
    let read = configuration::read(text, |file| {
        file.section("voicemail", VoiceMailConfig::read)
    });
    read.map_err(|mistakes| mistakes.iter().map(Mistake::to_string).collect())
}

#[test]
fn the_section_is_read_and_printed() {
    let text = "[voicemail]\npath = \"/srv/mail\"\nbase = \"https://example.org/mail\"\n\
                events = false\nmax_duration = 60\nserve = false\npublic = true\n";
    let config = read(text).unwrap();
    assert_eq!(config.max_duration, Duration::from_secs(60));
    let mut printed = Printed::default();
    printed.section("voicemail", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
    assert_eq!(read("").unwrap(), VoiceMailConfig::default());
}

#[test]
fn mistakes_have_their_lines() {
    for (line, key) in [
        ("path = \"\"", "path"),
        ("base = \"recordings\"", "base"),
        ("base = \"/a b\"", "base"),
        ("max_duration = 0", "max_duration"),
        ("max_duration = 3601", "max_duration"),
        ("folder = \"x\"", "folder"),
    ] {
        let mistakes = read(&format!("[voicemail]\n{line}\n")).unwrap_err();
        let begin = format!("line 2: voicemail.{key}: ");
        assert!(
            mistakes.len() == 1 && mistakes[0].starts_with(&begin),
            "{mistakes:?}"
        );
    }
}
