#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use portunus_api::FileMode;
use portunus_core::Right;

use super::*;

const SAMPLE: &str = include_str!("../../../../packaging/portunus.toml");

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = Config::parse(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

#[test]
fn a_port_that_is_given_twice_is_told_with_both_keys() {
    for (text, expected) in [
        (
            "[http]\nport = 8188",
            "line 2: http.port: TCP port 8188 is that of websocket.port, too",
        ),
        (
            "[http]\nport = 7088",
            "line 2: http.port: TCP port 7088 is that of admin.port, too",
        ),
        (
            "[http]\nport = 80\n[sip]\nlisten = [\"udp:80\", \"ws:80\"]",
            "line 4: sip.listen: TCP port 80 is that of http.port, too",
        ),
        (
            "[http]\nhttps = true\nhttps_port = 8088\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
            "line 3: http.https_port: TCP port 8088 is that of http.port, too",
        ),
        (
            "[http]\nmetrics_bind = \"127.0.0.1:8188\"",
            "line 2: http.metrics_bind: TCP port 8188 is that of websocket.port, too",
        ),
        (
            "[media]\nworkers = 4\nport = 5058\n[sip]\nlisten = [\"udp:5060\"]",
            "line 5: sip.listen: UDP port 5060 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 4\none_port = true\nport = 5060\n[sip]\nlisten = [\"udp:5060\"]",
            "line 6: sip.listen: UDP port 5060 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 4\nice_tcp = true\nice_tcp_port = 8085",
            "line 4: media.ice_tcp_port: TCP port 8088 is that of http.port, too",
        ),
        (
            "[sip]\nlisten = [\"udp:5060\", \"tcp:5060\", \"ws:5060\"]",
            "line 2: sip.listen: TCP port 5060 is there twice",
        ),
        (
            "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiopt = 111\naudiocodec = \"opus\"\n\
             [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiopt = 111\naudiocodec = \"opus\"",
            "line 12: streaming.mountpoint.audioport: UDP port 5002 is there twice",
        ),
        (
            "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\nmedia = [{ type = \"video\", mid = \"v\", port = 10000, codec = \"vp8\" }]\n\
             [media]\nworkers = 1",
            "line 4: streaming.mountpoint.media[0].port: UDP port 10000 is that of media.port, too",
        ),
        (
            "[media]\nworkers = 2\nport = 20000\n[nosip]\nrtp_port_range = \"20000-20001\"",
            "line 5: nosip.rtp_port_range: media.port leaves no pair of UDP ports in 20000-20001",
        ),
    ] {
        assert_eq!(mistakes(text), [expected], "{text}");
    }
}

#[test]
fn ports_that_can_be_had_side_by_side_are_no_mistake() {
    for text in [
        // What is off listens nowhere.
        "[http]\nport = 8188\n[websocket]\nenabled = false",
        "[http]\nhttps_port = 8088",
        "[plugins.sip]\nenabled = false\n[sip]\nlisten = [\"udp:5060\", \"ws:8088\"]",
        // UDP beside TCP, and different addresses.
        "[sip]\nlisten = [\"udp:8088\"]",
        "[http]\nbind = [\"192.0.2.1\"]\nport = 80\n[websocket]\nbind = [\"192.0.2.2\"]\nport = 80",
        "[http]\nbind = [\"192.0.2.1\"]\nport = 7088",
        // Groups are listened to side by side, and port 0 is any.
        "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiomcast = \"239.1.2.3\"\naudiopt = 111\naudiocodec = \"opus\"\n\
         [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 5002\naudiomcast = \"239.1.2.3\"\naudiopt = 111\naudiocodec = \"opus\"",
        "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 0\naudiopt = 111\naudiocodec = \"opus\"\n\
         [[streaming.mountpoint]]\nname = \"b\"\ntype = \"rtp\"\naudio = true\naudioport = 0\naudiopt = 111\naudiocodec = \"opus\"",
        "[plugins.streaming]\nenabled = false\n[[streaming.mountpoint]]\nname = \"a\"\ntype = \"rtp\"\naudio = true\naudioport = 8088\naudiopt = 111\naudiocodec = \"opus\"",
        // Calls leave out what is taken.
        "[media]\nport = 20000\n[sip]\nrtp_port_range = \"20000-30000\"",
        "[http]\nport = 0\n[websocket]\nport = 0",
        // All workers together have one.
        "[media]\nworkers = 4\none_port = true\nport = 5058\nice_tcp = true\nice_tcp_port = 8085\n[sip]\nlisten = [\"udp:5060\"]",
    ] {
        assert_eq!(Config::parse(text).err(), None, "{text}");
    }
    // Where the administrators' port is on all addresses it is not.
    let all = "[http]\nbind = [\"192.0.2.1\"]\nport = 7088\n[admin]\nbind = [\"0.0.0.0\"]";
    assert_eq!(mistakes(all).len(), 1);
}

/// What a file says, in full.
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
    let reference = include_str!("../../../../docs/configuration.md");
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
            "[http]\nmetrics_bind = 9100",
            "http.metrics_bind: expected an address with a port such as \"127.0.0.1:9100\", got 9100",
        ),
        (
            "[unix]\nmode = 660",
            "unix.mode: expected octal permissions in quotes such as \"660\", got 660",
        ),
        (
            "[unix]\nkind = \"stream\"",
            "unix.kind: expected \"seqpacket\" or \"datagram\", got \"stream\"",
        ),
        (
            "[tls]\nkey = []",
            "tls.key: expected text in quotes, got a list",
        ),
        (
            "[server]\noutgoing_networks = [7]",
            "server.outgoing_networks: expected a network in quotes such as \"192.0.2.0/24\", got 7",
        ),
        (
            "[server]\ntokens = [\"t\"]",
            "server.tokens: expected { token = \"…\", plugins = [\"…\"], rights = [\"…\"] }, got \"t\"",
        ),
        (
            "[whip]\nconnect_timeout = -1",
            "whip.connect_timeout: expected seconds from 0 to 31622400, got -1",
        ),
        (
            "[unix]\nmode = \"999\"",
            "unix.mode: expected octal permissions",
        ),
        (
            "[http]\nhttps = true",
            "line 2: http.https: needs tls.certificate and tls.key",
        ),
        (
            "[tls]\n[websocket]\nwss = true",
            "line 3: websocket.wss: needs tls.certificate and tls.key",
        ),
        (
            "[admin]\nhttps = true",
            "admin.https: needs tls.certificate and tls.key",
        ),
        (
            "[admin]\nwss = true\n[http]\nhttps = false",
            "admin.wss: needs tls.certificate and tls.key",
        ),
        (
            "[http]\nhttps = true\n[tls]\nkey = \"k.pem\"",
            "line 4: tls.key: needs tls.certificate",
        ),
        (
            "[http]\nhttps = true\n[tls]\ncertificate = \"c.pem\"",
            "line 4: tls.certificate: needs tls.key",
        ),
        (
            "[http]\nhttps = true\n[tls]\ncertificate = 1",
            "line 4: tls.certificate: expected a path in quotes",
        ),
        (
            "[log]\nfilter = \"inof\"",
            "log.filter: \"inof\" is no level",
        ),
        (
            "[server]\ntrusted_proxies = [\"nginx\"]",
            "server.trusted_proxies: expected a network such as",
        ),
        (
            "[http]\nmetrics_networks = [\"10.0.0.1/8\"]",
            "http.metrics_networks: expected 10.0.0.0/8, got",
        ),
        (
            "[http]\nframe_ancestors = [\"https://a.example.org; script-src *\"]",
            "http.frame_ancestors: expected \"*\" or origins",
        ),
        (
            "[http]\nframe_ancestors = [\"https://a.example.org/\"]",
            "http.frame_ancestors: expected \"*\" or origins",
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
            "[media]\nstun_server = \"stun:stun.example.org\"",
            "media.stun_server: ",
        ),
        (
            "[media]\nturn_server = \"turn.example.org\"",
            "media.turn_server: ",
        ),
        (
            "[media]\nturn_server = \"turn:turn.example.org\"",
            "media.turn_server: needs media.turn_user and media.turn_password",
        ),
        (
            "[media]\nturn_user = \"media\"",
            "media.turn_user: needs media.turn_server",
        ),
        (
            "[media]\nturn_password = \"secret\"",
            "media.turn_password: needs media.turn_user",
        ),
        (
            "[media]\nturn_rest_api = \"ftp://api.example.org\"",
            "media.turn_rest_api: expected an http:// or https:// URL",
        ),
        (
            "[media]\nturn_server = \"turn:a.example\"\nturn_user = \"u\"\nturn_rest_api = \"https://a.example\"",
            "media.turn_rest_api: names the server",
        ),
        (
            "[media]\nturn_rest_api_key = \"key\"",
            "media.turn_rest_api_key: needs media.turn_rest_api",
        ),
        (
            "[media]\nturn_rest_api_timeout = 0",
            "media.turn_rest_api_timeout: ",
        ),
        (
            "[media]\nforce_relay = true",
            "media.force_relay: needs media.turn_server or media.turn_rest_api",
        ),
        (
            "[media]\nice_lite = true\nturn_rest_api = \"https://a.example\"",
            "cannot be used with media.ice_lite",
        ),
        (
            "[media]\nannounced = [\"1.2.3\"]",
            "media.announced: \"1.2.3\" is neither",
        ),
        ("[log]\nfilter = \"a=b=c\"", "log.filter: "),
        (
            "[server]\ntokens = [{ token = \"\" }]",
            "server.tokens: expected text in quotes for token",
        ),
        (
            "[server]\ntokens = [{ token = \"t\", rights = [\"all\"] }]",
            "server.tokens: expected one of \"create\", \"record\", \"forward\", \"administer\", got \"all\"",
        ),
        (
            "[jwt]\nsecret = \"too short\"",
            "jwt.secret: expected 32 bytes at least",
        ),
        (
            "[jwt]\nleeway = 601",
            "jwt.leeway: expected 0 to 600, got 601",
        ),
        (
            "[jwt]\njwks = \"keys.json\"",
            "jwt.jwks: unknown key; did you mean jwt.jwks_file?",
        ),
        (
            "[server]\nrequest_burst = 0",
            "server.request_burst: expected 1 to 1000000, got 0",
        ),
        (
            "[server]\nmax_text = 63",
            "server.max_text: expected 64 to 67108864, got 63",
        ),
        (
            "[recording]\nfolders = [\"/a\", \"\"]",
            "recording.folders: expected paths in quotes",
        ),
        (
            "[server]\ntokens = [{ plugins = [] }]",
            "server.tokens: token is missing",
        ),
    ] {
        let found = mistakes(text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text:?}: {found:?}"
        );
    }
}

