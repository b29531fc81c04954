//! A client's handle: it watches a mountpoint, publishes to one, or is idle.

mod answer_order;
mod configuration;
mod events;
mod offer;
mod playback;
mod publication;
mod query;
mod renewal;
mod seek;
mod subscription;
mod switch;
mod whep;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::{
    Answered, Asked, Fields, Handle, HandleEvent, LocalJsep, Message, Notice, Object, PendingOffer,
    PluginHandle, PluginRequest, Reply,
};
use portunus_resources::Asker;
use serde_json::{Value, json};

use crate::management;
use crate::mountpoint::{Client, ClientId, Mountpoint, Playing};
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::shared::Shared;

use answer_order::Turn;
use playback::RequestedStreams;
use publication::Publishing;
use subscription::Subscription;

/// A client's handle.
pub(crate) struct Viewer {
    pub(crate) id: ClientId,
    pub(crate) handle: Handle,
    pub(crate) shared: Arc<Shared>,
    session: Mutex<Session>,
    turn: Mutex<Turn>,
}

/// The state of a handle.
enum Session {
    Idle,
    Watching(Box<Watching>),
    Publishing(Publishing),
}

/// A handle that watches a mountpoint.
struct Watching {
    mountpoint: Arc<Mountpoint>,
    /// The subscriptions of m-lines to the mountpoint's streams.
    subscriptions: Vec<Subscription>,
    phase: Phase,
    paused: bool,
    /// A data channel is open.
    data_ready: bool,
    /// Whether the client declared that its media is encrypted end to end.
    e2ee: bool,
    /// The file that plays for this viewer.
    playing: Option<Playing>,
    /// The position where it starts.
    begins_at: Option<Duration>,
    /// The requested streams.
    requested: RequestedStreams,
    /// Whether a new offer can follow a change of the streams: not with WHEP, and not if the client
    /// offers.
    renewable: bool,
    /// The offer of ours that waits for its answer.
    offering: Option<Offering>,
}

/// The reason for the last offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offering {
    /// The client asked to watch.
    Preparing,
    /// The streams changed, or ICE restarts. Media continues as it is.
    Updating,
}

impl Offering {
    /// Returns its `status` on the wire.
    const fn name(self) -> &'static str {
        match self {
            Offering::Preparing => "preparing",
            Offering::Updating => "updating",
        }
    }
}

/// The state of the PeerConnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Our offer waits for its answer.
    Offered,
    /// The offer is answered, and the transport is not up yet.
    Answered,
    /// Media can flow.
    Up,
}

/// The answer to an asynchronous request: the result, and a description.
type Answer = (Value, Option<LocalJsep>);

/// The control logic of a handle.
pub(crate) struct ViewerHandle(Arc<Viewer>);

impl ViewerHandle {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        ViewerHandle(Arc::new(Viewer {
            id: shared.next_client(),
            handle,
            shared,
            session: Mutex::new(Session::Idle),
            turn: Mutex::default(),
        }))
    }
}

impl ViewerHandle {
    fn request(&self, message: Message) -> Reply {
        let fields = Fields(&message.body);
        let asked = match Request::asked(fields) {
            Ok(asked) => asked,
            Err(refusal) => return Reply::Success(refusal.to_json()),
        };
        let viewer = &self.0;
        let creates = asked == Asked::unnamed(Request::Create);
        let asker = Asker::client(&viewer.handle, &message);
        let scope = asker.check_scope(fields, "id", creates);
        match (asked.answered(), scope) {
            (Answered::Reply, Err(error)) => Reply::Success(Refusal::from(error).to_json()),
            (Answered::Reply, Ok(())) => {
                management::reply(viewer.shared.clone(), asked, message.body, asker)
            }
            (Answered::Event, scope) => {
                viewer.begin_answer();
                let answered = scope.map_err(Refusal::from).and_then(|()| {
                    viewer.shared.mountpoints.guarded(fields, asker.maker, || {
                        let (request, _) = viewer.shared.permit(asked, fields, asker.rights)?;
                        Ok((request, viewer.answer(request, &message)?))
                    })
                });
                viewer.respond(&message.transaction, answered);
                Reply::Ack(None)
            }
        }
    }
}

impl PluginHandle for ViewerHandle {
    fn message(&mut self, message: Message) -> Reply {
        let offer = message.offer.clone();
        let reply = self.request(message);
        if let Some(offer) = offer {
            self.0.offer_over(offer);
        }
        reply
    }

    fn event(&mut self, event: HandleEvent) {
        self.0.happened(event);
    }

    fn query(&self) -> Value {
        self.0.query()
    }

    fn detach(&mut self) {
        self.0.leave();
    }
}

