//! The call of a handle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portunus_call::{CallMedia, CallNews, LegEvent, SrtpUse};
use portunus_core::Handle;
use portunus_core::sdp::Kind;

use crate::counts::Stage;
use crate::shared::Shared;

/// The call of a handle, present or future.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) media: CallMedia,
    /// An offer was answered, so further descriptions are updates.
    runs: bool,
    /// SDP was made or taken.
    begun: bool,
    shared: Arc<Shared>,
}

/// The call of a handle, shared with tasks.
#[derive(Debug, Clone)]
pub(crate) struct SharedCall(Arc<Mutex<Call>>);

impl SharedCall {
    pub(crate) fn new(handle: &Handle, shared: &Arc<Shared>) -> Self {
        let call = Arc::new_cyclic(|call| Mutex::new(Call::new(handle, shared, call)));
        SharedCall(call)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the call, with its ports, recordings and forwarders. Another one can begin.
    pub(crate) fn end(&self, handle: &Handle, shared: &Arc<Shared>) {
        let new = Call::new(handle, shared, &Arc::downgrade(&self.0));
        *self.lock() = new;
    }
}

impl Call {
    fn new(handle: &Handle, shared: &Arc<Shared>, own: &Weak<Mutex<Call>>) -> Self {
        let settings = Arc::clone(&shared.settings);
        let (own, of, with) = (own.clone(), handle.clone(), Arc::clone(shared));
        let tell = move |news: CallNews| {
            if news.event == LegEvent::Failed
                && let Some(call) = own.upgrade()
            {
                lost(&of, &with, news.kind, &SharedCall(call));
            }
        };
        Call {
            media: CallMedia::new(settings, handle.clone(), tell),
            runs: false,
            begun: false,
            shared: Arc::clone(shared),
        }
    }

    /// Notes that SDP was made or taken; with `answer`, an answer.
    pub(crate) fn go_on(&mut self, answer: bool) {
        let counts = &self.shared.counts;
        if !std::mem::replace(&mut self.begun, true) {
            counts.enter(&Stage::Begun);
        }
        if answer && !std::mem::replace(&mut self.runs, true) {
            counts.enter(&Stage::Answered);
        }
    }

    /// Whether SDP was made or taken.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether an offer was answered, so that further descriptions are updates.
    pub(crate) const fn runs(&self) -> bool {
        self.runs
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let counts = &self.shared.counts;
        if self.begun {
            counts.leave(&Stage::Begun);
        }
        if self.runs {
            counts.leave(&Stage::Answered);
        }
    }
}

/// Ends the call of a far end that accepts no media.
fn lost(handle: &Handle, shared: &Arc<Shared>, kind: Kind, call: &SharedCall) {
    tracing::info!(handle = %handle.id(), "the far end takes no more {kind:?}; the call ends");
    shared.counts.lose();
    handle.close_pc();
    call.end(handle, shared);
}

/// Returns the use of SRTP for clients.
pub(crate) fn named(srtp: Option<SrtpUse>) -> Option<&'static str> {
    srtp.map(SrtpUse::as_str)
}