#[test]
fn all_mistakes_are_told_in_one_run_whoever_reads_their_section() {
    let text = r#"[server]
server_name = 1
request_rate = "many"
max_text = 0
[media]
workers = 2000
twcc_period_ms = 1
certificate = 5
key = "k.pem"
[plugins.streaming]
enabled = "yes"
[streaming]
adminkey = "x"
string_ids = 1
[[streaming.mountpoint]]
name = "a"
[[streaming.mountpoint]]
name = "b"
type = "rtmp"
[videoroom]
save = 7
[[videoroom.room]]
room = -1
[video_room]
"#;
    let expected = [
        "line 2: server.server_name: expected text in quotes, got 1",
        "line 3: server.request_rate: expected a whole number, got \"many\"",
        "line 4: server.max_text: expected 64 to 67108864, got 0",
        "line 6: media.workers: expected 0 to 1024, got 2000",
        "line 7: media.twcc_period_ms: expected 10 to 1000, got 1",
        // That the key has no certificate follows from this.
        "line 8: media.certificate: expected a path in quotes, got 5",
        "line 11: plugins.streaming.enabled: expected true or false, got \"yes\"",
        "line 13: streaming.adminkey: unknown key; did you mean streaming.admin_key?",
        "line 14: streaming.string_ids: expected true or false, got 1",
        "line 15: streaming.mountpoint.type: type is missing",
        "line 19: streaming.mountpoint.type: there are rtp, live, ondemand, rtsp and whip",
        "line 21: videoroom.save: expected a path in quotes, got 7",
        "line 23: videoroom.room.room: expected a positive integer",
        "line 24: video_room: unknown key; did you mean videoroom?",
    ];
    assert_eq!(mistakes(text), expected);
}

