//! Mountpoints that pull from a camera, which describes its media over RTSP and sends nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::world::{World, create, refused, sections, status};

const PATIENCE: Duration = Duration::from_secs(60);

/// A camera.
struct Camera {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The m-lines of its description. `None` means no media.
    media: Mutex<Option<String>>,
    /// The first lines of its requests.
    asked: Mutex<Vec<String>>,
    /// Whether it accepts only a path as its URL.
    path_only: bool,
}

impl Camera {
    async fn new(media: Option<&str>) -> Self {
        Self::with(Shared {
            media: Mutex::new(media.map(str::to_owned)),
            ..Shared::default()
        })
        .await
    }

    async fn with(shared: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
        let shared = Arc::new(shared);
        let of_camera = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(of_camera.clone().serve(stream));
            }
        });
        Camera { url, shared }
    }

    /// Changes its media for the next connection.
    fn change(&self, media: &str) {
        *self.shared.media.lock().unwrap() = Some(media.to_owned());
    }

    fn create(&self, id: u64, more: Value) -> Value {
        let mut body = json!({
            "request": "create", "type": "rtsp", "id": id, "url": self.url, "audio": true, "video": true,
            "rtsp_transport": "tcp", "rtsp_reconnect_delay": 1,
        });
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        body
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut text = String::new();
            while !text.ends_with("\r\n\r\n") {
                match stream.read_line(&mut text).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
            let answer = self.answer(&text);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, text: &str) -> String {
        let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let mut words = text.split_whitespace();
        let (method, url) = (words.next().unwrap(), words.next().unwrap());
        self.asked.lock().unwrap().push(format!("{method} {url}"));
        let media = self.media.lock().unwrap().clone();
        let known = !self.path_only || url.starts_with('/');
        let (state, more, body) = match (method, media) {
            ("DESCRIBE", Some(media)) if known => {
                let body = format!("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n{media}");
                (
                    "200 OK",
                    "Content-Type: application/sdp\r\n".to_owned(),
                    body,
                )
            }
            ("DESCRIBE", _) => ("404 Not Found", String::new(), String::new()),
            ("SETUP", _) => {
                let transport = header("Transport: ").unwrap();
                let more = format!("Session: abc;timeout=60\r\nTransport: {transport}\r\n");
                ("200 OK", more, String::new())
            }
            _ => ("200 OK", "Session: abc\r\n".to_owned(), String::new()),
        };
        let number = header("CSeq: ").unwrap();
        let length = body.len();
        format!(
            "RTSP/1.0 {state}\r\nCSeq: {number}\r\n{more}Content-Length: {length}\r\n\r\n{body}"
        )
    }
}

fn video(pt: u8, codec: &str) -> String {
    let fmtp = match codec {
        "H264" => format!("a=fmtp:{pt} packetization-mode=1;profile-level-id=42e01f\r\n"),
        _ => String::new(),
    };
    format!("m=video 0 RTP/AVP {pt}\r\na=rtpmap:{pt} {codec}/90000\r\n{fmtp}a=control:v\r\n")
}

fn audio(pt: u8, rtpmap: &str) -> String {
    format!("m=audio 0 RTP/AVP {pt}\r\na=rtpmap:{pt} {rtpmap}\r\na=control:a\r\n")
}

