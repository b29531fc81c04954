#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

const SAMPLE: &str = include_str!("../../../../packaging/portunus.toml");

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = Config::parse(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
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
    assert_eq!(Config::parse("").unwrap(), Config::default());
    assert_eq!(Config::parse(SAMPLE).unwrap(), Config::default());
}

#[test]
fn the_sample_has_every_key_with_its_default_and_in_order() {
    let sample = uncommented_sample();
    assert_eq!(Config::parse(&sample).unwrap(), Config::default());
    let keys = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        lines
            .map(|l| l.split(" = ").next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(keys(&sample), keys(&Config::default().to_toml()));
}

#[test]
fn the_samples_mountpoints_are_what_they_say() {
    let examples = SAMPLE
        .lines()
        .skip_while(|l| *l != "# [[streaming.mountpoint]]");
    let examples = examples.take_while(|line| line.starts_with('#'));
    let lines = examples.map(|line| line.strip_prefix("# ").unwrap_or_default());
    let text: Vec<&str> = lines.collect();
    // The only key of these that is read as bytes.
    let key = "WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN";
    let text = text
        .join("\n")
        .replace("srtpcrypto = \"…\"", &format!("srtpcrypto = \"{key}\""));
    let config = Config::parse(&text).unwrap();
    let mountpoints = config.streaming.mountpoints.iter();
    let types = mountpoints.map(|it| (it.name(), it.to_members()["type"].clone()));
    let expected = [
        ("studio", "rtp"),
        ("stage", "whip"),
        ("radio", "live"),
        ("film", "ondemand"),
        ("gate", "rtsp"),
    ];
    assert!(
        types.eq(expected.map(|(name, kind)| (name, kind.into()))),
        "{text}"
    );
    // Each key that these types have stands in an example, but for those that are deprecated.
    for key in [
        "filename",
        "audio",
        "video",
        "audiopt",
        "audiocodec",
        "audiofmtp",
        "videopt",
        "videocodec",
        "videofmtp",
        "url",
        "rtsp_user",
        "rtsp_pwd",
        "rtsp_transport",
        "rtspiface",
        "rtsp_failcheck",
        "rtsp_reconnect_delay",
        "rtsp_session_timeout",
        "rtsp_timeout",
        "rtsp_conn_timeout",
        "rtsp_quirk",
        "rtsp_notify_changes",
    ] {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{key} = "))),
            "{key}"
        );
    }
}

#[test]
fn the_reference_documents_every_key() {
    let reference = include_str!("../../../../docs/configuration.md");
    let printed = Config::default().to_toml();
    for line in printed.lines().filter(|line| !line.is_empty()) {
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
        tokens = [{ token = "t1", plugins = ["janus.plugin.echotest"] }, { token = "t2" }]
        rid_order = "lmh"
        outgoing_networks = ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"]
        [media]
        announced = ["10.0.0.5=>203.0.113.7:20000", "media.example.org"]
        certificate = "/c.pem"
        key = "/k.pem"
        [http]
        bind = ["127.0.0.1", "::1"]
        metrics_bind = "[::1]:9100"
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
        config.media.certificate,
        Some(("/c.pem".into(), "/k.pem".into()))
    );
    assert_eq!(config.api.http.request_timeout, Duration::from_secs(3));
    assert_eq!(config.outgoing.0.len(), 3);
    assert!(!config.videocall.enabled);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
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
        unlike[0].contains("there are server, media, http"),
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
fn values_out_of_range_are_mistakes() {
    for (text, expected) in [
        (
            "[http]\nport = 65536",
            "http.port: expected a whole number from 0 to 65535, got 65536",
        ),
        (
            "[http]\nmax_body = 1",
            "http.max_body: expected 1024 to 67108864, got 1",
        ),
        (
            "[http]\nlong_poll = 0",
            "http.long_poll: expected 1 to 600, got 0",
        ),
        (
            "[http]\nbase_path = \"janus/\"",
            "http.base_path: expected a path",
        ),
        (
            "[http]\nbase_path = \"/a{b}\"",
            "http.base_path: expected a path",
        ),
        (
            "[http]\nbase_path = \"/whip\"",
            "http.base_path: \"/whip\" is taken",
        ),
        (
            "[http]\nmetrics_bind = \"9100\"",
            "http.metrics_bind: expected an address with a port",
        ),
        (
            "[server]\noutgoing_networks = [\"10.0.0.1/8\"]",
            "server.outgoing_networks: expected 10.0.0.0/8, got",
        ),
        (
            "[whip]\nauthorization = \"none\"",
            "whip.authorization: expected \"api\" or \"plugin\"",
        ),
        (
            "[whip]\nice_servers = [{ url = \"http://x\" }]",
            "whip.ice_servers: expected a URL that starts with stun:",
        ),
        (
            "[whip]\nice_servers = [{ url = \"turn:t.example.org\" }]",
            "whip.ice_servers: a TURN server needs a username",
        ),
        (
            "[whip]\nallow_origins = [\"https://a.example.org/\"]",
            "whip.allow_origins: expected \"*\" or origins",
        ),
        (
            "[unix]\nmode = \"999\"",
            "unix.mode: expected octal permissions",
        ),
        (
            "[media]\nkey = \"k.pem\"",
            "media.key: needs media.certificate",
        ),
        (
            "[media]\ncertificate = \"c.pem\"",
            "media.certificate: needs media.key",
        ),
        (
            "[media]\nice_tcp_port = 443",
            "media.ice_tcp_port: needs media.ice_tcp",
        ),
        (
            "[media]\nice_tcp = false\nice_tcp_port = 443",
            "media.ice_tcp_port: needs media.ice_tcp",
        ),
        (
            "[media]\nannounced = [\"1.2.3\"]",
            "media.announced: \"1.2.3\" is neither",
        ),
        ("[log]\nfilter = \"a=b=c\"", "log.filter: "),
        (
            "[server]\ntokens = [{ plugins = [] }]",
            "server.tokens: expected { token",
        ),
    ] {
        let found = mistakes(text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text:?}: {found:?}"
        );
    }
}

