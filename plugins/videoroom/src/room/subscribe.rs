//! Subscribing, and changing what is received.

use portunus_core::sdp::Description;
use portunus_core::{Handle, HandleId, Jsep, LocalJsep, Object};
use portunus_resources::Id;
use serde_json::Value;

use super::RoomState;
use crate::refusal::Refusal;
use crate::subscription::{
    Change, Offer, Subscriber, SubscriberConfigure, SubscriberJoin, Switch, Watch,
};

/// What a request comes to: the event that answers it, with an offer. None: that comes later by itself.
pub(crate) type Outcome = Result<Option<(Value, Option<LocalJsep>)>, Refusal>;

impl RoomState {
    /// Adds a subscription; gives what its client is told.
    pub(crate) fn join_subscriber(
        &mut self,
        handle: &Handle,
        join: SubscriberJoin,
        by_secret: bool,
    ) -> Result<(Value, LocalJsep), Refusal> {
        let owner = self.owner(join.private_id(), by_secret)?;
        let feed = join.feed().cloned();
        let subscriber = join.subscriber(handle, owner, &self.options, &self.publications)?;
        let key = self.insert(subscriber);
        let offer = self.offer(key);
        let offer = offer.inspect_err(|_| self.forget_subscriber(key))?;
        self.notify_subscription(key, "subscribing");
        let attached = self.attached(key);
        let attached = match feed.and_then(|feed| self.roster.get(&feed)) {
            Some(publisher) => attached
                .with_all(publisher.named())
                .with("warning", "deprecated_api"),
            None => attached,
        };
        Ok((attached.into(), offer))
    }

    /// Adds a subscription whose m-lines are seats; gives what its client is told.
    pub(crate) fn watch(
        &mut self,
        handle: &Handle,
        watch: &Watch,
        jsep: Option<&Jsep>,
        by_secret: bool,
    ) -> Result<(Value, LocalJsep), Refusal> {
        let owner = self.owner(watch.private_id(), by_secret)?;
        let room = (&self.id, &self.options);
        let (subscriber, answer) =
            watch.subscriber(handle, owner, jsep, room, &self.publications)?;
        let key = self.insert(subscriber);
        let local = match answer {
            Some(answer) => self.answer_viewer(key, answer),
            None => self.offer(key),
        };
        let local = local.inspect_err(|_| self.forget_subscriber(key))?;
        self.notify_subscription(key, "subscribing");
        Ok((self.attached(key).into(), local))
    }

    /// The participant whose private id it is, where the room needs one or it is given. Who shows the room's secret
    /// needs none.
    fn owner(&self, private_id: Option<u64>, by_secret: bool) -> Result<Option<Id>, Refusal> {
        let owner = private_id.and_then(|id| self.roster.owner_of(id));
        if self.options.require_pvtid && owner.is_none() && !by_secret {
            return Err(Refusal::NotShown("this room needs a private_id"));
        }
        Ok(owner.cloned())
    }

    /// Takes a new subscription in, whose seats are given away before its client knows anything.
    fn insert(&mut self, subscriber: Subscriber) -> HandleId {
        let key = subscriber.handle().id();
        let seated = subscriber.has_seats();
        self.subscriptions.insert(subscriber);
        if seated {
            self.measure_speech();
            self.seat(key);
        }
        key
    }

    /// Answers the viewer's offer; media flows from then on.
    fn answer_viewer(&mut self, key: HandleId, answer: Description) -> Result<LocalJsep, Refusal> {
        let publications = &self.publications;
        self.subscriptions
            .change(key, |subscriber| subscriber.answer(answer, publications))?
    }

    /// What a client is told that has subscribed.
    fn attached(&self, key: HandleId) -> Object {
        Object::new()
            .with("videoroom", "attached")
            .with("room", self.id.to_json())
            .with("streams", self.summaries(key))
    }

    /// Whether there is this subscription.
    pub(crate) fn check_subscriber(&self, key: HandleId) -> Result<(), Refusal> {
        self.subscriptions.get(key).map(drop)
    }

