//! Subscribing, and changing what is received.

use std::sync::Arc;

use portunus_sdp::{Description, Jsep, LocalJsep};

use super::State;
use crate::publication::Publications;
use crate::subscription::{
    Change, Offer, Subscriber, SubscriberConfigure, SubscriberJoin, Switch, Watch,
};
use crate::{Connection, ConnectionId, Event, Notice, PersonId, Refusal, Told};

/// What a change of a subscription came to.
#[derive(Debug)]
pub enum Outcome {
    /// It is done, without an offer.
    Done,
    /// It has to be offered, which happens by itself once the last offer is answered: see [`Notice::Offered`].
    Later,
    /// It has to be offered by this.
    Offer(LocalJsep),
}

/// What a [`Switch`] came to.
#[derive(Debug)]
pub struct Switched {
    /// M-lines that have another source.
    pub changes: usize,
    /// An offer of m-lines that were inactive.
    pub offer: Option<LocalJsep>,
}

impl State {
    /// Adds a subscription. Returns its offer. `trusted` clients need no private id.
    pub fn join_subscriber(
        &mut self,
        connection: Arc<dyn Connection>,
        join: SubscriberJoin,
        trusted: bool,
    ) -> Result<LocalJsep, Refusal> {
        let owner = self.owner(join.private_id, trusted)?;
        let way = (connection, self.publications.media.clone());
        let subscriber = join.subscriber(way, owner, &self.settings, &self.publications)?;
        self.begin(subscriber, None)
    }

    /// Adds a subscription whose m-lines are seats. Returns its offer, or the answer to the client's. `trusted` clients
    /// need no private id.
    pub fn watch(
        &mut self,
        connection: Arc<dyn Connection>,
        watch: &Watch,
        jsep: Option<&Jsep>,
        trusted: bool,
    ) -> Result<LocalJsep, Refusal> {
        let owner = self.owner(watch.private_id, trusted)?;
        let way = (connection, self.publications.media.clone());
        let room = (&*self.name, &self.settings);
        let (subscriber, answer) = watch.subscriber(way, owner, jsep, room, &self.publications)?;
        self.begin(subscriber, answer)
    }

    /// The participant whose private id it is, where the room needs one or it is given. Trusted clients
    /// need none.
    fn owner(&self, private_id: Option<u64>, trusted: bool) -> Result<Option<PersonId>, Refusal> {
        let owner = private_id.and_then(|id| self.roster.owner_of(id));
        if self.settings.require_pvtid && owner.is_none() && !trusted {
            return Err(Refusal::OwnerNeeded);
        }
        Ok(owner.cloned())
    }

    /// Takes a new subscription in, whose seats are given away before its client knows anything. Returns its offer, or the
    /// `answer` to the client's.
    fn begin(
        &mut self,
        subscriber: Subscriber,
        answer: Option<Description>,
    ) -> Result<LocalJsep, Refusal> {
        let key = subscriber.connection.id();
        let seated = subscriber.has_seats();
        self.subscriptions.insert(subscriber);
        if seated {
            self.measure_speech();
            self.seat(key);
        }
        let local = match answer {
            Some(answer) => self.change_subscriber(key, |it, all| it.answer(answer, all))?,
            None => self.offer(key),
        };
        let local = local.inspect_err(|_| self.forget_subscriber(key))?;
        self.notify_subscription(key, &Event::Subscribing(key));
        Ok(local)
    }

    /// Changes a subscription in view of what is published.
    pub(super) fn change_subscriber<T>(
        &mut self,
        key: ConnectionId,
        change: impl FnOnce(&mut Subscriber, &Publications) -> T,
    ) -> Result<T, Refusal> {
        let publications = &self.publications;
        self.subscriptions
            .change(key, |subscriber| change(subscriber, publications))
    }

    /// Checks that there is this subscription.
    pub fn check_subscriber(&self, key: ConnectionId) -> Result<(), Refusal> {
        self.subscriptions.get(key).map(drop)
    }

    /// A subscription ends.
    pub fn leave_subscriber(&mut self, key: ConnectionId) {
        self.subscriber_hung_up(key);
        self.forget_subscriber(key);
    }

    fn forget_subscriber(&mut self, key: ConnectionId) {
        self.subscriptions.remove(key);
        self.measure_speech();
    }

    /// The PeerConnection is gone: nothing is received any more until the client subscribes again.
    pub fn subscriber_hung_up(&mut self, key: ConnectionId) {
        let Ok(subscriber) = self.subscriptions.get(key) else {
            return;
        };
        let (client, before) = (subscriber.connection.clone(), self.received(key));
        // It is there.
        let _ = self.subscriptions.change(key, Subscriber::end);
        self.notify_unsubscribed(&*client, &before);
        self.measure_speech();
    }

