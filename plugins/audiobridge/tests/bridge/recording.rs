//! Recording of the mix and of participants, as far as it works without a network.

use std::time::Duration;

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::record::FileEnd;
use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, merge};

/// A time limit for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn request(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn a_recording_that_is_stopped_before_it_has_a_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let (mut ann, mut bob) = (world.attach().await, world.attach().await);
    let switch = |record: bool| request("enable_recording", json!({ "record": record }));
    // The first is answered once the file exists.
    let (on, off) = tokio::join!(ann.request(switch(true)), bob.request(switch(false)));
    assert_eq!(
        (&on["record"], &off["record"]),
        (&json!(true), &json!(false))
    );
    // A recording that goes on would refuse the next one for ever.
    let again = async {
        while ann.request(switch(true)).await["audiobridge"] != "success" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn whoever_watches_is_told_of_a_mix_that_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut completed = world.recorder.completed();
    for format in ["wav", "opus"] {
        let create = json!({ "room": 7, "record_format": format });
        world.create(create).await;
        let mut client = world.attach().await;
        let on = json!({ "room": 7, "record": true, "record_file": "mix" });
        let on = client.request(request("enable_recording", on)).await;
        assert_eq!(on["audiobridge"], "success", "{on}");
        // One ends by itself, the other with its room.
        let end = match format {
            "wav" => request("enable_recording", json!({ "room": 7, "record": false })),
            _ => request("destroy", json!({ "room": 7 })),
        };
        client.request(end).await;
        let told = tokio::time::timeout(PATIENCE, completed.recv()).await;
        let told = told.unwrap().unwrap();
        let name = format!("mix.{format}");
        assert_eq!(told.file.file_name().unwrap(), name.as_str());
        assert_eq!(told.bytes, std::fs::metadata(&told.file).unwrap().len());
        assert_eq!(
            (told.plugin, told.room.as_deref(), told.end),
            (
                Some("janus.plugin.audiobridge"),
                Some("7"),
                FileEnd::Stopped
            )
        );
        // Nobody was in the room.
        assert_eq!(told.duration, Duration::ZERO);
        client
            .request(request("destroy", json!({ "room": 7 })))
            .await;
    }
}

#[tokio::test]
async fn participants_are_not_recorded_where_that_may_not_be() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut client = world.attach().await;
    let enable = |dir: &str| request("enable_mjrs", json!({ "mjrs": true, "mjrs_dir": dir }));
    assert_eq!(code(&client.request(enable("../elsewhere")).await), 499);
    // Nor if no folder can be made.
    std::fs::write(folder.path().join("file"), b"").unwrap();
    assert_eq!(code(&client.request(enable("file/people")).await), 499);
    // The state is as before the request.
    let done = json!({ "audiobridge": "success", "mjrs": true });
    assert_eq!(client.request(enable("people")).await, done);
    assert_eq!(client.request(enable("../elsewhere")).await, done);
}

#[tokio::test]
async fn who_is_there_by_plain_rtp_is_told_that_it_is_not_recorded() {
    // A server that does not record accepts the request.
    let world = World::empty(AudioBridgeConfig::default());
    world
        .create(json!({ "allow_rtp_participants": true, "mjrs": true }))
        .await;
    let mut ann = world.attach().await;
    let rtp = json!({ "ip": "127.0.0.1", "port": 5_004 });
    let join = json!({ "request": "join", "room": ROOM, "id": 1, "rtp": rtp });
    let told = ask(&mut ann, join).await;
    assert_eq!(told["event"], "recording_failed", "{told}");
    assert!(told["reason"].is_string());
    assert_eq!(ann.event().await["audiobridge"], "joined");
}

#[tokio::test]
async fn a_recording_may_follow_another_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut client = world.attach().await;
    for n in 0..3 {
        let on = json!({ "record": true, "record_file": format!("take-{n}") });
        let on = client.request(request("enable_recording", on)).await;
        assert_eq!(on["audiobridge"], "success", "{on}");
        let off = request("enable_recording", json!({ "record": false }));
        client.request(off).await;
    }
}

