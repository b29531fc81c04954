//! Mistakes in values.

use super::*;

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
