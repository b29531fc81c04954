//! Clients without rights: they may make rooms within limits, and nothing that reaches beyond the
//! call.

use portunus_audiobridge::{AudioBridgeConfig, Management, Participation};
use portunus_core::PluginRequest;
use serde_json::json;

use crate::world::{PACKAGE, ROOM, World, ask, code, merge};

#[tokio::test]
async fn strangers_make_so_many_rooms() {
    let world = World::empty(AudioBridgeConfig {
        max_per_client: 2,
        ..AudioBridgeConfig::default()
    });
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let create = json!({ "request": "create" });
    for _ in 0..2 {
        let created = stranger.request(create.clone()).await;
        assert_eq!(created["audiobridge"], "created");
    }
    assert_eq!(code(&stranger.request(create.clone()).await), 489);
    let own = world.attach().await.request(create).await;
    assert_eq!(own["audiobridge"], "created");
}

#[tokio::test]
async fn nobody_finds_a_pin_or_a_secret_by_trying() {
    let world = World::empty(AudioBridgeConfig {
        max_wrong: 5,
        ..AudioBridgeConfig::default()
    });
    world.create(json!({ "pin": "0042", "secret": "s" })).await;
    world.create(json!({ "room": 7, "pin": "p" })).await;
    let join = |room: u64, pin: &str| json!({ "request": "join", "room": room, "pin": pin });
    // More guesses than there are pins, from as many handles as they like.
    let mut found = 0;
    for n in 0..50 {
        let mut stranger = world.server.attach_stranger(PACKAGE).await;
        let refused = ask(&mut stranger, join(ROOM, &format!("{n:04}"))).await;
        found += u32::from(refused["audiobridge"] == "joined");
        if n >= 5 {
            assert_eq!(code(&refused), 489);
            let text = refused["error"].as_str().unwrap();
            assert!(text.contains("try again in") && text.contains("max_wrong"));
        }
    }
    assert_eq!(found, 0);
    // Nor by another request, nor by another member.
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let listen = json!({ "request": "listen", "room": ROOM, "pin": "0042" });
    assert_eq!(code(&ask(&mut stranger, listen).await), 489);
    let mute = json!({ "request": "mute_room", "room": ROOM, "secret": "s" });
    assert_eq!(code(&stranger.request(mute.clone()).await), 489);
    // Other rooms are open, and administrators do not wait.
    let other = ask(&mut stranger, join(7, "p")).await;
    assert_eq!(other["audiobridge"], "joined", "{other}");
    let mut operator = world.attach().await;
    assert_eq!(operator.request(mute).await["audiobridge"], "success");
}

#[tokio::test]
async fn nobody_finds_an_admin_key_by_trying() {
    let world = World::empty(AudioBridgeConfig {
        max_wrong: 5,
        admin_key: Some("key".to_owned()),
        ..AudioBridgeConfig::default()
    });
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    // In requests that need a right the key grants it, and they do not report it.
    for n in 0..5 {
        let request =
            json!({ "request": "listforwarders", "room": n, "admin_key": format!("k{n}") });
        assert_eq!(code(&stranger.request(request).await), 489);
    }
    let create = json!({ "request": "create", "room": ROOM, "admin_key": "key" });
    let refused = stranger.request(create.clone()).await;
    assert_eq!(code(&refused), 489);
    assert!(refused["error"].as_str().unwrap().contains("try again in"));
    let created = world.attach().await.request(create).await;
    assert_eq!(created["audiobridge"], "created");
}

#[tokio::test]
async fn what_reaches_beyond_the_call_needs_a_right() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    for (name, members) in [
        ("create", json!({ "permanent": true })),
        ("create", json!({ "record": true })),
        ("create", json!({ "mjrs": true })),
        ("create", json!({ "mjrs": true, "mjrs_dir": "x" })),
        ("edit", json!({ "new_mjrs_dir": "x" })),
        ("rtp_forward", json!({ "host": "127.0.0.1", "port": 5_000 })),
        ("stop_rtp_forward", json!({ "stream_id": 1 })),
        ("listforwarders", json!({})),
        ("play_file", json!({ "filename": "x" })),
        ("listannouncements", json!({})),
        ("enable_recording", json!({ "record": true })),
        ("enable_mjrs", json!({ "mjrs": true })),
        ("resume", json!({ "id": 1, "record": true })),
    ] {
        let mut request = json!({ "request": name, "room": ROOM });
        merge(&mut request, members);
        let refused = stranger.request(request.clone()).await;
        assert_eq!(code(&refused), 489, "{request}: {refused}");
    }
    for members in [json!({ "record": true }), json!({ "rtp": {} })] {
        let mut request = json!({ "request": "join", "room": ROOM });
        merge(&mut request, members);
        assert_eq!(code(&ask(&mut stranger, request).await), 489);
    }
    let joined = ask(&mut stranger, json!({ "request": "join", "room": ROOM })).await;
    assert_eq!(joined["audiobridge"], "joined");
}

#[tokio::test]
async fn naming_a_recording_is_no_recording() {
    let world = World::empty(AudioBridgeConfig::default());
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let create = json!({
        "request": "create", "room": ROOM, "record": false, "record_file": "x", "record_dir": "x",
        "mjrs": false, "mjrs_dir": "x",
    });
    let created = stranger.request(create).await;
    assert_eq!(created["audiobridge"], "created", "{created}");
    let join = json!({ "request": "join", "room": ROOM, "record": false, "filename": "x" });
    let joined = ask(&mut stranger, join).await;
    assert_eq!(joined["audiobridge"], "joined", "{joined}");
}

#[tokio::test]
async fn nonsense_in_every_member_is_answered() {
    let world = World::new(json!({ "spatial_audio": true, "groups": ["a"] })).await;
    let mut ann = world.join(1, json!({ "group": "a" })).await;
    let mut other = world.attach().await;
    let nonsense = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([null]),
        json!({}),
    ];
    let members = [
        "room",
        "id",
        "secret",
        "pin",
        "token",
        "group",
        "groups",
        "allowed",
        "action",
        "display",
        "muted",
        "suspended",
        "codec",
        "bitrate",
        "quality",
        "expected_loss",
        "volume",
        "spatial_position",
        "audio_level_average",
        "audio_active_packets",
        "denoise",
        "rtp",
        "port",
        "host",
        "ptype",
        "ssrc",
        "stream_id",
        "file_id",
        "filename",
        "loop",
        "sampling_rate",
        "loudest",
        "default_bitrate",
        "default_expectedloss",
        "record",
        "mjrs",
    ];
    let asynchronous = ["join", "configure", "changeroom", "leave", "listen"];
    let names = names::<Management>().chain(names::<Participation>());
    for name in names.filter(|name| !["destroy", "kick_all", "hangup", "leave"].contains(name)) {
        for member in members {
            for value in &nonsense {
                let mut request = json!({ "request": name, "room": ROOM, "id": 1 });
                merge(&mut request, json!({ member: value }));
                let client = if name == "configure" {
                    &mut ann
                } else {
                    &mut other
                };
                let members = json!({ "body": request });
                let reply = client.on_handle("message", members).await;
                if !asynchronous.contains(&name) {
                    assert!(
                        reply["plugindata"]["data"].is_object(),
                        "{request}: {reply}"
                    );
                } else {
                    // The answer, or an event before it.
                    client.next().await;
                }
            }
        }
    }
    let list = world
        .attach()
        .await
        .request(json!({ "request": "list" }))
        .await;
    assert!(list["list"].is_array());
}

fn names<R: PluginRequest>() -> impl Iterator<Item = &'static str> {
    R::ALL.iter().flat_map(|request| request.names()).copied()
}
