//! The door as the server sees it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use portunus_core::{Gateway, Plugin};
use portunus_metrics::{MetricsPage, MetricsSource};
use portunus_resources::SavedError;
use portunus_room::Rooms;

use crate::cluster::FarSide;
use crate::config::LiveKitConfig;
use crate::door::{Door, Means};
use crate::drain;
use crate::edge;

/// How often rooms are looked for that nobody is in.
const CLEANING: Duration = Duration::from_secs(1);

/// How often clients in rooms of many are told of those who publish nothing.
const BATCHING: Duration = Duration::from_secs(3);

/// How often clients are told who speaks.
const HEARING: Duration = Duration::from_millis(400);

/// The LiveKit door of a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct LiveKit {
    door: Arc<Door>,
    means: Means,
}

impl LiveKit {
    /// Returns a door to the rooms of `rooms`.
    pub fn new(config: LiveKitConfig, rooms: Rooms) -> Self {
        LiveKit {
            door: Arc::new(Door::new(config, rooms)),
            means: Means::default(),
        }
    }

    /// Lets the door use more of the server. Telephones have to start after that.
    #[must_use]
    pub fn with(self, means: Means) -> Self {
        if let Some((_, telephony)) = &means.telephones {
            telephony.offer_reception(Arc::new(self.door.sip.receiver()));
        }
        LiveKit { means, ..self }
    }

    /// Takes API keys and webhooks of another configuration over.
    pub fn configure(&self, config: &LiveKitConfig) {
        self.door.configure(config);
    }

    /// Returns the plugin whose handles are the PeerConnections of participants. The gateway has
    /// to have it.
    pub fn plugin(&self) -> Arc<dyn Plugin> {
        Arc::new(self.door.plugin())
    }

    /// Opens the door, with what its services have saved. Returns its HTTP paths, whose requests
    /// have a [`Requester`](portunus_core::Requester) as extension. Plugins have started before.
    pub fn open(&self, gateway: Gateway) -> Result<Router, SavedError> {
        self.door.open(gateway, self.means.clone())?;
        let far_side = FarSide(Arc::downgrade(&self.door));
        self.door.rooms.set_door(Arc::new(far_side));
        tokio::spawn(clean(Arc::downgrade(&self.door)));
        tokio::spawn(send_batches(Arc::downgrade(&self.door)));
        tokio::spawn(send_speakers(Arc::downgrade(&self.door)));
        tokio::spawn(send_elsewhere(Arc::downgrade(&self.door)));
        Ok(edge::router(self.door.clone()))
    }
}

impl MetricsSource for LiveKit {
    fn write(&self, page: &mut MetricsPage) {
        let (rooms, participants) = self.door.census();
        let help = "Rooms that clients of LiveKit's protocol have used";
        page.gauge("livekit_rooms", help, rooms);
        let help = "Participants by LiveKit's protocol";
        page.gauge("livekit_participants", help, participants);
        self.door.refusals.write(page);
    }
}

async fn clean(door: Weak<Door>) {
    loop {
        tokio::time::sleep(CLEANING).await;
        let Some(door) = door.upgrade() else { return };
        door.clean();
        door.agents.tick();
    }
}

async fn send_batches(door: Weak<Door>) {
    loop {
        tokio::time::sleep(BATCHING).await;
        let Some(door) = door.upgrade() else { return };
        door.send_batches();
    }
}

async fn send_speakers(door: Weak<Door>) {
    loop {
        tokio::time::sleep(HEARING).await;
        let Some(door) = door.upgrade() else { return };
        door.send_speakers();
    }
}

async fn send_elsewhere(door: Weak<Door>) {
    loop {
        tokio::time::sleep(drain::TURN).await;
        let Some(door) = door.upgrade() else { return };
        door.send_elsewhere();
    }
}
