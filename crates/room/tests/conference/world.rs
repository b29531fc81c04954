//! A room on a media plane without workers, and clients whose door only notes the notices.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use portunus_media::{MediaPlane, PeerId, PeerOptions, Priority, SourceRef};
use portunus_record::{JointRecording, JointSpec, Recorder, Recording, RecordingSpec};
use portunus_room::{
    self as room, Configure, Connection, ConnectionId, Event, FileNames, Join, LayerRequest,
    Notice, Permissions, PersonId, Profile, RecordedClient, Refusal, Room, RoomSettings, Setup,
    State, Subscribe, SubscriberJoin, TalkSettings, Told, Watcher,
};
use portunus_rtp::{ExtensionKind, Mid, Rid};
use portunus_sdp::{
    AnswerOptions, CodecName, Description, Direction, IceCredentials, Jsep, Kind, LocalJsep,
    MediaOffer, OfferOptions, SdpType, Simulcast,
};

/// A room.
pub struct World {
    pub room: Arc<Room>,
    pub media: MediaPlane,
    /// The events for the observers of the server.
    pub watched: Arc<Mutex<Vec<String>>>,
    next: Cell<u64>,
}

/// A client of a door.
#[derive(Debug)]
pub struct Client {
    id: ConnectionId,
    pub peer: PeerId,
    /// The notices to it, with the addresses of their written forms.
    told: Mutex<Vec<(String, usize)>>,
    /// The last description made for it.
    made: Mutex<Option<Description>>,
    closed: Mutex<bool>,
}

#[derive(Debug)]
struct Watching(Arc<Mutex<Vec<String>>>);