#[tokio::test]
async fn files_of_participants_are_as_the_request_says() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut admin = world.attach().await;
    let wrong = json!({ "mjrs": true, "record_format": "avi" });
    assert_eq!(
        code(&admin.request(request("enable_mjrs", wrong)).await),
        484
    );
    let right = json!({ "mjrs": true, "record_format": "opus" });
    let done = admin.request(request("enable_mjrs", right)).await;
    assert_eq!(done["audiobridge"], "success", "{done}");
    let own = json!({ "record": true, "filename": "ann", "record_format": "webm" });
    let (_ann, _) = world.talker(1, own).await;
    let (_bob, _) = world.talker(2, json!({})).await;
    // One by its own request, one by the room's.
    let begun = std::time::Instant::now();
    loop {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let files: Vec<_> = files
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        let has = |end: &str| files.iter().any(|name| name.ends_with(end));
        if files.contains(&"ann.webm".to_owned()) && has(".opus") && !has(".mjr") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{files:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A room of the configuration after a restart of the server, and one that is recorded again.
#[tokio::test]
async fn where_there_is_a_file_of_its_name_a_room_is_recorded_into_another() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mix.wav"), b"of yesterday").unwrap();
    let options = json!({ "record": true, "record_file": "mix.wav" });
    let world = World::recording(folder.path(), options).await;
    let mut client = world.attach().await;
    let files = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let files = files.map(|it| it.unwrap().file_name().into_string().unwrap());
        let others = files.filter(|name| name.starts_with("mix-") && name.ends_with(".wav"));
        others.count()
    };
    let begun = std::time::Instant::now();
    while files() < 1 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let list = client.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["record"], true);
    // Again, without another name.
    let off = request("enable_recording", json!({ "record": false }));
    client.request(off).await;
    let on = request("enable_recording", json!({ "record": true }));
    assert_eq!(client.request(on).await["audiobridge"], "success");
    assert_eq!(files(), 2);
    let yesterday = std::fs::read(folder.path().join("mix.wav")).unwrap();
    assert_eq!(yesterday, b"of yesterday");
    // A request for a name fails if the name is taken.
    let off = request("enable_recording", json!({ "record": false }));
    client.request(off).await;
    let named = json!({ "record": true, "record_file": "mix" });
    let refused = client.request(request("enable_recording", named)).await;
    assert_eq!(code(&refused), 499);
    assert_eq!(files(), 2);
}

#[tokio::test]
async fn whoever_makes_a_room_that_cannot_be_recorded_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut client = world.attach().await;
    for (room, more, fails) in [
        (7, json!({ "record": true }), false),
        (8, json!({ "mjrs": true, "mjrs_dir": "new/folder" }), false),
        (
            9,
            json!({ "mjrs_dir": "file/below", "record_dir": "file/below" }),
            false,
        ),
        (
            10,
            json!({ "record": true, "record_dir": "file/below" }),
            true,
        ),
        (
            11,
            json!({ "record": true, "mjrs": true, "mjrs_dir": "file/below" }),
            true,
        ),
    ] {
        let mut create = json!({ "request": "create", "room": room });
        merge(&mut create, more);
        let created = client.request(create).await;
        assert_eq!(created["audiobridge"], "created", "{created}");
        let reason = created["recording_failed"].as_str();
        assert_eq!(
            reason.is_some_and(|reason| !reason.is_empty()),
            fails,
            "{created}"
        );
    }
    let moved = json!({ "request": "edit", "room": 8, "new_mjrs_dir": "file/below" });
    let edited = client.request(moved).await;
    assert_eq!(edited["audiobridge"], "edited", "{edited}");
    assert!(edited["recording_failed"].is_string(), "{edited}");
}
