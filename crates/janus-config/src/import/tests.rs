//! Typical folders of Janus, and their translation.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;
use toml::{Table, Value};

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Returns the draft as a table, and its remarks without the path of the folder.
fn imported(files: &[(&str, &str)]) -> (Table, Vec<String>) {
    let folder = folder(files);
    let draft = import(&Folder::read(folder.path()).unwrap());
    let text = draft.text();
    let table = text
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let path = format!("{}/", folder.path().display());
    let remarks = draft.remarks().iter();
    let remarks = remarks
        .map(|it| it.to_string().replace(&path, ""))
        .collect();
    (table, remarks)
}

fn table(text: &str) -> Table {
    text.parse().unwrap()
}

#[test]
fn keys_of_janus_become_keys_of_ours() {
    let (table_of_all, remarks) = imported(&[
        (
            "janus.jcfg",
            r#"general: {
                api_secret = "s"
                debug_level = 5
                token_auth = "yes"
                candidates_timeout = 0
               }
               media: { no_media_timer = 2; rtp_port_range = "20000-40000" }
               nat: { nat_1_1_mapping = "203.0.113.7, 198.51.100.7"; stun_server = "stun.example.org"; stun_port = 19302; ice_enforce_list = "10.0.0.5,::1" }
               plugins: { disable = "libjanus_sip.so,libjanus_lua.so" }"#,
        ),
        (
            "janus.transport.http.jcfg",
            "general: { http = true; base_path = \"/j/\"; port = 80 }",
        ),
        (
            "janus.transport.websockets.jcfg",
            "general: { ws = true; ws_ip = \"127.0.0.1\" }",
        ),
        (
            "janus.plugin.sip.jcfg",
            "general: { sips_certs_dir = \"/etc/sip/\"; events = false }",
        ),
    ]);
    let expected = table(
        r#"
        [server]
        api_secret = "s"
        token_auth = true
        [media]
        no_media_ms = 2000
        port = 20000
        announced = ["203.0.113.7", "198.51.100.7"]
        stun_server = "stun.example.org:19302"
        bind = ["10.0.0.5", "::1"]
        [http]
        enabled = true
        base_path = "/j"
        port = 80
        [websocket]
        enabled = true
        bind = ["127.0.0.1"]
        [admin]
        enabled = false
        [log]
        filter = "debug"
        [plugins.sip]
        enabled = false
        events = false
        [sip]
        tls_certificate = "/etc/sip/agent.pem"
        tls_key = "/etc/sip/agent.pem"
        tls_cacert = "/etc/sip/cafile.pem"
        "#,
    );
    assert_eq!(table_of_all, expected);
    let lua =
        "janus.jcfg:9: plugins.disable: not needed: libjanus_lua.so: there is no such plugin here";
    assert_eq!(remarks, [lua]);
}

#[test]
fn a_stun_server_is_one_key() {
    for (nat, expected) in [
        ("stun_server = \"stun.example.org\"", "stun.example.org"),
        (
            "stun_server = \"stun.example.org\"; stun_port = 3478",
            "stun.example.org",
        ),
        (
            "stun_server = \"203.0.113.9\"; stun_port = 3479",
            "203.0.113.9:3479",
        ),
        (
            "stun_server = \"2001:db8::9\"; stun_port = 3479",
            "[2001:db8::9]:3479",
        ),
    ] {
        let file = format!("nat: {{ {nat}; }}");
        let (all, remarks) = imported(&[("janus.jcfg", &file)]);
        let found = all.get("media").and_then(|it| it.get("stun_server"));
        assert_eq!(found.and_then(Value::as_str), Some(expected), "{remarks:?}");
        assert!(remarks.is_empty(), "{remarks:?}");
    }
}

