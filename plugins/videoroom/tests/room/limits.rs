//! Subscriptions that are as large as they can be.

use portunus_core::testing::Line;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, Viewer, World, ask, code};

/// The most m-lines of audio and video.
const MOST: usize = 511;

/// A subscription's wish for audio, so many times.
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
    // There is room for data, and the answer to all of it is taken.
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
    // The place of what goes counts.
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
