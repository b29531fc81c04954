//! Clients of the plugin and observers of the server, as a room knows them.

use portunus_core::events::PluginEvents;
use portunus_core::media::PeerId;
use portunus_core::record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_core::sdp::Description;
use portunus_core::{Handle, JsepError, LocalJsep, Mid, Notice, Object, RecordingNews};
use portunus_resources::Ids;
use portunus_room::{
    self as room, Connection, ConnectionId, Event, RecordedClient, Refusal, State, Told, Watcher,
};
use serde_json::Value;

use crate::messages::Show;

/// A client with a handle.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) handle: Handle,
    pub(crate) ids: Ids,
}

impl Client {
    /// Returns its connection's id in rooms.
    pub(crate) fn key(&self) -> ConnectionId {
        ConnectionId(self.handle.id().0)
    }

    /// Returns a function that writes the client's messages about a recording.
    fn recorded(
        &self,
        client: RecordedClient<'_>,
    ) -> impl Fn(RecordingNews<'_>) -> Value + Send + Sync + 'static {
        let (stream, told_why) = (client.stream, client.told_why);
        let event = Object::new()
            .with("videoroom", "event")
            .with("room", self.ids.of_path(client.room))
            .with_some("mid", stream.map(|(mid, _)| mid.as_str().to_owned()))
            .with_some("type", stream.map(|(_, kind)| kind.name()));
        move |news| {
            let reason = match news {
                RecordingNews::Failed(_) if !told_why => Some("the server cannot record this"),
                RecordingNews::Failed(_) | RecordingNews::Done(_) => None,
            };
            let event = event.clone().with_all(news.event());
            event.with_some("reason", reason).into()
        }
    }
}

impl Connection for Client {
    fn id(&self) -> ConnectionId {
        self.key()
    }

    fn peer(&self) -> Option<PeerId> {
        self.handle.peer()
    }

    fn offer(&self, description: Description, restart: bool) -> Result<LocalJsep, Refusal> {
        self.handle.offer(description, restart).map_err(refused)
    }

    fn answer(&self, description: Description) -> Result<LocalJsep, Refusal> {
        self.handle.answer(description).map_err(refused)
    }

    fn close(&self) {
        self.handle.close_pc();
    }

    fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        client: RecordedClient<'_>,
    ) -> Option<Recording> {
        self.handle.record(mid, open, spec, self.recorded(client))
    }

    fn record_jointly(
        &self,
        spec: JointSpec,
        client: RecordedClient<'_>,
    ) -> Option<JointRecording> {
        self.handle.record_jointly(spec, self.recorded(client))
    }
}

impl room::Client for Client {
    fn send(&self, told: &Told<'_>, offer: Option<LocalJsep>) {
        let write = || Show::new(self.ids, told.room).notice(&told.notice);
        match offer {
            Some(_) => self.handle.push(None, write(), offer),
            None => {
                let notice = told.written(|| Notice::new(write()));
                self.handle.send_notice(&notice);
            }
        }
    }

    fn notify(&self, room: &State, event: &Event<'_>) {
        let show = Show::new(self.ids, room);
        self.handle.notify(|| show.watched(event));
    }
}

fn refused(error: JsepError) -> Refusal {
    match error {
        JsepError::Closing => Refusal::Closing,
        error => Refusal::Negotiation(error.to_string()),
    }
}

/// The observers of the server get events of the plugin.
#[derive(Debug)]
pub(crate) struct Watchers {
    pub(crate) events: PluginEvents,
    pub(crate) ids: Ids,
}

impl Watcher for Watchers {
    fn is_watching(&self) -> bool {
        self.events.is_watched()
    }

    fn notify(&self, room: &State, event: &Event<'_>) {
        let show = Show::new(self.ids, room);
        self.events.notify(|| show.watched(event));
    }
}