#[test]
fn a_turn_server_is_one_key_with_its_login() {
    let login = "turn_user = \"janus\"; turn_pwd = \"secret\"";
    for (nat, expected) in [
        ("", "turn:turn.example.org"),
        (
            "turn_port = 3479; turn_type = \"udp\";",
            "turn:turn.example.org:3479",
        ),
        (
            "turn_type = \"tcp\";",
            "turn:turn.example.org?transport=tcp",
        ),
        (
            "turn_port = 443; turn_type = \"tls\";",
            "turns:turn.example.org:443",
        ),
        ("turn_type = \"tls\";", "turns:turn.example.org:3478"),
    ] {
        let file = format!("nat: {{ turn_server = \"turn.example.org\"; {nat} {login} }}");
        let (all, remarks) = imported(&[("janus.jcfg", &file)]);
        let found = |key| all.get("media").and_then(|it| it.get(key)?.as_str());
        assert_eq!(found("turn_server"), Some(expected), "{remarks:?}");
        assert_eq!(found("turn_user"), Some("janus"));
        assert_eq!(found("turn_password"), Some("secret"));
        assert!(remarks.is_empty(), "{remarks:?}");
    }
    let file = "nat: { turn_rest_api = \"https://api.example.org/turn\"; turn_rest_api_key = \"key\"; \
        turn_rest_api_method = \"POST\"; turn_rest_api_timeout = 20; }";
    let (all, remarks) = imported(&[("janus.jcfg", file)]);
    let media = table(
        r#"
        turn_rest_api = "https://api.example.org/turn"
        turn_rest_api_key = "key"
        turn_rest_api_method = "POST"
        turn_rest_api_timeout = 20
        "#,
    );
    assert_eq!(all.get("media"), Some(&Value::Table(media)), "{remarks:?}");
}

#[test]
fn what_janus_has_off_stays_off() {
    let core = (
        "janus.jcfg",
        "transports: { disable = \"libjanus_websockets.so\" }",
    );
    let sockets = (
        "janus.transport.websockets.jcfg",
        "general: { ws = true; wss = true }",
    );
    let (table, _) = imported(&[core, sockets]);
    for section in ["http", "websocket", "admin"] {
        assert_eq!(table[section]["enabled"], Value::from(false), "{section}");
    }
    // A folder with only a plugin's file has no information on transports.
    let (table, remarks) = imported(&[("janus.plugin.echotest.jcfg", "general: {}")]);
    assert!(table.is_empty() && remarks.is_empty());
    // An event handler requires `events.broadcast` too.
    let handler = (
        "janus.eventhandler.wsevh.jcfg",
        "general: { enabled = true }",
    );
    let (table, remarks) = imported(&[("janus.jcfg", "events: { broadcast = false }"), handler]);
    assert!(!table.contains_key("events"));
    assert!(
        remarks[0].contains("events.broadcast is off"),
        "{remarks:?}"
    );
    let (table, _) = imported(&[("janus.jcfg", "events: { broadcast = true }"), handler]);
    assert_eq!(table["events"]["websocket"]["enabled"], Value::from(true));
}

#[test]
fn a_server_is_never_reachable_from_more_addresses_than_with_janus() {
    let (table, remarks) = imported(&[(
        "janus.transport.http.jcfg",
        "general: {\n http = true\n ip = \"127.0.0.1\"\n https = true\n secure_interface = \"eth0\"\n}",
    )]);
    assert_eq!(table["http"]["bind"], Value::from(vec!["127.0.0.1"]));
    assert_eq!(
        remarks,
        [
            "janus.transport.http.jcfg:4: general.https: it listens on the addresses of http.bind now, and with Janus on all",
            "janus.transport.http.jcfg:5: general.secure_interface: name the interface's addresses in http.bind",
        ]
    );
}

#[test]
fn a_server_on_an_interface_is_named_since_it_listens_on_all_addresses_now() {
    let text = "general: { ws = true; ws_interface = \"eth0\" }";
    let (table, remarks) = imported(&[("janus.transport.websockets.jcfg", text)]);
    assert!(!table["websocket"].as_table().unwrap().contains_key("bind"));
    let expected = "janus.transport.websockets.jcfg:1: general.ws_interface: name the interface's addresses in \
                    websocket.bind: without them the server listens on all addresses";
    assert_eq!(remarks, [expected]);
}