    /// Changes what a subscription receives.
    pub fn change(&mut self, key: ConnectionId, change: Change) -> Result<Outcome, Refusal> {
        let client = self.subscriptions.get(key)?.connection.clone();
        let before = self.received(key);
        let changed = self.change_subscriber(key, |it, all| it.change(change, all))??;
        self.notify_unsubscribed(&*client, &before);
        let offer = |subscriber: &mut Subscriber| subscriber.negotiation.change(changed);
        let outcome = self.outcome(key, offer)?;
        if let Outcome::Offer(_) = outcome {
            self.notify_subscription(key, &Event::Resubscribed(key));
        }
        Ok(outcome)
    }

    /// Puts other sources on m-lines.
    pub fn switch(&mut self, key: ConnectionId, switch: Switch) -> Result<Switched, Refusal> {
        let (changes, offers) = self.change_subscriber(key, |it, all| it.switch(switch, all))??;
        let mut offer = None;
        let renegotiate = |subscriber: &mut Subscriber| subscriber.negotiation.renegotiate(false);
        if offers && self.subscriptions.change(key, renegotiate)? == Offer::Now {
            offer = self.offer_by_itself(key);
            if offer.is_some() {
                self.notify_subscription(key, &Event::Resubscribed(key));
            }
        }
        Ok(Switched { changes, offer })
    }

    /// Changes how a subscription receives.
    pub fn configure_subscriber(
        &mut self,
        key: ConnectionId,
        configure: &SubscriberConfigure,
    ) -> Result<Outcome, Refusal> {
        self.subscriptions.get(key)?.check_configure(configure)?;
        if let Some(last_n) = configure.last_n {
            self.follow_speakers(key, last_n)?;
        }
        let current = self.change_subscriber(key, |it, all| it.configure(configure, all))?;
        for layer in current {
            self.tell_layer(key, layer);
        }
        if !configure.offers() {
            return Ok(Outcome::Done);
        }
        let offer =
            |subscriber: &mut Subscriber| subscriber.negotiation.renegotiate(configure.restart);
        self.outcome(key, offer)
    }

    /// Makes an offer if that is what is to be done.
    fn outcome(
        &mut self,
        key: ConnectionId,
        due: impl FnOnce(&mut Subscriber) -> Offer,
    ) -> Result<Outcome, Refusal> {
        match self.subscriptions.change(key, due)? {
            Offer::Nothing => Ok(Outcome::Done),
            Offer::Later => Ok(Outcome::Later),
            Offer::Now => self.offer(key).map(Outcome::Offer),
        }
    }

    /// Stops or resumes all media.
    pub fn pause(&mut self, key: ConnectionId, paused: bool) -> Result<(), Refusal> {
        self.change_subscriber(key, |it, all| it.pause(paused, all))
    }

    /// Takes the client's answer.
    pub fn accept(&mut self, key: ConnectionId, answer: &Description) -> Result<(), Refusal> {
        self.change_subscriber(key, |it, all| it.accept(answer, all))?;
        // Somebody may have a seat where the client cannot decode it.
        if self.subscriptions.get(key)?.has_seats() {
            self.reseat_all();
        }
        Ok(())
    }

    /// Offers what waited until the last offer was answered.
    pub fn offer_pending(&mut self, key: ConnectionId) {
        let next = |subscriber: &mut Subscriber| subscriber.negotiation.next();
        let offer = self.subscriptions.change(key, next);
        if offer == Ok(Offer::Now) {
            self.tell_offer(key);
        }
    }

    /// The client's offer took the place of ours, which nobody will answer now.
    pub fn offer_replaced(&mut self, key: ConnectionId) {
        // Who has left has no offer.
        let _ = self
            .subscriptions
            .change(key, |subscriber| subscriber.negotiation.replaced());
    }

    /// Offers m-lines that have lost their publisher.
    pub(super) fn offer_removal(&mut self, key: ConnectionId) {
        let offer = self.subscriptions.change(key, Subscriber::offer_removal);
        if offer == Ok(Offer::Now) {
            self.tell_offer(key);
        }
    }

    /// Makes an offer that no request is answered with, and tells the client.
    fn tell_offer(&mut self, key: ConnectionId) {
        let Some(offer) = self.offer_by_itself(key) else {
            return;
        };
        if let Ok(subscriber) = self.subscriptions.get(key) {
            let told = Told::new(self, Notice::Offered(key));
            subscriber.connection.tell(&told, Some(offer));
        }
        self.notify_subscription(key, &Event::Resubscribed(key));
    }

    /// Makes an offer that no request is answered with. Returns `None` if the PeerConnection is being closed, which ends
    /// the subscription.
    fn offer_by_itself(&mut self, key: ConnectionId) -> Option<LocalJsep> {
        let failed = |error: &Refusal| {
            tracing::debug!(%error, "a subscription cannot be renegotiated");
        };
        self.offer(key).inspect_err(failed).ok()
    }

    /// Makes an offer of what the subscription has; there must be none that waits for its answer.
    fn offer(&mut self, key: ConnectionId) -> Result<LocalJsep, Refusal> {
        let (room, settings, publications) = (&self.name, &self.settings, &self.publications);
        self.subscriptions.change(key, |subscriber| {
            subscriber.offer(room, settings, publications)
        })?
    }
}