    /// A subscription ends.
    pub(crate) fn leave_subscriber(&mut self, key: HandleId) {
        self.subscriber_hung_up(key);
        self.forget_subscriber(key);
    }

    fn forget_subscriber(&mut self, key: HandleId) {
        self.subscriptions.remove(key);
        self.measure_speech();
    }

    /// The PeerConnection is gone: nothing is received any more until the client subscribes again.
    pub(crate) fn subscriber_hung_up(&mut self, key: HandleId) {
        let Ok(subscriber) = self.subscriptions.get(key) else {
            return;
        };
        let (client, before) = (subscriber.handle().clone(), self.received(key));
        // It is there.
        let _ = self.subscriptions.change(key, Subscriber::end);
        self.notify_unsubscribed(&client, before);
        self.measure_speech();
    }

    /// The requests `subscribe`, `unsubscribe` and `update`.
    pub(crate) fn change(&mut self, key: HandleId, change: Change) -> Outcome {
        let client = self.subscriptions.get(key)?.handle().clone();
        let before = self.received(key);
        let publications = &self.publications;
        let changed = self
            .subscriptions
            .change(key, |subscriber| subscriber.change(change, publications))??;
        self.notify_unsubscribed(&client, before);
        let offer = |subscriber: &mut Subscriber| subscriber.offer_change(changed);
        match self.subscriptions.change(key, offer)? {
            Offer::Nothing => Ok(Some((self.updated().into(), None))),
            Offer::Later => {
                let updating = Object::new()
                    .with("videoroom", "updating")
                    .with("room", self.id.to_json());
                Ok(Some((updating.into(), None)))
            }
            Offer::Now => {
                let offer = self.offer(key)?;
                self.notify_subscription(key, "updated");
                let updated = self.updated().with("streams", self.summaries(key));
                Ok(Some((updated.into(), Some(offer))))
            }
        }
    }

    /// Puts other sources on m-lines.
    pub(crate) fn switch(
        &mut self,
        key: HandleId,
        switch: Switch,
        transaction: Option<&str>,
    ) -> Outcome {
        let publications = &self.publications;
        let feed = switch.feed().cloned();
        let switched = self
            .subscriptions
            .change(key, |subscriber| subscriber.switch(switch, publications))??;
        if switched.revived {
            self.renegotiate(key, transaction);
        }
        if let Ok(subscriber) = self.subscriptions.get(key) {
            subscriber
                .handle()
                .notify(|| self.notice("switched").into());
        }
        let event = self
            .event()
            .with("switched", "ok")
            .with("changes", switched.changes)
            .with("streams", self.summaries(key));
        let event = match feed.and_then(|feed| self.roster.get(&feed)) {
            Some(publisher) => event
                .with("id", publisher.id().to_json())
                .with_some("display", publisher.display()),
            None => event,
        };
        Ok(Some((event.into(), None)))
    }

    /// Applies a subscriber's `configure`.
    pub(crate) fn configure_subscriber(
        &mut self,
        key: HandleId,
        configure: &SubscriberConfigure,
    ) -> Outcome {
        self.subscriptions.get(key)?.check_configure(configure)?;
        if let Some(last_n) = configure.last_n() {
            self.follow_speakers(key, last_n)?;
        }
        let publications = &self.publications;
        let current = self.subscriptions.change(key, |subscriber| {
            subscriber.configure(configure, publications)
        })?;
        for (mid, name, layer, reason) in current {
            let event = self.layer_event(mid, name, layer, reason);
            self.push(key, event);
        }
        let configured = Value::from(self.event().with("configured", "ok"));
        if !configure.offers() {
            return Ok(Some((configured, None)));
        }
        let offer = |subscriber: &mut Subscriber| subscriber.renegotiate(configure.restarts());
        match self.subscriptions.change(key, offer)? {
            Offer::Nothing => Ok(Some((configured, None))),
            Offer::Later => Ok(None),
            Offer::Now => {
                let offer = self.offer(key)?;
                Ok(Some((configured, Some(offer))))
            }
        }
    }