#[test]
fn rooms_and_mountpoints_come_over_with_their_comments() {
    let (table_of_all, remarks) = imported(&[
        (
            "janus.plugin.videoroom.jcfg",
            "general: { string_ids = true }\n# The big one\nroom-hall: {\n  secret = 1234  # Ask Ann\n  dummy_streams = ( { codec = \"vp8\" } )\n  video_svc = true\n}\n",
        ),
        (
            "janus.plugin.audiobridge.jcfg",
            "room-7: { sampling_rate = 16000; groups = [\"a\", \"b\"] }\nroom-x: {}\n",
        ),
        (
            "janus.plugin.streaming.jcfg",
            "cam: { type = \"rtp\"; id = 0x10; media = ( { type = \"audio\"; mid = \"a\"; port = 5002; pt = 111; codec = \"opus\" },\n { type = \"data\"; mid = \"d\"; port = 0; codec = 7; } ) }\n\
             bad: { media = ( { what = 1 } ); nonsense = 2 }",
        ),
        ("janus.plugin.textroom.jcfg", "room-1: { history = \"5\" }"),
    ]);
    let expected = table(
        r#"
        [videoroom]
        string_ids = true
        [[videoroom.room]]
        room = "hall"
        secret = "1234"
        dummy_streams = [{ codec = "vp8" }]
        [[audiobridge.room]]
        room = 7
        sampling_rate = 16000
        groups = ["a", "b"]
        [[textroom.room]]
        room = 1
        history = 5
        [[streaming.mountpoint]]
        name = "cam"
        type = "rtp"
        id = 16
        media = [
            { type = "audio", mid = "a", port = 5002, pt = 111, codec = "opus" },
            { type = "data", mid = "d", port = 0, codec = "7" },
        ]
        [[streaming.mountpoint]]
        name = "bad"
        "#,
    );
    assert_eq!(table_of_all, expected);
    assert_eq!(
        remarks,
        [
            "janus.plugin.audiobridge.jcfg:2: room-x: expected room-NUMBER: ids are numbers without string_ids",
            "janus.plugin.streaming.jcfg:3: bad.media: line 3: what is not known",
            "janus.plugin.streaming.jcfg:3: bad.nonsense: neither Janus 1.4 nor Portunus has this",
            "janus.plugin.videoroom.jcfg:6: room-hall.video_svc: not needed: layers of VP9 and AV1 are always chosen from where a publisher sends them",
        ]
    );
}

#[test]
fn rooms_may_record_where_they_did_with_janus() {
    let (table_of_all, _) = imported(&[
        (
            "janus.plugin.videoroom.jcfg",
            "room-1: { rec_dir = \"/srv/rec\" }\nroom-2: { rec_dir = \"here\" }",
        ),
        (
            "janus.plugin.audiobridge.jcfg",
            "room-1: { record_file = \"/srv/mix/a.wav\"; mjrs_dir = \"/srv/rec\" }",
        ),
    ]);
    let folders = &table_of_all["recording"]["folders"];
    assert_eq!(folders, &Value::from(vec!["/srv/mix", "/srv/rec"]));
}

#[test]
fn comments_of_people_are_kept_and_stay_comments() {
    let file = (
        "janus.plugin.videoroom.jcfg",
        "/* The big one\r[x]\u{85}y = 1 */\nroom-1: {\n  secret = \"a\\nb\"  # Ask Ann\n}\n",
    );
    let folder = folder(&[file]);
    let text = import(&Folder::read(folder.path()).unwrap()).text();
    let body = text.split_once("\n\n").unwrap().1;
    let expected = "# The big one [x] y = 1\n[[videoroom.room]]\nroom = 1\n# Ask Ann\nsecret = \"\"\"\na\nb\"\"\"\n";
    assert_eq!(body, expected);
}