/// A panic of the plugin drops the handle. It must not stay as a viewer or as a publisher.
impl Drop for ViewerHandle {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Viewer {
    fn answer(self: &Arc<Self>, request: Request, message: &Message) -> Result<Answer, Refusal> {
        match request {
            Request::Watch => self.watch(message),
            Request::Start => self.start(message),
            Request::Pause => self.pause(),
            Request::Stop => self.stop(),
            Request::Configure => self.configure(message),
            Request::Switch => self.switch(message),
            Request::Seek => self.seek(message),
            Request::Publish => self.publish(message),
            Request::Unpublish => self.unpublish(),
            // A reply answers the others.
            _ => Err(Refusal::UnknownRequest(request.names().concat())),
        }
    }

    /// Sends the event that answers a request, before all later events.
    fn respond(&self, transaction: &str, answered: Result<(Request, Answer), Refusal>) {
        match answered {
            Ok((request, (result, jsep))) => {
                let data = json!({ "streaming": "event", "result": result });
                self.handle.push(Some(transaction), data, jsep);
                self.answered();
                if matches!(request, Request::Publish | Request::Unpublish) {
                    self.shared.changed.notify_one();
                }
                match request {
                    Request::Stop | Request::Unpublish => self.close_if_idle(),
                    // The streams may have changed while the client made its answer.
                    Request::Start => self.renew(),
                    _ => {}
                }
            }
            Err(refusal) => {
                self.handle.push(Some(transaction), refusal.to_json(), None);
                self.answered();
            }
        }
    }

    /// Closes the PeerConnection of an idle handle.
    fn close_if_idle(&self) {
        let session = self.session();
        if let Session::Idle = &*session {
            drop(session);
            self.handle.close_pc();
        }
    }

    /// Notes that the client's offer is answered or dropped. Our offer is lost if the client's
    /// replaced it.
    fn offer_over(&self, offer: PendingOffer) {
        let mut session = self.session();
        match &mut *session {
            Session::Watching(watching) if watching.phase == Phase::Offered => {
                drop(session);
                self.leave();
                self.handle.close_pc();
            }
            Session::Watching(watching) => {
                drop(offer);
                if watching.offering.take().is_some() && watching.renewable {
                    watching.push_offer(&self.handle);
                }
            }
            Session::Idle | Session::Publishing(_) => {}
        }
    }

    /// Sends an event without a request.
    fn push_result(&self, result: impl Into<Value>) {
        let data = Object::new()
            .with("streaming", "event")
            .with("result", result);
        self.handle.push(None, data, None);
    }

    /// Tells the observers of the server what the client does with a mountpoint.
    fn notify(&self, status: &str, mountpoint: &Mountpoint) {
        let id = || mountpoint.id.to_json();
        self.handle
            .notify(|| json!({ "status": status, "id": id() }));
    }

    /// Ends the session without a message.
    fn leave(&self) {
        let former = std::mem::replace(&mut *self.session(), Session::Idle);
        match former {
            Session::Idle => {}
            Session::Watching(watching) => watching.mountpoint.remove_viewer(self.id),
            Session::Publishing(publishing) => {
                if publishing.mountpoint.unpublish(self.id) {
                    self.notify("unpublished", &publishing.mountpoint);
                }
            }
        }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client for Viewer {
    fn id(&self) -> ClientId {
        self.id
    }

    fn send_notice(&self, notice: &Notice) {
        self.handle.send_notice(notice);
    }

    fn dismiss(&self, mountpoint: &Mountpoint, status: &'static str) {
        let mut session = self.session();
        let concerned = match &*session {
            Session::Watching(watching) => std::ptr::eq(&*watching.mountpoint, mountpoint),
            Session::Publishing(publishing) => std::ptr::eq(&*publishing.mountpoint, mountpoint),
            Session::Idle => false,
        };
        if concerned {
            *session = Session::Idle;
            drop(session);
            self.end(Some(status));
        }
    }

    fn apply_settings(&self, mountpoint: &Mountpoint) {
        let mut session = self.session();
        if let Session::Watching(watching) = &mut *session
            && std::ptr::eq(&*watching.mountpoint, mountpoint)
        {
            watching.connect(&self.handle);
            drop(session);
            self.renew();
        }
    }

    fn forget_routes(&self, mountpoint: &Mountpoint, streams: &[usize]) {
        let mut session = self.session();
        if let Session::Watching(watching) = &mut *session
            && std::ptr::eq(&*watching.mountpoint, mountpoint)
        {
            let subscriptions = watching.subscriptions.iter_mut();
            let concerned =
                |s: &&mut Subscription| s.stream.is_some_and(|it| streams.contains(&it));
            for subscription in subscriptions.filter(concerned) {
                subscription.disconnect(&self.handle);
            }
        }
    }
}
