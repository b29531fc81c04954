//! Tracks: published, seen, subscribed, muted, refused.

use portunus_core::testing::Line;
use portunus_livekit::protocol::{
    AddTrackRequest, MuteTrackRequest, ParticipantInfo, TrackInfo, TrackSource, TrackType,
    UpdateSubscription, request_response, signal_request, signal_response,
};
use serde_json::json;

use crate::world::{Client, World, description};

/// Announces a track. Returns the server's description.
pub async fn add(
    client: &mut Client,
    cid: &str,
    kind: TrackType,
    source: TrackSource,
) -> TrackInfo {
    let request = AddTrackRequest {
        cid: cid.to_owned(),
        r#type: kind.into(),
        source: source.into(),
        ..AddTrackRequest::default()
    };
    client
        .send(signal_request::Message::AddTrack(request))
        .await;
    let published = client.expect("track_published", |message| match message {
        signal_response::Message::TrackPublished(published) => Some(published),
        _ => None,
    });
    let published = published.await;
    assert_eq!(published.cid, cid);
    published.track.unwrap()
}

/// Returns the first state of a participant for which `is_it`.
pub async fn seen(
    client: &mut Client,
    identity: &str,
    is_it: impl Fn(&ParticipantInfo) -> bool,
) -> ParticipantInfo {
    let found = client.expect("update", |message| match message {
        signal_response::Message::Update(update) => {
            let mut infos = update.participants.into_iter();
            infos.find(|it| it.identity == identity && is_it(it))
        }
        _ => None,
    });
    found.await
}

/// Answers the server's next offer. Returns its text and its tracks.
pub async fn answer(client: &mut Client, lines: &[Line]) -> (String, Vec<String>) {
    let offer = client.expect("offer", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer),
        _ => None,
    });
    let offer = offer.await;
    let mut answer = description("answer", lines);
    answer.id = offer.id;
    client.send(signal_request::Message::Answer(answer)).await;
    (offer.sdp, offer.mid_to_track_id.into_values().collect())
}

pub async fn publish(world: &World, client: &mut Client) -> [TrackInfo; 2] {
    let audio = add(client, "a", TrackType::Audio, TrackSource::Microphone).await;
    let video = add(client, "v", TrackType::Video, TrackSource::Camera).await;
    let answer = client.offer(&[Line::Audio, Line::Video, Line::Data]).await;
    assert_eq!(answer.id, 1);
    assert!(answer.sdp.contains("m=application 9"), "{}", answer.sdp);
    world.all_up().await;
    [audio, video]
}

#[tokio::test]
async fn a_published_track_is_seen_and_offered_to_the_others() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    let [audio, video] = publish(&world, &mut al).await;
    assert!(audio.sid.starts_with("TR_") && audio.sid != video.sid);
    let info = seen(&mut bo, "al", |it| it.tracks.len() == 2).await;
    assert_eq!(info.tracks[0].mime_type, "audio/red");
    assert_eq!(info.tracks[0].stream, "camera");
    assert_eq!(info.tracks[1].mime_type, "video/VP8");
    let (sdp, tracks) = answer(&mut bo, &[Line::Data, Line::Audio, Line::Video]).await;
    let publisher = al.join.participant.clone().unwrap().sid;
    let msid = format!("a=msid:{publisher}|{0} {0}", audio.sid);
    assert!(sdp.contains(&msid), "{msid} in {sdp}");
    assert_eq!(tracks.len(), 2);
    let subscribed = al.expect("track_subscribed", |message| match message {
        signal_response::Message::TrackSubscribed(it) => Some(it.track_sid),
        _ => None,
    });
    assert!([audio.sid, video.sid].contains(&subscribed.await));
    assert_eq!(world.server.requested().routes.len(), 2);
}

#[tokio::test]
async fn mutes_are_seen_and_close_the_routes() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    let [audio, _] = publish(&world, &mut al).await;
    answer(&mut bo, &[Line::Data, Line::Audio, Line::Video]).await;
    for muted in [true, false] {
        let mute = MuteTrackRequest {
            sid: audio.sid.clone(),
            muted,
        };
        al.send(signal_request::Message::Mute(mute)).await;
        let is_so = |it: &ParticipantInfo| it.tracks.first().is_some_and(|it| it.muted == muted);
        let info = seen(&mut bo, "al", is_so).await;
        assert!(!info.tracks[1].muted);
    }
}

#[tokio::test]
async fn tracks_are_unsubscribed_and_subscribed_again() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world
        .join_with("bo", "demo", json!({}), "auto_subscribe=0")
        .await;
    answer(&mut bo, &[Line::Data]).await;
    let [audio, video] = publish(&world, &mut al).await;
    seen(&mut bo, "al", |it| it.tracks.len() == 2).await;
    let wish = |sid: &str, subscribe| {
        signal_request::Message::Subscription(UpdateSubscription {
            track_sids: vec![sid.to_owned()],
            subscribe,
            ..UpdateSubscription::default()
        })
    };
    bo.send(wish(&video.sid, true)).await;
    let (_, tracks) = answer(&mut bo, &[Line::Data, Line::Video]).await;
    assert_eq!(tracks, std::slice::from_ref(&video.sid));
    bo.send(wish(&video.sid, false)).await;
    let (sdp, tracks) = answer(&mut bo, &[Line::Data, Line::Video]).await;
    assert!(tracks.is_empty() && sdp.contains("a=inactive"), "{sdp}");
    bo.send(wish(&audio.sid, true)).await;
    let (_, tracks) = answer(&mut bo, &[Line::Data, Line::Video, Line::Audio]).await;
    assert_eq!(tracks, [audio.sid]);
}

#[tokio::test]
async fn what_may_not_be_published_is_refused_with_its_reason() {
    let world = World::new().await;
    let grants = json!({ "canPublishSources": ["microphone"] });
    let mut al = world.join_with("al", "demo", grants, "").await;
    let request = |cid: &str, r#type: TrackType, source: TrackSource| AddTrackRequest {
        cid: cid.to_owned(),
        r#type: r#type.into(),
        source: source.into(),
        ..AddTrackRequest::default()
    };
    add(&mut al, "a", TrackType::Audio, TrackSource::Microphone).await;
    for (request, reason) in [
        (
            request("v", TrackType::Video, TrackSource::Camera),
            request_response::Reason::NotAllowed,
        ),
        (
            request("d", TrackType::Data, TrackSource::Microphone),
            request_response::Reason::UnsupportedType,
        ),
        (
            request("a", TrackType::Audio, TrackSource::Microphone),
            request_response::Reason::Queued,
        ),
    ] {
        al.send(signal_request::Message::AddTrack(request.clone()))
            .await;
        let refused = al.expect("request_response", |message| match message {
            signal_response::Message::RequestResponse(response) => Some(response),
            _ => None,
        });
        let refused = refused.await;
        assert_eq!(refused.reason(), reason);
        assert_eq!(
            refused.request,
            Some(request_response::Request::AddTrack(request))
        );
    }
}

#[tokio::test]
async fn a_viewer_is_not_a_publisher() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    al.offer(&[Line::Data]).await;
    world.all_up().await;
    let bo = world.join("bo", "demo").await;
    assert_eq!(bo.join.room.clone().unwrap().num_publishers, 0);
    assert!(!bo.join.other_participants[0].is_publisher);
}