#[test]
fn each_key_that_was_not_taken_is_named_with_a_reason() {
    let (_, remarks) = imported(&[
        (
            "janus.jcfg",
            "general: {\n plugins_folder = \"/x\"\n session_timeout = \"soon\"\n}\nnat: {\n keep_private_host = true\n \
             stun_server = \"\"\n ice_ignore_list = \"vmnet\"\n ice_enforce_list = \"eth0\"\n}\nwhat: {}\nloose = 1\n",
        ),
        (
            "janus.transport.nanomsg.jcfg",
            "general: { enabled = true }",
        ),
        ("janus.plugin.mine.jcfg", "general: {}"),
        ("janus.plugin.nosip.jcfg", "general: {}"),
        ("janus.plugin.nosip.cfg", "[general]"),
    ]);
    let expected = [
        "janus.jcfg:3: general.session_timeout: expected a whole number, found text in quotes",
        "janus.jcfg:6: nat.keep_private_host: an announced address takes the place of the bound one: to offer both, name both in \
         media.announced",
        "janus.jcfg:9: nat.ice_enforce_list: eth0 is no IP address: name the addresses that are meant (`ip address` lists them)",
        "janus.jcfg:11: what: neither Janus 1.4 nor Portunus has this",
        "janus.jcfg:12: loose: neither Janus 1.4 nor Portunus has this",
        "janus.plugin.mine.jcfg:1: this is no file of Janus 1.4: nothing in it was taken",
        "janus.transport.nanomsg.jcfg:1: the API is not served by nanomsg: programs on this machine can use [unix], \
         others [websocket], [mqtt], [rabbitmq] or [nats]",
        "janus.jcfg:2: general.plugins_folder: not needed: plugins, transports and event handlers are part of the program",
        "janus.plugin.nosip.cfg:1: not needed: the .jcfg of the same name takes its place, as with Janus",
    ];
    assert_eq!(remarks, expected);
}

#[test]
fn files_of_old_versions_come_over() {
    let (table_of_all, remarks) = imported(&[
        (
            "janus.cfg",
            "; All of it\n[general]\nadmin_secret = s ; changed\n[nat]\nice_lite = yes\nignore_mdns = yes\n",
        ),
        (
            "janus.plugin.videoroom.cfg",
            "[1234]\ndescription = Demo \\; Room\npublishers = 6\nis_private = no\n",
        ),
        (
            "janus.plugin.streaming.cfg",
            "[radio]\ntype = live\nfilename = /a.opus\naudio = yes\nvideo = no\n",
        ),
    ]);
    let expected = table(
        r#"
        [http]
        enabled = false
        [websocket]
        enabled = false
        [admin]
        secret = "s"
        enabled = false
        [media]
        ice_lite = true
        mdns = false
        [[videoroom.room]]
        room = 1234
        description = "Demo ; Room"
        publishers = 6
        is_private = false
        [[streaming.mountpoint]]
        name = "radio"
        type = "live"
        filename = "/a.opus"
        audio = true
        video = false
        "#,
    );
    assert_eq!(table_of_all, expected);
    assert!(remarks.is_empty(), "{remarks:?}");
}

#[test]
fn a_broken_file_is_left_out_as_with_janus() {
    let (table_of_all, remarks) = imported(&[
        (
            "janus.plugin.sip.jcfg",
            "general: {\n  local_ip = 1.2.3.4\n}",
        ),
        (
            "janus.plugin.nosip.jcfg",
            "general: { sdp_ip = \"1.2.3.4\" }",
        ),
    ]);
    assert_eq!(table_of_all, table("nosip.sdp_ip = \"1.2.3.4\""));
    let expected = "janus.plugin.sip.jcfg:2: broken at column 14: 1.2.3.4 is no number of 64 bits (text needs quotes). \
                    Nothing of the file was taken, as Janus takes nothing of it";
    assert_eq!(remarks, [expected]);
}

#[test]
fn without_its_main_file_nothing_is_imported_and_all_broken_files_are_named() {
    let folder = folder(&[
        ("janus.jcfg", "general: {\n  a = 1"),
        ("janus.plugin.sip.jcfg", "x"),
        ("notes.txt", "{"),
    ]);
    fs::write(
        folder.path().join("janus.plugin.nosip.jcfg"),
        b"a = 1;\n# \xff",
    )
    .unwrap();
    let error = Folder::read(folder.path()).unwrap_err().to_string();
    let path = folder.path().display();
    let expected = format!(
        "{path}/janus.jcfg:2:8: expected the name of a setting or }}, found the end of the file\n\
         {path}/janus.plugin.nosip.jcfg:2:1: expected text in UTF-8\n\
         {path}/janus.plugin.sip.jcfg:1:2: expected = or : after the name of a setting, found the end of the file"
    );
    assert_eq!(error, expected);
    let empty = tempfile::tempdir().unwrap();
    let error = Folder::read(empty.path()).unwrap_err();
    assert!(matches!(error, FolderError::Empty(_)));
    let error = Folder::read(&empty.path().join("none")).unwrap_err();
    assert!(matches!(error, FolderError::Folder { .. }));
}