/// Returns the answer to a client's offer to watch, once it is not "come back later".
async fn watched(client: &mut TestClient, lines: &[Line]) -> (Value, Option<Value>) {
    let waiting = async {
        loop {
            let offer = jsep("offer", "efgh", lines);
            let watch = json!({ "request": "watch", "id": 7 });
            client.message(watch, Some(offer)).await;
            let answered = client.event_with_jsep().await;
            if answered.0["error_code"] != 460 {
                return answered;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("what to watch")
}

#[tokio::test]
async fn a_camera_with_less_than_was_asked_for_is_watched_with_what_it_has() {
    let less = video(96, "VP8");
    let unknown = audio(97, "MPEG4-GENERIC/48000/2") + &less;
    for media in [less, unknown] {
        let camera = Camera::new(None).await;
        let world = World::new().await;
        let mut client = world.client().await;
        let body = camera.create(7, json!({ "rtsp_failcheck": false }));
        create(&mut client, body).await;
        // The camera's media is not known yet.
        let watch = json!({ "request": "watch", "id": 7, "renegotiate": false });
        assert_eq!(refused(&mut client, watch.clone()).await, 460);
        camera.change(&media);
        let lines = [Line::Audio, Line::Video];
        let (data, answer) = watched(&mut client, &lines).await;
        assert_eq!(data, status("starting"));
        let answer = answer.unwrap();
        let sdp = answer["sdp"].as_str().unwrap();
        let lines = sections(sdp);
        assert!(lines[0].contains(&"a=inactive"), "{sdp}");
        assert!(lines[1].contains(&"a=sendonly"), "{sdp}");
        let mut other = world.client().await;
        other.message(watch, None).await;
        assert_eq!(other.event().await, status("preparing"));
    }
}

#[tokio::test]
async fn a_camera_is_taken_with_what_viewers_can_be_offered_of_it() {
    let world = World::new().await;
    let mut client = world.client().await;
    let aac = audio(97, "MPEG4-GENERIC/48000/2");
    let camera = Camera::new(Some(&(aac.clone() + &video(96, "H264")))).await;
    create(&mut client, camera.create(7, json!({}))).await;
    let info = json!({ "request": "info", "id": 7 });
    let media = client.request(info).await["info"]["media"].clone();
    let shown: Vec<_> = media.as_array().unwrap().iter().collect();
    let shown: Vec<_> = shown.iter().map(|it| (&it["mid"], &it["codec"])).collect();
    assert_eq!(json!(shown), json!([["a", null], ["v", "h264"]]));
    client
        .message(json!({ "request": "watch", "id": 7 }), None)
        .await;
    let (data, offer) = client.event_with_jsep().await;
    assert_eq!(data, status("preparing"));
    let offer = offer.unwrap();
    let lines = sections(offer["sdp"].as_str().unwrap());
    assert_eq!(lines.len(), 1, "{offer}");
    assert!(lines[0][0].starts_with("m=video"), "{offer}");

    // Nothing of the former camera is left.
    let camera = Camera::new(Some(&aac)).await;
    let reply = client.request(camera.create(8, json!({}))).await;
    assert_eq!(reply["error_code"], 456);
    let error = reply["error"].as_str().unwrap();
    assert!(error.contains("MPEG4-GENERIC/48000/2"), "{error}");
}

#[tokio::test]
async fn sound_is_offered_with_its_clock_and_channels_or_not_at_all() {
    let world = World::new().await;
    let mut client = world.client().await;
    for (id, (rtpmap, offered)) in (1..).zip([
        ("PCMA/8000", Some("pcma")),
        ("PCMA/8000/1", Some("pcma")),
        ("PCMA/16000", None),
        ("PCMU/8000/2", None),
        ("G722/8000/1", Some("g722")),
        ("opus/48000/2", Some("opus")),
        ("OPUS/48000", Some("opus")),
        ("L16/16000", Some("l16")),
        ("L16/48000/1", Some("l16-48")),
        ("L16/48000/2", None),
        ("L16/8000", None),
        ("L16/44100/2", None),
    ]) {
        let camera = Camera::new(Some(&audio(97, rtpmap))).await;
        let body = camera.create(id, json!({ "video": false }));
        let reply = client.request(body).await;
        let Some(codec) = offered else {
            assert_eq!(reply["error_code"], 456, "{rtpmap}: {reply}");
            assert!(reply["error"].as_str().unwrap().contains(rtpmap), "{reply}");
            continue;
        };
        assert_eq!(reply["streaming"], "created", "{rtpmap}: {reply}");
        let info = json!({ "request": "info", "id": id });
        let info = client.request(info).await["info"].clone();
        assert_eq!(info["media"][0]["codec"], codec, "{rtpmap}");
    }
}

#[tokio::test]
async fn viewers_follow_a_camera_that_comes_back_with_another_codec() {
    let camera = Camera::new(Some(&video(96, "H264"))).await;
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera.create(7, json!({ "audio": false }))).await;
    let (mut ours, our_peer) = world.viewer(json!({ "id": 7 })).await;
    let mut theirs = world.client().await;
    let (data, _) = watched(&mut theirs, &[Line::Video]).await;
    assert_eq!(data, status("starting"));
    let their_peer = world.last_peer();
    world.connect(&mut theirs, their_peer).await;
    let former = world.routes(our_peer);
    assert_eq!(former.len(), 1);
    assert_eq!(world.routes(their_peer).len(), 1);

    camera.change(&video(98, "VP8"));
    let offer = timeout(PATIENCE, world.updated(&mut ours)).await;
    let offer = offer.expect("another offer");
    assert!(offer.contains("a=rtpmap:98 VP8/90000"), "{offer}");
    let ingests = world.server.requested().ingests;
    assert_eq!(ingests.len(), 1, "the former one has ended");
    let routes = world.routes(our_peer);
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].0, ingests[0].id.into());
    assert_ne!(routes[0].0, former[0].0);
    // This viewer cannot get an offer.
    assert_eq!(theirs.event().await, status("stopped"));
    assert_eq!(theirs.next().await["janus"], "hangup");
    admin
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    assert!(world.server.requested().ingests.is_empty());
}