const MOUNTPOINTS: &str = r#"
[streaming]
rtp_port_range = "20001-30000"
[[streaming.mountpoint]]
name = "hall"
type = "rtp"
id = 7
media = [{ type = "audio", mid = "a", port = 5002, pt = 111, codec = "opus" }]
[[streaming.mountpoint]]
name = "stage"
type = "whip"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"
"#;

#[test]
fn mountpoints_are_read_and_printed() {
    let config = Config::parse(MOUNTPOINTS).unwrap();
    let names: Vec<_> = config
        .streaming
        .mountpoints
        .iter()
        .map(|m| m.name())
        .collect();
    assert_eq!(names, ["hall", "stage"]);
    assert_eq!(config.streaming.rtp_port_range.first(), 20_002);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
}

#[test]
fn mistakes_in_mountpoints_have_their_lines() {
    let line = |mistake: &str, line: &str| {
        let text = MOUNTPOINTS.replace(line, mistake);
        assert_ne!(text, MOUNTPOINTS);
        mistakes(&text).join("; ")
    };
    for (mistake, replaced, expected) in [
        (
            "type = \"rtmp\"",
            "type = \"rtp\"",
            "line 6: streaming.mountpoint.type: there are rtp, live, ondemand, rtsp and whip",
        ),
        (
            "id = \"x\"",
            "id = 7",
            "line 7: streaming.mountpoint.id: expected a positive integer",
        ),
        (
            "",
            "name = \"stage\"",
            "line 9: streaming.mountpoint.name: name is missing",
        ),
        (
            "name = \"hall\"",
            "name = \"stage\"",
            "line 10: streaming.mountpoint.name: another mountpoint has this name",
        ),
        (
            "mid = 3",
            "mid = \"v\"",
            "line 14: streaming.mountpoint.media[0].mid: expected a string",
        ),
        (
            "",
            "mid = \"v\"",
            "line 12: streaming.mountpoint.media[0].mid: mid is missing",
        ),
        (
            "rtp_port_range = 5",
            "rtp_port_range = \"20001-30000\"",
            "line 3: streaming.rtp_port_range: expected ports in quotes such as \"10000-60000\", got 5",
        ),
    ] {
        assert_eq!(line(mistake, replaced), expected);
    }
    let unknown = line("mid = \"v\"\ncolour = 1", "mid = \"v\"");
    assert!(
        unknown.starts_with("line 15: streaming.mountpoint.media[0].colour: unknown key"),
        "{unknown}"
    );
    assert_eq!(
        mistakes("[streaming]\nmountpoint = 3\n"),
        [
            "line 2: streaming.mountpoint: expected sections, each written [[streaming.mountpoint]], got 3"
        ]
    );
}

const ROOMS: &str = r#"
[videoroom]
admin_key = "k"
[[videoroom.room]]
room = 1234
description = "Demo"
publishers = 6
[[videoroom.room]]
room = 5678
videocodec = "vp9,vp8"
"#;

#[test]
fn rooms_are_read_and_printed() {
    let config = Config::parse(ROOMS).unwrap();
    let ids: Vec<_> = config
        .videoroom
        .rooms
        .iter()
        .map(|r| r.id().to_string())
        .collect();
    assert_eq!(ids, ["1234", "5678"]);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
}

#[test]
fn mistakes_in_rooms_have_their_lines() {
    for (mistake, replaced, expected) in [
        (
            "room = 1234",
            "room = 5678",
            "line 9: videoroom.room.room: another room has this id",
        ),
        (
            "room = \"a\"",
            "room = 1234",
            "line 5: videoroom.room.room: expected a positive integer",
        ),
        (
            "",
            "room = 1234",
            "line 4: videoroom.room.room: room is missing",
        ),
        (
            "videocodec = \"mpeg4\"",
            "videocodec = \"vp9,vp8\"",
            "line 10: videoroom.room.videocodec: unsupported codec",
        ),
    ] {
        assert_eq!(mistakes(&ROOMS.replace(replaced, mistake)), [expected]);
    }
    let unknown = mistakes(&ROOMS.replace("publishers", "publisher")).join("");
    assert!(
        unknown.starts_with("line 7: videoroom.room.publisher: unknown key"),
        "{unknown}"
    );
}
