//! Three processes as nodes of a cluster, with a real nats-server: what `portunus cluster` does and
//! shows. Skipped with a message where no nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::process::Command;
use std::time::{Duration, Instant};

use portunus_tests::free_port;
use serde_json::json;

use nodes::{Node, home_of, links_up, nats, nats_server, path_of};
use server::{PATIENCE, get, metric};

#[test]
fn three_nodes_find_each_other_and_show_nodes_links_and_homes() {
    let Some(program) = nats_server() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let bus = nats(&program, &folder.path().join("nats"), port);
    let mut nodes = ["a", "b", "c"].map(|name| Node::new(folder.path(), name, port));
    // Without a certificate a node says what to do.
    let started = Command::new(env!("CARGO_BIN_EXE_portunus"))
        .arg("--config")
        .arg(&nodes[0].config)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(error.contains("portunus cluster init"), "{error}");
    // Nor does it start with more workers than other nodes take.
    let config = std::fs::read_to_string(&nodes[0].config).unwrap();
    let many = folder.path().join("many.toml");
    let media_port = format!("media_port = {}", nodes[0].media_port);
    let config = config.replace("workers = 1", "workers = 65");
    std::fs::write(&many, config.replace(&media_port, "media_port = 0")).unwrap();
    let started = Command::new(env!("CARGO_BIN_EXE_portunus"))
        .arg("--config")
        .arg(&many)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(error.contains("set media.workers = 64"), "{error}");
    nodes[0].says(&["init"]);
    nodes[0].start();
    let address = format!("127.0.0.1:{}", nodes[0].port);
    for index in [1, 2] {
        let name = ["a", "b", "c"][index];
        let invitation = nodes[0].says(&["invite", name, "--address", &address]);
        nodes[index].says(&["join", &invitation]);
        let again = nodes[index].command(&["join", &invitation]);
        assert!(!again.status.success());
        nodes[index].start();
    }
    for node in &nodes {
        node.until("two links", |status| {
            links_up(status) == 2 && status["confirmed"] == true
        });
        assert_eq!(get(&path_of(node.api(), "/readyz")), "ok\n");
    }
    nodes[1].join_room();
    nodes[1].until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "b")
    });
    nodes[2].join_room();
    nodes[2].until("a registration", |status| {
        home_of(status, "1234").is_some_and(|home| home["registered"] == true)
    });
    let status = nodes[1].until("both people", |status| {
        home_of(status, "1234").is_some_and(|home| home["items"] == 2)
    });
    let home = home_of(&status, "1234").unwrap();
    assert_eq!(
        (&home["what"], &home["node"]),
        (&json!("room.videoroom \"1234\""), &json!("b"))
    );
    assert_eq!(home["members"], json!(["c"]));
    assert_eq!(status["disagreements"], json!([]));
    let text = nodes[0].says(&["status"]);
    for part in [
        "NODE",
        "LINK TO",
        "ROUND TRIP",
        "room.videoroom \"1234\"",
        "Nothing disagrees.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(metric(nodes[0].api(), "portunus_cluster_nodes"), 3);
    // The reply has no body, but a place.
    assert_eq!(get(&path_of(nodes[0].api(), "/where")), "");

    // The bus dies: nodes serve, and say that they are without it.
    drop(bus);
    let begin = Instant::now();
    loop {
        let ready = get(&path_of(nodes[0].api(), "/readyz"));
        if ready.starts_with("ok\ndegraded: cluster: ") {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{ready}");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(get(&path_of(nodes[0].api(), "/livez")), "ok\n");
    assert_eq!(links_up(&nodes[0].status()), 2);
    let bus = nats(&program, &folder.path().join("nats"), port);
    nodes[0].until("the bus", |status| status["confirmed"] == true);

    // The home dies: the other one takes it.
    nodes[1].running = None;
    let status = nodes[0].until("a loss", |status| links_up(status) == 1);
    assert_eq!(status["node"], "a");
    nodes[2].until("a new home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "c")
    });
    drop(bus);
}
