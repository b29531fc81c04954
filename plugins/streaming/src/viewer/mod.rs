//! A client's handle: it watches a mountpoint, publishes to one, or does neither.

mod configure;
mod events;
mod offer;
mod publish;
mod query;
mod renew;
mod seek;
mod subscription;
mod switch;
mod turn;
mod watch;
mod whep;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::{
    Answered, Asked, Fields, Handle, HandleEvent, LocalJsep, Message, Notice, Object, PendingOffer,
    PluginHandle, PluginRequest, Reply,
};
use portunus_resources::Asker;
use serde_json::{Value, json};

use crate::manage;
use crate::mountpoint::{Mountpoint, Playing};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::requests::Request;

use publish::Publishing;
use subscription::Subscription;
use turn::Turn;
use watch::RequestedStreams;

/// Tells the handles of the plugin apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ViewerId(pub(crate) u64);

/// A client's handle.
pub(crate) struct Viewer {
    pub(crate) id: ViewerId,
    pub(crate) handle: Handle,
    pub(crate) shared: Arc<Shared>,
    session: Mutex<Session>,
    turn: Mutex<Turn>,
}

/// What a handle does.
enum Session {
    Idle,
    Watching(Box<Watching>),
    Publishing(Publishing),
}

/// A handle that watches a mountpoint.
struct Watching {
    mountpoint: Arc<Mountpoint>,
    /// What of the mountpoint's streams goes to which m-line.
    subscriptions: Vec<Subscription>,
    phase: Phase,
    paused: bool,
    /// A data channel is open.
    data_ready: bool,
    /// The client said that its media is encrypted end to end.
    e2ee: bool,
    /// What is played for this viewer alone.
    playing: Option<Playing>,
    /// Where that is to begin.
    begins_at: Option<Duration>,
    /// The streams that were asked for.
    requested: RequestedStreams,
    /// Whether an offer of ours can be made when the streams change: with WHEP it cannot, nor where the client offers.
    renewable: bool,
    /// The offer of ours that waits for its answer.
    offering: Option<Offering>,
}

/// Why there is an offer of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offering {
    /// The client asked to watch.
    Preparing,
    /// The streams changed, or ICE restarts: what the client does with its media stays as it is.
    Updating,
}

impl Offering {
    /// Its `status` on the wire.
    const fn name(self) -> &'static str {
        match self {
            Offering::Preparing => "preparing",
            Offering::Updating => "updating",
        }
    }
}

/// How far the PeerConnection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Our offer waits for its answer.
    Offered,
    /// Both sides agree; the transport is not up yet.
    Answered,
    /// Media can flow.
    Up,
}

/// What answers an asynchronous request: the result, and a description of ours.
type Answer = (Value, Option<LocalJsep>);

/// The control logic of a handle.
pub(crate) struct Attached(Arc<Viewer>);

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached(Arc::new(Viewer {
            id: shared.next_viewer(),
            handle,
            shared,
            session: Mutex::new(Session::Idle),
            turn: Mutex::default(),
        }))
    }
}

impl Attached {
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
                manage::reply(viewer.shared.clone(), asked, message.body, asker)
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

impl PluginHandle for Attached {
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

/// A plugin's fault ends the handle without a word: neither does it stay among the viewers, nor publish.
impl Drop for Attached {
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
            // The reply answers the others.
            _ => Err(Refusal::UnknownRequest(request.names().concat())),
        }
    }

    /// Sends the event that answers a request; what follows it in time comes after it.
    fn respond(&self, transaction: &str, answered: Result<(Request, Answer), Refusal>) {
        match answered {
            Ok((request, (result, jsep))) => {
                let data = json!({ "streaming": "event", "result": result });
                self.handle.push(Some(transaction), data, jsep);
                self.answered();
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

    /// Closes the PeerConnection of who neither watches nor publishes any more.
    fn close_if_idle(&self) {
        let session = self.session();
        if let Session::Idle = &*session {
            drop(session);
            self.handle.close_pc();
        }
    }

    /// The client's offer has been answered, or will not be: then ours is lost whose place it took.
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

    /// Sends an event that nobody asked for.
    fn push_result(&self, result: impl Into<Value>) {
        let data = Object::new()
            .with("streaming", "event")
            .with("result", result);
        self.handle.push(None, data, None);
    }

    /// Tells whoever watches the server what the client does with a mountpoint.
    fn notify(&self, status: &str, mountpoint: &Mountpoint) {
        let id = || mountpoint.id.to_json();
        self.handle
            .notify(|| json!({ "status": status, "id": id() }));
    }

    /// Sends an event that all viewers are sent.
    pub(crate) fn tell(&self, notice: &Notice) {
        self.handle.tell_notice(notice);
    }

    /// The mountpoint ends, or throws its viewers out.
    pub(crate) fn dismiss(&self, mountpoint: &Mountpoint, status: &'static str) {
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

    /// Ends whatever the handle does, without a word.
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
