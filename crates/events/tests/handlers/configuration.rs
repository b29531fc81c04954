//! Mistakes in the sections of handlers, with their lines.

use portunus_core::events::ConfiguredEventHandler;
use portunus_events::{File, Gelf, Nanomsg, WebSocket, Webhook};

use crate::lifecycle::read;

fn mistakes<H: ConfiguredEventHandler>(keys: &str) -> Vec<String> {
    read::<H>(keys).unwrap_err()
}

#[test]
fn what_is_enabled_needs_to_know_where_to() {
    let expected = |name: &str, key: &str| {
        vec![format!(
            "line 2: events.{name}.enabled: needs events.{name}.{key}"
        )]
    };
    assert_eq!(mistakes::<Webhook>(""), expected("webhook", "backend"));
    assert_eq!(mistakes::<WebSocket>(""), expected("websocket", "backend"));
    assert_eq!(mistakes::<File>("path = \"\"\n"), expected("file", "path"));
    assert_eq!(mistakes::<Gelf>(""), expected("gelf", "backend"));
    assert_eq!(mistakes::<Nanomsg>(""), expected("nanomsg", "address"));
    // A wrong key does not count as missing too.
    assert_eq!(
        mistakes::<Webhook>("backend = 1\n"),
        ["line 3: events.webhook.backend: expected text in quotes, got 1"]
    );
}

#[test]
fn mistakes_in_the_section_of_a_webhook() {
    let url = "backend = \"http://127.0.0.1/\"\n";
    for (keys, expected) in [
        (
            "backend = \"ftp://a\"",
            "backend: expected a URL that starts with http:// or https://, got \"ftp://a\"",
        ),
        (
            "backend = \"events\"",
            "backend: expected a URL that starts with http",
        ),
        ("events = \"media,madia\"", "\"madia\" is no kind of event"),
        ("queue = 0", "queue: expected 1 to 10000000, got 0"),
        ("grouping = 1", "grouping: expected true or false, got 1"),
        (
            "json = \"pretty\"",
            "json: expected one of \"indented\", \"plain\", \"compact\", got \"pretty\"",
        ),
        (
            "batch_pause_ms = 10001",
            "batch_pause_ms: expected 0 to 10000, got 10001",
        ),
        (
            "backend_user = \"u\"\nbearer = \"t\"",
            "bearer: there is backend_user already",
        ),
        (
            "bearer = \"a\\nb\"",
            "bearer: expected a token of printable ASCII",
        ),
        ("timeout = 0", "timeout: expected 1 to 60, got 0"),
        (
            "max_retransmissions = 101",
            "max_retransmissions: expected 0 to 100, got 101",
        ),
        (
            "retransmissions_backoff = 0",
            "retransmissions_backoff: expected 1 to 60000, got 0",
        ),
        ("compression = 10", "compression: expected 1 to 9, got 10"),
        (
            "backand = \"x\"",
            "backand: unknown key; did you mean events.webhook.backend?",
        ),
    ] {
        let given = if keys.starts_with("backend = ") {
            ""
        } else {
            url
        };
        let found = mistakes::<Webhook>(&format!("{given}{keys}\n"));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{keys}: {found:?}"
        );
    }
}

#[test]
fn mistakes_in_the_sections_of_others() {
    let found = [
        mistakes::<WebSocket>("backend = \"http://a/\"\n"),
        mistakes::<WebSocket>("backend = \"ws://a/\"\nsubprotocol = \"a\\nb\"\n"),
        mistakes::<File>("path = \"/a\"\nkeep = 1001\n"),
        mistakes::<Gelf>("backend = \"a\"\nport = 0\n"),
        mistakes::<Gelf>("backend = \"a\"\nprotocol = \"tcp\"\ncompress = true\n"),
        mistakes::<Gelf>("backend = \"a\"\nmax_message_len = 99\n"),
        mistakes::<Nanomsg>("address = \"ws://a:1\"\n"),
        mistakes::<Nanomsg>("address = \"tcp://a:1\"\nmode = \"both\"\n"),
    ];
    let expected = [
        "line 3: events.websocket.backend: expected a URL that starts with ws:// or wss://, got \"http://a/\"",
        "line 4: events.websocket.subprotocol: expected printable ASCII",
        "line 4: events.file.keep: expected 0 to 1000, got 1001",
        "line 4: events.gelf.port: expected 1 to 65535, got 0",
        "line 5: events.gelf.compress: expected false with protocol = \"tcp\": GELF compresses over UDP only",
        "line 4: events.gelf.max_message_len: expected 100 to 65000, got 99",
        "line 3: events.nanomsg.address: expected tcp://HOST:PORT or ipc:///PATH, got \"ws://a:1\"",
        "line 4: events.nanomsg.mode: expected \"connect\" or \"bind\", got \"both\"",
    ];
    assert_eq!(found.concat(), expected);
}
