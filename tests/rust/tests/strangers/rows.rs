//! Requests that reach beyond the call.

use portunus_core::{Needs, PluginRequest, Right};
use serde_json::{Value, json};

use crate::world::{FILE, World};

/// A request that needs a right.
pub struct Row {
    pub plugin: &'static str,
    pub request: &'static str,
    /// When it needs the right, as the documentation says.
    pub when: &'static str,
    pub right: Right,
    /// The error without the right.
    pub code: u64,
    /// Its members, except `request`.
    pub body: Value,
    /// The result with the right: this error, because its object does not exist, or success.
    pub then: Option<u64>,
}

/// The names of requests, with the rights that they need.
pub type Table = Vec<(&'static str, Needs)>;

/// Returns the requests of a plugin.
pub type Requests = fn() -> Table;

/// The requests of each plugin, and whether the plugin has an admin key.
pub const PLUGINS: [(&str, Requests, bool); 10] = [
    ("streaming", table::<portunus_streaming::Request>, true),
    ("videoroom", videoroom, true),
    ("audiobridge", audiobridge, true),
    ("textroom", textroom, true),
    ("videocall", table::<portunus_videocall::Request>, false),
    ("echotest", table::<portunus_echotest::Request>, false),
    ("voicemail", table::<portunus_voicemail::Request>, false),
    ("recordplay", table::<portunus_recordplay::Request>, true),
    ("nosip", table::<portunus_nosip::Request>, false),
    ("sip", table::<portunus_sip_plugin::Request>, false),
];

fn videoroom() -> Table {
    use portunus_videoroom::{Management, Participation};
    [table::<Management>(), table::<Participation>()].concat()
}

fn audiobridge() -> Table {
    use portunus_audiobridge::{Management, Participation};
    [table::<Management>(), table::<Participation>()].concat()
}

fn textroom() -> Table {
    use portunus_textroom::{Management, Membership, Negotiation};
    let tables = [
        table::<Negotiation>(),
        table::<Management>(),
        table::<Membership>(),
    ];
    tables.concat()
}

fn table<R: PluginRequest>() -> Table {
    let named = |request: &R| {
        let needs = request.needs();
        request.names().iter().map(move |name| (*name, needs))
    };
    R::ALL.iter().flat_map(named).collect()
}

/// Returns all rows, for the files of a world.
pub fn rows(world: &World) -> Vec<Row> {
    let file = world.file(FILE);
    let media = |more: Value| {
        let mut stream = json!({ "type": "audio", "mid": "a", "port": 0, "codec": "opus" });
        let members = stream.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        json!({ "type": "rtp", "media": [stream] })
    };
    let permanent = "`permanent` is true";
    let streaming = |request, when, right, body, then| Row {
        plugin: "streaming",
        request,
        when,
        right,
        code: 457,
        body,
        then,
    };
    let room = |request, when, right, body, then| Row {
        plugin: "videoroom",
        request,
        when,
        right,
        code: 433,
        body,
        then,
    };
    let (create, record, forward) = (Right::Create, Right::Record, Right::Forward);
    let group = media(json!({ "mcast": "239.255.9.9", "iface": "lo", "port": 5_004 }));
    let lo = media(json!({ "iface": "lo" }));
    let mut kept = media(json!({}));
    kept["permanent"] = json!(true);
    let mut all = vec![
        streaming(
            "create",
            "`type` is `live`",
            create,
            json!({ "type": "live", "filename": file }),
            None,
        ),
        streaming(
            "create",
            "`type` is `ondemand`",
            create,
            json!({ "type": "ondemand", "filename": file }),
            None,
        ),
        streaming(
            "create",
            "`type` is `rtsp`",
            create,
            json!({ "type": "rtsp", "url": "rtsp://127.0.0.1:1/", "video": true, "rtsp_failcheck": false }),
            None,
        ),
        // A multicast group uses an address of its own on the loopback interface, which not all
        // machines have.
        streaming("create", "`mcast` is there", create, group, Some(456)),
        streaming("create", "`iface` is there", create, lo, None),
        streaming("create", permanent, create, kept, None),
        streaming(
            "edit",
            permanent,
            create,
            json!({ "id": 7, "permanent": true }),
            None,
        ),
        streaming(
            "destroy",
            permanent,
            create,
            json!({ "id": 7, "permanent": true }),
            None,
        ),
        streaming(
            "recording",
            "always",
            record,
            json!({ "id": 7, "action": "stop", "media": [{ "mid": "a" }] }),
            None,
        ),
        room(
            "create",
            permanent,
            create,
            json!({ "permanent": true }),
            None,
        ),
        room(
            "create",
            "`record` is true",
            record,
            json!({ "record": true }),
            None,
        ),
        room(
            "edit",
            permanent,
            create,
            json!({ "room": 7, "permanent": true }),
            None,
        ),
        room(
            "edit",
            "`new_rec_dir` is there",
            record,
            json!({ "room": 7, "new_rec_dir": "a" }),
            None,
        ),
        room(
            "edit",
            "`record_format` is there",
            record,
            json!({ "room": 7, "record_format": "webm" }),
            None,
        ),
        room(
            "destroy",
            permanent,
            create,
            json!({ "room": 7, "permanent": true }),
            None,
        ),
        room(
            "enable_recording",
            "always",
            record,
            json!({ "room": 7, "record": true }),
            None,
        ),
    ];
    for request in ["joinandconfigure", "configure", "publish"] {
        let joins = request == "joinandconfigure";
        let with = |more: Value| match joins {
            true => {
                let mut join = json!({ "room": 7, "ptype": "publisher" });
                let members = join.as_object_mut().unwrap();
                members.extend(more.as_object().unwrap().clone());
                join
            }
            false => more,
        };
        let on = with(json!({ "record": true }));
        all.push(room(request, "`record` is true", record, on, None));
    }
    let host = json!({ "room": 7, "publisher_id": 1, "host": "127.0.0.1", "port": 5_004,
                       "audio_port": 5_004, "remote_id": "r", "stream_id": 1 });
    let remote = json!({ "room": 7, "id": 9, "streams": [] });
    for (request, body, then) in [
        ("rtp_forward", &host, Some(428)),
        ("stop_rtp_forward", &host, Some(428)),
        ("listforwarders", &host, None),
        ("publish_remotely", &host, Some(428)),
        ("unpublish_remotely", &host, Some(428)),
        ("listremotes", &host, Some(428)),
        ("list_remotes", &host, Some(428)),
        ("add_remote_publisher", &remote, Some(430)),
        ("update_remote_publisher", &remote, Some(428)),
        ("remove_remote_publisher", &remote, Some(428)),
    ] {
        all.push(room(request, "always", forward, body.clone(), then));
    }
    all.extend(audio_rooms(&file));
    let posted = json!({ "room": 7, "new_post": "http://127.0.0.1:1/" });
    for (request, when, right, body) in [
        ("create", permanent, create, json!({ "permanent": true })),
        (
            "create",
            "`post` is not empty",
            forward,
            json!({ "post": "http://127.0.0.1:1/" }),
        ),
        (
            "edit",
            permanent,
            create,
            json!({ "room": 7, "permanent": true }),
        ),
        ("edit", "`new_post` is not empty", forward, posted),
        (
            "destroy",
            permanent,
            create,
            json!({ "room": 7, "permanent": true }),
        ),
    ] {
        all.push(Row {
            plugin: "textroom",
            request,
            when,
            right,
            code: 419,
            body,
            then: None,
        });
    }
    for (plugin, request, code) in [("videocall", "set", 474), ("echotest", "any", 413)] {
        all.push(Row {
            plugin,
            request,
            when: "`record` is true",
            right: record,
            code,
            body: json!({ "audio": true, "record": true }),
            then: None,
        });
    }
    // There is no offer to record.
    all.push(Row {
        plugin: "voicemail",
        request: "record",
        when: "always",
        right: record,
        code: 499,
        body: json!({}),
        then: Some(463),
    });
    for (request, when, body, then) in [
        ("record", "always", json!({}), 415),
        ("play", "`file` is there", json!({ "file": "missing" }), 416),
    ] {
        all.push(Row {
            plugin: "recordplay",
            request,
            when,
            right: record,
            code: 440,
            body,
            then: Some(then),
        });
    }
    for (request, when, right, body, then) in [
        ("generate", "always", forward, json!({}), Some(446)),
        ("process", "always", forward, json!({}), Some(443)),
        (
            "recording",
            "`action` is not `stop`",
            record,
            json!({ "action": "start", "audio": true }),
            None,
        ),
        ("rtp_forward", "always", forward, json!({}), Some(443)),
        (
            "stop_rtp_forward",
            "always",
            forward,
            json!({ "stream_id": 1 }),
            Some(451),
        ),
        ("listforwarders", "always", forward, json!({}), None),
    ] {
        all.push(Row {
            plugin: "nosip",
            request,
            when,
            right,
            code: 499,
            body,
            then,
        });
    }
    let no_call = Some(447);
    for (request, when, right, body, then) in [
        (
            "recording",
            "`action` is `start`",
            record,
            json!({ "action": "start" }),
            no_call,
        ),
        (
            "recording",
            "`action` is `resume`",
            record,
            json!({ "action": "resume" }),
            no_call,
        ),
        ("rtp_forward", "always", forward, json!({}), no_call),
        (
            "stop_rtp_forward",
            "always",
            forward,
            json!({ "stream_id": 1 }),
            Some(455),
        ),
        ("listforwarders", "always", forward, json!({}), None),
    ] {
        all.push(Row {
            plugin: "sip",
            request,
            when,
            right,
            code: 444,
            body,
            then,
        });
    }
    all
}

/// Returns the rows of audio rooms.
fn audio_rooms(file: &str) -> Vec<Row> {
    let (create, record, forward) = (Right::Create, Right::Record, Right::Forward);
    let mut all = Vec::new();
    for (request, more, then) in [
        // There is no trunk.
        ("dial_out", json!({ "to": "110" }), 499),
        ("stop_dial_out", json!({ "call": 1 }), 492),
    ] {
        let mut body = json!({ "request": request, "room": 7 });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all.push(Row {
            plugin: "audiobridge",
            request,
            when: "always",
            right: forward,
            code: 489,
            body,
            then: Some(then),
        });
    }
    let mut add = |request, when, right, more: Value| {
        let mut body = json!({});
        if request != "create" {
            body["room"] = json!(7);
        }
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        all.push(Row {
            plugin: "audiobridge",
            request,
            when,
            right,
            code: 489,
            body,
            then: None,
        });
    };
    let permanent = ("`permanent` is true", create, json!({ "permanent": true }));
    for request in ["create", "edit", "destroy"] {
        add(request, permanent.0, permanent.1, permanent.2.clone());
    }
    for (when, more) in [
        ("`record` is true", json!({ "record": true })),
        ("`mjrs` is true", json!({ "mjrs": true })),
    ] {
        add("create", when, record, more);
    }
    for (when, more) in [
        (
            "`new_record_dir` is there",
            json!({ "new_record_dir": "a" }),
        ),
        ("`new_mjrs_dir` is there", json!({ "new_mjrs_dir": "a" })),
    ] {
        add("edit", when, record, more);
    }
    let host = json!({ "host": "127.0.0.1", "port": 5_004, "stream_id": 1 });
    for (request, right, more) in [
        ("rtp_forward", forward, host.clone()),
        ("stop_rtp_forward", forward, host.clone()),
        ("listforwarders", forward, host),
        ("enable_recording", record, json!({ "record": true })),
        ("enable_mjrs", record, json!({ "mjrs": true })),
        ("play_file", create, json!({ "filename": file })),
        ("listannouncements", create, json!({})),
    ] {
        add(request, "always", right, more);
    }
    for request in ["resume", "join", "configure"] {
        let id = if request == "resume" { 1 } else { 2 };
        for (when, right, more) in [
            (
                "`record` is true",
                record,
                json!({ "id": id, "record": true }),
            ),
            ("`rtp` is there", forward, json!({ "id": id, "rtp": {} })),
        ] {
            if request != "resume" || right == record {
                add(request, when, right, more);
            }
        }
    }
    all
}
