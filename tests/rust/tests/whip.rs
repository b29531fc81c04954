//! WHIP and WHEP over HTTP: tokens and pins in the query, invalid ids and numbers, publishers that
//! vanish.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_core::record::Recorder;
use portunus_core::{CoreConfig, Plugin, StoredToken};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Peer, Server, header, http, serve};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

const STREAMING: &str = "janus.plugin.streaming";
const VIDEOROOM: &str = "janus.plugin.videoroom";
const SDP: &str = "Content-Type: application/sdp";

/// Starts a server of mountpoints, one of which exists.
async fn mountpoints(core: CoreConfig, string_ids: bool, stage: Value) -> Server {
    let token = core.tokens.first().map(|stored| stored.token.clone());
    let server = Server::configured(core, 1, async |media| {
        let config = StreamingConfig {
            string_ids,
            ..StreamingConfig::default()
        };
        let plugin = Streaming::start(config, media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let mut admin = match token {
        Some(token) => server.attach_with(STREAMING, &token).await,
        None => server.attach(STREAMING).await,
    };
    create(&mut admin, stage).await;
    server
}

/// Creates a mountpoint of one picture.
async fn create(admin: &mut Caller, stage: Value) {
    let mut create = json!({
        "request": "create", "type": "whip",
        "media": [{ "type": "video", "mid": "v", "codec": "vp8" }],
    });
    let members = create.as_object_mut().unwrap();
    members.extend(stage.as_object().unwrap().clone());
    let created = admin.manage(create).await;
    assert_eq!(created["streaming"], "created", "{created}");
}

/// Returns a description for sending, or for receiving, a picture.
fn description(direction: Direction) -> Description {
    let mut line = MediaOffer::new(Kind::Video, direction);
    line.add_codec(CodecName::Vp8, None, None);
    Description::offer(OfferOptions {
        media: vec![line],
        ..OfferOptions::default()
    })
}

async fn offer(direction: Direction) -> String {
    Peer::offering().await.offer(description(direction))
}

/// Sends requests to endpoints, which must all answer with this status. Created resources end
/// immediately.
async fn asked(server: &Server, status: u16, bearer: Option<&str>, paths: &[&str]) -> Vec<String> {
    let (transports, to) = serve(&server.gateway).await;
    let bearer = bearer.map(|token| format!("Authorization: Bearer {token}"));
    let headers: Vec<&str> = [SDP].into_iter().chain(bearer.as_deref()).collect();
    let mut details = Vec::new();
    for path in paths {
        let direction = match path.starts_with("/whip") {
            true => Direction::SendOnly,
            false => Direction::RecvOnly,
        };
        let offer = offer(direction).await;
        let (answered, all) = http(to, &format!("POST {path}"), &headers, offer.as_bytes()).await;
        assert_eq!(answered, status, "{path}: {all}");
        if let Some(location) = header(&all, "location") {
            let delete = format!("DELETE {location}");
            assert_eq!(http(to, &delete, &headers, b"").await.0, 200);
        } else {
            let (_, body) = all.split_once("\r\n\r\n").unwrap();
            let problem: Value = serde_json::from_str(body).unwrap();
            details.push(problem["detail"].as_str().unwrap().to_owned());
        }
    }
    transports.shutdown().await;
    details
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mountpoints_token_and_pin_may_stand_in_the_query() {
    let stage = json!({ "id": 7, "token": "let me/in", "pin": "1&2" });
    let server = mountpoints(CoreConfig::default(), false, stage).await;
    let right = [
        "/whip/7?token=let+me/in",
        "/whip/7?x=1&token=let%20me%2Fin",
        "/whep/7?pin=1%262",
        "/whep/streaming/7?pin=1%262&token=x",
    ];
    let wrong = [
        "/whip/7",
        "/whip/7?token=let+me/out",
        "/whip/7?pin=1%262",
        "/whep/7",
        "/whep/7?pin=1&2",
        "/whep/7?token=let+me/in",
    ];
    asked(&server, 201, None, &right).await;
    asked(&server, 401, None, &wrong).await;
    // The query takes precedence over the bearer token.
    asked(&server, 201, Some("other"), &right).await;
    asked(&server, 201, Some("1&2"), &["/whep/7", "/whep/7?pin="]).await;
    asked(&server, 401, Some("1&2"), &["/whep/7?pin=3"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bearer_token_opens_the_api_and_the_query_the_mountpoint() {
    let core = CoreConfig {
        token_auth: true,
        tokens: vec![StoredToken {
            token: "opens".into(),
            plugins: vec![STREAMING.into()],
            rights: Vec::new(),
        }],
        ..CoreConfig::default()
    };
    let stage = json!({ "id": 7, "token": "t0k", "pin": "1234" });
    let server = mountpoints(core, false, stage).await;
    let right = ["/whip/7?token=t0k", "/whep/7?pin=1234"];
    asked(&server, 201, Some("opens"), &right).await;
    asked(&server, 401, Some("opens"), &["/whip/7", "/whep/7"]).await;
    for bearer in [None, Some("t0k"), Some("1234")] {
        asked(&server, 401, bearer, &right).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mountpoint_is_found_by_its_id_or_else_by_its_name() {
    let server = mountpoints(
        CoreConfig::default(),
        false,
        json!({ "id": 7, "name": "stage" }),
    )
    .await;
    let mut admin = server.attach(STREAMING).await;
    for (id, name) in [
        (8, "caf\u{e9} / 1"),
        (9, "2026"),
        (10, "twin"),
        (11, "twin"),
    ] {
        create(&mut admin, json!({ "id": id, "name": name })).await;
    }
    // An id takes precedence over a name.
    let closed = json!({ "id": 12, "name": "7", "token": "t0k", "pin": "1234" });
    create(&mut admin, closed).await;
    let found = [
        "/whip/stage",
        "/whip/streaming/stage",
        "/whip/7",
        "/whep/7",
        "/whep/007",
        "/whip/caf%C3%A9%20%2F%201",
        "/whip/2026",
        "/whep/2026",
    ];
    asked(&server, 201, None, &found).await;
    let unknown = [
        "/whip/twin",
        "/whep/twin",
        "/whip/Stage",
        "/whip/0",
        "/whep/13",
        "/whep/-7",
        "/whip/7.5",
        "/whep/18446744073709551616",
    ];
    for detail in asked(&server, 404, None, &unknown).await {
        assert!(detail.contains("no stream with the id or name"), "{detail}");
    }

    let stage = json!({ "id": "stage", "name": "main" });
    let server = mountpoints(CoreConfig::default(), true, stage).await;
    asked(&server, 404, None, &["/whip/0", "/whep/seven"]).await;
    let found = ["/whip/stage", "/whep/stage", "/whep/main"];
    asked(&server, 201, None, &found).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rooms_ids_and_numbers_that_are_none_are_400() {
    let server = Server::start_with(1, async |media| {
        let room = VideoRoom::new(VideoRoomConfig::default(), media, Recorder::default());
        Arc::new(room.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let mut admin = server.attach(VIDEOROOM).await;
    let create = json!({ "request": "create", "room": 1234 });
    let created = admin.manage(create).await;
    assert_eq!(created["videoroom"], "created", "{created}");
    for (name, paths) in [
        (
            "room should be",
            &[
                "/whip/videoroom/main",
                "/whep/videoroom/0",
                "/whep/videoroom/-1234/1",
            ][..],
        ),
        (
            "id should be",
            &["/whip/videoroom/1234/al", "/whip/videoroom/1234/0"],
        ),
        (
            "feed should be",
            &[
                "/whep/videoroom/1234/al",
                "/whep/videoroom/1234/99999999999999999999",
            ],
        ),
        (
            "bitrate should be",
            &[
                "/whip/videoroom/1234?bitrate=1M",
                "/whip/videoroom/1234?bitrate=-1",
            ],
        ),
        (
            "last_n",
            &[
                "/whep/videoroom/1234?last_n=many",
                "/whep/videoroom/1234?last_n=0",
                "/whep/videoroom/1234?last_n=51",
            ],
        ),
        (
            "private_id should be",
            &["/whep/videoroom/1234?private_id=mine"],
        ),
    ] {
        for detail in asked(&server, 400, None, paths).await {
            assert!(detail.contains(name), "{detail}");
            assert!(detail.contains("the values in the query"), "{detail}");
        }
    }
    let unknown = ["/whip/videoroom/4321", "/whep/videoroom/4321?last_n=1"];
    asked(&server, 404, None, &unknown).await;
    let right = [
        "/whip/videoroom/1234/42?bitrate=1000000",
        "/whep/videoroom/1234?last_n=1",
    ];
    asked(&server, 201, None, &right).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_that_vanished_gives_way_though_clients_are_told_of_no_silence() {
    let server = Server::untold(async |media| {
        let config = StreamingConfig::default();
        let plugin = Streaming::start(config, media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    create(&mut server.attach(STREAMING).await, json!({ "id": 7 })).await;
    let (_transports, to) = serve(&server.gateway).await;
    let mut first = Peer::offering().await;
    let text = first.offer(description(Direction::SendOnly));
    let publish = async |offer: &str| http(to, "POST /whip/7", &[SDP], offer.as_bytes()).await;
    let (status, answer) = publish(&text).await;
    assert_eq!(status, 201, "{answer}");
    first.accept(answer.split_once("\r\n\r\n").unwrap().1);
    first.connect().await;
    let mut viewer = server.attach(STREAMING).await;
    let mut packets = 0;
    let flows = async |viewer: &mut Caller| {
        let list = viewer.manage(json!({ "request": "list" })).await;
        list["list"][0]["media"][0]["age_ms"] == 0
    };
    // Its last packet has arrived when it vanishes.
    while !flows(&mut viewer).await {
        first.send(0, packets * 3_000, &[0x10, 0x10, 0, 0]).await;
        packets += 1;
        first.run_for(Duration::from_millis(20)).await;
    }
    let vanished = Instant::now();
    drop(first);
    let second = offer(Direction::SendOnly).await;
    let (status, refused) = publish(&second).await;
    assert_eq!(status, 409, "{refused}");
    loop {
        let (status, answer) = publish(&second).await;
        if status == 201 {
            break;
        }
        assert_eq!(status, 409, "{answer}");
        // Its connection fails after 30 s.
        assert!(vanished.elapsed() < Duration::from_secs(15), "{answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
