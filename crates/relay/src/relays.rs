//! The relays of a node as other parts of the server use them: locked, and driven by the time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portunus_media::{DemandReports, IngestId, MediaPlane, NodeLinkKey, NodeLinkStats, SourceRef};
use tokio::sync::Notify;

use crate::far_node_id::FarNodeId;
use crate::state::{Event, FarNodeOptions, State, TreeFigures, TreeOptions};
use crate::{Message, Offer, SourceDescription, SourceId};

/// The relays of a node. Cheap to clone. [`Relays::run`] has to run.
#[derive(Debug, Clone)]
pub struct Relays {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Locked for moments.
    state: Mutex<State>,
    reports: DemandReports,
    /// A deadline may have changed.
    changed: Notify,
    messages: Notify,
    events: Notify,
}

/// The sources of another node, for those who route from them.
pub trait Sources: fmt::Debug + Send + Sync {
    /// Returns the ingest of a source, which lives until it is released. Nothing crosses as long as
    /// nobody looks. Returns `None` if the node is gone.
    fn take(&self, offer: &Offer) -> Option<IngestId>;

    /// Removes an ingest.
    fn release(&self, ingest: IngestId);
}

/// The sources of one other node.
#[derive(Debug, Clone)]
pub struct FarNode {
    relays: Relays,
    node: FarNodeId,
}

impl Relays {
    /// Returns the relays of a node that is alone so far, and takes no part in trees.
    pub fn new(media: MediaPlane) -> Self {
        Self::with(media, TreeOptions::default())
    }

    /// Returns the relays of a node that is alone so far.
    pub fn with(media: MediaPlane, tree: TreeOptions) -> Self {
        let state = State::new(media, tree);
        let shared = Shared {
            reports: state.reports().clone(),
            state: Mutex::new(state),
            changed: Notify::new(),
            messages: Notify::new(),
            events: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `change`, and notifies those who wait for what may follow from it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.shared.changed.notify_one();
        self.shared.messages.notify_one();
        self.shared.events.notify_one();
        changed
    }

    /// Does what is due, and takes what workers report. Ends never.
    pub async fn run(&self) {
        loop {
            let due = self.lock().poll_timeout();
            let timer = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = timer => self.change(|state| state.handle_timeout(now())),
                () = self.shared.reports.changed() => self.change(|state| state.take_reports(now())),
                () = self.shared.changed.notified() => {}
            }
        }
    }

    /// Where workers report what viewers can see.
    pub fn reports(&self) -> &DemandReports {
        &self.shared.reports
    }

    /// Connects another node. Its sources can be subscribed to by the handle.
    pub fn connect(&self, options: &FarNodeOptions) -> (FarNodeId, FarNode) {
        let node = self.change(|state| state.connect(options, now()));
        let relays = self.clone();
        (node, FarNode { relays, node })
    }

    /// Tells another node again what this one wants: the connection for messages was lost and is
    /// back, while the link for media stayed.
    pub fn resume(&self, node: FarNodeId) {
        self.change(|state| state.resume(node));
    }

    /// Forgets another node. Its sources end.
    pub fn disconnect(&self, node: FarNodeId) {
        self.change(|state| state.disconnect(node, now()));
    }

    /// Offers a source to all other nodes.
    pub fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer {
        self.change(|state| state.offer(source, description))
    }

    /// Withdraws an offer, because the source is gone.
    pub fn withdraw(&self, source: SourceId) {
        self.change(|state| state.withdraw(source));
    }

    /// Subscribes to a source of another node. Returns its ingest, or `None` if the node is not
    /// connected.
    pub fn subscribe(&self, node: FarNodeId, offer: &Offer) -> Option<IngestId> {
        self.change(|state| state.subscribe(node, offer))
    }

    /// Removes the ingest of a source of another node.
    pub fn unsubscribe(&self, ingest: IngestId) {
        self.change(|state| state.unsubscribe(ingest));
    }

    /// Takes a message of another node.
    pub fn take_message(&self, node: FarNodeId, message: &Message) {
        self.change(|state| state.take_message(node, message, now()));
    }

    /// Waits for the next message, and the node that it is for. One task calls it.
    pub async fn next_message(&self) -> (FarNodeId, Message) {
        loop {
            if let Some(message) = self.lock().poll_message() {
                return message;
            }
            self.shared.messages.notified().await;
        }
    }

    /// Waits for the next event. One task calls it.
    pub async fn next_event(&self) -> Event {
        loop {
            if let Some(event) = self.lock().poll_event() {
                return event;
            }
            self.shared.events.notified().await;
        }
    }

    /// Returns the next event if there is one. The task that calls [`Relays::next_event`] calls
    /// it.
    pub fn poll_event(&self) -> Option<Event> {
        self.lock().poll_event()
    }

    /// Replaces the key of what comes from a node ([`MediaPlane::set_node_link_key`]).
    pub fn set_key(&self, node: FarNodeId, number: u32, key: &NodeLinkKey) {
        self.lock().set_key(node, number, key);
    }

    /// Replaces the key of what goes to a node ([`MediaPlane::use_node_link_key`]).
    pub fn use_key(&self, node: FarNodeId, number: u32, key: &NodeLinkKey) {
        self.lock().use_key(node, number, key);
    }

    /// Sets whether this node carries no more sources for others, because it drains.
    pub fn set_draining(&self, is_draining: bool) {
        self.lock().set_draining(is_draining);
    }

    /// Returns what this node and another one do for each other and for third ones.
    pub fn tree_figures(&self, node: FarNodeId) -> Option<TreeFigures> {
        self.lock().tree_figures(node, now())
    }

    /// Returns what the link with a node has carried.
    pub fn stats(&self, node: FarNodeId) -> Option<NodeLinkStats> {
        self.lock().stats(node)
    }
}

impl Sources for FarNode {
    fn take(&self, offer: &Offer) -> Option<IngestId> {
        self.relays.subscribe(self.node, offer)
    }

    fn release(&self, ingest: IngestId) {
        self.relays.unsubscribe(ingest);
    }
}

/// The time, which tests may hold.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