#[tokio::test]
async fn media_of_one_payload_type_are_offered_with_different_ones() {
    let media = audio(96, "opus/48000/2") + &video(96, "VP8");
    let camera = Camera::new(Some(&media)).await;
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera.create(7, json!({}))).await;
    client
        .message(json!({ "request": "watch", "id": 7 }), None)
        .await;
    let (_, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap();
    let sdp = offer["sdp"].as_str().unwrap();
    let numbers = |line: &str| -> Vec<String> {
        let numbers = line.split(' ').skip(3).map(str::to_owned);
        numbers.collect()
    };
    let lines = sections(sdp);
    let (audio, video) = (numbers(lines[0][0]), numbers(lines[1][0]));
    assert_eq!(audio, ["96"]);
    assert!(video.iter().all(|number| !audio.contains(number)), "{sdp}");
    // The offer has the requested streams.
    let mut client = world.client().await;
    create(&mut client, camera.create(8, json!({ "videopt": 96 }))).await;
    let info = json!({ "request": "info", "id": 8 });
    let info = client.request(info).await["info"].clone();
    assert_eq!(info["media"][1]["pt"], 96);
    assert_ne!(info["media"][0]["pt"], 96);
}

#[tokio::test]
async fn who_may_see_what_is_shown_of_a_camera() {
    let camera = Camera::new(Some(&video(96, "VP8"))).await;
    let world = World::new().await;
    let mut client = world.client().await;
    let body = camera.create(
        7,
        json!({
            "audio": false, "secret": "s3", "rtsp_user": "me", "rtsp_pwd": "word", "rtsp_quirk": true,
            "threads": 2, "bufferkf_bytes": 9,
        }),
    );
    create(&mut client, body).await;
    let info = |secret: &str| json!({ "request": "info", "id": 7, "secret": secret });
    let admin = client.request(info("s3")).await["info"].clone();
    let public = client.request(info("")).await["info"].clone();
    for seen in [&admin, &public] {
        assert_eq!(seen["rtsp"], true);
        assert_eq!(seen["threads"], 2);
        assert_eq!(seen["bufferkf_bytes"], 9);
        assert_eq!(seen["media"][0]["label"], "RTSP video");
        assert_eq!(seen["media"][0]["mid"], "v");
    }
    let secrets = json!({
        "url": camera.url, "rtsp_user": "me", "rtsp_pwd": "word", "rtsp_quirk": true,
    });
    for (name, value) in secrets.as_object().unwrap() {
        assert_eq!(admin[name], *value);
        assert_eq!(public.get(name), None, "{name}");
    }
}

#[tokio::test]
async fn options_of_rtsp_have_their_effects() {
    let world = World::new().await;
    let mut client = world.client().await;
    let off = Camera::new(None).await;
    // The older name of rtsp_failcheck.
    assert_eq!(refused(&mut client, off.create(1, json!({}))).await, 456);
    create(&mut client, off.create(1, json!({ "rtsp_check": false }))).await;

    let camera = Camera::with(Shared {
        media: Mutex::new(Some(video(96, "VP8"))),
        path_only: true,
        ..Shared::default()
    })
    .await;
    let more = json!({ "audio": false });
    assert_eq!(refused(&mut client, camera.create(2, more)).await, 456);
    let more = json!({ "audio": false, "rtsp_quirk": true, "rtsp_session_timeout": 1,
                       "rtsp_reconnect_delay": 30 });
    create(&mut client, camera.create(2, more)).await;
    let kept_alive = async {
        let is_sign = |asked: &String| asked.starts_with("OPTIONS ");
        while !camera.shared.asked.lock().unwrap().iter().any(is_sign) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, kept_alive).await.expect("a keep-alive");

    let camera = Camera::new(Some(&video(96, "VP8"))).await;
    let via = |iface: &str| camera.create(3, json!({ "audio": false, "rtspiface": iface }));
    assert_eq!(refused(&mut client, via("nosuch0")).await, 456);
    create(&mut client, via("127.0.0.1")).await;
}
