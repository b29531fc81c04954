//! Pauses by bandwidth, redundancy and stereo, second codecs, and streams that play in sync.

use portunus_core::testing::Line;
use portunus_livekit::LiveKitConfig;
use portunus_livekit::protocol::{
    AddTrackRequest, AudioTrackFeature, BackupCodecPolicy, SessionDescription, SimulcastCodec,
    StreamState, SubscribedQualityUpdate, SubscriptionError, TrackInfo, TrackSource, TrackType,
    signal_request, signal_response,
};
use portunus_media::Event;
use serde_json::json;

use crate::tracks::{add, answer, publish, seen};
use crate::world::{Client, World, description};

/// Returns the next report of a paused or resumed stream: its track and its state.
async fn stream_state(client: &mut Client) -> (String, StreamState) {
    let update = client.expect("stream_state_update", |message| match message {
        signal_response::Message::StreamStateUpdate(update) => Some(update),
        _ => None,
    });
    let [state] = update.await.stream_states.try_into().unwrap();
    (state.track_sid.clone(), state.state())
}

#[tokio::test]
async fn a_stream_that_the_link_does_not_carry_pauses_if_the_client_permits_it() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let pausing = "subscriber_allow_pause=1";
    let mut bo = world.join_with("bo", "demo", json!({}), pausing).await;
    let mut cy = world.join("cy", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    let before = world.server.peers();
    answer(&mut cy, &[Line::Data]).await;
    let [_, video] = publish(&world, &mut al).await;
    answer(&mut bo, &[Line::Data, Line::Audio, Line::Video]).await;
    answer(&mut cy, &[Line::Data, Line::Audio, Line::Video]).await;
    let routes = async {
        loop {
            let routes = world.server.requested().routes;
            if routes.len() == 4 {
                return routes;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let routes = tokio::time::timeout(std::time::Duration::from_secs(5), routes).await;
    let routes = routes.unwrap();
    let pausable: Vec<_> = routes.iter().filter(|it| it.options.pausable).collect();
    let [route] = pausable.as_slice() else {
        panic!("the video of one viewer: {routes:?}")
    };
    assert!(before.contains(&route.to.peer));
    for (paused, state) in [(true, StreamState::Paused), (false, StreamState::Active)] {
        let event = Event::Paused {
            route: route.id,
            paused,
        };
        world.server.happen(route.to.peer, event).await;
        assert_eq!(stream_state(&mut bo).await, (video.sid.clone(), state));
    }
}

#[tokio::test]
async fn the_configuration_permits_pauses_for_clients_that_do_not_say() {
    let config = LiveKitConfig {
        allow_pause: true,
        ..LiveKitConfig::default()
    };
    let world = World::with(config).await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    let never = "subscriber_allow_pause=0";
    let mut cy = world.join_with("cy", "demo", json!({}), never).await;
    for client in [&mut bo, &mut cy] {
        answer(client, &[Line::Data]).await;
    }
    publish(&world, &mut al).await;
    for client in [&mut bo, &mut cy] {
        answer(client, &[Line::Data, Line::Audio, Line::Video]).await;
    }
    al.expect("track_subscribed", |message| match message {
        signal_response::Message::TrackSubscribed(_) => Some(()),
        _ => None,
    })
    .await;
    let waiting = async {
        while world.server.requested().routes.len() < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(5), waiting).await;
    waited.unwrap();
    let routes = world.server.requested().routes;
    assert_eq!(routes.iter().filter(|it| it.options.pausable).count(), 1);
}

/// Publishes sound that is announced so. Returns the answer's text.
async fn sound(client: &mut Client, request: AddTrackRequest) -> String {
    let request = AddTrackRequest {
        cid: "a".to_owned(),
        r#type: TrackType::Audio.into(),
        source: TrackSource::Microphone.into(),
        ..request
    };
    client
        .send(signal_request::Message::AddTrack(request))
        .await;
    client.offer(&[Line::Audio]).await.sdp
}

#[tokio::test]
async fn redundancy_is_taken_and_passed_on_unless_the_publisher_has_disabled_it() {
    let world = World::new().await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    let mut al = world.join("al", "demo").await;
    let sdp = sound(&mut al, AddTrackRequest::default()).await;
    assert!(sdp.contains("m=audio 9 UDP/TLS/RTP/SAVPF 63 111"), "{sdp}");
    world.all_up().await;
    let (sdp, _) = answer(&mut bo, &[Line::Data, Line::Audio]).await;
    assert!(sdp.contains("m=audio 9 UDP/TLS/RTP/SAVPF 112 111"), "{sdp}");
    assert!(sdp.contains("a=fmtp:112 111/111"), "{sdp}");
    let mut cy = world.join("cy", "demo").await;
    let request = AddTrackRequest {
        disable_red: true,
        ..AddTrackRequest::default()
    };
    let sdp = sound(&mut cy, request).await;
    assert!(sdp.contains("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"), "{sdp}");
    world.all_up().await;
    let info = seen(&mut bo, "cy", |it| it.tracks.len() == 1).await;
    assert!(info.tracks[0].disable_red);
    assert_eq!(info.tracks[0].mime_type, "audio/opus");
}

#[tokio::test]
async fn stereo_and_pauses_of_sound_follow_the_features_of_the_track() {
    let world = World::new().await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data]).await;
    let mut al = world.join("al", "demo").await;
    let request = AddTrackRequest {
        audio_features: vec![AudioTrackFeature::TfStereo.into()],
        disable_dtx: true,
        ..AddTrackRequest::default()
    };
    let sdp = sound(&mut al, request).await;
    assert!(
        sdp.contains("stereo=1") && sdp.contains("maxaveragebitrate=510000"),
        "{sdp}"
    );
    assert!(!sdp.contains("usedtx=1"), "{sdp}");
    world.all_up().await;
    let info = seen(&mut bo, "al", |it| it.tracks.len() == 1).await;
    let track = &info.tracks[0];
    assert!(track.stereo && track.disable_dtx);
    let features = [AudioTrackFeature::TfStereo, AudioTrackFeature::TfNoDtx];
    assert_eq!(track.audio_features, features.map(i32::from));
    let (sdp, _) = answer(&mut bo, &[Line::Data, Line::Audio]).await;
    assert!(sdp.contains("sprop-stereo=1"), "{sdp}");
    let mut cy = world.join("cy", "demo").await;
    let sdp = sound(&mut cy, AddTrackRequest::default()).await;
    assert!(
        sdp.contains("usedtx=1") && !sdp.contains("stereo=1"),
        "{sdp}"
    );
}

/// The codecs that the next update of this kind wants of a track.
async fn wanted(client: &mut Client) -> Vec<(String, bool)> {
    let update = client.expect("subscribed_quality_update", |message| match message {
        signal_response::Message::SubscribedQualityUpdate(update) => Some(update),
        _ => None,
    });
    let SubscribedQualityUpdate {
        subscribed_codecs, ..
    } = update.await;
    let codec = |it: portunus_livekit::protocol::SubscribedCodec| {
        let is_wanted = it.qualities.iter().any(|quality| quality.enabled);
        (it.codec, is_wanted)
    };
    subscribed_codecs.into_iter().map(codec).collect()
}

fn codec(codec: &str, cid: &str) -> SimulcastCodec {
    SimulcastCodec {
        codec: codec.to_owned(),
        cid: cid.to_owned(),
        ..SimulcastCodec::default()
    }
}

/// Offers these m-lines; the last video is the track `b`.
async fn offer_backup(client: &mut Client, lines: &[Line]) -> SessionDescription {
    let mut offer = description("offer", lines);
    let last = offer.sdp.rfind("a=msid:s v").unwrap();
    offer.sdp.replace_range(last..last + 10, "a=msid:s b");
    client.send(signal_request::Message::Offer(offer)).await;
    let answer = client.expect("answer", |message| match message {
        signal_response::Message::Answer(answer) => Some(answer),
        _ => None,
    });
    answer.await
}

/// Publishes video in VP9 with VP8 for those who do not accept that.
async fn with_backup(world: &World, policy: BackupCodecPolicy) -> (Client, TrackInfo) {
    let mut client = world.join("al", "demo").await;
    let request = AddTrackRequest {
        cid: "v".to_owned(),
        r#type: TrackType::Video.into(),
        source: TrackSource::Camera.into(),
        simulcast_codecs: vec![codec("vp9", "v"), codec("vp8", "")],
        backup_codec_policy: policy.into(),
        ..AddTrackRequest::default()
    };
    client
        .send(signal_request::Message::AddTrack(request))
        .await;
    let published = client.expect("track_published", |message| match message {
        signal_response::Message::TrackPublished(published) => published.track,
        _ => None,
    });
    let track = published.await;
    let answer = client.offer(&[Line::Video]).await;
    assert!(answer.sdp.contains("VP9/90000"), "{}", answer.sdp);
    world.all_up().await;
    (client, track)
}

/// Answers the server's next offer, without VP9 if `vp9` is false. Returns its text and its tracks.
async fn answer_next(client: &mut Client, vp9: bool) -> (String, Vec<String>) {
    let offer = client.expect("offer", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer),
        _ => None,
    });
    let offer = offer.await;
    let offered: Vec<&str> = offer.sdp.split("m=").skip(1).collect();
    let line = |text: &&str| match text.split(' ').next() {
        Some("audio") => Line::Audio,
        Some("video") => Line::Video,
        _ => Line::Data,
    };
    let lines: Vec<Line> = offered.iter().map(line).collect();
    let mut answer = description("answer", &lines);
    answer.id = offer.id;
    let mut parts = answer.sdp.split("m=");
    let mut sdp = parts.next().unwrap().to_owned();
    for (part, offered) in parts.zip(&offered) {
        let rejected = part.replacen(" 9 ", " 0 ", 1);
        let is_rejected = !vp9 && offered.contains("VP9/90000");
        sdp.push_str("m=");
        sdp.push_str(if is_rejected { &rejected } else { part });
    }
    answer.sdp = sdp;
    client.send(signal_request::Message::Answer(answer)).await;
    (offer.sdp, offer.mid_to_track_id.into_values().collect())
}