    /// Stops or resumes all media.
    pub(crate) fn pause(&mut self, key: HandleId, paused: bool) -> Result<(), Refusal> {
        let publications = &self.publications;
        self.subscriptions
            .change(key, |subscriber| subscriber.pause(paused, publications))
    }

    /// Takes the client's answer.
    pub(crate) fn accept(&mut self, key: HandleId, answer: &Description) -> Result<(), Refusal> {
        let publications = &self.publications;
        self.subscriptions
            .change(key, |subscriber| subscriber.accept(answer, publications))?;
        // Somebody may have a seat where the client cannot decode it.
        if self.subscriptions.get(key)?.has_seats() {
            self.reseat_all();
        }
        Ok(())
    }

    /// Offers what waited until the last offer was answered.
    pub(crate) fn offer_pending(&mut self, key: HandleId) {
        let offer = self.subscriptions.change(key, Subscriber::offer_pending);
        if offer == Ok(Offer::Now) {
            self.push_offer(key, None);
        }
    }

    /// The client's offer took the place of ours, which nobody will answer now.
    pub(crate) fn offer_replaced(&mut self, key: HandleId) {
        // Who has left has no offer.
        let _ = self.subscriptions.change(key, Subscriber::offer_replaced);
    }

    /// Offers what has changed by itself, or once the client has answered the last offer.
    fn renegotiate(&mut self, key: HandleId, transaction: Option<&str>) {
        let offer = |subscriber: &mut Subscriber| subscriber.renegotiate(false);
        if self.subscriptions.change(key, offer) == Ok(Offer::Now) {
            self.push_offer(key, transaction);
        }
    }

    /// Offers m-lines that have lost their publisher.
    pub(super) fn offer_removal(&mut self, key: HandleId) {
        let offer = self.subscriptions.change(key, Subscriber::offer_removal);
        if offer == Ok(Offer::Now) {
            self.push_offer(key, None);
        }
    }

    /// Makes an offer that no request is answered with.
    fn push_offer(&mut self, key: HandleId, transaction: Option<&str>) {
        match self.offer(key) {
            Ok(offer) => {
                let updated = self.updated().with("streams", self.summaries(key));
                if let Ok(subscriber) = self.subscriptions.get(key) {
                    subscriber.handle().push(transaction, updated, Some(offer));
                }
                self.notify_subscription(key, "updated");
            }
            // Its PeerConnection is being closed, which ends the subscription.
            Err(error) => tracing::debug!(%error, "a subscription cannot be renegotiated"),
        }
    }

    /// Makes an offer of what the subscription has; there must be none that waits for its answer.
    fn offer(&mut self, key: HandleId) -> Result<LocalJsep, Refusal> {
        let (room, options, publications) = (&self.id, &self.options, &self.publications);
        self.subscriptions.change(key, |subscriber| {
            subscriber.offer(room, options, publications)
        })?
    }

    /// The event that comes with offers.
    fn updated(&self) -> Object {
        Object::new()
            .with("videoroom", "updated")
            .with("room", self.id.to_json())
    }

    /// The summaries of all m-lines of a subscription.
    pub(super) fn summaries(&self, key: HandleId) -> Vec<Value> {
        let subscriber = self.subscriptions.get(key);
        let summaries = subscriber.map(|known| known.summaries(&self.roster, &self.publications));
        summaries.unwrap_or_default()
    }

    /// Tells the client of a subscription something.
    pub(super) fn push(&self, key: HandleId, event: impl Into<Value>) {
        if let Ok(subscriber) = self.subscriptions.get(key) {
            subscriber.handle().push(None, event, None);
        }
    }

    /// A subscription's state, for administrators.
    pub(crate) fn subscriber_state(&self, key: HandleId) -> Option<Value> {
        let subscriber = self.subscriptions.get(key).ok()?;
        let state = subscriber.state().with("streams", self.summaries(key));
        let state = Object::new()
            .with("type", "subscriber")
            .with("room", self.id.to_json())
            .with_all(state)
            .with("hangingup", 0)
            .with("destroyed", 0);
        Some(state.into())
    }
}
