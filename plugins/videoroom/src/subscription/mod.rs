//! A subscription: one PeerConnection that receives any number of streams of a room.

mod answer;
mod change;
mod configure;
mod join;
mod layers;
mod offer;
mod payloads;
mod relay;
mod seat;
mod show;
mod switch;
mod watch;

use portunus_core::media::{Layer, LayerReason, RouteId, RouteOptions, SourceRef};
use portunus_core::sdp::{CodecName, Kind, MAX_MEDIA};
use portunus_core::{ExtensionKind, Handle, Mid, Pt};

use crate::id::Id;
use crate::refusal::Refusal;
use crate::subscription::layers::RequestedLayers;
use crate::subscription::payloads::Payloads;
use crate::subscription::seat::{Follow, Seat};

pub(crate) use configure::SubscriberConfigure;
pub(crate) use join::SubscriberJoin;
pub(crate) use switch::Switch;
pub(crate) use watch::Watch;

/// The most m-lines of audio and video of a subscription: with one of data, its answers can be read.
const MAX_LINES: usize = MAX_MEDIA - 1;
const TOO_MANY: Refusal = Refusal::Unknown("Too many streams in one subscription");

/// Someone who receives; one handle.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) handle: Handle,
    /// The participant whose private id it gave.
    pub(crate) owner: Option<Id>,
    private_id: Option<u64>,
    /// Streams are named by their publishers in `a=msid`.
    use_msid: bool,
    /// New offers are made without being asked for when a publisher goes.
    autoupdate: bool,
    /// What its first feed was like.
    e2ee: bool,
    /// The m-lines in their order.
    lines: Vec<Line>,
    payloads: Payloads,
    signaling: Signaling,
    pending: Pending,
    paused: bool,
    /// Its owner was thrown out: nothing is relayed any more.
    pub(crate) owner_kicked: bool,
    /// The client made the offer, and takes none of ours.
    client_offered: bool,
    /// Who sits on its seats.
    follow: Follow,
    /// Who sits where: a publisher for each slot of seats.
    slots: Vec<Option<Id>>,
}

/// How far offer and answer are, in the words of the PeerConnection's `signalingState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signaling {
    /// There is no PeerConnection.
    Closed,
    /// Our offer waits for its answer.
    HaveLocalOffer,
    /// The last offer was answered.
    Stable,
}

/// What has to be offered as soon as that is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pending {
    offer: bool,
    restart: bool,
    /// M-lines of publishers who left: offered with the client's next change, and not by themselves.
    removals: bool,
}

/// An m-line.
#[derive(Debug)]
struct Line {
    kind: Kind,
    mid: Mid,
    source: Source,
    format: Format,
    /// The client's name for it.
    crossrefid: Option<String>,
    send: bool,
    /// The client has accepted it.
    ready: bool,
    requested: RequestedLayers,
    /// The layers that are relayed now.
    current: Layer,
    /// Why these layers came when they did.
    reason: Option<LayerReason>,
    /// One, and of data one for each publisher.
    routes: Vec<Relayed>,
    /// It is for whoever is due, see [`seat`].
    seat: Option<Seat>,
}

/// Where the media of an m-line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// Nowhere; the m-line only keeps its place.
    None,
    /// A stream of a publisher.
    Track { feed: Id, mid: Mid },
    /// The data channels of publishers.
    Data(Vec<Id>),
}

/// How an m-line is offered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Format {
    codec: Option<CodecName>,
    /// As it was offered last.
    pt: Option<Pt>,
    fmtp: Option<String>,
    /// Those of the header extensions that depend on the source.
    extensions: Vec<(ExtensionKind, u8)>,
}

/// A route that feeds an m-line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Relayed {
    route: RouteId,
    from: SourceRef,
    options: RouteOptions,
}

impl Subscriber {
    /// A subscription that receives nothing yet.
    fn new(handle: &Handle, owner: Option<Id>, private_id: Option<u64>) -> Self {
        Subscriber {
            handle: handle.clone(),
            owner,
            private_id,
            use_msid: false,
            autoupdate: true,
            e2ee: false,
            lines: Vec::new(),
            payloads: Payloads::default(),
            signaling: Signaling::Closed,
            pending: Pending::default(),
            paused: false,
            owner_kicked: false,
            client_offered: false,
            follow: Follow::default(),
            slots: Vec::new(),
        }
    }

    fn line(&self, mid: &str) -> Option<usize> {
        self.lines.iter().position(|line| line.mid.as_str() == mid)
    }

    /// Checks that there is room for so many more m-lines of audio and video.
    fn check_room(&self, more: usize) -> Result<(), Refusal> {
        let lines = self.lines.iter().filter(|line| line.kind != Kind::Data);
        match lines.count().saturating_add(more) > MAX_LINES {
            true => Err(TOO_MANY),
            false => Ok(()),
        }
    }
}