/// Answers offers without VP9 until one has tracks in another codec.
async fn answer_until_another(client: &mut Client) -> Vec<String> {
    loop {
        let (sdp, tracks) = answer_next(client, false).await;
        if sdp.contains("VP8/90000") && !tracks.is_empty() {
            return tracks;
        }
    }
}

/// Publishes the second codec of a track.
async fn publish_second(client: &mut Client, sid: &str) {
    let second = AddTrackRequest {
        cid: "b".to_owned(),
        sid: sid.to_owned(),
        r#type: TrackType::Video.into(),
        source: TrackSource::Camera.into(),
        simulcast_codecs: vec![codec("vp8", "b")],
        ..AddTrackRequest::default()
    };
    client.send(signal_request::Message::AddTrack(second)).await;
    let sdp = offer_backup(client, &[Line::Video, Line::Video]).await.sdp;
    assert!(
        sdp.contains("VP9/90000") && sdp.contains("VP8/90000"),
        "{sdp}"
    );
}

#[tokio::test]
async fn who_does_not_accept_the_codec_gets_the_backup_once_it_is_published() {
    let world = World::new().await;
    let (mut al, track) = with_backup(&world, BackupCodecPolicy::Simulcast).await;
    assert_eq!(track.codecs.len(), 2);
    assert_eq!(track.codecs[1].mime_type, "video/VP8");
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data, Line::Video]).await;
    world.all_up().await;
    assert_eq!(
        wanted(&mut al).await,
        [("vp9".to_owned(), true), ("vp8".to_owned(), false)]
    );
    let mut cy = world.join("cy", "demo").await;
    let (sdp, _) = answer_next(&mut cy, false).await;
    assert!(sdp.contains("VP9/90000"), "{sdp}");
    // The publisher is asked for the second codec.
    loop {
        let codecs = wanted(&mut al).await;
        if codecs == [("vp9".to_owned(), true), ("vp8".to_owned(), true)] {
            break;
        }
    }
    publish_second(&mut al, &track.sid).await;
    assert_eq!(answer_until_another(&mut cy).await, [track.sid]);
    let info = seen(&mut bo, "al", |it| it.tracks.len() == 1).await;
    assert_eq!(info.tracks[0].mime_type, "video/VP9");
}

