use portunus_core::{Needs, Requester, Right};
use serde_json::{Value, json};

use crate::rows::{PLUGINS, Row, rows};
use crate::world::{ADMIN_KEY, API_SECRET, Asker, FILE, Setup, Who, World};

/// Returns the answer to a row's request by a client, on a server of its own.
async fn answer(row: usize, who: &Who, setup: Setup) -> (Row, Value) {
    let world = World::with(setup).await;
    let row = rows(&world).remove(row);
    let mut asker = Asker::attach(&world, who, row.plugin).await;
    if ["configure", "publish", "resume"].contains(&row.request) {
        let join = json!({ "room": 7, "ptype": "publisher", "id": 1 });
        let joined = asker.ask("join", &join).await;
        assert_eq!(joined[row.plugin], "joined", "{joined}");
    }
    let answer = asker.ask(row.request, &row.body).await;
    (row, answer)
}

async fn is_refused(row: usize, who: &Who) {
    let (row, answer) = answer(row, who, Setup::default()).await;
    let case = format!(
        "{} {} ({}), {}",
        row.plugin, row.request, row.when, who.name
    );
    assert_eq!(answer["error_code"], row.code, "{case}: {answer}");
    let text = answer["error"].as_str().unwrap();
    let says = format!("or a token with the right to {}", row.right);
    assert!(text.contains(&says), "{case}: {text}");
}

async fn is_allowed(row: usize, who: &Who, setup: Setup) {
    let (row, answer) = answer(row, who, setup).await;
    let case = format!(
        "{} {} ({}), {}",
        row.plugin, row.request, row.when, who.name
    );
    let code = answer["error_code"].as_u64();
    // Without an object, or for multicast, the result with the right depends on the machine.
    let is_over = code.is_none() || code == row.then;
    assert!(is_over, "{case}: {answer}");
    assert_ne!(code, Some(row.code), "{case}: {answer}");
}

async fn count() -> usize {
    rows(&World::new().await).len()
}

#[tokio::test]
async fn strangers_are_refused_with_a_code_and_what_they_need() {
    for row in 0..count().await {
        is_refused(row, &Who::stranger("a stranger")).await;
        is_refused(row, &Who::loopback("another origin's page", false)).await;
        let guesses = json!({ "apisecret": "guess", "token": "guess" });
        is_refused(row, &Who::stranger("who guesses").showing(guesses)).await;
        let who = Who {
            in_body: json!({ "admin_key": "", "secret": "" }),
            ..Who::stranger("who shows an admin key where there is none")
        };
        is_refused(row, &who).await;
    }
}

#[tokio::test]
async fn a_token_with_other_rights_is_no_help() {
    let right_of = |rows: Vec<Row>| rows.iter().map(|row| row.right).collect::<Vec<_>>();
    for (row, right) in right_of(rows(&World::new().await)).into_iter().enumerate() {
        let others = json!({ "token": format!("but-{right}") });
        is_refused(row, &Who::stranger("others").showing(others)).await;
        let only = json!({ "token": format!("only-{right}") });
        let who = Who::stranger("a token with this right alone").showing(only);
        is_allowed(row, &who, Setup::default()).await;
    }
}

#[tokio::test]
async fn whoever_is_trusted_may() {
    for row in 0..count().await {
        let here = Who::loopback("a program on this machine", true);
        is_allowed(row, &here, Setup::default()).await;
        let unix = Who::new("the Unix socket", Requester::unix());
        is_allowed(row, &unix, Setup::default()).await;
        let secret = json!({ "apisecret": API_SECRET });
        let setup = Setup {
            api_secret: Some(API_SECRET),
            ..Setup::default()
        };
        let who = Who::stranger("who has the API secret").showing(secret);
        is_allowed(row, &who, setup).await;
    }
}

#[tokio::test]
async fn a_plugins_admin_key_opens_that_plugin() {
    let keyed = || Setup {
        admin_key: Some(ADMIN_KEY),
        ..Setup::default()
    };
    let all = rows(&World::new().await);
    for (index, row) in all.iter().enumerate() {
        let has_key = PLUGINS
            .iter()
            .any(|(plugin, _, key)| *plugin == row.plugin && *key);
        let showing = |key| Who {
            in_body: json!({ "admin_key": key }),
            ..Who::stranger("who shows the admin key")
        };
        if has_key {
            is_allowed(index, &showing(ADMIN_KEY), keyed()).await;
            let (_, answer) = answer(index, &showing("guess"), keyed()).await;
            assert_eq!(answer["error_code"], row.code, "{answer}");
        } else {
            is_refused(index, &showing(ADMIN_KEY)).await;
        }
    }
}

