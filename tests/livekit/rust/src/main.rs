//! What LiveKit's SDKs for Rust do with a server: `LIVEKIT_URL=http://… LIVEKIT_API_KEY=… LIVEKIT_API_SECRET=… portunus-livekit-rust`.
//! Prints a line for each part that holds; the first that does not ends it.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use livekit_api::access_token::{AccessToken, VideoGrants};
use livekit_api::services::ServiceError;
use livekit_api::services::room::{
    CreateRoomOptions, RoomClient, SendDataOptions, UpdateParticipantOptions,
};
use livekit_protocol::{
    AddTrackRequest, DisconnectReason, JoinResponse, Room, TrackSource, TrackType, signal_request,
    signal_response,
};
use livekit_signaling::{SignalClient, SignalEvent, SignalEvents, SignalOptions};
use tokio::time::timeout;

const ROOM: &str = "rust";
const PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

struct Server {
    url: String,
    key: String,
    secret: String,
}

impl Server {
    fn from_environment() -> Outcome<Self> {
        Ok(Server {
            url: std::env::var("LIVEKIT_URL")?,
            key: std::env::var("LIVEKIT_API_KEY")?,
            secret: std::env::var("LIVEKIT_API_SECRET")?,
        })
    }

    fn rooms(&self) -> RoomClient {
        RoomClient::with_api_key(&self.url, &self.key, &self.secret)
    }

    async fn join(&self, identity: &str) -> Outcome<(SignalClient, JoinResponse, SignalEvents)> {
        let grants = VideoGrants {
            room_join: true,
            room: ROOM.to_owned(),
            ..VideoGrants::default()
        };
        let token = AccessToken::with_api_key(&self.key, &self.secret)
            .with_identity(identity)
            .with_grants(grants)
            .to_jwt()?;
        let options = SignalOptions::default();
        Ok(SignalClient::connect(&self.url, &token, options, None).await?)
    }
}

fn holds(what: &str, holds: bool) -> Outcome {
    match holds {
        true => println!("{what}"),
        false => return Err(format!("it does not hold: {what}").into()),
    }
    Ok(())
}

/// Waits for a message of the server in which `read` finds something.
async fn told<T>(
    what: &str,
    events: &mut SignalEvents,
    read: impl Fn(&signal_response::Message) -> Option<T>,
) -> Outcome<T> {
    let found = timeout(PATIENCE, async {
        while let Some(event) = events.recv().await {
            if let SignalEvent::Message(message) = event
                && let Some(found) = read(&message)
            {
                return Some(found);
            }
        }
        None
    });
    match found.await {
        Ok(Some(found)) => {
            println!("{what}");
            Ok(found)
        }
        Ok(None) => Err(format!("the connection ended before: {what}").into()),
        Err(_) => Err(format!("not within {PATIENCE:?}: {what}").into()),
    }
}

async fn rooms_are_made_listed_and_changed(rooms: &RoomClient) -> Outcome {
    let options = CreateRoomOptions {
        empty_timeout: 60,
        max_participants: 3,
        metadata: "first".to_owned(),
        ..CreateRoomOptions::default()
    };
    let made: Room = rooms.create_room(ROOM, options).await?;
    holds(
        "a room is made",
        made.name == ROOM && made.sid.starts_with("RM_") && made.max_participants == 3,
    )?;
    let listed = rooms.list_rooms(vec![ROOM.to_owned()]).await?;
    holds(
        "it is listed",
        listed
            .iter()
            .any(|it| it.sid == made.sid && it.metadata == "first"),
    )?;
    let changed = rooms.update_room_metadata(ROOM, "second").await?;
    holds("its metadata changes", changed.metadata == "second")
}

async fn participants_are_changed_and_removed(server: &Server, rooms: &RoomClient) -> Outcome {
    let (ann, joined, mut events) = server.join("ann").await?;
    let own = joined.participant.unwrap_or_default();
    holds(
        "ann joins by LiveKit's signalling",
        own.identity == "ann" && joined.room.unwrap_or_default().metadata == "second",
    )?;
    let add = AddTrackRequest {
        cid: "mic".to_owned(),
        name: "voice".to_owned(),
        r#type: TrackType::Audio as i32,
        source: TrackSource::Microphone as i32,
        ..AddTrackRequest::default()
    };
    ann.send(signal_request::Message::AddTrack(add)).await;
    let track = told("her track is taken", &mut events, |message| match message {
        signal_response::Message::TrackPublished(it) => it.track.clone(),
        _ => None,
    });
    let track = track.await?;
    holds(
        "it has an id",
        track.sid.starts_with("TR_") && track.name == "voice",
    )?;
    let present = rooms.list_participants(ROOM).await?;
    holds(
        "ann is listed",
        present.iter().any(|it| it.identity == "ann"),
    )?;
    let update = UpdateParticipantOptions {
        name: "Ann".to_owned(),
        metadata: "guest".to_owned(),
        attributes: HashMap::from([("mood".to_owned(), "good".to_owned())]),
        ..UpdateParticipantOptions::default()
    };
    rooms.update_participant(ROOM, "ann", update).await?;
    told(
        "she is told of her new name",
        &mut events,
        |message| match message {
            signal_response::Message::Update(it) => it
                .participants
                .iter()
                .any(|it| {
                    it.name == "Ann" && it.attributes.get("mood").is_some_and(|it| it == "good")
                })
                .then_some(()),
            _ => None,
        },
    )
    .await?;
    let seen = rooms.get_participant(ROOM, "ann").await?;
    holds(
        "others can ask for it",
        seen.metadata == "guest" && seen.name == "Ann",
    )?;
    rooms
        .send_data(ROOM, b"hello".to_vec(), SendDataOptions::default())
        .await?;
    println!("data is taken");
    rooms.remove_participant(ROOM, "ann").await?;
    let reason = told("she is removed", &mut events, |message| match message {
        signal_response::Message::Leave(it) => Some(it.reason()),
        _ => None,
    });
    holds(
        "and told why",
        reason.await? == DisconnectReason::ParticipantRemoved,
    )?;
    ann.close().await;
    Ok(())
}

async fn errors_have_their_codes(server: &Server, rooms: &RoomClient) -> Outcome {
    let unknown = rooms.get_participant(ROOM, "nobody").await;
    holds(
        "an unknown participant is not_found",
        matches!(&unknown, Err(ServiceError::Twirp(error)) if error.to_string().contains("not_found") || format!("{error:?}").contains("NotFound")),
    )?;
    let stranger =
        RoomClient::with_api_key(&server.url, &server.key, "another secret of enough length");
    let refused = stranger.list_rooms(Vec::new()).await;
    // LiveKit refuses such a token by a text, which is no error of Twirp.
    let told = format!("{refused:?}");
    holds(
        &format!("a wrong secret is refused: {told}"),
        matches!(&refused, Err(ServiceError::Twirp(_))),
    )
}

#[tokio::main]
async fn main() -> Outcome {
    let server = Server::from_environment()?;
    let rooms = server.rooms();
    rooms_are_made_listed_and_changed(&rooms).await?;
    participants_are_changed_and_removed(&server, &rooms).await?;
    errors_have_their_codes(&server, &rooms).await?;
    rooms.delete_room(ROOM).await?;
    let listed = rooms.list_rooms(vec![ROOM.to_owned()]).await?;
    holds("the room is gone", listed.is_empty())
}
