//! Dummy publishers.

use portunus_core::testing::jsep;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, sync};

async fn dummy_of(world: &World) -> Value {
    let (_, joined) = world.join(json!({})).await;
    joined["publishers"][0].clone()
}

#[tokio::test]
async fn a_dummy_is_listed_and_holds_a_place_for_each_codec() {
    let options = json!({ "dummy_publisher": true, "audiocodec": "opus,pcmu",
                          "videocodec": "vp8,h264", "h264_profile": "42e01f" });
    let world = World::new(options).await;
    let dummy = dummy_of(&world).await;
    assert_eq!(dummy["display"], "Dummy publisher");
    assert_eq!(dummy["dummy"], true);
    assert_eq!(dummy.get("talking"), None);
    let streams = json!([
        { "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "fec": true },
        { "type": "audio", "mindex": 1, "mid": "1", "codec": "pcmu" },
        { "type": "video", "mindex": 2, "mid": "2", "codec": "vp8" },
        { "type": "video", "mindex": 3, "mid": "3", "codec": "h264", "h264_profile": "42e01f" },
    ]);
    assert_eq!(dummy["streams"], streams);
    let mut admin = world.attach().await;
    let list = sync(&mut admin, json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["dummy_publisher"], true);
    assert_eq!(list["list"][0]["num_participants"], 2);
    let people = json!({ "request": "listparticipants", "room": ROOM });
    let people = sync(&mut admin, people).await;
    let people = people["participants"].as_array().unwrap();
    let listed = people.iter().find(|person| person["dummy"] == true);
    let expected = json!({ "id": dummy["id"], "display": "Dummy publisher", "dummy": true,
                           "publisher": true });
    assert_eq!(listed, Some(&expected));
    for request in [
        json!({ "request": "kick", "room": ROOM, "id": dummy["id"] }),
        json!({ "request": "moderate", "room": ROOM, "id": dummy["id"], "mid": "0", "mute": true }),
    ] {
        assert_eq!(code(&sync(&mut admin, request).await), 428);
    }
}

#[tokio::test]
async fn its_streams_may_be_limited() {
    let options = json!({ "dummy_publisher": true, "videocodec": "vp8,vp9", "dummy_streams": [
        { "codec": "vp9", "fmtp": "profile-id=2" },
        { "codec": "opus", "fmtp": "usedtx=1;stereo=1" },
        { "codec": "av1" },
    ]});
    let world = World::new(options).await;
    let streams = json!([
        { "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "stereo": true },
        { "type": "video", "mindex": 1, "mid": "1", "codec": "vp9", "vp9_profile": "2" },
    ]);
    assert_eq!(dummy_of(&world).await["streams"], streams);
}

#[tokio::test]
async fn it_takes_no_publisher_s_place_and_is_in_no_event() {
    let world = World::new(json!({ "dummy_publisher": true, "publishers": 1 })).await;
    let (mut watching, _) = world.join(json!({ "id": 7 })).await;
    let _al = world.publisher(1, &AV).await;
    let event = watching.event().await;
    assert_eq!(event["publishers"].as_array().unwrap().len(), 1);
    assert_eq!(event["publishers"][0]["id"], 1);
    let destroy = json!({ "request": "destroy", "room": ROOM });
    sync(&mut world.attach().await, destroy).await;
    assert_eq!(watching.event().await["videoroom"], "destroyed");
    watching.expect_silence().await;
}

#[tokio::test]
async fn a_switch_gives_its_place_to_somebody_without_an_offer() {
    let world = World::new(json!({ "dummy_publisher": true })).await;
    let dummy = dummy_of(&world).await;
    let streams = json!([{ "feed": dummy["id"] }]);
    let mut viewer = world.viewer(json!({ "streams": streams })).await;
    assert_eq!(viewer.directions(), ["sendonly", "sendonly"]);
    // The extensions of later publishers are negotiated now.
    assert!(viewer.offer.contains("urn:3gpp:video-orientation"));
    assert!(world.routes(&viewer).is_empty());
    let al = world.publisher(1, &AV).await;
    let switch = json!({ "request": "switch", "streams": [
        { "feed": 1, "mid": "0", "sub_mid": "0" }, { "feed": 1, "mid": "1", "sub_mid": "1" },
    ]});
    let switched = ask(&mut viewer.client, switch).await;
    assert_eq!(switched["changes"], 2, "{switched}");
    let routes = world.routes(&viewer);
    assert_eq!(routes.len(), 2);
    assert!(routes.iter().all(|route| route.0 == al.peer && route.3));
    // The m-line goes back to the placeholder.
    let back = json!({ "request": "switch", "feed": dummy["id"] });
    ask(&mut viewer.client, back).await;
    assert!(world.routes(&viewer).is_empty());
    viewer.client.expect_silence().await;
}

#[tokio::test]
async fn it_counts_as_encrypted_where_it_has_to() {
    for options in [
        json!({ "dummy_publisher": true, "dummy_e2ee": true }),
        json!({ "dummy_publisher": true, "require_e2ee": true }),
    ] {
        let world = World::new(options).await;
        let dummy = dummy_of(&world).await;
        let mut offer = jsep("offer", "alal", &AV);
        offer["e2ee"] = json!(true);
        let _al = world.publisher_with(json!({ "id": 1 }), offer).await;
        let feeds = json!({ "streams": [{ "feed": dummy["id"] }, { "feed": 1 }] });
        let viewer = world.viewer(feeds).await;
        assert_eq!(viewer.directions().len(), 4);
    }
    let world = World::new(json!({ "dummy_publisher": true })).await;
    let dummy = dummy_of(&world).await;
    let mut offer = jsep("offer", "alal", &AV);
    offer["e2ee"] = json!(true);
    let _al = world.publisher_with(json!({ "id": 1 }), offer).await;
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": [{ "feed": dummy["id"] }, { "feed": 1 }] });
    let mut client = world.attach().await;
    assert_eq!(code(&ask(&mut client, join).await), 438);
}
