//! The members of `create`, `info` and `list`.

use portunus_core::media::ingest::IngestMedia;
use portunus_core::testing::TestClient;
use serde_json::{Value, json};

use crate::world::{World, camera, create};

async fn info(client: &mut TestClient, id: u64, secret: &str) -> Value {
    let info = json!({ "request": "info", "id": id, "secret": secret });
    client.request(info).await["info"].clone()
}

#[tokio::test]
async fn options_are_shown_to_all_and_addresses_to_administrators() {
    let world = World::new().await;
    let mut client = world.client().await;
    let body = json!({
        "request": "create", "type": "rtp", "id": 7, "secret": "s3", "collision": 100, "threads": 2,
        "srtpsuite": 80, "srtpcrypto": "WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN",
        "media": [
            { "type": "audio", "mid": "a", "port": 0, "codec": "opus", "iface": "127.0.0.1",
              "label": "Sound", "msid": "hall voice", "skew": true },
            { "type": "video", "mid": "v", "port": 0, "codec": "vp9", "svc": true },
        ],
    });
    let created = create(&mut client, body).await;
    let ports = &created["stream"]["ports"];
    assert_eq!(ports[0]["host"], "127.0.0.1");
    assert_eq!(ports[0]["msid"], "hall voice");
    assert_eq!(ports[1].get("host"), None);
    assert_eq!(ports[1].get("msid"), None);
    let admin = info(&mut client, 7, "s3").await;
    let public = info(&mut client, 7, "").await;
    for seen in [&admin, &public] {
        assert_eq!(seen["srtp"], true);
        assert_eq!(seen["collision"], 100);
        assert_eq!(seen["threads"], 2);
        assert_eq!(seen["media"][0]["label"], "Sound");
        assert_eq!(seen["media"][0]["msid"], "hall voice");
        assert_eq!(seen["media"][0]["skew_compensation"], true);
        assert_eq!(seen["media"][0].get("videosvc"), None);
        assert_eq!(seen["media"][1]["label"], "video");
        assert_eq!(seen["media"][1]["videosvc"], true);
        assert_eq!(seen["media"][1].get("skew_compensation"), None);
        assert!(!seen.to_string().contains("WbTB"));
    }
    assert_eq!(admin["host"], "127.0.0.1");
    assert_eq!(public.get("host"), None);
    // Options that are off are omitted.
    create(&mut client, camera(8)).await;
    let plain = info(&mut client, 8, "").await;
    for name in [
        "srtp",
        "collision",
        "threads",
        "host",
        "bufferkf_ms",
        "rtsp",
    ] {
        assert_eq!(plain.get(name), None, "{name}");
    }
}

#[tokio::test]
async fn the_older_form_names_hosts_by_kind() {
    let world = World::new().await;
    let mut client = world.client().await;
    let body = json!({
        "request": "create", "type": "rtp", "id": 7,
        "video": true, "videoport": 0, "videopt": 96, "videocodec": "h264", "videoiface": "127.0.0.1",
        "h264sps": "Z0LAHg==,aM48gA==", "data": true, "dataport": 0, "dataiface": "127.0.0.1",
        "datatype": "binary",
    });
    let created = create(&mut client, body).await;
    assert_eq!(created["stream"]["video_host"], "127.0.0.1");
    assert_eq!(created["stream"]["data_host"], "127.0.0.1");
    assert_eq!(created["stream"].get("audio_port"), None);
    let ingests = world.server.requested().ingests;
    let IngestMedia::Rtp(video) = &ingests[0].options.media else {
        panic!("{:?}", ingests[0].options);
    };
    assert!(video.h264_parameter_sets.is_some());
    let shown = info(&mut client, 7, "").await;
    assert_eq!(shown["media"][1]["datatype"], "binary");
}

#[tokio::test]
async fn what_data_is_may_stand_at_the_root() {
    let world = World::new().await;
    let mut client = world.client().await;
    let body = json!({
        "request": "create", "type": "rtp", "id": 7, "datatype": "binary", "buffermsg": true,
        "media": [
            { "type": "data", "mid": "d", "port": 0 },
            { "type": "data", "mid": "t", "port": 0, "datatype": "text" },
        ],
    });
    create(&mut client, body).await;
    let data: Vec<_> = world.server.requested().ingests;
    let seen: Vec<_> = data
        .iter()
        .map(|ingest| match &ingest.options.media {
            IngestMedia::Data(data) => (data.text, data.keep_last),
            IngestMedia::Rtp(_) => panic!("no data"),
        })
        .collect();
    assert_eq!(seen, [(false, true), (true, true)]);
}

#[tokio::test]
async fn of_a_file_only_administrators_see_the_name() {
    let world = World::new().await;
    let mut client = world.client().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    // A name must not leave the folder.
    let folder = std::fs::canonicalize(folder).unwrap();
    let filename = folder.join("tone.opus").display().to_string();
    for (id, kind, shown) in [(1, "live", "live"), (2, "ondemand", "on demand")] {
        let body = json!({
            "request": "create", "type": kind, "id": id, "filename": filename, "secret": "s3",
        });
        create(&mut client, body).await;
        let admin = info(&mut client, id, "s3").await;
        assert_eq!(admin["filename"], filename);
        assert_eq!(admin["type"], shown);
        let public = info(&mut client, id, "").await;
        assert_eq!(public.get("filename"), None);
        let media = &public["media"][0];
        assert_eq!(media["type"], "audio");
        assert_eq!(media["codec"], "opus");
        assert_eq!(media.get("mid"), None);
    }
}
