//! A room: who is in it, and telling them.

mod join;
mod leave;
mod telling;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{Fields, HandleId, Mid};

use crate::id::{Id, Ids};
use crate::news::News;
use crate::options::RoomOptions;
use crate::publication::{Published, Stream};
use crate::refusal::Refusal;
use crate::roster::Participant;
use crate::speakers::Speakers;
use crate::subscription::Subscriber;

pub(crate) use join::Join;

/// Publishers of other servers that are remembered after they were thrown out.
const MAX_KICKED_REMOTES: usize = 64;

/// A room. Whatever happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: Id,
    state: Mutex<RoomState>,
}

/// What is in a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: Id,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    pub(crate) options: RoomOptions,
    pub(crate) access: Access,
    pub(crate) destroyed: bool,
    pub(crate) people: HashMap<Id, Participant>,
    /// Those whose media is up, in the order in which it came up.
    active: BTreeMap<u64, Id>,
    by_private_id: HashMap<u32, Id>,
    /// Who was thrown out and still holds the handle.
    pub(crate) kicked: HashMap<HandleId, Id>,
    /// Publishers of other servers that were thrown out last, the newest at the end.
    kicked_remotes: VecDeque<Id>,
    pub(crate) subscribers: HashMap<HandleId, Subscriber>,
    /// The subscriptions that have seats.
    pub(crate) followers: BTreeSet<HandleId>,
    /// Who speaks.
    pub(crate) speakers: Speakers,
    news: News,
    /// Participants with a PeerConnection.
    publishing: u64,
    next_place: u64,
}

/// Who may join.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) checked: bool,
    pub(crate) tokens: HashSet<String>,
}

impl Room {
    pub(crate) fn new(
        id: Id,
        ids: Ids,
        options: RoomOptions,
        tokens: Option<Vec<String>>,
        (media, recorder): (MediaPlane, Recorder),
    ) -> Self {
        let access = Access {
            checked: tokens.is_some(),
            tokens: tokens.into_iter().flatten().collect(),
        };
        let mut state = RoomState {
            id: id.clone(),
            media,
            recorder,
            options,
            access,
            destroyed: false,
            people: HashMap::new(),
            active: BTreeMap::new(),
            by_private_id: HashMap::new(),
            kicked: HashMap::new(),
            kicked_remotes: VecDeque::new(),
            subscribers: HashMap::new(),
            followers: BTreeSet::new(),
            speakers: Speakers::default(),
            news: News::default(),
            publishing: 0,
            next_place: 0,
        };
        state.measure_speech();
        if let Some(dummy) = state.options.dummy.clone() {
            state.add_dummy(&dummy, ids);
        }
        Room {
            state: Mutex::new(state),
            id,
        }
    }

    /// What is in it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    /// Adds somebody, whose ids are free.
    pub(crate) fn add(&mut self, person: Participant) {
        self.kicked_remotes.retain(|kicked| *kicked != person.id);
        self.by_private_id
            .insert(person.private_id, person.id.clone());
        self.people.insert(person.id.clone(), person);
    }

    /// A private id that nobody has.
    pub(crate) fn new_private_id(&self) -> u32 {
        loop {
            let id = rand::random();
            if id != 0 && !self.by_private_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Takes somebody out whose media is gone already.
    pub(crate) fn remove(&mut self, id: &Id) -> Option<Participant> {
        let person = self.people.remove(id)?;
        self.by_private_id.remove(&person.private_id);
        for key in &person.subscriptions {
            if let Some(subscriber) = self.subscribers.get_mut(key) {
                subscriber.owner = None;
            }
        }
        Some(person)
    }

    /// Remembers who was thrown out: a client as long as it holds its handle.
    pub(crate) fn note_kicked(&mut self, person: &Participant) {
        if let Some(handle) = person.origin.handle() {
            self.kicked.insert(handle.id(), person.id.clone());
            return;
        }
        if self.kicked_remotes.len() >= MAX_KICKED_REMOTES {
            self.kicked_remotes.pop_front();
        }
        self.kicked_remotes.push_back(person.id.clone());
    }

    /// Whether this one was thrown out and has not come back.
    pub(crate) fn is_kicked(&self, id: &Id) -> bool {
        let mut kicked = self.kicked.values().chain(&self.kicked_remotes);
        !self.people.contains_key(id) && kicked.any(|kicked| kicked == id)
    }

    /// The participant whose private id it is.
    pub(crate) fn owner_of(&self, private_id: u64) -> Option<&Id> {
        self.by_private_id.get(&u32::try_from(private_id).ok()?)
    }

    /// The participant that `handle` has joined as.
    pub(crate) fn person(
        &mut self,
        id: &Id,
        handle: HandleId,
    ) -> Result<&mut Participant, Refusal> {
        let person = self.people.get_mut(id);
        person
            .filter(|person| person.origin.is(handle))
            .ok_or(Refusal::NotInRoom)
    }

    /// The one that a request names as `id`.
    pub(crate) fn named(&self, id: &Id) -> Result<&Participant, Refusal> {
        self.people
            .get(id)
            .ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// Those whose media is up, in the order in which it came up.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = &Participant> {
        self.active.values().filter_map(|id| self.people.get(id))
    }

    /// Checks that there is room for one more publisher.
    pub(crate) fn check_limit(&self) -> Result<(), Refusal> {
        match self.publishing < self.options.publishers {
            true => Ok(()),
            false => Err(Refusal::PublishersFull(self.options.publishers)),
        }
    }

    /// Checks that a publisher who is encrypted end to end, or is not, may be here.
    pub(crate) fn check_e2ee(&self, e2ee: bool) -> Result<(), Refusal> {
        match self.options.require_e2ee && !e2ee {
            true => Err(Refusal::Unauthorized(
                "this room needs end-to-end encryption",
            )),
            false => Ok(()),
        }
    }

    /// Somebody has a PeerConnection from now on.
    pub(crate) fn start_media(&mut self, id: &Id, media: Published) {
        if let Some(person) = self.people.get_mut(id)
            && person.media.replace(media).is_none()
        {
            self.publishing += 1;
        }
    }

    /// A PeerConnection is up; false if it was before.
    pub(crate) fn media_up(&mut self, id: &Id) -> bool {
        let media = self.people.get_mut(id).and_then(|p| p.media.as_mut());
        let Some(media) = media.filter(|media| media.active.is_none()) else {
            return false;
        };
        media.active = Some(self.next_place);
        self.active.insert(self.next_place, id.clone());
        self.next_place += 1;
        self.reseat_all();
        true
    }

    /// Takes out what somebody publishes.
    pub(crate) fn take_media(&mut self, id: &Id) -> Option<Published> {
        self.tell_news();
        let media = self.people.get_mut(id)?.media.take()?;
        self.publishing = self.publishing.saturating_sub(1);
        if let Some(place) = media.active {
            self.active.remove(&place);
        }
        self.speakers.forget(id);
        Some(media)
    }

    /// A stream of somebody whose media is up.
    pub(crate) fn stream(&self, feed: &Id, mid: Mid) -> Option<&Stream> {
        self.people.get(feed)?.up()?.stream(mid)
    }

    /// Checks that a request may manage the room.
    pub(crate) fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        self.options.check_secret(fields)
    }
}
