//! The handles of all sessions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Gateway;
use crate::handle::WeakHandle;
use crate::session::Session;
use crate::{ApiError, Handle, HandleId, SessionId};

/// All handles by their ids, which are unique in their session.
#[derive(Debug, Default)]
pub(super) struct Handles {
    known: Mutex<HashMap<(SessionId, HandleId), WeakHandle>>,
}

impl Handles {
    pub(super) fn insert(&self, handle: &Handle) {
        let id = (handle.session_id(), handle.id());
        self.known().insert(id, handle.downgrade());
    }

    /// Forgets handles that have ended.
    pub(super) fn forget(&self) {
        self.known().retain(|_, handle| handle.upgrade().is_some());
    }

    /// Returns a handle, unless the session has none with this id or it is ending.
    pub(super) fn get(&self, session: &Session, id: HandleId) -> Option<Handle> {
        let handle = self.known().get(&(session.id, id))?.upgrade();
        handle.filter(|_| session.has_handle(id))
    }

    /// Returns the handles of a session, by id.
    pub(super) fn of(&self, session: &Session) -> Vec<Handle> {
        let ids = session.handle_ids().into_iter();
        ids.filter_map(|id| self.get(session, id)).collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(SessionId, HandleId), WeakHandle>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Returns a handle of a session.
    pub fn handle(&self, session: &Session, id: HandleId) -> Result<Handle, ApiError> {
        let handle = self.inner.handles.get(session, id);
        handle.ok_or(ApiError::HandleNotFound(id, session.id))
    }

    /// Returns the handles of a session, by id.
    pub fn handles(&self, session: &Session) -> Vec<Handle> {
        self.inner.handles.of(session)
    }

    /// Whether a handle of the session has a PeerConnection, connected or on its way.
    pub(super) fn is_in_call(&self, session: &Session) -> bool {
        let handles = self.handles(session);
        handles.iter().any(|handle| handle.peer().is_some())
    }
}
