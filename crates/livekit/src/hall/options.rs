//! The options of a room, by the services or by the token that made it.

use std::time::Duration;

use livekit_protocol::{CreateRoomRequest, Room, RoomAgentDispatch, RoomConfiguration, RoomEgress};

use crate::config::LiveKitConfig;

/// The options of a room.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoomOptions {
    /// How long it stays if nobody joins.
    pub(crate) empty_timeout: Duration,
    /// How long it stays when the last participant has left.
    pub(crate) departure_timeout: Duration,
    /// The most participants. 0 means no limit.
    pub(crate) max_participants: u32,
    /// Text of the application.
    pub(crate) metadata: String,
    /// The agents that it begins with.
    pub(crate) agents: Vec<RoomAgentDispatch>,
    /// Whether sound and picture of a publisher play in sync.
    pub(crate) sync_streams: bool,
    /// What is recorded by itself.
    pub(crate) egress: Option<RoomEgress>,
}

impl RoomOptions {
    /// Returns the options of a room that nobody described.
    pub(crate) fn new(config: &LiveKitConfig) -> Self {
        RoomOptions {
            empty_timeout: config.empty_timeout,
            departure_timeout: config.departure_timeout,
            max_participants: 0,
            metadata: String::new(),
            agents: Vec::new(),
            sync_streams: false,
            egress: None,
        }
    }

    /// Takes over the options of a request. Times that are 0 stay as they are.
    pub(crate) fn with_request(mut self, request: &CreateRoomRequest) -> Self {
        set(&mut self.empty_timeout, request.empty_timeout);
        set(&mut self.departure_timeout, request.departure_timeout);
        self.max_participants = request.max_participants;
        self.metadata.clone_from(&request.metadata);
        self.agents.clone_from(&request.agents);
        self.sync_streams = request.sync_streams;
        self.egress.clone_from(&request.egress);
        self
    }

    /// Takes over what a request for a room that exists may change. All else stays, as in LiveKit.
    pub(crate) fn update(&mut self, request: &CreateRoomRequest) {
        self.sync_streams |= request.sync_streams;
    }

    /// Takes over the options of a token.
    pub(crate) fn with_configuration(self, configuration: &RoomConfiguration) -> Self {
        self.with_request(&CreateRoomRequest {
            empty_timeout: configuration.empty_timeout,
            departure_timeout: configuration.departure_timeout,
            max_participants: configuration.max_participants,
            metadata: configuration.metadata.clone(),
            agents: configuration.agents.clone(),
            sync_streams: configuration.sync_streams,
            egress: configuration.egress.clone(),
            ..CreateRoomRequest::default()
        })
    }

    /// Writes the options into the description of the room.
    pub(crate) fn describe(&self, room: &mut Room) {
        room.empty_timeout = seconds(self.empty_timeout);
        room.departure_timeout = seconds(self.departure_timeout);
        room.max_participants = self.max_participants;
        room.metadata.clone_from(&self.metadata);
    }
}

fn set(timeout: &mut Duration, seconds: u32) {
    if seconds > 0 {
        *timeout = Duration::from_secs(seconds.into());
    }
}

fn seconds(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_leaves_out_stays() {
        let options = RoomOptions::new(&LiveKitConfig::default());
        let request = CreateRoomRequest {
            departure_timeout: 7,
            max_participants: 3,
            metadata: "m".to_owned(),
            ..CreateRoomRequest::default()
        };
        let mut room = Room::default();
        options.with_request(&request).describe(&mut room);
        let expected = Room {
            empty_timeout: 300,
            departure_timeout: 7,
            max_participants: 3,
            metadata: "m".to_owned(),
            ..Room::default()
        };
        assert_eq!(room, expected);
    }
}
