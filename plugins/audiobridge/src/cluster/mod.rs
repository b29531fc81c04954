//! The rooms of all nodes of a cluster: each node lists those of the others, and its clients are in
//! them by messages to their home.
//!
//! The home of a room mixes it. A client of another node is a participant of the room like any
//! other there: its source is relayed to the home, and its mix is relayed back. The node of the
//! client keeps its PeerConnection and passes on its requests ([`edge`]); the home keeps where the
//! clients of other nodes are ([`Home`]).

mod directory;
mod edge;
mod far_client;
mod message;
mod pipe;
mod pipes;
#[cfg(feature = "testing")]
pub mod testing;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use portunus_core::media::SourceRef;
use portunus_core::{LogGate, Reply};
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use portunus_resources::{FarAuthor, Id};
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub use directory::RoomRecord;
pub(crate) use edge::{ClientMedia, Entered, Entrance, Stay, destroyed};
pub(crate) use far_client::{FarClient, send_to_all};
pub(crate) use message::{FarEntry, FarMedia, FarMessage, StayId};

use directory::Directory;
use edge::Edge;
use message::CallId;
use pipes::Pipes;

/// What the rooms need of the other nodes.
pub trait OtherNodes: fmt::Debug + Send + Sync {
    /// Sends a message to the same rooms of a node. It is lost if there is no connection, or if too
    /// many wait.
    fn send(&self, node: &str, message: Vec<u8>);

    /// Offers a source of this node to the others.
    fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer;

    /// Withdraws an offer.
    fn withdraw(&self, source: SourceId);

    /// Returns the sources of a node.
    fn sources(&self, node: &str) -> Arc<dyn Sources>;
}

/// The rooms of this node, for clients of other nodes.
pub(crate) trait Home: Send + Sync {
    /// Returns the rooms of this node.
    fn own(&self) -> Vec<OwnRoom>;

    /// Returns whether clients of a node are in rooms of this one.
    fn is_used_by(&self, node: &str) -> bool;

    /// Lets a client in, or returns the refusal as it is sent to the client.
    fn enter(&self, client: FarClient, request: Entering) -> Result<FarEntry, Value>;

    /// Answers a request of a client, which is perhaps in a room.
    fn ask(
        &self,
        node: &str,
        stay: Option<StayId>,
        author: &FarAuthor,
        body: &Map<String, Value>,
    ) -> Reply;

    /// Takes the media of a client.
    fn set_media(&self, node: &str, stay: StayId, media: FarMedia);

    /// Ends the stay of a client. `lost`: not at its request.
    fn leave(&self, node: &str, stay: StayId, lost: bool);

    /// The client begins a new stream.
    fn reset_decoder(&self, node: &str, stay: StayId);

    /// Ends a room of this node, which another node has destroyed: `permanently` so long ago, or not.
    fn destroy(&self, room: &str, permanently: Option<Duration>);

    /// Another node has such a room. Returns how long ago it was ended permanently, which that node
    /// may not know.
    fn ended_ago(&self, room: &str) -> Option<Duration>;

    /// Changes a room of this node permanently, as the other one has done by this request.
    fn edit(&self, room: &str, body: &Map<String, Value>);

    /// Forgets a stay that its room has ended. It is called under the lock of the room.
    fn forget(&self, node: &str, stay: StayId);

    /// Takes the sources of the clients of a node anew.
    fn linked(&self, node: &str);

    /// Ends the stays of all clients of a node.
    fn void(&self, node: &str);
}

/// The request of a client of another node to enter a room.
#[derive(Debug)]
pub(crate) struct Entering {
    pub(crate) listens: bool,
    pub(crate) author: FarAuthor,
    pub(crate) body: Map<String, Value>,
}

/// The rooms of the cluster, as the server and the plugin share them; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ClusterRooms(Arc<Inner>);

/// A room of this node as the others may show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRoom {
    /// Its id.
    pub id: String,
    /// What the others get to know of it.
    pub record: RoomRecord,
}

struct Inner {
    home: OnceLock<Weak<dyn Home>>,
    /// The name of this node, and the others.
    others: OnceLock<(String, Arc<dyn OtherNodes>)>,
    changed: Arc<Notify>,
    directory: Mutex<Directory>,
    pipes: Pipes,
    edge: Edge,
    malformed: LogGate,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            home: OnceLock::new(),
            others: OnceLock::new(),
            changed: Arc::default(),
            directory: Mutex::default(),
            pipes: Pipes::new(rand::random()),
            edge: Edge::default(),
            malformed: LogGate::default(),
        }
    }
}

impl ClusterRooms {
    /// Sets where the rooms of this node are. The first place stays.
    pub(crate) fn keep_in(&self, home: Weak<dyn Home>) {
        // A server has one plugin of this kind.
        let _ = self.0.home.set(home);
    }

    /// The server is a node with this name from now on.
    pub fn join_cluster(&self, node: &str, others: Arc<dyn OtherNodes>) {
        // A server is a node of one cluster.
        let _ = self.0.others.set((node.to_owned(), others));
    }

