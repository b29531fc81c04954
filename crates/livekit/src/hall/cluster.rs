//! A room of a cluster for tests, whose other nodes only take messages.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use livekit_protocol::{DataPacket, RoomEgress, ServerInfo};
use portunus_media::MediaPlane;
use portunus_record::Recorder;
use portunus_room::{
    Answered, ClaimError, Event, FarRoom, FileNames, OtherNodes, Room, RoomSettings, Rooms, State,
    Unprepared, Watcher, Whom, Work,
};
use prost::Message;

use super::far::{FarContent, FarMessage};
use super::{Hall, Reports, RoomOptions, Setup};
use crate::agents::Agents;
use crate::config::LiveKitConfig;
use crate::happening::{Happening, Observer};
use crate::refusals::Refusals;
use crate::token::Keys;
use crate::webhook::Webhooks;

/// The messages that the other nodes got.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Vec<u8>>>);

impl Told {
    /// Returns the data packets among them.
    pub(crate) fn packets(&self) -> Vec<DataPacket> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = told.iter().filter_map(|it| FarMessage::parse(it));
        let packets = contents.filter_map(|content| match content {
            FarContent::Data(packet) => DataPacket::decode(packet.bytes()).ok(),
            _ => None,
        });
        packets.collect()
    }
}

impl OtherNodes for Told {
    fn prepare(&self, _: &str) -> Work<Result<(), Unprepared>> {
        Box::pin(async { Ok(()) })
    }

    fn ask(&self, _: &str, _: String) -> Work<Answered> {
        Box::pin(async { Answered::Here })
    }

    fn ask_door(&self, _: &str, _: Whom, _: Vec<u8>, _: Duration) -> Work<Answered<Vec<u8>>> {
        Box::pin(async { Answered::Here })
    }

    fn claim(&self, _: &str) -> Work<Result<(), ClaimError>> {
        Box::pin(async { Ok(()) })
    }

    fn tell(&self, _: &str, message: Vec<u8>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(message);
    }

    fn tell_node(&self, _: &str, _: &str, _: Vec<u8>, _: bool) {}

    fn destroyed(&self, _: &str, _: bool) {}

    fn changed_permanently(&self, _: &str) {}

    fn rooms(&self) -> Vec<FarRoom> {
        Vec::new()
    }

    fn room(&self, _: &str) -> Option<FarRoom> {
        None
    }

    fn has(&self, _: &str) -> bool {
        false
    }
}

#[derive(Debug)]
struct Nobody;

impl Watcher for Nobody {
    fn is_watching(&self) -> bool {
        false
    }

    fn notify(&self, _: &State, _: &Event<'_>) {}
}

impl Observer for Nobody {
    fn room_started(&self, _: &livekit_protocol::Room, _: Option<RoomEgress>) {}

    fn happened(&self, _: &Happening) {}

    fn is_interested(&self) -> bool {
        false
    }
}

/// Returns an empty room, and the other nodes of its cluster.
pub(crate) fn room_of_cluster(media: &MediaPlane) -> (Arc<Hall>, Arc<Told>) {
    let (rooms, told) = (Rooms::default(), Arc::new(Told::default()));
    rooms.set_others(told.clone());
    let room = Room::new(portunus_room::Setup {
        name: "demo".into(),
        settings: RoomSettings::default(),
        media: media.clone(),
        recorder: Recorder::default(),
        names: FileNames::default(),
        watcher: Box::new(Nobody),
    });
    let setup = Setup {
        is_own: true,
        has_numbers: false,
        options: RoomOptions::new(&LiveKitConfig::default()),
        rooms,
        refusals: Arc::new(Refusals::default()),
        reports: Reports {
            webhooks: Webhooks::default(),
            agents: Agents::new(Keys::new([]), ServerInfo::default()),
            egresses: Arc::new(Nobody),
        },
    };
    (Arc::new(Hall::new("demo", Arc::new(room), setup)), told)
}
