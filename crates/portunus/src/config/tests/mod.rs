#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod ports;
mod values;

use std::time::Duration;

use portunus_api::FileMode;
use portunus_core::Right;

use super::*;

const SAMPLE: &str = include_str!("../../../../../packaging/portunus.toml");

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = Config::parse(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

/// Returns the full configuration of a file.
fn printed(text: &str) -> String {
    Config::parse(text).unwrap().to_toml().unwrap()
}

fn defaults() -> String {
    Config::default().to_toml().unwrap()
}

/// The sample with its keys uncommented: they stand as `#key = value`, comments as `# text`.
fn uncommented_sample() -> String {
    let uncomment = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.is_empty() && !key.starts_with(' ') => key.to_owned(),
        _ => line.to_owned(),
    };
    SAMPLE.lines().map(|line| uncomment(line) + "\n").collect()
}

#[test]
fn nothing_is_the_defaults() {
    assert_eq!(printed(""), defaults());
    assert_eq!(printed(SAMPLE), defaults());
}

#[test]
fn the_sample_has_every_key_with_its_default_and_in_order() {
    let sample = uncommented_sample();
    assert_eq!(printed(&sample), defaults());
    let keys = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        lines
            .map(|l| l.split(" = ").next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(keys(&sample), keys(&defaults()));
}

#[test]
fn the_reference_documents_every_key() {
    let reference = include_str!("../../../../../docs/configuration.md");
    for line in defaults().lines().filter(|line| !line.is_empty()) {
        let name = match line.strip_prefix('[') {
            Some(section) => format!("`[{section}`"),
            None => format!("`{}`", line.split(" = ").next().unwrap()),
        };
        assert!(reference.contains(&name), "{name} is missing");
    }
}

#[test]
fn what_is_printed_can_be_read() {
    let text = r#"
        [server]
        api_secret = "a \"quoted\" secret"
        tokens = [{ token = "t1", plugins = ["janus.plugin.echotest"] }, { token = "t2", rights = ["record", "forward"] }]
        trust_loopback = false
        trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]
        request_rate = 0
        max_text = 100
        rid_order = "lmh"
        outgoing_networks = ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"]
        [media]
        announced = ["10.0.0.5=>203.0.113.7:20000", "media.example.org"]
        stun_server = "stun.example.org:19302"
        certificate = "/c.pem"
        key = "/k.pem"
        [http]
        bind = ["127.0.0.1", "::1"]
        metrics_bind = "[::1]:9100"
        metrics_networks = ["10.0.0.0/8", "2001:db8::/32"]
        frame_ancestors = ["https://app.example.org", "http://localhost:*"]
        request_timeout = 3
        [whip]
        authorization = "plugin"
        ice_servers = [{ url = "stun:s.example.org" }, { url = "turn:t.example.org", username = "u", credential = "\"c\"" }]
        allow_origins = ["https://a.example.org", "https://b.example.org"]
        [unix]
        path = "/run/portunus/api.sock"
        kind = "datagram"
        mode = "600"
        [log]
        filter = "info,portunus_core=debug"
        format = "json"
        [plugins.videocall]
        enabled = false
    "#;
    let config = Config::parse(text).unwrap();
    assert_eq!(config.core.tokens.len(), 2);
    assert_eq!(
        config.core.tokens[1].rights,
        [Right::Record, Right::Forward]
    );
    assert!(!config.core.trust_loopback);
    assert_eq!(config.media.certificate, Some("/c.pem".into()));
    assert_eq!(config.api.whip.ice_servers.len(), 2);
    assert_eq!(config.api.unix.mode, FileMode(0o600));
    assert_eq!(config.api.http.request_timeout, Duration::from_secs(3));
    assert_eq!(config.core.outgoing_networks.0.len(), 3);
    let enabled: Vec<bool> = config.plugins.iter().map(|it| it.is_enabled()).collect();
    assert_eq!(
        enabled,
        [true, false, true, true, true, true, true, true, true, true]
    );
    let again = Config::parse(&config.to_toml().unwrap()).unwrap();
    assert_eq!(again.core, config.core);
    assert_eq!(again.media, config.media);
    assert_eq!(again.reached, config.reached);
    assert_eq!(again.api, config.api);
    assert_eq!(again.log, config.log);
    assert_eq!(again.recording, config.recording);
    assert_eq!(again.to_toml(), config.to_toml());
}

