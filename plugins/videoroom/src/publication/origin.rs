//! Where a participant's media comes from, and who is told things.

use portunus_core::media::{SourceRef, TalkDetection};
use portunus_core::{Handle, HandleId, Mid, Object};
use serde_json::Value;

use crate::publication::Remote;

/// Where a participant's media comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A client with a handle.
    Client(Handle),
    /// Another server, which sends RTP.
    Remote(Remote),
    /// Nowhere: it holds the places of publishers who are still to come.
    Dummy,
}

impl Origin {
    /// The client's handle, if there is a client.
    pub(crate) const fn handle(&self) -> Option<&Handle> {
        match self {
            Origin::Client(handle) => Some(handle),
            Origin::Remote(_) | Origin::Dummy => None,
        }
    }

    /// What another server sends, if that is where it comes from.
    pub(crate) const fn remote(&self) -> Option<&Remote> {
        match self {
            Origin::Remote(remote) => Some(remote),
            Origin::Client(_) | Origin::Dummy => None,
        }
    }

    /// What another server sends, if that is where it comes from.
    pub(crate) const fn remote_mut(&mut self) -> Option<&mut Remote> {
        match self {
            Origin::Remote(remote) => Some(remote),
            Origin::Client(_) | Origin::Dummy => None,
        }
    }

    /// Whether it is the client of this handle.
    pub(crate) fn is(&self, handle: HandleId) -> bool {
        self.handle().is_some_and(|own| own.id() == handle)
    }

    /// Whether it only holds places.
    pub(crate) const fn is_dummy(&self) -> bool {
        matches!(self, Origin::Dummy)
    }

    /// Tells the client something.
    pub(crate) fn push(&self, event: impl Into<Value>) {
        if let Some(handle) = self.handle() {
            handle.push(None, event, None);
        }
    }

    /// Ends the PeerConnection, or what stands for one.
    pub(crate) fn close_pc(&self) {
        match self {
            Origin::Client(handle) => handle.close_pc(),
            Origin::Remote(remote) => remote.close(),
            Origin::Dummy => {}
        }
    }

    /// The source of routes that m-line `mid` is.
    pub(crate) fn source(&self, mid: Mid) -> Option<SourceRef> {
        match self {
            Origin::Client(handle) => handle.track(mid).map(SourceRef::Track),
            Origin::Remote(remote) => remote.source(mid).map(SourceRef::Ingest),
            Origin::Dummy => None,
        }
    }

    /// Asks for a keyframe on m-line `mid`.
    pub(crate) fn request_keyframe_on(&self, mid: Mid) {
        match self {
            Origin::Client(handle) => handle.request_keyframe_on(mid),
            Origin::Remote(remote) => remote.request_keyframe_on(mid),
            Origin::Dummy => {}
        }
    }

    /// Listens to m-line `mid` as `after` says, and no longer as `before`: for talking, and for how much is spoken.
    pub(crate) fn listen(
        &self,
        mid: Mid,
        before: (Option<TalkDetection>, bool),
        after: (Option<TalkDetection>, bool),
    ) {
        match self {
            Origin::Client(handle) => {
                if before.1 != after.1 {
                    handle.measure_speech(mid, after.1);
                }
                if before.0 != after.0 {
                    handle.detect_talking(mid, after.0);
                }
            }
            Origin::Remote(remote) => remote.listen(mid, after.0, after.1),
            Origin::Dummy => {}
        }
    }

    /// Caps what is sent, in bit/s; none: no cap.
    pub(crate) fn set_bitrate(&self, bitrate: Option<u64>) {
        if let Some(handle) = self.handle() {
            handle.set_bitrate(bitrate);
        }
    }

    /// The member of lists and events that marks it, where it is no client.
    pub(crate) fn marked(&self, object: Object) -> Object {
        object.with_some("dummy", self.is_dummy().then_some(true))
    }
}
