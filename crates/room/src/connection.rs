//! What a door implements: the way to a client and its PeerConnection, and to those who watch.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use portunus_media::{MediaPlane, PeerId, TrackRef};
use portunus_record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_rtp::Mid;
use portunus_sdp::{Description, Kind, LocalJsep};

use crate::{ConnectionId, Event, Notice, Refusal, State};

/// The way to a client and its PeerConnection.
///
/// All methods are called under the room's lock: they must neither block nor lock the room. A connection outlives its
/// client: what is done with it then has no effect.
pub trait Connection: fmt::Debug + Send + Sync {
    /// Its id.
    fn id(&self) -> ConnectionId;

    /// Its PeerConnection in the media plane, or `None` if there is none.
    fn peer(&self) -> Option<PeerId>;

    /// Offers `description`, with new ICE credentials if `restart`. What it returns is handed back to the door: as the
    /// outcome of a request, or with a [`Notice`].
    fn offer(&self, description: Description, restart: bool) -> Result<LocalJsep, Refusal>;

    /// Answers the client's offer with `description`. What it returns is the outcome of the request.
    fn answer(&self, description: Description) -> Result<LocalJsep, Refusal>;

    /// Closes the PeerConnection, if there is one.
    fn close(&self);

    /// Tells the client something, with an `offer` if there is one.
    fn tell(&self, told: &Told<'_>, offer: Option<LocalJsep>);

    /// Tells those who watch the server what this client has done.
    fn notify(&self, room: &State, event: &Event<'_>);

    /// Records what the client sends on m-line `mid`, with its gate `open` or not. Tells the client as `client` says
    /// when the recording fails or is complete. Returns `None` if it cannot be recorded.
    fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        client: RecordedClient<'_>,
    ) -> Option<Recording>;

    /// The same for several m-lines in one file.
    fn record_jointly(&self, spec: JointSpec, client: RecordedClient<'_>)
    -> Option<JointRecording>;
}

/// What the client that is recorded is told of it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedClient<'a> {
    /// The room's name.
    pub room: &'a str,
    /// The stream, unless all are in one file.
    pub stream: Option<(Mid, Kind)>,
    /// The client may know why a recording failed.
    pub told_why: bool,
}

/// Those who watch the server.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// Whether anybody watches. What costs more than a look is done only if somebody does.
    fn is_watching(&self) -> bool;

    /// Tells them what no client has done.
    fn notify(&self, room: &State, event: &Event<'_>);
}

impl dyn Connection + '_ {
    /// What the client sends on m-line `mid`, as a source of routes. Returns `None` if there is no PeerConnection.
    pub(crate) fn track(&self, mid: Mid) -> Option<TrackRef> {
        let peer = self.peer()?;
        Some(TrackRef { peer, mid })
    }

    /// Caps what the client sends, in bit/s; 0 means no cap.
    pub(crate) fn cap(&self, media: &MediaPlane, bitrate: u64) {
        if let Some(peer) = self.peer() {
            media.set_bitrate(peer, (bitrate > 0).then_some(bitrate));
        }
    }
}

/// A notice on its way to one client or many. Each door writes it once, however many of its clients get it.
pub struct Told<'a> {
    /// The room.
    pub room: &'a State,
    /// What the clients are told.
    pub notice: Notice<'a>,
    /// What each door has written.
    written: RefCell<Vec<Rc<dyn Any>>>,
}

impl<'a> Told<'a> {
    pub(crate) fn new(room: &'a State, notice: Notice<'a>) -> Self {
        Told {
            room,
            notice,
            written: RefCell::default(),
        }
    }

    /// The notice in a door's form, which `write` makes for the first client of the door.
    pub fn written<T: 'static>(&self, write: impl FnOnce() -> T) -> Rc<T> {
        let mut all = self.written.borrow_mut();
        let known = all.iter().cloned().find_map(|it| it.downcast::<T>().ok());
        known.unwrap_or_else(|| {
            let written = Rc::new(write());
            all.push(written.clone());
            written
        })
    }
}

impl fmt::Debug for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notice.fmt(f)
    }
}
