//! The configuration is read again while the program runs: by SIGHUP, and by the Admin API.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod calls;
mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_api::testing::write_certificate;
use portunus_tests::free_port;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use calls::{call_many, run_all};
use server::{PATIENCE, Process, ask, attach_to, post, run, signal};

/// A running server, and its configuration.
struct Server {
    folder: tempfile::TempDir,
    process: Process,
    api: String,
    admin: String,
    https: u16,
    base: String,
}

impl Server {
    fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_certificate(folder.path());
        let (admin, https, websocket) = (free_port(), free_port(), free_port());
        let dir = folder.path().display();
        let base = format!(
            "[http]\nbind = [\"127.0.0.1\"]\nport = 0\nhttps = true\nhttps_port = {https}\n\
             [tls]\ncertificate = \"{dir}/cert.pem\"\nkey = \"{dir}/key.pem\"\n\
             [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n\
             [admin]\nport = {admin}\n\
             [websocket]\nbind = [\"127.0.0.1\"]\nport = {websocket}\n"
        );
        let path = folder.path().join("portunus.toml");
        std::fs::write(&path, format!("{base}{more}")).unwrap();
        let (process, api) = run(&path);
        Server {
            folder,
            process,
            api,
            admin: format!("http://127.0.0.1:{admin}/admin"),
            https,
            base,
        }
    }

    fn write(&self, more: &str) {
        let path = self.folder.path().join("portunus.toml");
        std::fs::write(path, format!("{}{more}", self.base)).unwrap();
    }

    fn admin(&self, request: Value) -> Value {
        let mut request = request;
        request["transaction"] = json!("t");
        post(&self.admin, &request)
    }

    fn reload(&self) -> Value {
        self.admin(json!({ "janus": "reload" }))
    }

    async fn connect(&self, trusted: &CertificateDer<'static>) -> Result<Tls, String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.https)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connected = TlsConnector::from(Arc::new(client)).connect(name, stream);
        connected.await.map_err(|error| error.to_string())
    }
}

type Tls = TlsStream<TcpStream>;

/// Asks on a connection that stays open.
async fn is_answered(connection: &mut Tls) -> bool {
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connection.write_all(request).await.unwrap();
    let mut answer = [0; 4_096];
    let len = connection.read(&mut answer).await.unwrap();
    answer[..len].starts_with(b"HTTP/1.1 200 ")
}

fn texts(value: &Value) -> Vec<&str> {
    let list = value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"));
    list.iter().filter_map(Value::as_str).collect()
}

