//! Moves of pages from one phone to another. A page moves when it registers another account than
//! that of its phone, or helps a page of another phone.

use portunus_sip::agent::{CallId, RequestId, SubscriptionId};
use portunus_sip::message::StatusCode;

use super::messages::SentMessage;
use super::transfers::Transfer;
use super::{Phone, Subscription};
use crate::call::{Call, End};
use crate::directory::Key;
use crate::ending::Ending;
use crate::page::{Page, Role};
use crate::status::{PageId, RegistrationStatus};

/// A page on its way to another phone, with its helpers and with what belongs to them alone.
pub(crate) struct Departure {
    pages: Vec<(PageId, Page)>,
    calls: Vec<Call>,
    messages: Vec<(RequestId, SentMessage)>,
    subscriptions: Vec<(SubscriptionId, Subscription)>,
    /// The transfers that the calls follow.
    transfers: Vec<(u32, Transfer)>,
}

impl Phone {
    /// Whether another account of page `me` may live here: nobody else uses this phone.
    pub(crate) fn is_free_for(&self, me: PageId) -> bool {
        let mut pages = self.pages.iter();
        let is_own = |page: &Page| page.role == Role::Helper(me);
        let mut accounts = self.accounts.iter();
        pages.all(|(id, page)| id == me || is_own(page))
            && accounts.all(|account| {
                let is_alone = account.pages == [me] && account.parked.is_empty();
                is_alone || account.status == RegistrationStatus::Unregistering
            })
    }

    /// Takes a page without an account out of this phone.
    pub(crate) fn depart(&mut self, me: PageId) -> Departure {
        let mut leaving = self.pages.helpers(me);
        leaving.push(me);
        for page in &leaving {
            self.part_call(*page, &leaving);
            self.accounts.forget_page(*page);
        }
        let is_leaving = |page: &PageId| leaving.contains(page);
        let messages = &mut self.messages;
        let messages = messages.extract_if(|_, sent| is_leaving(&sent.page));
        let subscriptions = &mut self.subscriptions;
        let subscriptions = subscriptions.extract_if(|_, known| is_leaving(&known.page));
        let calls = self.calls.take_of(&leaving);
        let ids: Vec<CallId> = calls.iter().map(|call| call.id).collect();
        Departure {
            messages: messages.collect(),
            subscriptions: subscriptions.collect(),
            transfers: self.transfers.take_followed(&ids),
            calls,
            pages: leaving
                .into_iter()
                .filter_map(|id| Some((id, self.pages.remove(id)?)))
                .collect(),
        }
    }

    /// Parts the call of a page that leaves from the pages that stay. A call that was accepted goes
    /// with its owner. A call that rings, or waits for another page, stays.
    fn part_call(&mut self, me: PageId, leaving: &[PageId]) {
        let Some(side) = self.side_of(me) else {
            return;
        };
        let stays = side.moving || side.status.rings();
        let is_moving = side.moving;
        let pages = self.calls.get(side.id).map(|call| call.pages.as_slice());
        let others = pages.into_iter().flatten().copied();
        let others: Vec<PageId> = others.filter(|page| !leaving.contains(page)).collect();
        let reason = StatusCode::TEMPORARILY_UNAVAILABLE.reason();
        let end = End::of(Ending::new(480, reason));
        if is_moving || (stays && !others.is_empty()) {
            self.let_go(me, &end);
            return;
        }
        for other in others {
            self.let_go(other, &end);
        }
    }

    /// Takes a page in from another phone.
    pub(crate) fn arrive(&mut self, page: Departure) {
        let pages = page.pages.iter().map(|(id, _)| Key::Page(*id));
        let calls = page.calls.iter().map(|call| Key::Call(call.id));
        let messages = page.messages.iter().map(|(id, _)| Key::Request(*id));
        let subscriptions = page.subscriptions.iter();
        let subscriptions = subscriptions.map(|(id, _)| Key::Subscription(*id));
        let keys = pages.chain(calls).chain(messages).chain(subscriptions);
        let keys: Vec<Key> = keys.collect();
        self.common.directory.enter_all(&keys, self.id);
        for (id, page) in page.pages {
            self.pages.insert(id, page);
        }
        for call in page.calls {
            self.calls.insert(call);
        }
        self.messages.extend(page.messages);
        self.subscriptions.extend(page.subscriptions);
        self.transfers.put(page.transfers);
    }
}
