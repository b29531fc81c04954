//! The list of recordings has those of all nodes of a cluster: processes, a real nats-server. Skipped with
//! a message where no nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::time::{Duration, Instant};

use nodes::events::Events;
use nodes::{Node, Site};
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach_to, post};

const PACKAGE: &str = "janus.plugin.recordplay";

/// Puts a recording into the folder of a node.
fn keep(node: &Node, id: u64, name: &str) {
    let folder = node.config.parent().unwrap().join("rec/recordplay");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("rec-{id}-audio.mjr")), b"MJR00002").unwrap();
    let nfo = format!(
        "[{id}]\nname = {name}\nprivate = false\ndate = 2026-11-30 10:00:00\naudio = rec-{id}-audio.mjr\n"
    );
    std::fs::write(folder.join(format!("{id}.nfo")), nfo).unwrap();
    let handle = attach_to(node.api(), PACKAGE);
    let updated = ask(&handle, json!({ "request": "update" }));
    assert_eq!(updated["recordplay"], "ok", "{updated}");
}

/// The ids of the list at a node, with the nodes that have them.
fn listed(node: &Node) -> Vec<(u64, String)> {
    let handle = attach_to(node.api(), PACKAGE);
    let answer = ask(&handle, json!({ "request": "list" }));
    let list = answer["list"].as_array().unwrap();
    let entry = |it: &Value| {
        let node = it["node"].as_str().unwrap();
        (it["id"].as_u64().unwrap(), node.to_owned())
    };
    let mut list: Vec<_> = list.iter().map(entry).collect();
    list.sort_unstable();
    list
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_names_the_recordings_of_all_nodes() {
    let Some(mut site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    keep(&site.nodes[0], 7, "one");
    keep(&site.nodes[1], 7, "another of this number");
    keep(&site.nodes[1], 8, "two");
    let all = [(7, "a"), (7, "b"), (8, "b")].map(|(id, node)| (id, node.to_owned()));
    for node in &site.nodes {
        assert_eq!(listed(node), all);
    }
    // Administrators see the same with whole addresses, also of those at the node that is asked.
    for node in &site.nodes {
        let request = json!({
            "janus": "message_plugin", "transaction": "t", "plugin": PACKAGE,
            "request": { "request": "list" },
        });
        let answer = node.admin(&request);
        let list = answer["response"]["list"].as_array().unwrap();
        assert_eq!(list.len(), all.len(), "{answer}");
        for entry in list {
            let at = site
                .nodes
                .iter()
                .find(|it| entry["node"] == it.name.as_str());
            let url = at.unwrap().url();
            assert_eq!(entry["node_url"], url, "{entry}");
            let file = entry["urls"]["audio"].as_str().unwrap();
            assert!(file.starts_with(&format!("{url}recordplay/")), "{file}");
        }
    }
    // Who asks for a recording of another node learns where to go.
    let handle = attach_to(site.nodes[2].api(), PACKAGE);
    let events = Events::of(&handle);
    let play = |id: u64| {
        let body = json!({ "request": "play", "id": id });
        let message = json!({ "janus": "message", "transaction": "t", "body": body });
        post(&handle, &message);
        let event = events.until(|event| event["plugindata"]["data"].get("error").is_some());
        event["plugindata"]["data"].clone()
    };
    let refused = play(8);
    assert_eq!(refused["error_code"], 416, "{refused}");
    assert_eq!(refused["node"], "b");
    assert_eq!(refused["node_url"], site.nodes[1].url());
    let unknown = play(9);
    assert_eq!(unknown["error"], "No such recording");
    // Those of a node that is gone are left out.
    site.nodes[1].running = None;
    let begin = Instant::now();
    while listed(&site.nodes[2]).len() > 1 {
        assert!(begin.elapsed() < PATIENCE, "a dead node is listed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(listed(&site.nodes[0]), all[..1]);
}
