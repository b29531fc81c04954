//! The parts of a session that others reach: the way to the client, and its handles.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use livekit_protocol::{SessionDescription, TrackInfo, signal_response};
use portunus_core::{Handle, PendingOffer};
use portunus_room::{ConnectionId, PersonId, State};
use portunus_sdp::{Jsep, LocalJsep};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::Hall;
use super::input::{Event, Input};
use super::out::Out;

/// How long a client may take to answer the server's offer.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// The PeerConnections of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Media from the client; with one PeerConnection, media to it, too.
    Publisher,
    /// Media to the client.
    Subscriber,
}

impl Role {
    /// Returns its name for operators.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Role::Publisher => "publisher",
            Role::Subscriber => "subscriber",
        }
    }
}

/// A participant of this door.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its identity.
    pub(crate) identity: String,
    /// Its id in the room.
    pub(crate) id: PersonId,
    /// The id of its session.
    pub(crate) sid: String,
    /// When it was let in ([`super::entries`]). 0 if that is not known.
    pub(crate) ticket: u64,
    /// Its room.
    pub(crate) hall: Arc<Hall>,
    /// How its client wants media.
    pub(crate) reception: Reception,
    /// The way to the client.
    pub(crate) out: Out,
    /// Events for its task.
    pub(crate) events: mpsc::Sender<Event>,
    /// Requests of the client for its task.
    pub(crate) inputs: mpsc::Sender<Input>,
    /// Wakes its task.
    pub(crate) wake: Notify,
    /// Whether its subscriptions have to be brought up to date.
    pub(crate) is_stale: AtomicBool,
    /// Whether other layers of its tracks may be wanted.
    pub(crate) is_unbalanced: AtomicBool,
    /// Whether its client has to get a token with other claims.
    pub(crate) has_other_claims: AtomicBool,
    /// The number of the server's last offer.
    pub(crate) offers: AtomicU32,
    /// When the server's last offer has to be answered.
    answer_due: Mutex<Option<Instant>>,
    /// The number of the client's last reliable data message.
    sequence: AtomicU32,
    /// When it joined.
    pub(crate) joined: Instant,
    /// Whether its data channels are open.
    pub(crate) has_data: AtomicBool,
    publisher: Ends,
    subscriber: Ends,
    /// The tracks that webhooks know of.
    reported: Mutex<Vec<TrackInfo>>,
}

/// How a client wants media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reception {
    /// Whether video may pause while the link does not carry its lowest layer.
    pub(crate) may_pause: bool,
    /// Whether sound and picture of a publisher are in one stream, so that they play in sync.
    pub(crate) in_sync: bool,
}

/// The handle of a PeerConnection, and the client's description that waits for its answer.
#[derive(Debug, Default)]
struct Ends {
    handle: OnceLock<Handle>,
    described: Mutex<Option<Described>>,
}

/// A description of the client that the core has checked.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) jsep: Jsep,
    /// Keeps an offer until it is answered.
    pub(crate) _offer: Option<PendingOffer>,
}

impl Member {
    pub(crate) fn new(
        identity: String,
        (sid, ticket): (String, u64),
        hall: Arc<Hall>,
        reception: Reception,
        events: mpsc::Sender<Event>,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        Member {
            id: hall.id_of(&identity),
            identity,
            sid,
            ticket,
            hall,
            reception,
            out: Out::default(),
            events,
            inputs,
            sequence: AtomicU32::new(0),
            wake: Notify::new(),
            is_stale: AtomicBool::new(false),
            is_unbalanced: AtomicBool::new(false),
            has_other_claims: AtomicBool::new(false),
            offers: AtomicU32::new(0),
            answer_due: Mutex::default(),
            joined: Instant::now(),
            has_data: AtomicBool::new(false),
            publisher: Ends::default(),
            subscriber: Ends::default(),
            reported: Mutex::default(),
        }
    }

    const fn ends(&self, role: Role) -> &Ends {
        match role {
            Role::Publisher => &self.publisher,
            Role::Subscriber => &self.subscriber,
        }
    }

