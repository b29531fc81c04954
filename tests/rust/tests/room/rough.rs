//! Rough treatment, over real PeerConnections.

use std::net::UdpSocket;

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};

use crate::world::{
    AUDIO, PACKAGE, ROOM, VIDEO, flow, joining, keyframe, publisher, sdp, server, server_with,
    viewer,
};

const FEED: &str = "/plugindata/data";

#[tokio::test]
async fn what_has_just_left_cannot_be_subscribed_to_and_harms_nothing() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let mut viewer = viewer(&server, json!([{ "feed": 2, "mid": "1" }])).await;
    al.ask(json!({ "request": "leave" }), "leaving").await;
    let both = json!([{ "feed": 2, "mid": "0" }, { "feed": 1, "mid": "1" }]);
    let subscribe = json!({ "request": "subscribe", "streams": both });
    viewer.caller.message(subscribe, None).await;
    let refused = viewer.caller.until("/janus", "event").await;
    assert_eq!(refused["plugindata"]["data"]["error_code"], 428);
    // The request had no effect, and the next one works as usual.
    flow(&mut bo, VIDEO, &mut viewer, 0, &keyframe(1)).await;
    let one = json!([{ "feed": 2, "mid": "0" }]);
    viewer
        .change(json!({ "request": "subscribe", "streams": one }))
        .await;
    flow(&mut bo, AUDIO, &mut viewer, 1, b"bo is here").await;
    assert_eq!(viewer.peer.negotiated().media.len(), 2);
}

#[tokio::test]
async fn who_unpublishes_during_a_negotiation_leaves_an_inactive_place() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let want = json!([{ "feed": 1, "mid": "1" }, { "feed": 2, "mid": "1" }]);
    let (mut viewer, attached) = joining(&server, json!({ "streams": want })).await;
    al.ask(json!({ "request": "unpublish" }), "unpublished")
        .await;
    viewer.answer(&attached).await;
    let updated = viewer
        .caller
        .until(&format!("{FEED}/videoroom"), "updated")
        .await;
    viewer.answer(&updated).await;
    viewer.peer.connect().await;
    assert!(!viewer.peer.negotiated().media[0].recv);
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(1)).await;
    // A returning publisher can be watched in the same place.
    let mut cy = publisher(&server, 3).await;
    let again = json!([{ "feed": 3, "mid": "1" }]);
    viewer
        .change(json!({ "request": "subscribe", "streams": again }))
        .await;
    flow(&mut cy, VIDEO, &mut viewer, 0, &keyframe(2)).await;
}

/// Returns a description with a picture in VP9 alone, on the m-line of a publisher that had VP8
/// there.
fn in_vp9() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, None);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(CodecName::Vp9, None, None);
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    Description::offer(OfferOptions {
        media: vec![audio, video, data],
        ..Default::default()
    })
}

#[tokio::test]
async fn a_publisher_that_changes_its_codec_is_seen_after_an_update() {
    let server = server_with(1, json!({ "videocodec": "vp8,vp9" })).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let want = json!([{ "feed": 1, "mid": "1" }, { "feed": 2, "mid": "1" }]);
    let mut viewer = viewer(&server, want).await;
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(1)).await;
    let offer = al.peer.offer(in_vp9());
    let configure = json!({ "request": "configure" });
    al.caller.message(configure, Some(("offer", &offer))).await;
    let configured = al.caller.until(&format!("{FEED}/configured"), "ok").await;
    assert_eq!(configured["plugindata"]["data"]["video_codec"], "vp9");
    al.peer.accept(sdp(&configured));
    // The others are notified, and a viewer that does nothing loses only this picture.
    let told = bo.caller.until(&format!("{FEED}/publishers/0/id"), 1).await;
    let streams = &told["plugindata"]["data"]["publishers"][0]["streams"];
    assert_eq!(streams[1]["codec"], "vp9", "{told}");
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(2)).await;
    let request = json!({ "request": "configure", "update": true });
    viewer.caller.message(request, None).await;
    let configured = viewer
        .caller
        .until(&format!("{FEED}/configured"), "ok")
        .await;
    viewer.answer(&configured).await;
    let vp9_keyframe = [0x88, 0x80, 0x01, 0x82, 0x49, 0x83, 0x42, 9];
    flow(&mut al, VIDEO, &mut viewer, 0, &vp9_keyframe).await;
}

#[tokio::test]
async fn forwarders_to_closed_ports_disturb_nobody_and_end_with_their_publisher() {
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let mut viewer = viewer(&server, json!([{ "feed": 1, "mid": "1" }])).await;
    // A port that was in use a moment ago.
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let open = listener.local_addr().unwrap().port();
    let forward = json!({ "request": "rtp_forward", "room": ROOM, "publisher_id": 1, "host": "127.0.0.1",
                          "streams": [{ "mid": "1", "port": port }, { "mid": "1", "port": open }] });
    let forwarding = al.caller.manage(forward).await;
    assert_eq!(
        forwarding["forwarders"].as_array().unwrap().len(),
        2,
        "{forwarding}"
    );
    for mark in 1..30 {
        flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(mark)).await;
    }
    let mut buffer = [0; 1_500];
    let mut received = 0;
    while listener.recv(&mut buffer).is_ok() {
        received += 1;
    }
    assert!(received >= 29, "{received}");
    al.ask(json!({ "request": "unpublish" }), "unpublished")
        .await;
    let list = json!({ "request": "listforwarders", "room": ROOM });
    let left = al.caller.manage(list).await;
    assert_eq!(left["publishers"], json!([]), "{left}");
}

