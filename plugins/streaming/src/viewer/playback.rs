//! Watching a mountpoint: `watch`, `start`, `pause`, `stop`.

use std::sync::Arc;

use portunus_core::Message;
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, JsepKind, Mid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::subscription::{LayerRequest, Subscription};
use super::{Answer, Offering, Phase, Session, Viewer, Watching};
use crate::mountpoint::{Mountpoint, Stream};
use crate::refusal::Refusal;
use crate::spec::MediaKind;

/// The members of `watch`, but for the id and the pin.
struct Watch {
    asked: StreamRequest,
    restart: bool,
    layers: LayerRequest,
    renegotiate: bool,
}

/// The streams that a viewer has requested.
#[derive(Debug, Clone)]
pub(super) struct RequestedStreams {
    /// Their mids. `None` means all.
    mids: Option<Vec<Mid>>,
    kinds: Vec<MediaKind>,
}

impl RequestedStreams {
    const KINDS: [MediaKind; 3] = [MediaKind::Audio, MediaKind::Video, MediaKind::Data];

    /// Returns a request for all streams.
    fn all() -> Self {
        RequestedStreams {
            mids: None,
            kinds: Self::KINDS.to_vec(),
        }
    }

    /// Returns a request for these streams.
    pub(super) fn only(mids: Vec<Mid>) -> Self {
        RequestedStreams {
            mids: Some(mids),
            ..Self::all()
        }
    }

    pub(super) fn includes(&self, stream: &Stream) -> bool {
        let mut mids = self.mids.iter();
        let named = mids.all(|mids| mids.contains(&stream.mid()));
        named && self.kinds.contains(&stream.kind())
    }

    /// Returns a request for the streams of `other` with the indices of the wanted ones of
    /// `mountpoint`.
    pub(super) fn by_place(&self, mountpoint: &Mountpoint, other: &Mountpoint) -> Self {
        let pairs = mountpoint.streams.iter().zip(&other.streams);
        let wanted = pairs.filter(|(stream, _)| self.includes(stream));
        Self::only(wanted.map(|(_, other)| other.mid()).collect())
    }
}

/// The streams in a request.
struct StreamRequest {
    /// An empty list stands for all.
    mids: Option<Vec<Mid>>,
    kinds: [Option<bool>; 3],
}

/// The kinds of media that a `watch` names.
#[derive(Deserialize)]
struct Offers {
    offer_audio: Option<bool>,
    offer_video: Option<bool>,
    offer_data: Option<bool>,
}

impl StreamRequest {
    fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let mids = match fields.0.get("media") {
            None => None,
            Some(Value::Array(mids)) => {
                let mids: Option<Vec<&str>> = mids.iter().map(Value::as_str).collect();
                let mids = mids.ok_or_else(|| wrong_list("media"))?;
                // A text that cannot be a mid names no stream.
                let known: Vec<Mid> = mids.iter().copied().filter_map(Mid::new).collect();
                if known.is_empty() && !mids.is_empty() {
                    return Err(nothing_left());
                }
                Some(known)
            }
            Some(_) => return Err(wrong_list("media")),
        };
        let Offers {
            offer_audio,
            offer_video,
            offer_data,
        } = fields.read()?;
        let kinds = [offer_audio, offer_video, offer_data];
        Ok(StreamRequest { mids, kinds })
    }

    /// Returns the requested streams after `last`. Kinds without a member stay, and a list replaces
    /// the last one.
    fn after(&self, last: &RequestedStreams) -> RequestedStreams {
        let mut requested = match &self.mids {
            None => last.clone(),
            Some(mids) if mids.is_empty() => RequestedStreams::all(),
            Some(mids) => RequestedStreams::only(mids.clone()),
        };
        for (kind, asked) in RequestedStreams::KINDS.into_iter().zip(self.kinds) {
            let wanted = asked.unwrap_or(requested.kinds.contains(&kind));
            requested.kinds.retain(|known| *known != kind);
            requested.kinds.extend(wanted.then_some(kind));
        }
        requested
    }
}

impl Watch {
    fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        Ok(Watch {
            asked: StreamRequest::read(fields)?,
            restart: fields.member("restart")?.unwrap_or(false),
            layers: fields.read()?,
            renegotiate: fields.member("renegotiate")?.unwrap_or(true),
        })
    }
}

fn wrong_list(name: &str) -> Refusal {
    FieldError::wrong_type(name, "a list of strings").into()
}

