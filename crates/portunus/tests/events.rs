//! Events of the program's start and end, written to a file.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn it_tells_that_it_started_and_by_which_signal_it_ends() {
    for (signal, number) in [("-TERM", 15), ("-INT", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told.jsonl");
        let config = folder.path().join("portunus.toml");
        let text = format!(
            "[http]\nbind = [\"127.0.0.1\"]\nport = 0\n\
             [websocket]\nbind = [\"127.0.0.1\"]\nport = 0\n\
             [admin]\nport = 0\n\
             [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n\
             [server]\nserver_name = \"here\"\n\
             [events.file]\nenabled = true\nevents = \"core\"\npath = {:?}\n",
            told.display().to_string()
        );
        std::fs::write(&config, text).unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_portunus"))
            .env_remove("PORTUNUS_LOG")
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut banner = BufReader::new(server.stdout.take().unwrap()).lines();
        let runs = banner.any(|line| line.unwrap().contains("Web pages"));
        let id = server.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(server.wait().unwrap().success() && runs && kill.success());

        let told = std::fs::read_to_string(told).unwrap();
        let told: Vec<Value> = told
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let started = &told[0];
        assert_eq!(started["emitter"], "here");
        assert_eq!(
            (&started["type"], &started["subtype"]),
            (&json!(256), &json!(1))
        );
        assert_eq!(started["event"]["status"], "started");
        let info = &started["event"]["info"];
        assert_eq!(info["janus"], "server_info");
        assert_eq!(info["server-name"], "here");
        assert_eq!(
            info["events"]["janus.eventhandler.fileevh"]["author"],
            info["author"]
        );
        let last = told.last().unwrap();
        assert_eq!((&last["type"], &last["subtype"]), (&json!(256), &json!(2)));
        assert_eq!(
            last["event"],
            json!({ "status": "shutdown", "signum": number })
        );
    }
}
