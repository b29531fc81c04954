//! `register`: pages that get an account, or help another page, and may move to another phone for
//! it.

use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};

use portunus_core::{Fields, Message};
use portunus_sip::agent::AccountId;

use super::{Phones, Slot};
use crate::account::AccountSpec;
use crate::directory::{Claim, Claimed, Key, PhoneId};
use crate::phone::{Joined, Phone, limited_client};
use crate::refusal::Refusal;
use crate::register_request::{RegisterRequest, Wanted};
use crate::status::PageId;

/// The maximum number of attempts of a `register`. One fails only if another page has just taken
/// or left the account in question.
const ATTEMPTS: usize = 100;

/// A `register` under way. It is tried again if it turns out to need a second phone.
struct Attempt<'a> {
    me: PageId,
    message: &'a Message,
    request: RegisterRequest<'a>,
    /// The second phone.
    other: Option<PhoneId>,
    /// The limits are checked, which counts the request.
    is_checked: bool,
}

/// One or two phones under their locks.
struct Locked<'a> {
    own: MutexGuard<'a, Phone>,
    other: Option<MutexGuard<'a, Phone>>,
}

impl<'a> Locked<'a> {
    /// Locks two phones in the order of their numbers.
    fn new(own: &'a Slot, other: Option<&'a Slot>) -> Self {
        match other {
            Some(other) if other.id < own.id => {
                let first = other.lock();
                Locked {
                    own: own.lock(),
                    other: Some(first),
                }
            }
            other => Locked {
                own: own.lock(),
                other: other.map(Slot::lock),
            },
        }
    }

    /// Moves a page to the phone `home`, unless it is there. Returns that phone, or `None` if it is
    /// not locked.
    fn move_to(&mut self, home: PhoneId, me: PageId) -> Option<&mut Phone> {
        if self.own.id == home {
            return Some(&mut self.own);
        }
        let other = self.other.as_mut().filter(|other| other.id == home)?;
        other.arrive(self.own.depart(me));
        Some(other)
    }

    fn has(&self, id: PhoneId) -> bool {
        self.phone(id).is_some()
    }

    fn phone(&self, id: PhoneId) -> Option<&Phone> {
        let phones = [Some(&self.own), self.other.as_ref()];
        let mut phones = phones.into_iter().flatten().map(|phone| &**phone);
        phones.find(|phone| phone.id == id)
    }
}

impl Phones {
    /// `register`.
    pub(super) fn register(&self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let mut attempt = Attempt {
            me,
            message,
            request: RegisterRequest::read(Fields(&message.body))?,
            other: None,
            is_checked: false,
        };
        let mut outcome = Err(Refusal::TooMany("too many accounts change at once"));
        for _ in 0..ATTEMPTS {
            match self.try_register(&mut attempt) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(refusal) => {
                    outcome = Err(refusal);
                    break;
                }
            }
        }
        self.with(Key::Page(me), |phone| phone.note_client(me));
        outcome
    }

    /// Registers, or notes the second phone that it takes.
    fn try_register(&self, attempt: &mut Attempt<'_>) -> Result<ControlFlow<()>, Refusal> {
        let me = attempt.me;
        let again = Ok(ControlFlow::Continue(()));
        let Some(own) = self.directory().find(Key::Page(me)) else {
            return again;
        };
        let other = attempt.other.filter(|other| *other != own);
        let other = other.and_then(|other| self.slot(other));
        let Some(own) = self.slot(own) else {
            return again;
        };
        let mut locked = Locked::new(&own, other.as_deref());
        if self.directory().find(Key::Page(me)) != Some(own.id) {
            return again;
        }
        let done = match locked.own.wish(me, &attempt.request)? {
            Wanted::Helper(master) => self.help(&mut locked, attempt, master)?,
            Wanted::Account(spec) => self.give_account(&mut locked, attempt, Arc::new(*spec))?,
        };
        self.tidy(&locked.own);
        Ok(done)
    }

    /// Makes a page a helper.
    fn help(
        &self,
        locked: &mut Locked<'_>,
        attempt: &mut Attempt<'_>,
        number: u64,
    ) -> Result<ControlFlow<()>, Refusal> {
        let none = || Refusal::NoMaster(number);
        let me = attempt.me;
        let master = u32::try_from(number).ok();
        let master = master.and_then(|number| self.directory().master(number));
        let master = master.filter(|master| *master != me).ok_or_else(none)?;
        let home = self.directory().find(Key::Page(master)).ok_or_else(none)?;
        let Some(host) = locked.phone(home) else {
            attempt.other = Some(home);
            return Ok(ControlFlow::Continue(()));
        };
        let session = locked.own.session_of(me);
        if !host.may_be_helped(master, session, &attempt.request)? {
            return Err(none());
        }
        locked.own.leave_account(me);
        if let Some(host) = locked.move_to(home, me) {
            host.help(me, master, &attempt.request, attempt.message);
        }
        Ok(ControlFlow::Break(()))
    }

    /// Gives an account to a page.
    fn give_account(
        &self,
        locked: &mut Locked<'_>,
        attempt: &mut Attempt<'_>,
        spec: Arc<AccountSpec>,
    ) -> Result<ControlFlow<()>, Refusal> {
        let me = attempt.me;
        let (current, is_alone) = locked.own.current(me);
        // Other pages keep their phone, with their account. Nobody knows the new phone before the
        // directory does, and its number is the highest.
        let fresh = (!locked.own.is_free_for(me)).then(|| self.new_phone());
        let mut fresh = fresh.as_ref().map(|fresh| fresh.lock());
        let claimed = self.directory().claim(&Claim {
            page: me,
            spec: &spec,
            current,
            is_alone,
            new: AccountId::new(self.common.number()),
            home: fresh.as_ref().map_or(locked.own.id, |fresh| fresh.id),
            limited: limited_client(attempt.message),
            is_checked: attempt.is_checked,
        });
        if !matches!(claimed, Ok(Claimed::New(_)))
            && let Some(unused) = fresh.take()
        {
            self.tidy(&unused);
        }
        let claimed = claimed?;
        attempt.is_checked = true;
        if let Claimed::Shared(_, home) = claimed
            && !locked.has(home)
        {
            attempt.other = Some(home);
            return Ok(ControlFlow::Continue(()));
        }
        let message = attempt.message;
        locked.own.note_options(me, &attempt.request, message);
        let joined = |account| Joined {
            account,
            user: spec.user.clone(),
            registers: spec.registers,
        };
        match claimed {
            Claimed::Own(id) => {
                locked.own.change_account(id, Arc::clone(&spec));
                locked.own.join(me, joined(id), message);
            }
            Claimed::New(id) => {
                locked.own.leave_account(me);
                let home: &mut Phone = match &mut fresh {
                    Some(fresh) => {
                        fresh.arrive(locked.own.depart(me));
                        fresh
                    }
                    None => &mut locked.own,
                };
                home.add_account(id, Arc::clone(&spec));
                home.join(me, joined(id), message);
            }
            Claimed::Shared(id, home) => {
                locked.own.leave_account(me);
                if let Some(home) = locked.move_to(home, me) {
                    home.join(me, joined(id), message);
                }
            }
        }
        Ok(ControlFlow::Break(()))
    }
}
