//! Subscriptions that are as large as they can be.

use portunus_core::testing::Line;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, Viewer, World, ask, code, sync};

/// The most m-lines of audio and video.
const MOST: usize = 511;

/// Returns requests for audio, `count` times.
fn audio(count: usize) -> Value {
    vec![json!({ "feed": 1, "mid": "0" }); count].into()
}

async fn lines(world: &World, viewer: &Viewer) -> usize {
    let state = world.state(&viewer.client).await;
    state["streams"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_full_subscription_refuses_more_and_can_still_change() {
    let world = World::new(json!({})).await;
    let lines_of_al = [Line::Audio, Line::Video, Line::Data];
    let _al = world.publisher(1, &lines_of_al).await;
    let mut viewer = world.viewer(json!({ "streams": audio(MOST) })).await;
    let subscribe =
        |mid: &str| json!({ "request": "subscribe", "streams": [{ "feed": 1, "mid": mid }] });
    for mid in ["0", "1"] {
        let answer = ask(&mut viewer.client, subscribe(mid)).await;
        assert_eq!(code(&answer), 499, "{answer}");
    }
    // One of data fits, and the answer to all m-lines is accepted.
    viewer.change(subscribe("2")).await;
    viewer.start().await;
    assert_eq!(lines(&world, &viewer).await, MOST + 1);
    let unsubscribe = json!({ "request": "unsubscribe", "streams": [{ "sub_mid": "5" }] });
    viewer.change(unsubscribe).await;
    viewer.start().await;
    viewer.change(subscribe("0")).await;
    viewer.start().await;
    assert_eq!(world.routes(&viewer).len(), MOST + 1);
}

#[tokio::test]
async fn a_change_for_which_there_is_no_room_changes_nothing() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": audio(MOST - 1) })).await;
    let update = |count: usize| json!({ "request": "update", "unsubscribe": [{ "sub_mid": "3" }], "subscribe": audio(count) });
    let answer = ask(&mut viewer.client, update(3)).await;
    assert_eq!(code(&answer), 499, "{answer}");
    assert_eq!(lines(&world, &viewer).await, MOST - 1);
    assert_eq!(world.routes(&viewer).len(), MOST - 1);
    // Removed streams make room.
    viewer.change(update(2)).await;
    viewer.start().await;
    assert_eq!(world.routes(&viewer).len(), MOST);
}

#[tokio::test]
async fn seats_count_like_other_m_lines() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let join = |own: usize| {
        json!({ "request": "join", "room": ROOM, "ptype": "subscriber", "last_n": 50,
                "streams": audio(own) })
    };
    let mut client = world.attach().await;
    assert_eq!(code(&ask(&mut client, join(MOST - 99)).await), 499);
    let attached = ask(&mut client, join(MOST - 100)).await;
    assert_eq!(attached["streams"].as_array().unwrap().len(), MOST);
}

#[tokio::test]
async fn who_leaves_lets_go_of_the_data_of_many() {
    const MANY: u64 = 300;
    let world = World::new(json!({ "publishers": MANY })).await;
    let mut admin = world.attach().await;
    let remote = |request: &str, id: u64| {
        json!({ "request": request, "room": ROOM, "id": id,
                "streams": [{ "type": "data", "mid": "0", "mindex": 0 }] })
    };
    for id in 1..=MANY {
        let added = sync(&mut admin, remote("add_remote_publisher", id)).await;
        assert_eq!(added["videoroom"], "success", "{added}");
    }
    let all: Vec<_> = (1..=MANY).map(|id| json!({ "feed": id })).collect();
    let mut viewers = Vec::new();
    for _ in 0..2 {
        viewers.push(world.viewer(json!({ "streams": all })).await);
    }
    let routes = || world.requested().routes.len();
    assert_eq!(routes(), 2 * 300);
    sync(&mut admin, remote("remove_remote_publisher", 7)).await;
    assert_eq!(routes(), 2 * 299);
    for viewer in &mut viewers {
        let left = ask(&mut viewer.client, json!({ "request": "leave" })).await;
        assert_eq!(left["left"], "ok");
    }
    assert_eq!(routes(), 0);
}
