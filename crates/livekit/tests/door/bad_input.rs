//! Bad input: each gets the answer that LiveKit gives, and disturbs nobody else.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use flate2::Compression;
use flate2::write::GzEncoder;
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use portunus_core::testing::Line;
use portunus_livekit::LiveKitConfig;
use portunus_livekit::protocol::{
    AddTrackRequest, DataPacket, LeaveRequest, MuteTrackRequest, RequestResponse,
    SessionDescription, SubscriptionError, SyncState, TrackInfo, TrackPublishedResponse,
    TrickleRequest, UpdateParticipantMetadata, UpdateSubscription, UpdateTrackSettings, UserPacket,
    WrappedJoinRequest, data_packet, leave_request, participant_info, request_response,
    signal_request, signal_response,
};
use portunus_media::{DataMessage, DataPayload, Event};
use prost::Message as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::tracks::{answer, publish, seen};
use crate::world::{Client, KEY, World, description, signed, token};

/// Fails unless a client is served as usual.
async fn is_served(client: &mut Client) {
    client.send(signal_request::Message::Ping(1)).await;
    let pong = |message| matches!(message, signal_response::Message::Pong(_)).then_some(());
    client.expect("pong", pong).await;
}

async fn leave(client: &mut Client) -> LeaveRequest {
    let left = client.expect("leave", |message| match message {
        signal_response::Message::Leave(leave) => Some(leave),
        _ => None,
    });
    left.await
}

async fn refused(client: &mut Client) -> RequestResponse {
    let refused = client.expect("request_response", |message| match message {
        signal_response::Message::RequestResponse(response) => Some(response),
        _ => None,
    });
    refused.await
}

/// Lets time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn tokens_that_are_wrong_are_refused_with_401() {
    let world = World::new().await;
    let now = get_current_timestamp();
    let video = json!({ "roomJoin": true, "room": "demo" });
    let claims = json!({ "iss": KEY, "sub": "al", "exp": now + 600, "video": video });
    let key = EncodingKey::from_secret(b"another-secret-of-more-than-32-bytes");
    let forged = encode(&Header::default(), &claims, &key).unwrap();
    let other = Header::new(jsonwebtoken::Algorithm::HS512);
    let secret = EncodingKey::from_secret(crate::world::SECRET.as_bytes());
    let other = encode(&other, &claims, &secret).unwrap();
    let [_, body, _] = forged.split('.').collect::<Vec<_>>().try_into().unwrap();
    let none = format!("{}.{body}.", URL_SAFE.encode(r#"{"alg":"none"}"#));
    let mut later = claims.clone();
    later["nbf"] = (now + 600).into();
    let mut endless = claims.clone();
    endless.as_object_mut().unwrap().remove("exp");
    let mut mistyped = claims.clone();
    mistyped["video"] = json!({ "roomJoin": "yes" });
    let mut no_join = claims.clone();
    no_join["video"] = json!({ "room": "demo" });
    for token in [
        forged,
        other,
        none,
        signed(&later),
        signed(&endless),
        signed(&mistyped),
        signed(&no_join),
        "a.b.c".to_owned(),
        String::new(),
    ] {
        let query = format!("access_token={token}");
        let (status, text) = world.get(&format!("/rtc/validate?{query}")).await;
        assert_eq!(status, 401, "{token}: {text}");
        match world.connect(&query).await {
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), 401),
            other => panic!("{other:?}"),
        }
    }
    let mut al = world.join("al", "demo").await;
    is_served(&mut al).await;
}