fn certificate_in(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    (read("cert.pem"), read("key.pem"))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_certificate_is_served_and_300_calls_go_on() {
    // The first calls wait for the last ones, however long these take.
    let server = Server::start("[server]\nsession_timeout = 0\n");
    let folder = server.folder.path();
    let first = write_certificate(folder);
    assert_eq!(
        server.reload()["changed"],
        json!(["tls: another certificate"])
    );
    let mut calls = call_many(&server.api, 300).await;
    let mut before = server.connect(&first).await.unwrap();
    assert!(is_answered(&mut before).await);

    let second = write_certificate(folder);
    signal(&server.process, "-HUP");
    let begin = Instant::now();
    while server.connect(&second).await.is_err() {
        assert!(begin.elapsed() < PATIENCE, "the old certificate is served");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_answered(&mut before).await, "an open connection goes on");
    run_all(&mut calls).await;

    // One that does not fit its key changes nothing, and neither does one that is none.
    let good = certificate_in(folder);
    write_certificate(folder);
    std::fs::write(folder.join("key.pem"), &good.1).unwrap();
    let refused = server.reload();
    assert_eq!(refused["error"]["code"], 490, "{refused}");
    let reason = refused["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("cert.pem"), "{reason}");
    std::fs::write(folder.join("cert.pem"), "nothing").unwrap();
    assert_eq!(server.reload()["error"]["code"], 490);
    assert!(server.connect(&second).await.is_ok());
    std::fs::write(folder.join("cert.pem"), &good.0).unwrap();
    let same = server.reload();
    assert_eq!(same["changed"], json!([]), "{same}");
    run_all(&mut calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dtls_certificate_is_for_new_calls() {
    let dtls = tempfile::tempdir().unwrap();
    write_certificate(dtls.path());
    let dir = dtls.path().display();
    let server = Server::start("");
    let keys = format!("certificate = \"{dir}/cert.pem\"\nkey = \"{dir}/key.pem\"\n");
    let mut calls = call_many(&server.api, 3).await;
    let text = server
        .base
        .replace("workers = 1\n", &format!("workers = 1\n{keys}"));
    std::fs::write(server.folder.path().join("portunus.toml"), &text).unwrap();
    let reloaded = server.reload();
    let changed = texts(&reloaded["changed"]);
    assert!(
        changed.contains(&"media: another certificate"),
        "{reloaded}"
    );
    write_certificate(dtls.path());
    assert_eq!(
        server.reload()["changed"],
        json!(["media: another certificate"])
    );
    // A peer checks that the certificate is that of the description.
    calls.extend(call_many(&server.api, 3).await);
    run_all(&mut calls).await;
}

#[test]
fn what_can_change_changes_and_what_cannot_is_named() {
    let server = Server::start("[server]\nrequest_rate = 1000\n[log]\nfilter = \"info\"\n");
    server.write(
        "[server]\nrequest_rate = 7\nserver_name = \"Other\"\nmax_sessions = 1\n\
         [log]\nfilter = \"debug\"\nformat = \"json\"\n\
         [unix]\nmax_message = 2048\n[plugins.echotest]\nenabled = false\n\
         [recording]\nenabled = false\n",
    );
    let reloaded = server.reload();
    assert_eq!(reloaded["janus"], "success", "{reloaded}");
    let mut changed = texts(&reloaded["changed"]);
    changed.sort_unstable();
    let expected = [
        "log.filter",
        "log.format",
        "server.max_sessions",
        "server.request_rate",
    ];
    assert_eq!(changed, expected);
    let mut restart = texts(&reloaded["restart"]);
    restart.sort_unstable();
    let expected = [
        "plugins.echotest.enabled",
        "recording.enabled",
        "server.server_name",
        "unix.max_message",
    ];
    assert_eq!(restart, expected);
    let status = server.admin(json!({ "janus": "get_status" }));
    assert_eq!(status["status"]["log_level"], 6, "{status}");
    let create = json!({ "janus": "create", "transaction": "c" });
    assert_eq!(post(&server.api, &create)["janus"], "success");
    assert_eq!(post(&server.api, &create)["error"]["code"], 472);
    // As long as there was no restart, it is named again.
    let again = server.reload();
    assert_eq!(again["changed"], json!([]));
    assert_eq!(texts(&again["restart"]).len(), 4);
    server.write("");
    let back = server.reload();
    assert_eq!(back["restart"], json!([]), "{back}");
    assert_eq!(post(&server.api, &create)["janus"], "success");
}

#[test]
fn a_mistake_changes_nothing_and_is_named_with_its_line() {
    let server = Server::start("");
    let log_level =
        || server.admin(json!({ "janus": "get_status" }))["status"]["log_level"].clone();
    assert_eq!(log_level(), 4);
    for (wrong, part) in [
        (
            "[log]\nfilter = \"debug\"\n[server]\nmax_sessions = -1\n",
            "max_sessions",
        ),
        ("[log]\nfilter = \"debug\"\n[serv]\n", "serv"),
        (
            "[log]\nfilter = \"debug\"\n[jwt]\njwks_file = \"/no/such\"\n",
            "/no/such",
        ),
        (
            "[log]\nfilter = \"debug\"\n[sip]\ntls_certificate = \"/no/cert\"\ntls_key = \"/no/key\"\n",
            "/no/",
        ),
        ("[log\n", "portunus.toml"),
    ] {
        server.write(wrong);
        let refused = server.reload();
        assert_eq!(refused["error"]["code"], 490, "{wrong}: {refused}");
        let reason = refused["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{wrong}: {reason}");
        assert_eq!(log_level(), 4, "{wrong}");
    }
    std::fs::remove_file(server.folder.path().join("portunus.toml")).unwrap();
    assert_eq!(server.reload()["error"]["code"], 490);
    server.write("[log]\nfilter = \"debug\"\n");
    assert_eq!(server.reload()["changed"], json!(["log.filter"]));
    assert_eq!(log_level(), 6);
}

#[test]
fn rooms_and_mountpoints_come_change_and_go() {
    let mountpoint = |name: &str, id: u64, pin: &str| {
        format!(
            "[[streaming.mountpoint]]\nname = \"{name}\"\ntype = \"rtp\"\nid = {id}\npin = \"{pin}\"\n\
             media = [{{ type = \"audio\", mid = \"a\", port = 0, codec = \"opus\" }}]\n"
        )
    };
    let room =
        |plugin: &str, id: u64, more: &str| format!("[[{plugin}.room]]\nroom = {id}\n{more}\n");
    let rate = "sampling_rate = 16000";
    let before = [
        room("videoroom", 1, "description = \"one\""),
        room("videoroom", 2, ""),
        room("audiobridge", 1, rate),
        room("textroom", 1, ""),
        mountpoint("one", 1, "a"),
        mountpoint("two", 2, "a"),
    ];
    let server = Server::start(&before.concat());
    let ids = |plugin: &str| {
        let handle = attach_to(&server.api, &format!("janus.plugin.{plugin}"));
        let list = ask(&handle, json!({ "request": "list" }));
        let list = list["list"].as_array().unwrap().clone();
        let id = |entry: &Value| {
            entry
                .get("room")
                .or(entry.get("id"))
                .and_then(Value::as_u64)
        };
        let mut ids: Vec<_> = list.iter().filter_map(id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(
        (ids("videoroom"), ids("streaming")),
        (vec![1, 2], vec![1, 2])
    );
    let after = [
        room("videoroom", 1, "description = \"other\""),
        room("videoroom", 3, "videocodec = \"vp9\""),
        room("audiobridge", 1, "sampling_rate = 48000"),
        room("audiobridge", 4, rate),
        room("textroom", 7, ""),
        mountpoint("one", 1, "b"),
        mountpoint("three", 3, "a"),
    ];
    server.write(&after.concat());
    let reloaded = server.reload();
    let changed = texts(&reloaded["changed"]);
    for part in [
        "videoroom: room 1 changed",
        "videoroom: room 2 removed",
        "videoroom: room 3 created",
        "audiobridge: room 1 changed",
        "audiobridge: room 4 created",
        "textroom: room 1 removed",
        "textroom: room 7 created",
        "streaming: mountpoint one changed",
        "streaming: mountpoint two removed",
        "streaming: mountpoint three created",
    ] {
        assert!(changed.contains(&part), "{part} in {reloaded}");
    }
    assert_eq!(
        (&reloaded["restart"], &reloaded["warnings"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(ids("videoroom"), [1, 3]);
    assert_eq!(ids("audiobridge"), [1, 4]);
    assert_eq!(ids("streaming"), [1, 3]);
}