#[tokio::test]
async fn a_publisher_that_stops_sending_is_told_and_one_whose_connection_ends_is_gone() {
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let mut viewer = viewer(&server, json!([{ "feed": 1, "mid": "1" }])).await;
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(1)).await;
    // It sends nothing any more. After a second, it is notified, and remains a publisher.
    let silent = loop {
        al.peer.run_until(|_| true).await;
        let media = al.caller.until("/janus", "media").await;
        if media["receiving"] == false {
            break media;
        }
    };
    assert_eq!(silent["mid"], "1", "{silent}");
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(2)).await;
    // It leaves without a request to the plugin. All are notified, its viewers first.
    al.peer.connection.transport.close();
    al.turn().await;
    let updated = viewer
        .caller
        .until(&format!("{FEED}/videoroom"), "updated")
        .await;
    viewer.answer(&updated).await;
    assert!(!viewer.peer.negotiated().media[0].recv);
    bo.caller.until(&format!("{FEED}/unpublished"), 1).await;
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let listed = bo.caller.manage(list).await;
    let people = listed["participants"].as_array().unwrap();
    let of_al = people.iter().find(|person| person["id"] == 1).unwrap();
    assert_eq!(of_al["publisher"], false, "{listed}");
}

#[tokio::test]
async fn a_subscriber_that_never_answers_gets_nothing_and_one_that_goes_leaves_nothing() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let want = json!({ "streams": [{ "feed": 1, "mid": "1" }] });
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(joining(&server, want.clone()).await.0);
    }
    for (n, member) in silent.iter_mut().enumerate() {
        let more = json!({ "request": "subscribe", "streams": [{ "feed": 1, "mid": "0" }] });
        for _ in 0..n {
            member.caller.message(more.clone(), None).await;
            let told = member.caller.until("/janus", "event").await;
            assert_eq!(
                told["plugindata"]["data"]["videoroom"], "updating",
                "{told}"
            );
        }
    }
    let mut viewer = viewer(&server, json!([{ "feed": 1, "mid": "1" }])).await;
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(1)).await;
    let peers = server.gateway.media_totals().peers;
    assert_eq!(peers, 22);
    for mut member in silent {
        let leave = json!({ "request": "leave" });
        member.caller.message(leave, None).await;
        member.caller.until(&format!("{FEED}/left"), "ok").await;
    }
    while server.gateway.media_totals().peers > 2 {
        viewer.turn().await;
    }
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(2)).await;
}

#[tokio::test]
async fn thousands_of_requests_on_one_handle_are_answered_in_order_while_media_flows() {
    const REQUESTS: usize = 3_000;
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let mut viewer = viewer(&server, json!([{ "feed": 1, "mid": "1" }])).await;
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(1)).await;
    let handle = &mut viewer.caller;
    for n in 0..REQUESTS {
        let body = match n % 3 {
            0 => json!({ "request": "pause" }),
            1 => json!({ "request": "start" }),
            _ => json!({ "request": "nonsense" }),
        };
        let reply = handle.request("message", json!({ "body": body })).await;
        let data = match n % 3 {
            2 => reply,
            _ => handle.until("/janus", "event").await,
        };
        let data = &data["plugindata"]["data"];
        let expected: (&str, Value) = match n % 3 {
            0 => ("paused", "ok".into()),
            1 => ("started", "ok".into()),
            _ => ("error_code", 423.into()),
        };
        assert_eq!(data[expected.0], expected.1, "{n}: {data}");
    }
    flow(&mut al, VIDEO, &mut viewer, 0, &keyframe(2)).await;
}

#[tokio::test]
async fn a_storm_of_offers_and_departures_leaves_nobody_behind() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    for n in 0..30_u64 {
        let mut caller = server.attach(PACKAGE).await;
        let mut peer = Peer::offering().await;
        let offer = peer.offer(in_vp9());
        let join = json!({ "request": "joinandconfigure", "room": ROOM, "ptype": "publisher", "id": 100 + n });
        let reply = caller.request(
            "message",
            json!({ "body": join, "jsep": { "type": "offer", "sdp": offer } }),
        );
        assert_eq!(reply.await["janus"], "ack");
        // Some wait for the answer, some do not.
        if n % 2 == 0 {
            caller.until("/janus", "event").await;
        }
        assert_eq!(
            caller.request("detach", json!({})).await["janus"],
            "success"
        );
    }
    let list = json!({ "request": "listparticipants", "room": ROOM });
    loop {
        let listed = al.caller.manage(list.clone()).await;
        if listed["participants"].as_array().unwrap().len() == 1 {
            break;
        }
        al.turn().await;
    }
    while server.gateway.media_totals().peers > 1 {
        al.turn().await;
    }
}
