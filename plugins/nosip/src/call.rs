//! The call of a handle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portunus_call::{CallMedia, CallNews, LegEvent, SrtpUse};
use portunus_core::Handle;
use portunus_core::sdp::Kind;

use crate::Shared;

/// The call of a handle, or what will be one.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) media: CallMedia,
    /// An offer was answered: what follows are updates.
    pub(crate) runs: bool,
    /// SDP was made or taken.
    pub(crate) begun: bool,
}

/// The same, for tasks beside that of the handle.
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
        let (own, of, shared) = (own.clone(), handle.clone(), Arc::clone(shared));
        let tell = move |news: CallNews| {
            if news.event == LegEvent::Failed
                && let Some(call) = own.upgrade()
            {
                lost(&of, &shared, news.kind, &SharedCall(call));
            }
        };
        Call {
            media: CallMedia::new(settings, handle.clone(), tell),
            runs: false,
            begun: false,
        }
    }
}

/// Nobody is there who takes what is sent.
fn lost(handle: &Handle, shared: &Arc<Shared>, kind: Kind, call: &SharedCall) {
    tracing::info!(handle = %handle.id(), "the far end takes no more {kind:?}; the call ends");
    handle.close_pc();
    call.end(handle, shared);
}

/// How SRTP is used, as clients are told.
pub(crate) fn named(srtp: Option<SrtpUse>) -> Option<&'static str> {
    srtp.map(SrtpUse::as_str)
}