/// Returns the refusal of a viewer without renewals, which has to come back later.
pub(super) fn no_media_yet() -> Refusal {
    Refusal::State("The mountpoint has no media yet")
}

fn nothing_left() -> Refusal {
    Refusal::Invalid("There is nothing to watch with these streams".to_owned())
}

impl Viewer {
    pub(super) fn watch(self: &Arc<Self>, message: &Message) -> Result<Answer, Refusal> {
        let fields = Fields(&message.body);
        let id = self.shared.mountpoints.ids().required(fields, "id")?;
        let watch = Watch::read(fields)?;
        let mountpoint = self.shared.mountpoints.get(&id)?;
        mountpoint.details().access.check_pin(fields)?;
        match &message.jsep {
            Some(jsep) if jsep.kind == JsepKind::Offer => {
                self.watch_by_offer(mountpoint, jsep, watch.layers)
            }
            Some(_) => Err(Refusal::Sdp(
                "A watch goes with an offer or nothing".to_owned(),
            )),
            None => self.watch_by_our_offer(mountpoint, &watch),
        }
    }

    fn watch_by_our_offer(
        self: &Arc<Self>,
        mountpoint: Arc<Mountpoint>,
        watch: &Watch,
    ) -> Result<Answer, Refusal> {
        let mut session = self.session();
        match &mut *session {
            Session::Watching(watching) => {
                if !Arc::ptr_eq(&watching.mountpoint, &mountpoint) {
                    return Err(Refusal::State("Already watching another mountpoint"));
                }
                if watching.phase != Phase::Up {
                    return Err(Refusal::State("The PeerConnection is not up yet"));
                }
                let requested = watch.asked.after(&watching.requested);
                watching.choose(&requested)?;
                if !watch.restart {
                    watching.set_layers(watch.layers);
                }
                watching.disconnect_unwanted(&self.handle);
                watching.connect(&self.handle);
                let offer = self.handle.offer(watching.offer(), watch.restart)?;
                let offering = match watch.restart {
                    true => Offering::Updating,
                    false => Offering::Preparing,
                };
                watching.offering = Some(offering);
                let offer = offer.with_e2ee(watching.is_e2ee());
                Ok((json!({ "status": offering.name() }), Some(offer)))
            }
            Session::Publishing(_) => Err(Refusal::State("This handle publishes")),
            Session::Idle if watch.restart => Err(Refusal::NotWatching),
            Session::Idle => {
                let mut watching = Watching::new(mountpoint.clone());
                watching.renewable = watch.renegotiate;
                let requested = watch.asked.after(&watching.requested);
                if !watch.renegotiate
                    && mountpoint.awaits_codec(|stream| requested.includes(stream))
                {
                    return Err(no_media_yet());
                }
                watching.choose(&requested)?;
                watching.set_layers(watch.layers);
                let offer = self.handle.offer(watching.offer(), false)?;
                let offering = Offering::Preparing;
                watching.offering = Some(offering);
                let offer = offer.with_e2ee(watching.is_e2ee());
                self.begin(&mut session, watching)?;
                Ok((json!({ "status": offering.name() }), Some(offer)))
            }
        }
    }

    /// Counts as a viewer from now on.
    pub(super) fn begin(
        self: &Arc<Self>,
        session: &mut Session,
        watching: Watching,
    ) -> Result<(), Refusal> {
        let mountpoint = watching.mountpoint.clone();
        if !mountpoint.add_viewer(self.clone()) {
            // It went away between the look-up and now.
            self.end(None);
            return Err(Refusal::NoSuchMountpoint(mountpoint.id.clone()));
        }
        *session = Session::Watching(Box::new(watching));
        self.tell_other_node(&mountpoint);
        Ok(())
    }

    /// Lets the node of a mountpoint learn that its messages are wanted here.
    pub(super) fn tell_other_node(&self, mountpoint: &Mountpoint) {
        if mountpoint.home().is_some() {
            self.shared.changed.notify_one();
        }
    }