/// A route: publisher, kind of media, whether it is open, and the wanted encoding.
pub type Seen = (String, &'static str, bool, u8);

impl World {
    pub fn new(settings: RoomSettings) -> Self {
        let (media, _, _) = MediaPlane::detached();
        let watched = Arc::default();
        let room = Room::new(Setup {
            name: "hall".into(),
            settings,
            media: media.clone(),
            recorder: Recorder::default(),
            names: FileNames::default(),
            watcher: Box::new(Watching(Arc::clone(&watched))),
        });
        World {
            room: Arc::new(room),
            media,
            watched,
            next: Cell::new(1),
        }
    }

    /// Returns a room with `count` publishers of audio and three encodings of video: `p0`, `p1`, …
    pub async fn with_publishers(settings: RoomSettings, count: usize) -> (Self, Vec<Arc<Client>>) {
        let world = World::new(settings);
        let names = (0..count).map(|index| format!("p{index}"));
        let publishers: Vec<_> = names.map(|name| world.publisher(&name)).collect();
        // The announcements to all are over then.
        tokio::time::sleep(Duration::from_millis(100)).await;
        for publisher in &publishers {
            publisher.take();
        }
        (world, publishers)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.room.lock()
    }

    pub fn client(&self) -> Arc<Client> {
        let id = self.next.replace(self.next.get() + 1);
        let ice = IceCredentials {
            ufrag: String::new(),
            pwd: String::new(),
        };
        let peer = self.media.create_peer(PeerOptions {
            ice,
            controlling: false,
            worker: None,
        });
        Arc::new(Client {
            id: ConnectionId(id),
            peer,
            told: Mutex::default(),
            made: Mutex::default(),
            closed: Mutex::default(),
        })
    }

    /// Adds a participant that does not publish.
    pub fn join(&self, name: &str) -> Arc<Client> {
        self.join_with(name, Permissions::ALL).expect("a free id")
    }

    pub fn join_with(&self, name: &str, permissions: Permissions) -> Result<Arc<Client>, Refusal> {
        let client = self.client();
        let join = Join {
            id: name.into(),
            profile: Profile {
                display: Some(name.to_uppercase()),
                metadata: None,
            },
            permissions,
            talk: TalkSettings::default(),
        };
        self.state().join(client.clone(), join)?;
        Ok(client)
    }

    /// Adds a publisher whose media is up.
    pub fn publisher(&self, name: &str) -> Arc<Client> {
        let client = self.join(name);
        self.publish(name, &client).expect("an answer");
        client
    }

    pub fn publish(&self, name: &str, client: &Client) -> Result<LocalJsep, Refusal> {
        let id = PersonId::from(name);
        let mut state = self.state();
        let offer = offer();
        let configured = state.configure(&id, client.id, &Configure::default(), Some(&offer))?;
        if state.media_up(&id) {
            state.announce(&id, &self.room);
        }
        Ok(configured.answer.expect("an answer"))
    }

    /// Subscribes to all streams of `feeds` and answers the offer. Media flows.
    pub fn viewer(&self, feeds: &[&str], layers: &LayerRequest) -> Arc<Client> {
        let client = self.client();
        self.subscribe(&client, feeds, layers, None)
            .expect("an offer");
        client
    }

    pub fn subscribe(
        &self,
        client: &Arc<Client>,
        feeds: &[&str],
        layers: &LayerRequest,
        private_id: Option<u64>,
    ) -> Result<(), Refusal> {
        let join = SubscriberJoin {
            private_id,
            autoupdate: true,
            streams: feeds.iter().map(|feed| all_of(feed, layers)).collect(),
            ..SubscriberJoin::default()
        };
        self.state().join_subscriber(client.clone(), join, false)?;
        self.answer(client);
        Ok(())
    }

    /// Answers the last offer for a client and accepts all m-lines.
    pub fn answer(&self, client: &Client) {
        let offer = client.made.lock().unwrap().take().expect("an offer");
        let mut options = AnswerOptions::default();
        for media in [&mut options.audio, &mut options.video] {
            media.direction = Direction::RecvOnly;
        }
        let answer = Description::answer(&offer, &options);
        let mut state = self.state();
        state.accept(client.id, &answer).expect("a subscription");
        state.offer_pending(client.id);
    }

    /// Returns the routes to a client, in order.
    pub fn seen_by(&self, client: &Client) -> Vec<Seen> {
        let state = self.state();
        let routes = self.media.requested().routes.into_iter();
        let own = routes.filter(|route| route.to.peer == client.peer);
        let mut seen: Vec<Seen> = own
            .filter_map(|route| {
                let SourceRef::Track(from) = route.from else {
                    return None;
                };
                let of = |person: &&portunus_room::Participant| {
                    let peer = person.connection().and_then(|client| client.peer());
                    peer == Some(from.peer)
                };
                let person = state.people().find(of)?.id();
                let kind = state.publication(person)?.stream(from.mid)?.kind.name();
                let options = route.options;
                Some((person.to_string(), kind, options.enabled, options.substream))
            })
            .collect();
        seen.sort();
        seen
    }

    /// Returns the number of all routes.
    pub fn routes(&self) -> usize {
        self.media.requested().routes.len()
    }

    /// Returns the new events for the observers.
    pub fn take_watched(&self) -> Vec<String> {
        std::mem::take(&mut self.watched.lock().unwrap())
    }
}

impl Client {
    pub fn key(&self) -> ConnectionId {
        self.id
    }

    /// Returns the new notices.
    pub fn take(&self) -> Vec<String> {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        told.into_iter().map(|(text, _)| text).collect()
    }

    /// Returns the addresses of the new notices. Notices with one written form share it.
    pub fn take_addresses(&self) -> Vec<usize> {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        told.into_iter().map(|(_, address)| address).collect()
    }

    pub fn is_closed(&self) -> bool {
        *self.closed.lock().unwrap()
    }

    /// Whether an offer was made that it has not answered.
    pub fn has_offer(&self) -> bool {
        self.made.lock().unwrap().is_some()
    }

    /// Returns the last description made for it.
    pub fn made(&self) -> Description {
        self.made.lock().unwrap().clone().expect("a description")
    }

    fn make(&self, kind: SdpType, description: Description) -> LocalJsep {
        *self.made.lock().unwrap() = Some(description);
        LocalJsep {
            kind,
            sdp: String::new(),
            e2ee: false,
            trickled: None,
        }
    }
}

impl Connection for Client {
    fn id(&self) -> ConnectionId {
        self.id
    }

    fn peer(&self) -> Option<PeerId> {
        (!self.is_closed()).then_some(self.peer)
    }

    fn offer(&self, description: Description, _restart: bool) -> Result<LocalJsep, Refusal> {
        Ok(self.make(SdpType::Offer, description))
    }

    fn answer(&self, description: Description) -> Result<LocalJsep, Refusal> {
        Ok(self.make(SdpType::Answer, description))
    }

    fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    fn record(
        &self,
        _mid: Mid,
        _open: bool,
        _spec: RecordingSpec,
        _client: RecordedClient<'_>,
    ) -> Option<Recording> {
        None
    }

    fn record_jointly(
        &self,
        _spec: JointSpec,
        _client: RecordedClient<'_>,
    ) -> Option<JointRecording> {
        None
    }
}

impl room::Client for Client {
    fn send(&self, told: &Told<'_>, offer: Option<LocalJsep>) {
        let text = told.written(|| written(&told.notice));
        let offered = if offer.is_some() { " by an offer" } else { "" };
        let address = std::rc::Rc::as_ptr(&text) as usize;
        let told = (format!("{text}{offered}"), address);
        self.told.lock().unwrap().push(told);
    }

    fn notify(&self, _room: &State, _event: &Event<'_>) {}
}

impl Watcher for Watching {
    fn is_watching(&self) -> bool {
        true
    }

    fn notify(&self, _room: &State, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

fn written(notice: &Notice<'_>) -> String {
    match notice {
        Notice::Joining(id) => format!("{id} joins"),
        Notice::Published(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| id.as_str()).collect();
            format!("{} published", ids.join(" "))
        }
        Notice::Unpublished(id) => format!("{id} unpublished"),
        Notice::Left(person) => format!("{} left", person.id()),
        Notice::JoinUndone(id) => format!("{id} did not join"),
        Notice::Kicked(person) => format!("{} kicked", person.id()),
        Notice::ThrownOut => "thrown out".to_owned(),
        Notice::Destroyed => "destroyed".to_owned(),
        Notice::Renamed { id, profile } => format!("{id} is {:?}", profile.display),
        Notice::Talk(talk) => format!("{} talks: {}", talk.id, talk.talking),
        Notice::Dominant(id) => format!("{id} has the floor"),
        Notice::Moderated { id, mid, mute } => format!("{id} {mid} muted: {mute}"),
        Notice::Seats(_, places) => format!("seats {places:?}"),
        Notice::Layer { kind, layer, .. } => format!("{kind:?} {layer}"),
        Notice::Offered(_) => "updated".to_owned(),
    }
}

/// All streams of a publisher.
pub fn all_of(feed: &str, layers: &LayerRequest) -> Subscribe {
    Subscribe {
        feed: feed.into(),
        mid: None,
        crossrefid: None,
        send: true,
        layers: layers.clone(),
    }
}

pub fn encoding(substream: u8) -> LayerRequest {
    LayerRequest {
        substream: Some(substream),
        priority: Some(Priority::Low),
        ..LayerRequest::default()
    }
}

pub fn mid(text: &str) -> Mid {
    Mid::new(text).expect("a mid")
}

/// Returns an offer of audio with levels, and of video with three encodings.
fn offer() -> Jsep {
    let media = [
        (Kind::Audio, CodecName::Opus),
        (Kind::Video, CodecName::Vp8),
    ];
    let media = media.into_iter().enumerate().map(|(index, (kind, codec))| {
        let mut media = MediaOffer::new(kind, Direction::SendOnly);
        media.mid = Some(mid(&index.to_string()));
        media.add_codec(codec, None, None);
        media.extensions = match kind {
            Kind::Audio => vec![(ExtensionKind::AudioLevel, 1)],
            Kind::Video | Kind::Data => vec![(ExtensionKind::Rid, 2)],
        };
        media
    });
    let description = Description::offer(OfferOptions {
        name: "publisher".to_owned(),
        session_id: String::new(),
        media: media.collect(),
    });
    let rids = ["l", "m", "h"].map(|rid| Rid::new(rid).expect("a rid"));
    Jsep {
        kind: SdpType::Offer,
        description,
        simulcast: vec![Simulcast {
            mid: mid("1"),
            rids: rids.to_vec(),
            ssrcs: Vec::new(),
        }],
        svc: Vec::new(),
        e2ee: false,
        update: false,
        restart: false,
    }
}

/// Counts texts.
pub fn counted(texts: Vec<String>) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for text in texts {
        *counted.entry(text).or_default() += 1;
    }
    counted
}
