//! The limits of trusted clients.

use std::os::unix::fs::symlink;

use portunus_core::{Networks, Requester};
use serde_json::json;

use crate::world::{Asker, FILE, Setup, Who, World};

fn trusted() -> Who {
    Who::new("the trusted", Requester::unix())
}

#[tokio::test]
async fn files_are_played_from_the_folders_that_are_named() {
    let world = World::new().await;
    let at = |name: &str| world.disk.path().join(name);
    symlink(at(FILE), at("media/out.opus")).unwrap();
    symlink(at(""), at("media/way")).unwrap();
    symlink(at("media").join(FILE), at("media/within.opus")).unwrap();
    let mut asker = Asker::attach(&world, &trusted(), "streaming").await;
    for kind in ["live", "ondemand"] {
        for (name, code) in [
            (FILE.to_owned(), None),
            ("within.opus".to_owned(), None),
            ("out.opus".to_owned(), Some(456)),
            (format!("way/{FILE}"), Some(456)),
            (format!("../{FILE}"), Some(456)),
            (format!("way/media/{FILE}"), None),
        ] {
            let body = json!({ "type": kind, "filename": world.file(&name) });
            let answer = asker.ask("create", &body).await;
            assert_eq!(
                answer["error_code"].as_u64(),
                code,
                "{kind} {name}: {answer}"
            );
        }
        let elsewhere = at(FILE).display().to_string();
        let body = json!({ "type": kind, "filename": elsewhere });
        let answer = asker.ask("create", &body).await;
        let error = answer["error"].as_str().unwrap();
        assert!(
            error.contains("`folders` of the plugin's section"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn recordings_stay_in_their_folders() {
    let world = World::new().await;
    let mut asker = Asker::attach(&world, &trusted(), "echotest").await;
    for (name, code) in [
        ("a/b", None),
        ("../a", Some(413)),
        ("/tmp/a", Some(413)),
        ("a/../../b", Some(413)),
    ] {
        let body = json!({ "record": true, "filename": name });
        let answer = asker.ask("any", &body).await;
        assert_eq!(answer["error_code"].as_u64(), code, "{name}: {answer}");
    }
}

#[tokio::test]
async fn without_networks_only_public_addresses_are_reached() {
    let world = World::with(Setup {
        outgoing: Some(Networks::default()),
        ..Setup::default()
    })
    .await;
    let mut streaming = Asker::attach(&world, &trusted(), "streaming").await;
    let mut room = Asker::attach(&world, &trusted(), "videoroom").await;
    room.publish().await;
    for host in [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "239.255.255.250",
        "255.255.255.255",
    ] {
        for failcheck in [true, false] {
            let body = json!({ "type": "rtsp", "url": format!("rtsp://{host}:1/"), "video": true,
                               "rtsp_failcheck": failcheck });
            let answer = streaming.ask("create", &body).await;
            assert_eq!(answer["error_code"], 456, "{host}: {answer}");
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("server.outgoing_networks"), "{error}");
        }
        let host = host.trim_matches(['[', ']']);
        let body = json!({ "room": 7, "publisher_id": 1, "host": host, "audio_port": 5_004,
                           "remote_id": "r", "port": 5_004 });
        for request in ["rtp_forward", "publish_remotely"] {
            let answer = room.ask(request, &body).await;
            assert_eq!(answer["error_code"], 433, "{request} {host}: {answer}");
        }
    }
}

#[tokio::test]
async fn only_the_trusted_see_where_media_comes_from() {
    let world = World::new().await;
    let mut admin = Asker::attach(&world, &trusted(), "streaming").await;
    let camera = json!({ "type": "rtsp", "id": 1, "url": "rtsp://127.0.0.1:1/", "video": true,
                         "rtsp_user": "u", "rtsp_pwd": "p", "rtsp_failcheck": false });
    let file = json!({ "type": "ondemand", "id": 2, "filename": world.file(FILE) });
    for body in [&camera, &file] {
        admin.ask("create", body).await;
    }
    let mut stranger = Asker::attach(&world, &Who::stranger("a stranger"), "streaming").await;
    for (id, members) in [
        (1, vec!["url", "rtsp_user", "rtsp_pwd"]),
        (2, vec!["filename"]),
    ] {
        let told = [
            admin.ask("info", &json!({ "id": id })).await,
            stranger.ask("info", &json!({ "id": id })).await,
        ];
        for member in members {
            let has = |at: usize| told[at]["info"].get(member).is_some();
            assert!(has(0) && !has(1), "{member}: {told:?}");
        }
    }
    // A port in use within the range for strangers, which the kernel's own range exceeds.
    let (port, _taken) = (10_000..60_000)
        .find_map(|port| Some((port, std::net::UdpSocket::bind(("0.0.0.0", port)).ok()?)))
        .unwrap();
    let media = json!([{ "type": "audio", "mid": "a", "port": port, "codec": "opus" }]);
    let body = json!({ "type": "rtp", "media": media });
    let (told, less) = (
        admin.ask("create", &body).await,
        stranger.ask("create", &body).await,
    );
    assert!(
        told["error"].as_str().unwrap().contains(&port.to_string()),
        "{told}"
    );
    assert_eq!(less["error_code"], 456);
    let error = "Cannot create the mountpoint: stream a: its ports cannot be had";
    assert_eq!(less["error"], error);
}
