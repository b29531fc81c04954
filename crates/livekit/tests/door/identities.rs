//! Identities that participants of other doors have.

use std::sync::Arc;

use portunus_media::PeerId;
use portunus_record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_room::{
    Client, Connection, ConnectionId, Directory, Event, Join, Permissions, Profile, RecordedClient,
    Refusal, State, TalkSettings, Told,
};
use portunus_rtp::Mid;
use portunus_sdp::{Description, LocalJsep};
use serde_json::json;
use tokio_tungstenite::tungstenite::Error;

use crate::world::{World, token};

/// A participant of another door, who has no PeerConnection.
#[derive(Debug)]
struct Stranger;

impl Connection for Stranger {
    fn id(&self) -> ConnectionId {
        ConnectionId(1 << 62)
    }

    fn peer(&self) -> Option<PeerId> {
        None
    }

    fn offer(&self, _: Description, _: bool) -> Result<LocalJsep, Refusal> {
        Err(Refusal::NotPublished)
    }

    fn answer(&self, _: Description) -> Result<LocalJsep, Refusal> {
        Err(Refusal::NotPublished)
    }

    fn close(&self) {}

    fn record(
        &self,
        _: Mid,
        _: bool,
        _: RecordingSpec,
        _: RecordedClient<'_>,
    ) -> Option<Recording> {
        None
    }

    fn record_jointly(&self, _: JointSpec, _: RecordedClient<'_>) -> Option<JointRecording> {
        None
    }
}

impl Client for Stranger {
    fn send(&self, _: &Told<'_>, _: Option<LocalJsep>) {}

    fn notify(&self, _: &State, _: &Event<'_>) {}
}

#[tokio::test]
async fn the_identity_of_a_participant_of_another_door_is_taken() {
    let world = World::new().await;
    let al = world.join("al", "demo").await;
    let room = world.rooms.find("demo").unwrap();
    let stranger = Join {
        // An identity that is a number is an id.
        id: "7".into(),
        profile: Profile {
            display: None,
            metadata: None,
        },
        permissions: Permissions::ALL,
        talk: TalkSettings::default(),
    };
    room.lock().join(Arc::new(Stranger), stranger).unwrap();
    let query = format!("access_token={}", token("7", "demo", json!({})));
    match world.connect(&query).await {
        Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), 409),
        other => panic!("{other:?}"),
    }
    drop(al);
}