#[test]
fn mistakes_in_the_sections_of_brokers_are_named() {
    let text = "[mqtt]\nurl = \"localhost:1883\"\nmqtt_version = \"3.1\"\npublish_qos = 3\npublish_topic = \"a/#\"\n\
        client_id = \"\"\n[rabbitmq]\nport = 0\njanus_exchange_type = \"fan\"\nto_janus = \"\"\n\
        to_janus_admin = \"to-janus\"\ntls_client_key = \"k\"\n[nats]\nurl = \"localhost\"\nfrom_janus = \"a b\"\n\
        password = \"p\"\nto_janus_admin = \"to-janus\"\n[events.mqtt]\nqos = 7\ntopik = \"x\"\n\
        [events.nats]\nsubject = \"a..b\"\n[events.rabbitmq]\nroute_key = \"\"\n";
    let found = mistakes(text);
    for (line, part) in [
        (2, "mqtt.url: expected a URL such as"),
        (3, "mqtt.mqtt_version: expected"),
        (4, "mqtt.publish_qos: expected 0 to 2, got 3"),
        (5, "mqtt.publish_topic: expected a topic without"),
        (8, "rabbitmq.port: expected 1 to 65535, got 0"),
        (9, "rabbitmq.janus_exchange_type: expected"),
        (10, "rabbitmq.to_janus: expected 1 to 255 bytes"),
        (12, "rabbitmq.tls_client_cert: tls_client_cert and"),
        (14, "nats.from_janus: expected words"),
        (15, "nats.password: username and password"),
        (16, "nats.to_janus_admin: expected a subject of its own"),
        (18, "events.mqtt.qos: expected 0 to 2, got 7"),
        (
            19,
            "events.mqtt.topik: unknown key; did you mean events.mqtt.topic?",
        ),
        (21, "events.nats.subject: expected words"),
        (23, "events.rabbitmq.route_key: expected 1 to 255 bytes"),
    ] {
        let told = found.iter().any(|it| it.contains(part));
        assert!(told, "{line}: {part} is not in {found:#?}");
    }
    assert!(
        found
            .iter()
            .any(|it| it.starts_with("line 4: mqtt.publish_qos")),
        "{found:#?}"
    );
}

#[test]
fn a_plugin_without_keys_has_no_section() {
    assert_eq!(
        mistakes("[echotest]\n"),
        [
            "line 1: echotest: unknown key; there are server, jwt, media, turn, audio, events, http, whip, websocket, unix, admin, mqtt, rabbitmq, \
          nats, tls, log, recording, plugins, streaming, videoroom, audiobridge, textroom, voicemail, recordplay, nosip, sip"
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
    let text = include_str!("../../../../docs/configuration.md");
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
        let lists = ["room", "mountpoint"];
        let header = format!("[{section}]\n");
        let body = written.split_once(&header).unwrap().1;
        let body = body.split("\n[").next().unwrap();
        let is_there = body
            .lines()
            .any(|line| line.starts_with(&format!("{key} = ")));
        assert!(is_there || lists.contains(&key), "{section}.{key}");
    }
}