#[tokio::test]
async fn join_requests_that_are_wrong_are_refused_with_400() {
    let world = World::new().await;
    let token = token("al", "demo", json!({}));
    let wrapped = |compression, join_request| {
        let wrapped = WrappedJoinRequest {
            compression,
            join_request,
        };
        URL_SAFE.encode(wrapped.encode_to_vec())
    };
    // A megabyte of zeros is about a kilobyte.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![0; 4 << 20]).unwrap();
    for (request, text) in [
        (wrapped(1, bomb.finish().unwrap()), "decompressed"),
        (wrapped(1, b"no gzip".to_vec()), "decompressed"),
        (wrapped(0, vec![0xFF; 9]), "unmarshal"),
        ("%21%21".to_owned(), "base64"),
        (String::new(), "join_request is required"),
    ] {
        let query = format!("access_token={token}&join_request={request}");
        let (status, body) = world.get(&format!("/rtc/v1/validate?{query}")).await;
        assert_eq!((status, body.contains(text)), (400, true), "{text}: {body}");
    }
    let long = URL_SAFE.encode(json!({ "a": "v".repeat(65 << 10) }).to_string());
    for attributes in [long, "%21".to_owned(), URL_SAFE.encode("[1]")] {
        // The HTTP server itself refuses what is longer than its buffer.
        let query = format!("access_token={token}&attributes={attributes}");
        let (status, _) = world.get(&format!("/rtc/validate?{query}")).await;
        assert!([400, 414, 431].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection_and_nothing_else() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    // The connection may end before all of it is sent.
    let _ = al.try_send_raw(Message::binary(vec![0; 3 << 20])).await;
    assert!(al.frame_until_closed().await);
    is_served(&mut bo).await;
    let mut al = world.join("al", "demo").await;
    is_served(&mut al).await;
}

#[tokio::test]
async fn unknown_tracks_are_not_found() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    answer(&mut al, &[Line::Data]).await;
    let mute = MuteTrackRequest {
        sid: "TR_none".to_owned(),
        muted: true,
    };
    al.send(signal_request::Message::Mute(mute.clone())).await;
    let answer = refused(&mut al).await;
    assert_eq!(answer.reason(), request_response::Reason::NotFound);
    assert_eq!(answer.request, Some(request_response::Request::Mute(mute)));
    let second = AddTrackRequest {
        cid: "b".to_owned(),
        sid: "TR_none".to_owned(),
        ..AddTrackRequest::default()
    };
    al.send(signal_request::Message::AddTrack(second)).await;
    let answer = refused(&mut al).await;
    assert_eq!(answer.reason(), request_response::Reason::NotFound);
    let settings = UpdateTrackSettings {
        track_sids: vec!["TR_none".to_owned(); 10_000],
        ..UpdateTrackSettings::default()
    };
    al.send(signal_request::Message::TrackSetting(settings))
        .await;
    let wish = UpdateSubscription {
        track_sids: vec!["TR_none".to_owned()],
        subscribe: true,
        ..UpdateSubscription::default()
    };
    al.send(signal_request::Message::Subscription(wish)).await;
    is_served(&mut al).await;
    // The track may still appear, for a minute.
    world.all_up().await;
    seen(&mut al, "al", |it| {
        it.state() == participant_info::State::Active
    })
    .await;
    is_served(&mut al).await;
    pass(Duration::from_secs(61)).await;
    let missing = al.expect("subscription_response", |message| match message {
        signal_response::Message::SubscriptionResponse(response) => Some(response),
        _ => None,
    });
    let missing = missing.await;
    assert_eq!(missing.track_sid, "TR_none");
    assert_eq!(missing.err(), SubscriptionError::SeTrackNotfound);
}

#[tokio::test]
async fn unknown_rooms_are_not_found() {
    let config = LiveKitConfig {
        auto_create: false,
        ..LiveKitConfig::default()
    };
    let world = World::with(config).await;
    let query = format!("access_token={}", token("al", "none", json!({})));
    match world.connect(&query).await {
        Err(Error::Http(response)) => {
            assert_eq!(response.status().as_u16(), 404);
            let body = response.into_body().unwrap_or_default();
            assert_eq!(body, b"requested room does not exist");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn descriptions_at_the_wrong_time_are_ignored_and_broken_ones_end_the_state() {
    let world = World::new().await;
    let mut bo = world.join("bo", "demo").await;
    let mut al = world.join("al", "demo").await;
    let offer = al.expect("offer", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer),
        _ => None,
    });
    let offer = offer.await;
    // An answer to no offer of ours, and one twice.
    let mut stale = description("answer", &[Line::Data]);
    stale.id = offer.id + 7;
    al.send(signal_request::Message::Answer(stale)).await;
    for _ in 0..2 {
        let mut answer = description("answer", &[Line::Data]);
        answer.id = offer.id;
        al.send(signal_request::Message::Answer(answer)).await;
    }
    is_served(&mut al).await;
    for sdp in ["", "v=0", "not SDP at all", &"a".repeat(100_000)] {
        let broken = SessionDescription {
            r#type: "offer".to_owned(),
            sdp: sdp.to_owned(),
            id: 1,
            ..SessionDescription::default()
        };
        al.send(signal_request::Message::Offer(broken)).await;
        let left = leave(&mut al).await;
        assert_eq!(left.action(), leave_request::Action::Reconnect);
    }
    for candidate_init in [
        "",
        "{",
        r#"{"candidate":1}"#,
        r#"{"candidate":"candidate:x"}"#,
    ] {
        let trickle = TrickleRequest {
            candidate_init: candidate_init.to_owned(),
            target: 7,
            ..TrickleRequest::default()
        };
        al.send(signal_request::Message::Trickle(trickle)).await;
    }
    is_served(&mut al).await;
    is_served(&mut bo).await;
}

#[tokio::test]
async fn two_offers_at_once_are_answered_one_after_the_other() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    for id in [1, 2] {
        let mut offer = description("offer", &[Line::Audio, Line::Data]);
        offer.id = id;
        al.send(signal_request::Message::Offer(offer)).await;
    }
    for id in [1, 2] {
        let answer = al.expect("answer", |message| match message {
            signal_response::Message::Answer(answer) => Some(answer),
            _ => None,
        });
        assert_eq!(answer.await.id, id);
    }
    is_served(&mut al).await;
}

#[tokio::test]
async fn a_client_that_does_not_answer_offers_has_to_join_anew() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    // Who receives nothing need not answer.
    let mut cy = world
        .join_with("cy", "demo", json!({ "canSubscribe": false }), "")
        .await;
    world.all_up().await;
    is_served(&mut bo).await;
    pass(Duration::from_secs(16)).await;
    let left = leave(&mut al).await;
    assert_eq!(left.action(), leave_request::Action::Reconnect);
    assert!(al.frame_until_closed().await);
    pass(Duration::from_secs(6)).await;
    let gone = |it: &portunus_livekit::protocol::ParticipantInfo| {
        it.state() == participant_info::State::Disconnected
    };
    seen(&mut bo, "al", gone).await;
    is_served(&mut bo).await;
    is_served(&mut cy).await;
}

