//! All phones: who is asked for a request of a page or an event of the SIP stack.
//!
//! Each phone has a lock of its own. The order of locks is: phones by their numbers, then the list
//! of phones or the directory, which are held for lookups and entries only. Only a page that moves
//! to another phone takes the locks of two phones ([`Phones::register`]). A call between two
//! accounts of this server is two calls, which meet in the SIP stack alone, and an attended transfer
//! joins two calls of one account, so neither needs more than one lock at a time.

mod registrations;
mod routing;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use portunus_call::CallNews;
use portunus_core::{Asked, Fields, Handle, Message};
use portunus_sip::agent::CallId;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::commands::Commands;
use crate::config::SipConfig;
use crate::directory::{Directory, Key, PhoneId};
use crate::media::MediaContext;
use crate::phone::{Common, Phone};
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::status::PageId;

/// All phones.
pub(crate) struct Phones {
    common: Arc<Common>,
    phones: Mutex<HashMap<PhoneId, Arc<Slot>>>,
    /// For requests that take a while.
    own: Weak<Phones>,
}

/// A phone under its lock.
struct Slot {
    id: PhoneId,
    phone: Mutex<Phone>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Phone> {
        self.phone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Phones {
    pub(crate) fn new(
        config: Arc<SipConfig>,
        context: MediaContext,
        commands: Commands,
    ) -> Arc<Self> {
        let common = Common::new(config, context, commands);
        Arc::new_cyclic(|own| Phones {
            common: Arc::new(common),
            phones: Mutex::default(),
            own: own.clone(),
        })
    }

    fn directory(&self) -> &Directory {
        &self.common.directory
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<PhoneId, Arc<Slot>>> {
        self.phones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, id: PhoneId) -> Option<Arc<Slot>> {
        self.slots().get(&id).cloned()
    }

    /// Makes a phone. Its number is higher than that of all others.
    fn new_phone(&self) -> Arc<Slot> {
        let id = PhoneId(self.common.number());
        let slot = Arc::new(Slot {
            id,
            phone: Mutex::new(Phone::new(id, Arc::clone(&self.common))),
        });
        self.slots().insert(id, Arc::clone(&slot));
        slot
    }

    /// Removes a phone that nothing needs any more. Its lock is held.
    fn tidy(&self, phone: &Phone) {
        if phone.is_empty() {
            self.slots().remove(&phone.id);
        }
    }

    /// Asks the phone that has `key`, under its lock. Returns `None` if there is no such phone.
    fn with<T>(&self, key: Key, ask: impl FnOnce(&mut Phone) -> T) -> Option<T> {
        loop {
            let id = self.directory().find(key)?;
            let slot = self.slot(id);
            if let Some(slot) = &slot {
                let mut phone = slot.lock();
                if self.directory().find(key) == Some(id) {
                    let answer = ask(&mut phone);
                    self.tidy(&phone);
                    return Some(answer);
                }
            } else if self.directory().find(key) == Some(id) {
                return None;
            }
            // It has moved to another phone meanwhile.
        }
    }

    pub(crate) fn set_draining(&self, is_on: bool) {
        self.common.draining.store(is_on, Relaxed);
    }

    pub(crate) fn attach(&self, handle: Handle) -> PageId {
        let id = PageId(self.common.number());
        self.new_phone().lock().attach(id, handle);
        id
    }

    /// Executes a request of a page.
    pub(crate) fn request(&self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::UnknownRequest(name.to_owned()))?;
        let request = asked.permit(fields, message.rights)?;
        let done = match request {
            Request::Register => {
                self.with(Key::Page(me), |phone| phone.note_rights(me, message));
                return self.register(me, message);
            }
            Request::Forward => return self.forward(me, message),
            request => self.with(Key::Page(me), |phone| {
                phone.note_rights(me, message);
                phone.request(me, request, message)
            }),
        };
        done.unwrap_or(Ok(()))
    }

    /// `rtp_forward`. Resolves the hosts first, without a lock.
    fn forward(&self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let request = self.with(Key::Page(me), |phone| {
            phone.note_rights(me, message);
            phone.read_forward(me, message)
        });
        let Some(request) = request.transpose()? else {
            return Ok(());
        };
        let networks = self.common.context.settings().networks.clone();
        let (own, transaction) = (self.own.clone(), message.transaction.clone());
        tokio::spawn(async move {
            let resolved = request.resolve(&networks).await;
            if let Some(phones) = own.upgrade() {
                phones.with(Key::Page(me), |phone| {
                    phone.forward(me, resolved, &transaction);
                });
            }
        });
        Ok(())
    }

    /// Returns the Call-ID of a page's call.
    pub(crate) fn call_id_of(&self, me: PageId) -> Option<String> {
        let call_id = |phone: &mut Phone| phone.page(me)?.call_id().map(str::to_owned);
        self.with(Key::Page(me), call_id).flatten()
    }

    /// Handles an event of a call's media.
    pub(crate) fn media_event(&self, call: CallId, news: CallNews) {
        self.with(Key::Call(call), |phone| phone.media_event(call, news));
    }

    /// A page's PeerConnection is gone.
    pub(crate) fn connection_lost(&self, me: PageId) {
        self.with(Key::Page(me), |phone| phone.connection_lost(me));
    }

    /// Returns `plugin_specific` of `handle_info`.
    pub(crate) fn state_of(&self, me: PageId) -> Value {
        let state = self.with(Key::Page(me), |phone| phone.state_of(me));
        state.unwrap_or_else(|| json!({}))
    }

    /// Removes a page.
    pub(crate) fn detached(&self, me: PageId) {
        self.with(Key::Page(me), |phone| phone.detached(me));
    }

    /// Ends everything that has expired; called every second. A phone that is busy waits for the
    /// next second, so that it holds up no other.
    pub(crate) fn tick(&self, now: Instant) {
        self.directory().forget(now);
        let slots: Vec<Arc<Slot>> = self.slots().values().cloned().collect();
        for slot in slots {
            let mut phone = match slot.phone.try_lock() {
                Ok(phone) => phone,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            phone.tick(now);
            self.tidy(&phone);
        }
    }

    /// Returns the number of phones, and of entries of the directory.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.slots().len(), self.directory().len())
    }
}
