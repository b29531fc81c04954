//! The server at a glance.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::Event;
use portunus_core::testing::{Line, jsep};
use portunus_metrics::MetricsSource;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::stage::Stage;
use crate::world::PROBE;

fn ids(reply: &Value) -> Vec<u64> {
    let sessions = reply["sessions"].as_array().unwrap();
    let id = |session: &Value| session["session_id"].as_u64().unwrap();
    sessions.iter().map(id).collect()
}

#[tokio::test(start_paused = true)]
async fn sessions_are_shown_with_their_handles() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    sleep(Duration::from_secs(3)).await;
    let reply = stage.ask("overview", json!({})).await;
    assert_eq!(reply["total"], 1);
    let counts = json!({ "sessions": 1, "handles": 1, "peer_connections": 0 });
    assert_eq!(reply["counts"], counts);
    let session = &reply["sessions"][0];
    assert_eq!(session["session_id"], client.session);
    assert_eq!(session["transport"], "janus.transport.test");
    assert_eq!(session["address"], "unix");
    assert_eq!(
        (session["age"].as_f64(), session["idle"].as_f64()),
        (Some(3.0), Some(3.0))
    );
    let handle = json!({ "handle_id": client.handle, "plugin": PROBE, "opaque_id": "mine" });
    assert_eq!(session["handles"], json!([handle]));
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    client.event().await;
    let reply = stage.ask("overview", json!({})).await;
    let handle = &reply["sessions"][0]["handles"][0];
    assert_eq!(handle["connection"], "connecting");
    assert!(
        reply["trouble"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["value"].is_u64())
    );
}

#[tokio::test(start_paused = true)]
async fn they_are_found_sorted_and_given_a_page_at_a_time() {
    let stage = Stage::new();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(stage.attach().await);
        sleep(Duration::from_secs(1)).await;
    }
    let all: Vec<u64> = clients.iter().map(|client| client.session).collect();
    let newest: Vec<u64> = all.iter().rev().copied().collect();
    assert_eq!(ids(&stage.ask("overview", json!({})).await), newest);
    let page = stage
        .ask("overview", json!({ "offset": 1, "limit": 2 }))
        .await;
    assert_eq!(ids(&page), newest[1..3]);
    assert_eq!(page["total"], 5);
    // The first is silent for longest, unless it says something.
    let silent = stage.ask("overview", json!({ "sort": "activity" })).await;
    assert_eq!(ids(&silent), all);
    let first = &mut clients[0];
    let alive = json!({ "janus": "keepalive", "transaction": "k", "session_id": first.session });
    first.ask(alive).await;
    let silent = stage.ask("overview", json!({ "sort": "activity" })).await;
    assert_eq!(ids(&silent)[..4], all[1..]);
    for sort in ["bitrate", "loss"] {
        let sorted = stage.ask("overview", json!({ "sort": sort })).await;
        assert_eq!(ids(&sorted).len(), 5);
    }
    let third = clients[2].handle.to_string();
    let found = stage.ask("overview", json!({ "search": third })).await;
    assert_eq!(ids(&found), [all[2]]);
    assert_eq!(found["total"], 1);
    let found = stage
        .ask("overview", json!({ "search": "MINE", "limit": 0 }))
        .await;
    assert_eq!((ids(&found).len(), &found["total"]), (0, &json!(5)));
    let found = stage.ask("overview", json!({ "search": "nobody" })).await;
    assert_eq!(found["total"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_media_plane_that_gives_no_figures_delays_it_by_two_seconds_at_most() {
    let stage = Stage::new();
    let server = &stage.world.server;
    for _ in 0..5 {
        let mut client = stage.attach().await;
        let offer = jsep("offer", "abcd", &[Line::Audio]);
        client.message(json!({ "do": "answer" }), Some(offer)).await;
        client.event().await;
    }
    for peer in server.peers() {
        server.withhold_stats(peer);
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        server.happen(peer, Event::Connected { srtp_profile }).await;
    }
    let asked = server.requested().stats_asked;
    let begun = Instant::now();
    let reply = stage.ask("overview", json!({ "sort": "loss" })).await;
    assert_eq!(ids(&reply).len(), 5);
    assert_eq!(begun.elapsed().as_secs(), 2);
    // For the order the first alone was asked, and for the page.
    assert_eq!(server.requested().stats_asked - asked, 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_hour_is_kept_by_minutes() {
    let stage = Stage::new();
    let _client = stage.attach().await;
    sleep(Duration::from_secs(150)).await;
    let reply = stage.ask("history", json!({})).await;
    // The client is silent, so its session has ended meanwhile.
    assert_eq!(reply["sessions"], json!([1, 1, 0]), "{reply}");
    for name in ["peer_connections", "bits_in", "bits_out", "core_share"] {
        assert_eq!(reply[name].as_array().map(Vec::len), Some(3), "{reply}");
    }
}

#[tokio::test]
async fn figures_are_had_by_their_names() {
    let stage = Stage::new();
    let sources = vec![Arc::new(stage.world.gateway.clone()) as Arc<dyn MetricsSource>];
    stage.administration.set_metrics(sources);
    let names = json!([
        "portunus_sessions",
        "portunus_admin_requests_total",
        "portunus_bad_requests_total",
        "no_such_name",
    ]);
    let reply = stage.ask("metrics", json!({ "names": names })).await;
    let metrics = reply["metrics"].as_array().unwrap();
    let figure = |name: &str| {
        let mut all = metrics.iter().filter(|it| it["name"] == name);
        all.next().map(|it| it["value"].clone())
    };
    assert_eq!(figure("portunus_sessions"), Some(json!(0.0)), "{reply}");
    let asked = figure("portunus_admin_requests_total");
    assert_eq!(asked, Some(json!(1.0)));
    assert!(metrics.iter().any(|it| it["labels"].is_string()));
    let all = stage.ask("metrics", json!({})).await;
    assert!(all["metrics"].as_array().unwrap().len() > metrics.len());
    let wrong = stage.ask("metrics", json!({ "names": "x" })).await;
    assert_eq!(wrong["error"]["code"], 467, "{wrong}");
}
