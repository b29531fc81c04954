//! One PeerConnection: the client offers, and the server gives its m-lines to tracks.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use portunus_core::testing::Line;
use portunus_livekit::protocol::{
    AddTrackRequest, ConnectionSettings, JoinRequest, SessionDescription, TrackSource, TrackType,
    WrappedJoinRequest, signal_request, signal_response,
};
use prost::Message;
use serde_json::json;

use crate::world::{Client, World, description, token};

/// Returns an offer of m-lines to receive on.
fn receiving(lines: &[Line]) -> SessionDescription {
    let mut offer = description("offer", lines);
    offer.sdp = offer
        .sdp
        .replace("a=sendrecv", "a=recvonly")
        .replace("a=msid:s a\r\n", "");
    offer.sdp = offer.sdp.replace("a=msid:s v\r\n", "");
    offer
}

fn query(identity: &str, offer: SessionDescription) -> String {
    let request = JoinRequest {
        connection_settings: Some(ConnectionSettings {
            auto_subscribe: true,
            ..ConnectionSettings::default()
        }),
        publisher_offer: Some(offer),
        ..JoinRequest::default()
    };
    let wrapped = WrappedJoinRequest {
        compression: 0,
        join_request: request.encode_to_vec(),
    };
    let token = token(identity, "demo", json!({}));
    let request = URL_SAFE.encode(wrapped.encode_to_vec());
    format!("access_token={token}&join_request={request}")
}

async fn answer(client: &mut Client) -> SessionDescription {
    let answer = client.expect("answer", |message| match message {
        signal_response::Message::Answer(answer) => Some(answer),
        _ => None,
    });
    answer.await
}

/// Publishes audio and video by two PeerConnections.
async fn publisher(world: &World, identity: &str) -> Client {
    let mut client = world.join(identity, "demo").await;
    for (cid, kind, source) in [
        ("a", TrackType::Audio, TrackSource::Microphone),
        ("v", TrackType::Video, TrackSource::Camera),
    ] {
        let request = AddTrackRequest {
            cid: cid.to_owned(),
            r#type: kind.into(),
            source: source.into(),
            ..AddTrackRequest::default()
        };
        client
            .send(signal_request::Message::AddTrack(request))
            .await;
    }
    client.offer(&[Line::Audio, Line::Video]).await;
    world.all_up().await;
    client
}

#[tokio::test]
async fn the_first_answer_has_the_tracks_and_more_lines_are_asked_for() {
    let world = World::new().await;
    let _al = publisher(&world, "al").await;
    let lines = [Line::Audio, Line::Video, Line::Data];
    let mut bo = world
        .connect(&query("bo", receiving(&lines)))
        .await
        .unwrap();
    let first = answer(&mut bo).await;
    assert_eq!(first.mid_to_track_id.len(), 2, "{}", first.sdp);
    for track in first.mid_to_track_id.values() {
        assert!(
            first.sdp.contains(&format!("|{track} {track}")),
            "{}",
            first.sdp
        );
    }
    assert_eq!(first.sdp.matches("a=sendonly").count(), 2);
    let _cy = publisher(&world, "cy").await;
    let missing = bo.expect("media_sections_requirement", |message| match message {
        signal_response::Message::MediaSectionsRequirement(missing) => Some(missing),
        _ => None,
    });
    let missing = missing.await;
    assert_eq!((missing.num_audios, missing.num_videos), (1, 1));
    let more = [
        Line::Audio,
        Line::Video,
        Line::Data,
        Line::Audio,
        Line::Video,
    ];
    bo.send(signal_request::Message::Offer(receiving(&more)))
        .await;
    let second = answer(&mut bo).await;
    assert_eq!(second.mid_to_track_id.len(), 4, "{}", second.sdp);
    assert_eq!(world.server.requested().routes.len(), 4);
}

#[tokio::test]
async fn a_line_is_free_for_another_once_it_was_inactive() {
    let world = World::new().await;
    let mut al = publisher(&world, "al").await;
    let lines = [Line::Audio, Line::Video, Line::Data];
    let mut bo = world
        .connect(&query("bo", receiving(&lines)))
        .await
        .unwrap();
    let first = answer(&mut bo).await;
    al.send(signal_request::Message::Leave(Default::default()))
        .await;
    let again = |missing: portunus_livekit::protocol::MediaSectionsRequirement| {
        (missing.num_audios, missing.num_videos) == (0, 0)
    };
    let asked = bo.expect("media_sections_requirement", |message| match message {
        signal_response::Message::MediaSectionsRequirement(missing) => Some(missing),
        _ => None,
    });
    assert!(again(asked.await));
    bo.send(signal_request::Message::Offer(receiving(&lines)))
        .await;
    let second = answer(&mut bo).await;
    assert!(second.mid_to_track_id.is_empty());
    assert_eq!(
        second.sdp.matches("a=inactive").count(),
        2,
        "{}",
        second.sdp
    );
    let _cy = publisher(&world, "cy").await;
    let asked = bo.expect("media_sections_requirement", |message| match message {
        signal_response::Message::MediaSectionsRequirement(missing) => Some(missing),
        _ => None,
    });
    assert!(again(asked.await));
    bo.send(signal_request::Message::Offer(receiving(&lines)))
        .await;
    let third = answer(&mut bo).await;
    assert_eq!(third.mid_to_track_id.len(), 2);
    assert!(
        third
            .mid_to_track_id
            .iter()
            .all(|(mid, track)| first.mid_to_track_id.get(mid) != Some(track))
    );
}