    pub(super) fn start(&self, message: &Message) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        let mut resumes = true;
        match &message.jsep {
            Some(jsep) if jsep.kind == JsepKind::Answer => {
                watching.e2ee |= jsep.e2ee;
                resumes = watching.offering.take() != Some(Offering::Updating);
                watching.agreed(self.handle.negotiated());
                if watching.phase == Phase::Offered {
                    watching.phase = Phase::Answered;
                }
            }
            Some(_) => return Err(Refusal::Sdp("A start goes with an answer".to_owned())),
            None => {}
        }
        watching.paused &= !resumes;
        watching.disconnect_unwanted(&self.handle);
        watching.connect(&self.handle);
        let status = match watching.phase {
            Phase::Up => "started",
            Phase::Offered | Phase::Answered => "starting",
        };
        self.notify(status, &watching.mountpoint);
        Ok((json!({ "status": status }), None))
    }

    pub(super) fn pause(&self) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        watching.paused = true;
        watching.connect(&self.handle);
        self.notify("pausing", &watching.mountpoint);
        Ok((json!({ "status": "pausing" }), None))
    }

    /// Stops watching. The PeerConnection is closed after the answer.
    pub(super) fn stop(&self) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &*session else {
            // A publisher continues.
            return Ok((json!({ "status": "idle" }), None));
        };
        let status = match watching.phase {
            Phase::Up => "stopping",
            Phase::Offered | Phase::Answered => "idle",
        };
        watching.mountpoint.remove_viewer(self.id);
        self.notify("stopping", &watching.mountpoint);
        *session = Session::Idle;
        Ok((json!({ "status": status }), None))
    }
}

impl Watching {
    pub(super) fn new(mountpoint: Arc<Mountpoint>) -> Self {
        Watching {
            e2ee: mountpoint.is_e2ee(),
            mountpoint,
            subscriptions: Vec::new(),
            phase: Phase::Offered,
            paused: false,
            data_ready: false,
            playing: None,
            begins_at: None,
            requested: RequestedStreams::all(),
            renewable: false,
            offering: None,
        }
    }

    pub(super) fn is_e2ee(&self) -> bool {
        self.e2ee
    }

    /// Takes the requested streams in the mountpoint's order. Former streams keep their m-lines.
    pub(super) fn choose(&mut self, requested: &RequestedStreams) -> Result<(), Refusal> {
        let chosen: Vec<usize> = self
            .mountpoint
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.is_offerable() && requested.includes(stream))
            .map(|(index, _)| index)
            .collect();
        if chosen.is_empty() {
            return Err(nothing_left());
        }
        self.requested = requested.clone();
        for subscription in &mut self.subscriptions {
            let stream = subscription.stream;
            subscription.wanted = stream.is_some_and(|stream| chosen.contains(&stream));
        }
        for index in chosen {
            let known = self.subscriptions.iter().any(|s| s.stream == Some(index));
            let Some(stream) = self.mountpoint.streams.get(index).filter(|_| !known) else {
                continue;
            };
            let (kind, mid) = (stream.kind(), stream.mid());
            let waits = |s: &&mut Subscription| s.kind == kind && s.stream.is_none();
            if let Some(waiting) = self.subscriptions.iter_mut().find(waits) {
                *waiting = Subscription::new(index, kind, waiting.line);
                continue;
            }
            // All data streams share one m-line.
            let data = |s: &&Subscription| kind == MediaKind::Data && s.kind == kind;
            let shared = self.subscriptions.iter().find(data).map(|s| s.line);
            let line = shared.unwrap_or_else(|| self.unused_line(mid));
            self.subscriptions
                .push(Subscription::new(index, kind, line));
        }
        self.note_formats();
        Ok(())
    }

    /// Returns `mid`, or another one if an m-line has it: m-lines of another mountpoint keep
    /// theirs.
    fn unused_line(&self, mid: Mid) -> Mid {
        let numbered = (0..=u16::MAX).filter_map(|number| Mid::new(&number.to_string()));
        let is_free = |mid: &Mid| self.subscriptions.iter().all(|s| s.line != *mid);
        let mut free = [mid].into_iter().chain(numbered).filter(is_free);
        free.next().unwrap_or(mid)
    }

    pub(super) fn set_layers(&mut self, request: LayerRequest) {
        for subscription in &mut self.subscriptions {
            request.apply(&mut subscription.layers);
        }
    }

    /// Takes note of the m-lines that the client's side takes.
    pub(super) fn agreed(&mut self, negotiated: Option<portunus_core::sdp::Negotiated>) {
        let media = negotiated
            .map(|negotiated| negotiated.media)
            .unwrap_or_default();
        for subscription in &mut self.subscriptions {
            subscription.accepted = media.iter().any(|line| {
                let takes = line.send || line.kind == Kind::Data;
                line.mid == subscription.line && !line.disabled && takes
            });
        }
    }
}