#[tokio::test]
async fn a_client_whose_media_never_flows_is_removed() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    answer(&mut al, &[Line::Data]).await;
    is_served(&mut al).await;
    pass(Duration::from_secs(61)).await;
    let left = leave(&mut al).await;
    assert_eq!(left.action(), leave_request::Action::Disconnect);
    assert_eq!(
        left.reason(),
        portunus_livekit::protocol::DisconnectReason::JoinFailure
    );
    assert!(al.frame_until_closed().await);
}

#[tokio::test]
async fn ten_thousand_messages_of_one_client_delay_nobody() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let peers = world.server.peers().into_iter();
    let publisher = peers.clone().find(|it| !before.contains(it)).unwrap();
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    world.all_up().await;
    seen(&mut bo, "bo", |it| {
        it.state() == participant_info::State::Active
    })
    .await;
    let packet = |sequence| DataPacket {
        sequence,
        value: Some(data_packet::Value::User(UserPacket {
            payload: vec![7; 100],
            ..UserPacket::default()
        })),
        ..DataPacket::default()
    };
    for sequence in 1..=10_000 {
        let message = DataMessage {
            label: "_reliable".to_owned(),
            protocol: String::new(),
            payload: DataPayload::Binary(packet(sequence).encode_to_vec()),
        };
        world.server.happen(publisher, Event::Data(message)).await;
        if sequence % 2_500 == 0 {
            is_served(&mut bo).await;
        }
    }
    let waiting = async {
        while world.server.requested().data.len() < 10_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
    // One that is too long, one that is no packet, and one of an unknown channel go nowhere.
    for (label, payload) in [
        ("_reliable", vec![0; (64 << 10) + 1]),
        ("_reliable", vec![0xFF; 5]),
        ("other", vec![0; 5]),
    ] {
        let message = DataMessage {
            label: label.to_owned(),
            protocol: String::new(),
            payload: DataPayload::Binary(payload),
        };
        world.server.happen(publisher, Event::Data(message)).await;
    }
    is_served(&mut al).await;
    is_served(&mut bo).await;
    assert_eq!(world.server.requested().data.len(), 10_000);
}

