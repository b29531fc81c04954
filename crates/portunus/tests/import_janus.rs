//! A configuration of Janus becomes one of this server, which starts with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A Janus on loopback, on ports that the system chooses, with rooms and mountpoints.
const FILES: &[(&str, &str)] = &[
    (
        "janus.jcfg",
        r#"general: {
    plugins_folder = "/usr/lib/janus/plugins"
    server_name = "Imported"            # As it was
    event_loops = 1
}
media: { rtp_port_range = "0-0"; }
nat: { ice_enforce_list = "127.0.0.1"; keep_private_host = true; }
"#,
    ),
    (
        "janus.transport.http.jcfg",
        r#"general: { http = true; port = 0; ip = "127.0.0.1"; }
@include "more.conf"
"#,
    ),
    ("more.conf", "admin: { admin_http = false; }\n"),
    (
        "janus.transport.websockets.jcfg",
        "general: { ws = false; }\n",
    ),
    (
        "janus.plugin.streaming.jcfg",
        r#"# The studio on the second floor
studio: {
    type = "rtp"
    id = 71
    media = (
        { type = "audio", mid = "a", port = 0, pt = 111, codec = "opus" },
        { type = "video", mid = "v", port = 0, pt = 96, codec = "vp8" }
    )
    secret = "s"
}
flat: { type = "rtp"; id = 72; audio = true; audioport = 0; audiopt = 0x6F; audiocodec = "opus"; }
"#,
    ),
    (
        "janus.plugin.videoroom.jcfg",
        "room-1234: { description = \"Demo \" \"Room\"; publishers = 6; bitrate = 128000L; }\n",
    ),
    (
        "janus.plugin.audiobridge.jcfg",
        "room-55: { description = \"Audio\"; sampling_rate = 16000; }\n",
    ),
    (
        "janus.plugin.textroom.cfg",
        "[66]\ndescription = Text ; of 2015\n",
    ),
];

fn janus() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn import(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
    command.arg("import-janus").arg(folder).args(more);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_server_starts_with_the_rooms_and_mountpoints_of_janus() {
    let folder = janus();
    let config = folder.path().join("portunus.toml");
    let output = import(folder.path(), &["--output", config.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    let (_server, api) = server::run(&config);
    let list = |plugin: &str, key: &str| {
        let handle = server::attach_to(&api, plugin);
        let mut found = server::ask(&handle, json!({ "request": "list" }));
        found[key].take()
    };
    let ids = |list: Value, key: &str| -> Vec<Value> {
        let list = list.as_array().unwrap().clone();
        list.into_iter().map(|mut it| it[key].take()).collect()
    };
    let mountpoints = list("janus.plugin.streaming", "list");
    assert_eq!(ids(mountpoints, "id"), [json!(71), json!(72)]);
    let rooms = list("janus.plugin.videoroom", "list");
    let room = &rooms[0];
    assert_eq!(
        (
            &room["room"],
            &room["description"],
            &room["max_publishers"],
            &room["bitrate"]
        ),
        (
            &json!(1234),
            &json!("Demo Room"),
            &json!(6),
            &json!(128_000)
        )
    );
    assert_eq!(
        ids(list("janus.plugin.audiobridge", "list"), "room"),
        [json!(55)]
    );
    let rooms = list("janus.plugin.textroom", "list");
    assert_eq!(rooms[0]["description"], "Text");
}

#[test]
fn what_was_not_taken_is_told_beside_the_configuration_and_in_it() {
    let folder = janus();
    let output = import(folder.path(), &[]);
    assert!(output.status.success());
    let (config, told) = (text(&output.stdout), text(&output.stderr));
    let path = folder.path().display();
    for expected in [
        format!("{path}/janus.jcfg:7: nat.keep_private_host: an announced address"),
        format!("{path}/janus.jcfg:2: general.plugins_folder: not needed: plugins, "),
    ] {
        assert!(told.contains(&expected), "{expected} in\n{told}");
    }
    for expected in [
        "# As it was\nserver_name = \"Imported\"",
        "# The studio on the second floor\n[[streaming.mountpoint]]\nname = \"studio\"",
        "janus.jcfg:7: nat.keep_private_host: ",
    ] {
        assert!(config.contains(expected), "{expected} in\n{config}");
    }
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let folder = janus();
    let config = folder.path().join("portunus.toml");
    let arguments = ["--output", config.to_str().unwrap()];
    fs::write(&config, "mine").unwrap();
    let output = import(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "portunus: {}: it is there already (--force writes over it)\n",
        config.display()
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!(fs::read_to_string(&config).unwrap(), "mine");
    let output = import(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert!(output.status.success());
    assert!(fs::read_to_string(&config).unwrap().contains("Imported"));
    // It has secrets.
    let mode = fs::metadata(&config).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_file_is_named_with_its_place() {
    let folder = janus();
    let config = folder.path().join("portunus.toml");
    let arguments = ["--output", config.to_str().unwrap()];
    // The other files come over.
    let broken = folder.path().join("janus.plugin.sip.jcfg");
    fs::write(&broken, "general: {\n  local_ip = \"1.2.3.4\"\n").unwrap();
    let output = import(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(3));
    let expected = format!(
        "{}:3: broken at column 1: expected the name of a setting or }}, found the end of the file",
        broken.display()
    );
    assert!(
        text(&output.stderr).contains(&expected),
        "{}",
        text(&output.stderr)
    );
    assert!(fs::read_to_string(&config).unwrap().contains("Imported"));
    // Without the main file nothing is written.
    fs::remove_file(&config).unwrap();
    let main = folder.path().join("janus.jcfg");
    fs::write(&main, "general: {\n  api_secret = \"x\n}\n").unwrap();
    let output = import(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "portunus: {}:2:16: this string has no closing quote\n",
        main.display()
    );
    assert!(
        text(&output.stderr).starts_with(&expected),
        "{}",
        text(&output.stderr)
    );
    assert!(!config.exists());
    let empty = tempfile::tempdir().unwrap();
    let output = import(empty.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no janus.jcfg"));
    assert_eq!(import(empty.path(), &["--force"]).status.code(), Some(2));
}

#[test]
fn the_help_suffices() {
    let output = import(Path::new("--help"), &[]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    for part in [
        "FOLDER",
        "--output",
        "--force",
        ".jcfg",
        "--check-config",
        "Exit status",
        "/etc/janus",
    ] {
        assert!(help.contains(part), "{part} in\n{help}");
    }
}