    /// Sets the handle of a PeerConnection.
    pub(crate) fn attached(&self, role: Role, handle: Handle) {
        // Each is attached once.
        let _ = self.ends(role).handle.set(handle);
    }

    /// Returns the handle of a PeerConnection.
    pub(crate) fn handle(&self, role: Role) -> Option<&Handle> {
        self.ends(role).handle.get()
    }

    /// Returns the id of a PeerConnection in rooms.
    pub(crate) fn key(&self, role: Role) -> Option<ConnectionId> {
        self.handle(role).map(|handle| ConnectionId(handle.id().0))
    }

    /// Keeps a checked description for the session's task.
    pub(crate) fn describe(&self, role: Role, described: Described) {
        *self.described(role) = Some(described);
    }

    /// Takes the checked description.
    pub(crate) fn take_described(&self, role: Role) -> Option<Described> {
        self.described(role).take()
    }

    fn described(&self, role: Role) -> MutexGuard<'_, Option<Described>> {
        let described = &self.ends(role).described;
        described.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tracks that webhooks know of.
    pub(crate) fn reported(&self) -> MutexGuard<'_, Vec<TrackInfo>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an event to the session's task.
    pub(crate) fn happens(&self, event: Event) {
        if let Err(error) = self.events.try_send(event) {
            // The task has ended, or hangs with a full queue.
            tracing::debug!(%error, sid = self.sid, "an event of a participant is lost");
        }
    }

    /// Notes the number of a reliable data message. Returns whether it did not come before. Clients
    /// of former versions do not count.
    pub(crate) fn is_next(&self, sequence: u32) -> bool {
        sequence == 0 || self.sequence.fetch_max(sequence, Ordering::AcqRel) < sequence
    }

    /// Returns the number of the client's last reliable data message.
    pub(crate) fn last_sequence(&self) -> u32 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Has the session's task bring its subscriptions up to date.
    pub(crate) fn is_behind(&self) {
        self.is_stale.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Has the session's task send its client a token with the present claims soon.
    pub(crate) fn changes_claims(&self) {
        self.has_other_claims.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Sends the room's offer to the client. The caller holds the lock of the room.
    pub(crate) fn offer(&self, state: &State, local: LocalJsep) {
        let id = self.offers.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let offer = SessionDescription {
            r#type: "offer".to_owned(),
            sdp: local.sdp,
            id,
            mid_to_track_id: self.mids(state),
        };
        self.out.message(signal_response::Message::Offer(offer));
        *self.due() = Some(Instant::now() + ANSWER_LIMIT);
        self.wake.notify_one();
    }

    /// Notes that the server's last offer needs no answer any more.
    pub(crate) fn answered(&self) {
        *self.due() = None;
    }

    /// Returns when the client has to answer, if an offer waits and the client can be reached.
    pub(crate) fn answer_due(&self) -> Option<Instant> {
        let due = *self.due();
        due.filter(|_| self.out.is_open())
    }

    fn due(&self) -> MutexGuard<'_, Option<Instant>> {
        self.answer_due
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tracks that the client receives, by its m-lines.
    pub(crate) fn mids(&self, state: &State) -> std::collections::HashMap<String, String> {
        let subscriber = self
            .key(self.receiving())
            .and_then(|key| state.subscriber(key));
        let people = self.hall.people();
        let lines = subscriber.into_iter().flat_map(|it| &it.lines);
        let tracks = lines.filter_map(|line| {
            let (feed, mid) = line.source()?;
            let track = people.get(feed)?.track_of(mid)?;
            Some((line.mid.as_str().to_owned(), track.sid.clone()))
        });
        tracks.collect()
    }

    /// Returns the PeerConnection by which the client receives.
    pub(crate) fn receiving(&self) -> Role {
        match self.subscriber.handle.get() {
            Some(_) => Role::Subscriber,
            None => Role::Publisher,
        }
    }
}