#[tokio::test]
async fn with_regression_all_get_the_backup() {
    let world = World::new().await;
    let (mut al, track) = with_backup(&world, BackupCodecPolicy::PreferRegression).await;
    let mut bo = world.join("bo", "demo").await;
    answer(&mut bo, &[Line::Data, Line::Video]).await;
    world.all_up().await;
    let mut cy = world.join("cy", "demo").await;
    answer_next(&mut cy, false).await;
    while !wanted(&mut al).await.contains(&("vp8".to_owned(), true)) {}
    publish_second(&mut al, &track.sid).await;
    let (sdp, tracks) = answer_next(&mut bo, true).await;
    assert_eq!(tracks, [track.sid]);
    assert!(sdp.contains("VP8/90000"), "{sdp}");
}

#[tokio::test]
async fn a_track_of_an_unknown_codec_is_told_and_tried_again_when_it_has_another() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let request = AddTrackRequest {
        cid: "v".to_owned(),
        r#type: TrackType::Video.into(),
        source: TrackSource::Camera.into(),
        simulcast_codecs: vec![codec("vp9", "v")],
        ..AddTrackRequest::default()
    };
    al.send(signal_request::Message::AddTrack(request)).await;
    let published = al.expect("track_published", |message| match message {
        signal_response::Message::TrackPublished(published) => published.track,
        _ => None,
    });
    let video = published.await.sid;
    al.offer(&[Line::Video]).await;
    world.all_up().await;
    let mut bo = world.join("bo", "demo").await;
    answer_next(&mut bo, false).await;
    let refused = bo.expect("subscription_response", |message| match message {
        signal_response::Message::SubscriptionResponse(response) => Some(response),
        _ => None,
    });
    let refused = refused.await;
    assert_eq!(refused.track_sid, video);
    assert_eq!(refused.err(), SubscriptionError::SeCodecUnsupported);
    // A second codec that was not announced appears.
    publish_second(&mut al, &video).await;
    assert_eq!(answer_until_another(&mut bo).await, [video]);
}

#[tokio::test]
async fn streams_play_in_sync_if_the_room_says_so() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    world.in_sync("demo").await;
    let mut bo = world.join("bo", "demo").await;
    let mut cy = world
        .join_with("cy", "demo", json!({}), "browser=Firefox")
        .await;
    answer(&mut bo, &[Line::Data]).await;
    answer(&mut cy, &[Line::Data]).await;
    let audio = add(&mut al, "a", TrackType::Audio, TrackSource::Microphone).await;
    al.offer(&[Line::Audio]).await;
    world.all_up().await;
    let publisher = al.join.participant.clone().unwrap().sid;
    let (sdp, _) = answer(&mut bo, &[Line::Data, Line::Audio]).await;
    let msid = format!("a=msid:{publisher}|camera {}", audio.sid);
    assert!(sdp.contains(&msid), "{msid} in {sdp}");
    let (sdp, _) = answer(&mut cy, &[Line::Data, Line::Audio]).await;
    let msid = format!("a=msid:{publisher}|{0} {0}", audio.sid);
    assert!(sdp.contains(&msid), "{msid} in {sdp}");
}