#[test]
fn settling_takes_mistakes_and_defaults_out() {
    let folder = folder(&[
        (
            "janus.jcfg",
            "general: { server_name = \"Mine\"; session_timeout = 60 }",
        ),
        (
            "janus.plugin.textroom.jcfg",
            "room-1: { pin = \"p\"; history = 0 }\nroom-2: { history = 3 }\nroom-13: { pin = \"q\" }\n",
        ),
    ]);
    let mut draft = import(&Folder::read(folder.path()).unwrap());
    // Has a session timeout of 60 s and rooms without history as defaults, and refuses room 13 and
    // the name.
    let check = |text: &str| {
        let line = |what: &str| text.lines().position(|line| line.starts_with(what));
        let wrong = [("server_name", 0, "too short"), ("room = 13", 1, "unlucky")];
        let mistakes: Vec<_> = wrong
            .iter()
            .filter_map(|(what, above, text)| {
                Some(Mistake {
                    line: line(what)? + 1 - above,
                    text: (*text).to_owned(),
                })
            })
            .collect();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut whole = table("server.session_timeout = 60\nhttp.enabled = true");
        let mut given: Table = text.parse().unwrap();
        for room in given
            .get_mut("textroom")
            .and_then(|it| it.get_mut("room")?.as_array_mut())
            .into_iter()
            .flatten()
        {
            room.as_table_mut()
                .unwrap()
                .entry("history")
                .or_insert(0.into());
        }
        whole.extend(given);
        Ok(whole)
    };
    draft.settle(check).unwrap();
    let expected = table(
        "http.enabled = false\nwebsocket.enabled = false\nadmin.enabled = false\n[[textroom.room]]\nroom = 1\npin = \"p\"\n[[textroom.room]]\nroom = 2\nhistory = 3",
    );
    assert_eq!(draft.text().parse::<Table>().unwrap(), expected);
    let remarks: Vec<_> = draft
        .remarks()
        .iter()
        .map(|it| (&*it.key, &*it.reason))
        .collect();
    assert_eq!(
        remarks,
        [("general.server_name", "too short"), ("room-13", "unlucky")]
    );
    let nowhere = |_: &str| {
        Err(vec![Mistake {
            line: 0,
            text: "no".into(),
        }])
    };
    assert_eq!(draft.settle(nowhere).unwrap_err().to_string(), "no");
}

/// Returns the draft of one file in memory.
fn imported_text(name: &str, text: &str) -> Option<Table> {
    let load = |_: &std::path::Path| Ok(text.as_bytes().to_vec());
    let folder = Folder::of("d".as_ref(), [format!("d/{name}").into()], load).ok()?;
    let text = import(&folder).text();
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{error}\n{text}")),
    )
}

proptest! {
    #[test]
    fn text_of_people_comes_over_as_it_is(secret in "(.|[ \n\t]){0,40}", comment in ".{0,40}") {
        let escaped = secret.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("room-1: {{ secret = \"{escaped}\" # {comment}\n}}");
        let table = imported_text("janus.plugin.textroom.jcfg", &text).unwrap();
        let room = &table["textroom"]["room"][0];
        prop_assert_eq!(room["secret"].as_str(), Some(secret.as_str()));
    }

    #[test]
    fn what_becomes_of_any_file_is_toml(text in "(general|room-1|a-1|\"x\"|media|secret|id|[0-9]{1,3}|[\\[\\]{}()=:;,#\n ]| = | = \\{ ){0,40}") {
        let _ = imported_text("janus.plugin.streaming.jcfg", &text);
        let _ = imported_text("janus.plugin.videoroom.cfg", &text);
    }
}
