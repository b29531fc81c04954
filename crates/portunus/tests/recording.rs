//! The program records what ffmpeg sends, and a signal that ends it leaves whole files behind.
//! Without ffmpeg the test is skipped, and says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use server::{PATIENCE, Process, ask, attach, has, metric, start};

#[test]
fn a_signal_ends_recordings_as_they_should() {
    if !has("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let camera = "temporary = \"part\"\n\
        [[streaming.mountpoint]]\nname = \"camera\"\ntype = \"rtp\"\nid = 7\n\
        [[streaming.mountpoint.media]]\ntype = \"video\"\nmid = \"v\"\nport = 0\ncodec = \"vp8\"\n";
    let (mut server, api) = start(folder.path(), camera);
    let handle = attach(&api);
    let ask = |body| ask(&handle, body);
    let info = ask(json!({ "request": "info", "id": 7 }));
    let port = info["info"]["media"][0]["port"].as_u64().expect("a port");
    let record = json!({
        "request": "recording", "action": "start", "id": 7, "video": "camera/1",
    });
    assert_eq!(ask(record), json!({ "streaming": "ok" }));

    let camera = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-re",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=160x120:rate=25",
        ])
        .args([
            "-c:v",
            "libvpx",
            "-deadline",
            "realtime",
            "-g",
            "10",
            "-f",
            "rtp",
        ])
        .arg(format!("rtp://127.0.0.1:{port}?pkt_size=1200"))
        .stdout(Stdio::null())
        .spawn();
    let camera = Process(camera.unwrap());
    let deadline = Instant::now() + PATIENCE;
    while metric(&api, "portunus_recorded_packets_total") < 50 {
        assert!(Instant::now() < deadline, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(metric(&api, "portunus_recordings"), 1);
    let file = folder.path().join("rec/camera/1.mjr");
    assert!(folder.path().join("rec/camera/1.mjr.part").exists());
    assert!(!file.exists());

    let pid = server.0.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(server.0.wait().unwrap().success());
    drop(camera);
    assert!(file.exists());
    let target = folder.path().join("1.webm");
    let converted = Command::new("janus-pp-rec")
        .arg(&file)
        .arg(&target)
        .output();
    let Ok(converted) = converted else {
        println!("there is no janus-pp-rec: what was recorded is not decoded");
        return;
    };
    assert!(converted.status.success());
    let decoded = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(&target)
        .args(["-f", "null", "-"])
        .output()
        .unwrap();
    assert!(
        decoded.status.success() && decoded.stderr.is_empty(),
        "{decoded:?}"
    );
}