#[tokio::test]
async fn attributes_and_metadata_have_an_end() {
    use request_response::Reason;
    let world = World::new().await;
    let grants = json!({ "canUpdateOwnMetadata": true });
    let mut al = world.join_with("al", "demo", grants, "").await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut al, &[Line::Data]).await;
    answer(&mut bo, &[Line::Data]).await;
    let update = |name: &str, metadata: usize, attributes: &[(String, usize)]| {
        let text = |(name, length): &(String, usize)| (name.clone(), "v".repeat(*length));
        UpdateParticipantMetadata {
            name: name.to_owned(),
            metadata: "m".repeat(metadata),
            attributes: attributes.iter().map(text).collect::<HashMap<_, _>>(),
            request_id: 3,
        }
    };
    for (update, reason) in [
        (update("", 512 << 10, &[]), Reason::Ok),
        (update("", (512 << 10) + 1, &[]), Reason::LimitExceeded),
        (update(&"n".repeat(257), 0, &[]), Reason::LimitExceeded),
        (
            update("", 0, &[("a".to_owned(), 64 << 10)]),
            Reason::LimitExceeded,
        ),
        (update("", 0, &[("a".to_owned(), 60_000)]), Reason::Ok),
        // What is there counts, too.
        (
            update("", 0, &[("b".to_owned(), 6_000)]),
            Reason::LimitExceeded,
        ),
        (
            update("", 0, &[("a".to_owned(), 0), ("b".to_owned(), 6_000)]),
            Reason::Ok,
        ),
    ] {
        al.send(signal_request::Message::UpdateMetadata(update))
            .await;
        let answer = refused(&mut al).await;
        assert_eq!((answer.request_id, answer.reason()), (3, reason));
    }
    for number in 0..1_000 {
        let one = [(format!("attribute {number:0200}"), 1)];
        let message = signal_request::Message::UpdateMetadata(update("", 1, &one));
        al.send(message).await;
        if refused(&mut al).await.reason() == Reason::LimitExceeded {
            assert!(number > 200);
            is_served(&mut bo).await;
            return;
        }
    }
    panic!("there is no end");
}

#[tokio::test]
async fn a_state_that_is_not_the_servers_is_started_anew() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    publish(&world, &mut al).await;
    let unknown = TrackPublishedResponse {
        cid: "x".to_owned(),
        track: Some(TrackInfo {
            sid: "TR_none".to_owned(),
            ..TrackInfo::default()
        }),
    };
    let sync = SyncState {
        publish_tracks: vec![unknown],
        ..SyncState::default()
    };
    al.send(signal_request::Message::SyncState(sync)).await;
    let left = leave(&mut al).await;
    assert_eq!(left.action(), leave_request::Action::Reconnect);
}

#[tokio::test]
async fn bad_input_is_counted() {
    let world = World::new().await;
    let before = world.metrics();
    let _ = world.connect("access_token=no").await;
    let mut al = world.join("al", "demo").await;
    al.send_raw(Message::binary(vec![0xFF; 3])).await;
    let mute = MuteTrackRequest::default();
    al.send(signal_request::Message::Mute(mute)).await;
    refused(&mut al).await;
    let counted = |text: &str, what: &str| {
        let line = format!("portunus_livekit_refused_total{{what=\"{what}\"}} ");
        let value = text.lines().find_map(|it| it.strip_prefix(&line));
        value.unwrap().parse::<u64>().unwrap()
    };
    let after = world.metrics();
    for what in ["join", "frame", "request"] {
        assert_eq!(counted(&after, what), counted(&before, what) + 1, "{what}");
    }
    assert!(after.contains("portunus_livekit_participants 1"), "{after}");
}