    fn home(&self) -> Option<Arc<dyn Home>> {
        self.0.home.get()?.upgrade()
    }

    fn others(&self) -> Option<&Arc<dyn OtherNodes>> {
        self.0.others.get().map(|(_, others)| others)
    }

    fn directory(&self) -> MutexGuard<'_, Directory> {
        let directory = self.0.directory.lock();
        directory.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of this run of the server, for [`ClusterRooms::node_is_there`] of the
    /// others.
    pub fn run(&self) -> u64 {
        self.0.pipes.run()
    }

    /// Returns what wakes up [`ClusterRooms::changed`].
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.0.changed.clone()
    }

    /// Waits until the rooms of this node may have changed. Some changes are seen only by a look.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns the rooms of this node.
    pub fn own(&self) -> Vec<OwnRoom> {
        self.home().map(|home| home.own()).unwrap_or_default()
    }

    /// Returns the node at which a room is at home, or `None` if that is this one, or no node has
    /// the room. `own`: this node has the room, too, and uses it or not.
    pub(crate) fn home_of(&self, id: &str, own: Option<bool>) -> Option<String> {
        let (name, _) = self.0.others.get()?;
        let own = own.map(|is_used| (name.as_str(), is_used));
        self.directory().home_of(id, own).map(str::to_owned)
    }

    /// Returns whether another node has a room with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.directory().has(id)
    }

    /// A room of this node was destroyed, so rooms of the same id end at all nodes. `permanently`:
    /// also in their files.
    pub(crate) fn destroyed(&self, id: &Id, permanently: bool) {
        let room = id.to_string();
        for node in self.directory_nodes(&room) {
            let message = FarMessage::Destroyed {
                room: room.clone(),
                permanently: permanently.then_some(0),
            };
            self.send(&node, &message);
        }
    }

    /// A room of this node was changed permanently by this request. Nodes that have it in their files
    /// change it there.
    pub(crate) fn edited_permanently(&self, id: &Id, body: &Map<String, Value>) {
        let room = id.to_string();
        for node in self.directory_nodes(&room) {
            let (room, body) = (room.clone(), body.clone());
            self.send(&node, &FarMessage::Edited { room, body });
        }
    }

    fn directory_nodes(&self, room: &str) -> Vec<String> {
        self.directory().nodes(room)
    }

    /// Returns the ids of the rooms of other nodes.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.directory().ids().map(str::to_owned).collect()
    }

    /// Returns what the other node that comes first for a room says of it, with its name.
    pub(crate) fn first(&self, id: &str) -> Option<(String, RoomRecord)> {
        let directory = self.directory();
        let (node, record) = directory.first(id)?;
        Some((node.to_owned(), record.clone()))
    }

    /// Takes what another node says of a room of its own.
    pub fn set(&self, node: &str, id: &str, record: RoomRecord) {
        if !self.directory().set(node, id, record) {
            tracing::warn!(node, "audiobridge: a node has too many rooms");
        }
        // A room that was ended permanently while the node was away.
        if let Some(ago) = self.home().and_then(|home| home.ended_ago(id)) {
            let message = FarMessage::Destroyed {
                room: id.to_owned(),
                permanently: Some(ago.as_secs()),
            };
            self.send(node, &message);
        }
    }

    /// Removes a room that another node has no longer. Clients of this node who are in it are told
    /// that it has ended.
    pub fn remove(&self, node: &str, id: &str) {
        self.directory().remove(node, id);
        self.0.edge.room_ended(self, node, id);
    }

    /// Notes that a node is there, in this run.
    pub fn node_is_there(&self, node: &str, run: u64) {
        let before = self.directory().arrive(node, run);
        if let Some(before) = before {
            self.forget(node, before);
        }
    }

    /// Forgets a node that is gone: its clients leave the rooms of this node, and clients of this
    /// node are told that its rooms have ended.
    pub fn node_lost(&self, node: &str) {
        let run = self.directory().depart(node);
        if let Some(run) = run {
            self.forget(node, run);
        }
    }

    fn forget(&self, node: &str, run: u64) {
        if self.0.pipes.forget(node, run, Instant::now()) {
            self.void(node);
        }
    }

    /// Takes a message of another node.
    pub fn take(&self, node: &str, frame: &[u8]) {
        let outcome = match self.0.pipes.take(node, frame, Instant::now()) {
            Ok(outcome) => outcome,
            Err(error) => return self.malformed(node, &error),
        };
        self.send_frames(node, outcome.frames);
        if outcome.is_void {
            self.void(node);
        }
        for message in outcome.messages {
            match FarMessage::parse(&message) {
                Ok(message) => self.dispatch(node, message),
                Err(error) => self.malformed(node, &error),
            }
        }
    }

    fn malformed(&self, node: &str, error: &dyn fmt::Display) {
        if let Some(suppressed) = self.0.malformed.open() {
            tracing::warn!(
                node,
                suppressed,
                "audiobridge: a message is skipped: {error}"
            );
        }
    }

    /// Takes the sources of a node again, which can be reached anew. Those before have ended.
    pub fn linked(&self, node: &str) {
        if let Some(home) = self.home() {
            home.linked(node);
        }
        self.0.edge.linked(self, node);
    }

    /// Does what is due. Called about once a second.
    pub fn tick(&self) {
        let home = self.home();
        let is_home = |node: &str| home.as_ref().is_some_and(|home| home.is_used_by(node));
        let is_used = |node: &str| is_home(node) || self.0.edge.uses(node);
        for (node, outcome) in self.0.pipes.tick(is_used, Instant::now()) {
            self.send_frames(&node, outcome.frames);
            if outcome.is_void {
                tracing::warn!(node, "audiobridge: what was agreed with a node is void");
                self.void(&node);
            }
        }
    }

    /// Nothing is agreed with a node any more.
    fn void(&self, node: &str) {
        if let Some(home) = self.home() {
            home.void(node);
        }
        self.0.edge.void(self, node);
    }

    /// Sends a message to another node. It may be called under the lock of a room.
    pub(crate) fn send(&self, node: &str, message: &FarMessage) {
        let Some(others) = self.others() else { return };
        let deliver = |frame| others.send(node, frame);
        let pipes = &self.0.pipes;
        pipes.send(node, &message.to_bytes(), Instant::now(), deliver);
    }

    fn send_frames(&self, node: &str, frames: Vec<Vec<u8>>) {
        if let Some(others) = self.others() {
            for frame in frames {
                others.send(node, frame);
            }
        }
    }

    /// Offers a source of this node to the others, or returns `None` if there are none.
    pub(crate) fn offer(&self, source: SourceRef, of: SourceDescription) -> Option<Offer> {
        Some(self.others()?.offer(source, of))
    }

    pub(crate) fn withdraw(&self, source: SourceId) {
        if let Some(others) = self.others() {
            others.withdraw(source);
        }
    }

    /// Returns the sources of a node, or `None` if the server is no node.
    pub(crate) fn sources(&self, node: &str) -> Option<Arc<dyn Sources>> {
        Some(self.others()?.sources(node))
    }

    /// Forgets a client of another node that a room has removed.
    pub(crate) fn forget_stay(&self, node: &str, stay: StayId) {
        if let Some(home) = self.home() {
            home.forget(node, stay);
        }
    }

    fn dispatch(&self, node: &str, message: FarMessage) {
        let edge = &self.0.edge;
        match message {
            FarMessage::Entered { call, entry, .. } => edge.entered(call, node, entry),
            FarMessage::Answer { call, answer } => edge.answered(call, node, answer),
            FarMessage::Tell { stays, event } => edge.tell(node, &stays, event),
            FarMessage::Mix { stay, offer } => edge.mix(self, node, stay, offer),
            FarMessage::Closed { stay } => edge.closed(self, node, stay),
            message => {
                if let Some(home) = self.home() {
                    self.dispatch_home(home.as_ref(), node, message);
                }
            }
        }
    }

    fn dispatch_home(&self, home: &dyn Home, node: &str, message: FarMessage) {
        match message {
            FarMessage::Enter {
                call,
                stay,
                listens,
                author,
                body,
            } => {
                let client = FarClient::new(self.clone(), node, stay);
                let request = Entering {
                    listens,
                    author,
                    body,
                };
                let answer = match home.enter(client, request) {
                    Ok(entry) => FarMessage::Entered { call, stay, entry },
                    Err(answer) => FarMessage::Answer { call, answer },
                };
                self.send(node, &answer);
            }
            FarMessage::Ask {
                call,
                stay,
                author,
                body,
            } => self.reply(node, call, home.ask(node, stay, &author, &body)),
            FarMessage::Media { stay, media } => home.set_media(node, stay, media),
            FarMessage::Leave { stay, lost } => home.leave(node, stay, lost),
            FarMessage::ResetDecoder { stay } => home.reset_decoder(node, stay),
            FarMessage::Destroyed { room, permanently } => {
                home.destroy(&room, permanently.map(Duration::from_secs));
            }
            FarMessage::Edited { room, body } => home.edit(&room, &body),
            // Of a later version.
            _ => {}
        }
    }

    fn reply(&self, node: &str, call: CallId, reply: Reply) {
        match reply {
            Reply::Success(answer) => self.send(node, &FarMessage::Answer { call, answer }),
            Reply::Later(later) => {
                let (rooms, node) = (self.clone(), node.to_owned());
                tokio::spawn(async move {
                    let answer = later.result().await;
                    rooms.send(&node, &FarMessage::Answer { call, answer });
                });
            }
            // No such request is answered like this.
            Reply::Ack(_) | Reply::Error(_) => {}
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterRooms").finish_non_exhaustive()
    }
}