#[tokio::test]
async fn a_refusal_tells_nothing_of_what_is_there() {
    let world = World::new().await;
    let mut streaming = Asker::attach(&world, &Who::stranger("a stranger"), "streaming").await;
    let mut of_file = Vec::new();
    for name in [FILE, "none.opus", "../tone.opus"] {
        let body = json!({ "type": "ondemand", "filename": world.file(name) });
        of_file.push(streaming.ask("create", &body).await);
    }
    for url in ["rtsp://127.0.0.1:1/", "rtsp://127.0.0.1:22/", "nonsense"] {
        let body = json!({ "type": "rtsp", "url": url, "video": true });
        of_file.push(streaming.ask("create", &body).await);
    }
    assert!(
        of_file.iter().all(|answer| *answer == of_file[0]),
        "{of_file:?}"
    );
    let mut room = Asker::attach(&world, &Who::stranger("a stranger"), "videoroom").await;
    let known = json!({ "room": 7, "publisher_id": 1, "host": "127.0.0.1", "port": 1 });
    let unknown =
        json!({ "room": 8, "publisher_id": 2, "host": "no-such-host.invalid", "port": 1 });
    assert_eq!(
        room.ask("rtp_forward", &known).await,
        room.ask("rtp_forward", &unknown).await
    );
}

/// Requests that are only acknowledged without a call.
const ACKNOWLEDGED: [(&str, &str); 4] = [
    ("sip", "hangup"),
    ("sip", "decline"),
    ("sip", "hold"),
    ("sip", "unhold"),
];

/// Requests that exist only on data channels.
const BY_DATA_CHANNEL: [(&str, &str); 3] = [
    ("textroom", "join"),
    ("textroom", "leave"),
    ("textroom", "message"),
];

#[tokio::test]
async fn calls_are_for_everybody() {
    for (plugin, requests, _) in PLUGINS {
        for (request, needs) in requests() {
            let is_call = matches!(needs, Needs::Nothing);
            let named = (plugin, request);
            if !is_call || BY_DATA_CHANNEL.contains(&named) || ACKNOWLEDGED.contains(&named) {
                continue;
            }
            let world = World::new().await;
            let mut asker = Asker::attach(&world, &Who::stranger("a stranger"), plugin).await;
            let answer = asker.ask(request, &json!({})).await;
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(!error.contains("trusted"), "{plugin} {request}: {answer}");
            assert!(
                !error.starts_with("Unknown"),
                "{plugin} {request}: {answer}"
            );
        }
    }
    let world = World::new().await;
    let stranger = Who::stranger("a stranger");
    let mut streaming = Asker::attach(&world, &stranger, "streaming").await;
    let media = json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }]);
    for body in [
        json!({ "type": "rtp", "id": 1, "media": media }),
        json!({ "type": "whip", "id": 2, "media": [{ "type": "audio", "mid": "a" }] }),
    ] {
        let created = streaming.ask("create", &body).await;
        assert_eq!(created["streaming"], "created", "{created}");
    }
    let destroyed = streaming.ask("destroy", &json!({ "id": 1 })).await;
    assert_eq!(destroyed["streaming"], "destroyed");
    let mut room = Asker::attach(&world, &stranger, "videoroom").await;
    let created = room
        .ask("create", &json!({ "room": 1, "record": false }))
        .await;
    assert_eq!(created["videoroom"], "created");
    let join = json!({ "room": 1, "ptype": "publisher", "record": false });
    let joined = room.ask("joinandconfigure", &join).await;
    assert_eq!(joined["videoroom"], "joined");
}

/// Requests whose reach depends on their content cannot be counted. One that always reaches beyond
/// the call has its row, and others have one.
#[tokio::test]
async fn each_request_that_reaches_beyond_the_call_has_a_row() {
    let rows = rows(&World::new().await);
    for (plugin, requests, _) in PLUGINS {
        for (request, needs) in requests() {
            let request = if request.is_empty() { "any" } else { request };
            let own = rows
                .iter()
                .filter(|row| row.plugin == plugin && row.request == request);
            let rights: Vec<Right> = own.map(|row| row.right).collect();
            match needs {
                Needs::Nothing => assert!(rights.is_empty(), "{plugin} {request}"),
                Needs::Right(right) => assert_eq!(rights, [right], "{plugin} {request}"),
                Needs::Depends(_) => assert!(!rights.is_empty(), "{plugin} {request}"),
            }
        }
    }
}