#[test]
fn every_mistake_is_named_with_its_line_and_key() {
    let text = "[http]\nport = \"x\"\nprt = 1\n\n[media]\nworkers = -1\nbind = [\"here\"]\n[log]\nfilter = 3\n";
    assert_eq!(
        mistakes(text),
        [
            "line 2: http.port: expected a whole number, got \"x\"",
            "line 3: http.prt: unknown key; did you mean http.port?",
            "line 6: media.workers: expected a whole number from 0 to 9223372036854775807, got -1",
            "line 7: media.bind: expected an IP address in quotes, got \"here\"",
            "line 9: log.filter: expected text in quotes, got 3",
        ]
    );
}

#[test]
fn an_unknown_section_is_a_mistake() {
    assert_eq!(
        mistakes("[websockets]\nport = 1\n"),
        ["line 1: websockets: unknown key; did you mean websocket?"]
    );
    assert_eq!(
        mistakes("[plugins.echo]\nenabled = true\n"),
        ["line 1: plugins.echo: unknown key; did you mean plugins.echotest?"]
    );
    let unlike = mistakes("[zzz]\n");
    assert!(
        unlike[0].contains("there are server, jwt, media, turn, audio, events, http"),
        "{unlike:?}"
    );
}

#[test]
fn a_key_where_a_section_belongs_is_a_mistake() {
    assert_eq!(
        mistakes("http = 8088\n"),
        ["line 1: http: expected a section, written [http], got 8088"]
    );
}

#[test]
fn broken_toml_is_named_with_its_line() {
    let found = mistakes("[http]\nport = \n");
    assert!(found[0].starts_with("line 2: "), "{found:?}");
    let found = mistakes("[http]\nport = 1\nport = 2\n");
    assert!(found[0].starts_with("line 3: duplicate key"), "{found:?}");
}

#[test]
fn a_plugin_without_keys_has_no_section() {
    assert_eq!(
        mistakes("[echotest]\n"),
        [
            "line 1: echotest: unknown key; there are server, jwt, media, turn, audio, events, http, whip, websocket, unix, admin, mqtt, rabbitmq, \
          nats, livekit, cluster, tls, log, traces, recording, plugins, streaming, videoroom, audiobridge, textroom, voicemail, recordplay, nosip, sip"
        ]
    );
}

#[test]
fn sections_of_lists_are_printed() {
    let text = "[[videoroom.room]]\nroom = 7\n[[videoroom.room]]\nroom = 8\n[[streaming.mountpoint]]\n\
                name = \"stage\"\ntype = \"whip\"\nmedia = [{ type = \"video\", mid = \"v\" }]\n";
    let once = printed(text);
    for line in [
        "[[videoroom.room]]",
        "room = 8",
        "[[streaming.mountpoint]]",
        "name = \"stage\"",
    ] {
        assert!(
            once.lines().any(|printed| printed == line),
            "{line} in\n{once}"
        );
    }
    assert_eq!(printed(&once), once);
}

#[test]
fn the_documentation_names_the_keys_that_can_change_while_the_server_runs() {
    let text = include_str!("../../../../../docs/configuration.md");
    let (_, text) = text.split_once("\n## Reload\n").unwrap();
    let (text, _) = text.split_once("\n## ").unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: Vec<String> = rows
        .flat_map(|row| {
            let (section, keys) = row.split_once("` | ").unwrap();
            let keys = keys.trim_end_matches(" |").split(", ");
            keys.map(move |key| format!("{section}.{}", key.trim_matches('`')))
        })
        .collect();
    let config = Config::default();
    let sections = config.sections().unwrap();
    let live = sections.live().into_iter();
    let mut live: Vec<String> = live
        .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}.{key}")))
        .collect();
    let mut documented = documented;
    live.sort_unstable();
    documented.sort_unstable();
    assert_eq!(documented, live);
    // One that does not exist would be ignored silently.
    let written = config.to_toml().unwrap();
    for key in live {
        let (section, key) = key.rsplit_once('.').unwrap();
        let lists = ["room", "mountpoint", "keys"];
        let is_table = written.contains(&format!("[{section}.{key}]\n"));
        let header = format!("[{section}]\n");
        let body = written.split_once(&header).unwrap().1;
        let body = body.split("\n[").next().unwrap();
        let is_there = body
            .lines()
            .any(|line| line.starts_with(&format!("{key} = ")));
        let is_known = is_there || is_table || lists.contains(&key);
        assert!(is_known, "{section}.{key}");
    }
}
