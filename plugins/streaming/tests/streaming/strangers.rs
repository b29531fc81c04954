//! Mountpoints of strangers: limits of their number and size, their end, and wrong secrets.

use std::net::Ipv4Addr;
use std::time::Duration;

use portunus_core::testing::TestClient;
use portunus_core::{Plugin, Requester};
use portunus_streaming::{ConfiguredMountpoint, StreamingConfig};
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, ask, create, refused};

/// The timeout of a test.
const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);

fn limited(max_per_client: usize, max_from_clients: usize) -> StreamingConfig {
    StreamingConfig {
        max_per_client,
        max_from_clients,
        unused_timeout: HOUR,
        ..StreamingConfig::default()
    }
}

async fn stranger(world: &World, last: u8) -> TestClient {
    let requester = Requester::at(Ipv4Addr::new(192, 0, 2, last).into(), false);
    world.server.attach_from(requester, PACKAGE).await
}

fn radio(id: u64) -> Value {
    json!({
        "request": "create", "type": "rtp", "id": id, "name": format!("radio{id}"),
        "media": [{ "type": "audio", "mid": "a", "port": 0, "pt": 111, "codec": "opus" }],
    })
}

async fn listed(client: &mut TestClient) -> Vec<u64> {
    let list = client.request(json!({ "request": "list" })).await;
    let list = list["list"].as_array().unwrap().iter();
    list.map(|m| m["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn strangers_make_so_many_mountpoints_and_are_told_of_the_limit() {
    let world = World::with(limited(1, 2)).await;
    let mut one = stranger(&world, 1).await;
    let mut two = stranger(&world, 2).await;
    let mut three = stranger(&world, 3).await;
    create(&mut one, radio(1)).await;
    let told = one.request(radio(2)).await;
    assert_eq!(told["error_code"], 456);
    let text = told["error"].as_str().unwrap();
    assert!(
        text.contains('1') && text.contains("max_per_client"),
        "{text}"
    );
    create(&mut two, radio(2)).await;
    let told = three.request(radio(3)).await;
    assert_eq!(told["error_code"], 456);
    let text = told["error"].as_str().unwrap();
    assert!(text.contains("max_from_clients"), "{text}");
    let mut operator = world.client().await;
    create(&mut operator, radio(3)).await;
    one.request(json!({ "request": "destroy", "id": 1 })).await;
    create(&mut three, radio(4)).await;
    let counters = world.plugin.counters();
    let refused = counters.iter().find(|it| it.name == "refused_creations");
    assert_eq!(refused.unwrap().value, 2);
}

#[tokio::test]
async fn a_mountpoint_of_a_stranger_has_few_streams() {
    let world = World::new().await;
    let media: Vec<_> = (0..17)
        .map(|mid| json!({ "type": "audio", "mid": mid.to_string(), "port": 0, "codec": "opus" }))
        .collect();
    let mut large = radio(1);
    large["media"] = json!(media);
    let mut client = stranger(&world, 1).await;
    assert_eq!(refused(&mut client, large.clone()).await, 456);
    let mut operator = world.client().await;
    create(&mut operator, large).await;
}

#[tokio::test(start_paused = true)]
async fn a_mountpoint_of_a_stranger_ends_once_it_was_unused_for_the_time() {
    let world = World::lasting(limited(5, 5)).await;
    let mut maker = stranger(&world, 1).await;
    for id in [1, 2] {
        create(&mut maker, radio(id)).await;
    }
    let mut operator = world.client().await;
    create(&mut operator, radio(3)).await;
    let (viewer, _) = world.viewer(json!({ "id": 2 })).await;

    tokio::time::sleep(HOUR - Duration::from_secs(120)).await;
    assert_eq!(listed(&mut operator).await, [1, 2, 3]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(listed(&mut operator).await, [2, 3]);
    let info = json!({ "request": "info", "id": 1 });
    assert_eq!(refused(&mut maker, info).await, 455);
    // Its sockets are closed.
    assert_eq!(world.server.requested().ingests.len(), 2);

    drop(viewer);
    let unused = world.plugin.counters();
    let unused = unused.iter().find(|it| it.name == "ended_unused");
    assert_eq!(unused.unwrap().value, 1);
}

fn configured(members: Value) -> ConfiguredMountpoint {
    ConfiguredMountpoint::read(members.as_object().unwrap(), false).unwrap()
}

#[tokio::test]
async fn a_first_secret_does_not_show_a_stranger_the_network() {
    let camera = json!({
        "type": "rtsp", "id": 7, "name": "gate", "url": "rtsp://127.0.0.1:9/", "rtsp_user": "u",
        "rtsp_pwd": "p", "rtsp_failcheck": false, "video": true,
    });
    let config = StreamingConfig {
        mountpoints: vec![configured(camera)],
        ..StreamingConfig::default()
    };
    let world = World::with(config).await;
    let mut operator = world.client().await;
    let made = async {
        while listed(&mut operator).await != [7] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, made).await;
    in_time.expect("the mountpoint of the configuration in time");
    let mut client = stranger(&world, 1).await;
    let first = json!({ "request": "edit", "id": 7, "new_secret": "x" });
    assert_eq!(refused(&mut client, first.clone()).await, 457);
    let info = json!({ "request": "info", "id": 7, "secret": "x" });
    let told = client.request(info).await["info"].clone();
    assert!(
        told.get("url").is_none() && told.get("rtsp_pwd").is_none(),
        "{told}"
    );
    let edited = operator.request(first).await;
    assert_eq!(edited["streaming"], "edited");
}

#[tokio::test]
async fn a_mountpoint_of_a_stranger_has_ports_of_the_range_and_keeps_little() {
    let world = World::new().await;
    let mut client = stranger(&world, 1).await;
    let mut outside = radio(1);
    outside["media"][0]["port"] = json!(9_999);
    let told = client.request(outside).await;
    assert_eq!(told["error_code"], 456);
    let text = told["error"].as_str().unwrap();
    assert!(text.contains("rtp_port_range"), "{text}");
    let kept = async |client: &mut TestClient, id: u64| {
        let mut large = radio(id);
        large["bufferkf_bytes"] = json!(100 << 20);
        create(client, large).await;
        let info = json!({ "request": "info", "id": id });
        client.request(info).await["info"]["bufferkf_bytes"].clone()
    };
    assert_eq!(kept(&mut client, 2).await, 1 << 20);
    let mut operator = world.client().await;
    assert_eq!(kept(&mut operator, 3).await, 100 << 20);
}

/// Returns whether a refusal is due to too many wrong secrets.
fn waits(refused: &Value) -> bool {
    assert_eq!(refused["error_code"], 457, "{refused}");
    let text = refused["error"].as_str().unwrap();
    text.contains("try again in") && text.contains("max_wrong")
}

/// A server where clients may show five wrong ones, with these mountpoints of an operator.
async fn guarded(mountpoints: Vec<Value>) -> World {
    let world = World::with(StreamingConfig {
        max_wrong: 5,
        ..StreamingConfig::default()
    })
    .await;
    let mut operator = world.client().await;
    for mountpoint in mountpoints {
        create(&mut operator, mountpoint).await;
    }
    world
}

#[tokio::test]
async fn nobody_finds_a_pin_or_a_secret_by_trying() {
    let locked = |id| {
        let mut radio = radio(id);
        radio["pin"] = json!("0042");
        radio["secret"] = json!("s");
        radio
    };
    let world = guarded(vec![locked(1), locked(2)]).await;
    for n in 0..50 {
        let mut client = stranger(&world, 1).await;
        let watch = json!({ "request": "watch", "id": 1, "pin": format!("{n:04}") });
        assert_eq!(waits(&ask(&mut client, watch).await), n >= 5, "{n}");
    }
    // The same holds for another request, and for another member.
    let mut client = stranger(&world, 1).await;
    for name in ["info", "edit", "destroy", "enable", "disable", "kick_all"] {
        let manage = json!({ "request": name, "id": 1, "secret": "s" });
        assert!(waits(&client.request(manage).await), "{name}");
    }
    // Other mountpoints are open, also by `switch`. Other clients and administrators do not have to
    // wait.
    let watch = json!({ "request": "watch", "id": 2, "pin": "0042" });
    let watched = ask(&mut client, watch).await;
    assert_eq!(watched["result"]["status"], "preparing", "{watched}");
    let switch = json!({ "request": "switch", "id": 1, "pin": "0042" });
    assert!(waits(&ask(&mut client, switch).await));
    let watch = json!({ "request": "watch", "id": 1, "pin": "0042" });
    let watched = ask(&mut stranger(&world, 2).await, watch).await;
    assert_eq!(watched["result"]["status"], "preparing", "{watched}");
    let disable = json!({ "request": "disable", "id": 1, "secret": "s" });
    let disabled = world.client().await.request(disable).await;
    assert_eq!(disabled["streaming"], "ok", "{disabled}");
}

#[tokio::test]
async fn what_is_told_without_a_secret_and_with_one_is_no_way_to_find_it() {
    let mut locked = radio(1);
    locked["secret"] = json!("s");
    let world = guarded(vec![locked]).await;
    let mut client = stranger(&world, 1).await;
    let info = |secret: &str| json!({ "request": "info", "id": 1, "secret": secret });
    for _ in 0..8 {
        assert_eq!(client.request(info("old")).await["streaming"], "info");
    }
    for n in 0..8 {
        let told = client.request(info(&n.to_string())).await;
        assert_eq!(told["streaming"] == "info", n < 4, "{n}: {told}");
    }
    assert!(waits(&client.request(info("s")).await));
    // Public members need no secret.
    let public = json!({ "request": "info", "id": 1 });
    assert_eq!(client.request(public).await["streaming"], "info");
}

#[tokio::test]
async fn nobody_finds_what_publishers_show_by_trying() {
    let studio = |id| {
        json!({ "request": "create", "type": "whip", "id": id, "token": "t", "secret": "s",
            "media": [{ "type": "audio", "mid": "a", "codec": "opus" }] })
    };
    let world = guarded(vec![studio(1), studio(2)]).await;
    let mut client = stranger(&world, 1).await;
    for (id, name) in [(1, "token"), (2, "secret")] {
        for n in 0..8 {
            let publish = json!({ "request": "publish", "id": id, name: n.to_string() });
            assert_eq!(
                waits(&ask(&mut client, publish).await),
                n >= 5,
                "{name} {n}"
            );
        }
        let right = json!({ "request": "publish", "id": id, "token": "t" });
        assert!(waits(&ask(&mut client, right.clone()).await));
        // Refused for its lack of an offer.
        assert_eq!(refused(&mut stranger(&world, 2).await, right).await, 461);
    }
}
