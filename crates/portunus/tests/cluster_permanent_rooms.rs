//! Rooms that are changed and ended permanently, in the files of all nodes that have them: processes, a
//! real nats-server. Skipped with a message where no nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use nodes::{Node, Site};
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach_to};

/// A plugin with rooms.
struct Kind {
    name: &'static str,
    package: &'static str,
    /// Further keys of a room.
    keys: &'static str,
}

const VIDEO: Kind = Kind {
    name: "videoroom",
    package: "janus.plugin.videoroom",
    keys: "",
};
const AUDIO: Kind = Kind {
    name: "audiobridge",
    package: "janus.plugin.audiobridge",
    keys: "sampling_rate = 16000",
};
const TEXT: Kind = Kind {
    name: "textroom",
    package: "janus.plugin.textroom",
    keys: "",
};

impl Kind {
    /// Returns the configuration of a node with a file, and with the room if it `has` it.
    fn keys(&self, folder: &Path, node: &str, has: bool) -> String {
        let (name, keys) = (self.name, self.keys);
        let save = folder.join(format!("{node}.toml"));
        let room = match has {
            true => format!("[[{name}.room]]\nroom = 555\nsecret = \"s3cret\"\n{keys}\n"),
            false => String::new(),
        };
        format!("\n[{name}]\nsave = {save:?}\n{room}")
    }

    fn request(&self, node: &Node, body: Value) -> Value {
        ask(&attach_to(node.api(), self.package), body)
    }

    /// Waits until a node has the room, or does not.
    fn until_exists(&self, node: &Node, exists: bool) {
        let begin = Instant::now();
        let request = json!({ "request": "exists", "room": 555 });
        loop {
            let answer = self.request(node, request.clone());
            if answer["exists"] == exists {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{}: {answer}", node.name);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that all nodes note a permanent change and a permanent end.
    fn is_noted_everywhere(&self) {
        let folder = tempfile::tempdir().unwrap();
        let keys = |node: &str, has: bool| self.keys(folder.path(), node, has);
        let all = [
            ("a", keys("a", true)),
            ("b", keys("b", true)),
            ("c", keys("c", false)),
        ];
        let all: Vec<_> = all.iter().map(|(node, keys)| (*node, &**keys)).collect();
        let Some(mut site) = Site::with(&all) else {
            return;
        };
        let saved = |node: &str| {
            let file = std::fs::read_to_string(folder.path().join(format!("{node}.toml")));
            file.unwrap_or_default()
        };
        let until_saved = |node: &str, text: &str| {
            let begin = Instant::now();
            while !saved(node).contains(text) {
                assert!(begin.elapsed() < PATIENCE, "{node}: {}", saved(node));
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        self.until_exists(&site.nodes[2], true);
        let edited = self.request(
            &site.nodes[2],
            json!({
                "request": "edit", "room": 555, "secret": "s3cret", "new_secret": "other",
                "new_description": "Later", "permanent": true,
            }),
        );
        assert_eq!(edited[self.name], "edited", "{edited}");
        assert_eq!(edited["permanent"], true);
        until_saved("a", "Later");
        until_saved("b", "Later");
        assert_eq!(saved("c"), "");

        // A node that is away meanwhile.
        site.nodes[1].running = None;
        let destroy = |secret: &str| json!({ "request": "destroy", "room": 555, "secret": secret, "permanent": true });
        let refused = self.request(&site.nodes[2], destroy("s3cret"));
        assert!(refused.get("error").is_some(), "{refused}");
        let begin = Instant::now();
        loop {
            let destroyed = self.request(&site.nodes[2], destroy("other"));
            if destroyed[self.name] == "destroyed" {
                break;
            }
            // Its home may be the node that has ended.
            assert!(begin.elapsed() < PATIENCE, "{destroyed}");
            std::thread::sleep(Duration::from_millis(100));
        }
        until_saved("a", "removed = [555]");
        self.until_exists(&site.nodes[2], false);
        site.nodes[1].start();
        site.until_linked();
        until_saved("b", "removed = [555]");
        for node in &site.nodes {
            self.until_exists(node, false);
        }
        // It does not come back with a start.
        for index in [0, 1] {
            site.nodes[index].running = None;
            site.nodes[index].start();
        }
        site.until_linked();
        for node in &site.nodes {
            self.until_exists(node, false);
        }
        // A room that is made anew stays, also when nodes come back that know of the end.
        let made = self.request(
            &site.nodes[2],
            json!({ "request": "create", "room": 555, "sampling_rate": 16_000 }),
        );
        assert_eq!(made[self.name], "created", "{made}");
        site.nodes[1].running = None;
        site.nodes[1].start();
        site.until_linked();
        for node in &site.nodes {
            self.until_exists(node, true);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_video_room_is_ended_in_the_files_of_all_nodes() {
    VIDEO.is_noted_everywhere();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audio_room_is_ended_in_the_files_of_all_nodes() {
    AUDIO.is_noted_everywhere();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_room_is_ended_in_the_files_of_all_nodes() {
    TEXT.is_noted_everywhere();
}
