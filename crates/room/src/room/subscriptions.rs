//! Subscriptions: their start, changes, negotiation and end.

use std::sync::Arc;

use portunus_rtp::Mid;
use portunus_sdp::{Description, Jsep, LocalJsep};

use super::{Client, State, Told};
use crate::publication::Publications;
use crate::subscription::{
    Change, Offer, Subscriber, SubscriberConfigure, SubscriberJoin, Switch, Switching, Viewer,
    Watch,
};
use crate::{Connection, ConnectionId, Event, Notice, PersonId, Refusal};

/// The outcome of a change of a subscription.
#[derive(Debug)]
pub enum Outcome {
    /// The change is done and needs no offer.
    Done,
    /// An offer follows by [`Notice::Offered`] once the last offer is answered.
    Later,
    /// The offer.
    Offer(LocalJsep),
}

/// The outcome of a [`Switch`].
#[derive(Debug)]
pub struct Switched {
    /// The number of m-lines with another source.
    pub changes: usize,
    /// The offer of m-lines that were inactive.
    pub offer: Option<LocalJsep>,
}

impl State {
    /// Adds a subscription. Returns its offer. `trusted` clients need no private id.
    pub fn join_subscriber(
        &mut self,
        client: Arc<dyn Client>,
        join: SubscriberJoin,
        trusted: bool,
    ) -> Result<LocalJsep, Refusal> {
        let viewer = self.viewer(client.clone(), join.private_id, trusted)?;
        let subscriber = join.subscriber(viewer, &self.settings, &self.publications)?;
        self.begin(client, subscriber, None)
    }

    /// Adds a subscription whose m-lines are seats. Returns its offer, or the answer to the
    /// client's offer. `trusted` clients need no private id.
    pub fn watch(
        &mut self,
        client: Arc<dyn Client>,
        watch: &Watch,
        jsep: Option<&Jsep>,
        trusted: bool,
    ) -> Result<LocalJsep, Refusal> {
        let viewer = self.viewer(client.clone(), watch.private_id, trusted)?;
        let (room, settings) = (&*self.name, &self.settings);
        let watched = watch.subscriber(viewer, jsep, room, settings, &self.publications);
        let (subscriber, answer) = watched?;
        self.begin(client, subscriber, answer)
    }

    /// Adds a subscription whose m-lines are those of the participant's own offers, beside those
    /// that it publishes on. [`Subscriber::missing`] tells when another offer is needed.
    pub fn take_subscriber(&mut self, client: Arc<dyn Client>) -> Result<(), Refusal> {
        let viewer = self.viewer(client.clone(), None, true)?;
        let subscriber = Subscriber::taking(viewer, self.settings.require_e2ee);
        self.subscriptions.insert(subscriber);
        self.clients.add_subscriber(client);
        Ok(())
    }

    /// Takes the streams of a subscription whose codecs the client does not accept. They are not
    /// relayed.
    pub fn take_refused(&mut self, key: ConnectionId) -> Vec<(PersonId, Mid)> {
        let refused = self.subscriptions.change(key, |subscriber| {
            let lines = subscriber.lines.iter_mut().filter(|line| line.is_refused());
            let sources = lines.filter_map(|line| line.source());
            let refused: Vec<_> = sources.map(|(feed, mid)| (feed.clone(), mid)).collect();
            refused
                .into_iter()
                .chain(subscriber.take_refused())
                .collect()
        });
        refused.unwrap_or_default()
    }

    /// Returns the client of a new subscription. It belongs to the participant with `private_id`,
    /// which the room may require of clients that are not `trusted`.
    fn viewer(
        &self,
        connection: Arc<dyn Connection>,
        private_id: Option<u64>,
        trusted: bool,
    ) -> Result<Viewer, Refusal> {
        let owner = private_id.and_then(|id| self.roster.owner_of(id));
        if self.settings.require_private_id && owner.is_none() && !trusted {
            return Err(Refusal::OwnerNeeded);
        }
        Ok(Viewer {
            connection,
            media: self.publications.media.clone(),
            owner: owner.cloned(),
        })
    }

    /// Adds a subscription and assigns its seats. Returns its offer, or the `answer` to the
    /// client's.
    fn begin(
        &mut self,
        client: Arc<dyn Client>,
        subscriber: Subscriber,
        answer: Option<Description>,
    ) -> Result<LocalJsep, Refusal> {
        let key = client.id();
        let seated = subscriber.has_seats();
        self.subscriptions.insert(subscriber);
        self.clients.add_subscriber(client);
        if seated {
            self.measure_speech();
            self.seat(key);
        }
        let local = match answer {
            Some(answer) => self.change_subscriber(key, |it, all| it.answer(answer, all))?,
            None => self.offer(key),
        };
        let local = local.inspect_err(|_| self.forget_subscriber(key))?;
        self.note_wanted_data();
        self.notify_subscription(key, &Event::Subscribing(key));
        Ok(local)
    }

    /// Calls `change` with a subscription and the publications.
    pub(super) fn change_subscriber<T>(
        &mut self,
        key: ConnectionId,
        change: impl FnOnce(&mut Subscriber, &Publications) -> T,
    ) -> Result<T, Refusal> {
        let publications = &self.publications;
        self.subscriptions
            .change(key, |subscriber| change(subscriber, publications))
    }

    /// Checks that a subscription exists.
    pub fn check_subscriber(&self, key: ConnectionId) -> Result<(), Refusal> {
        self.subscriptions.get(key).map(drop)
    }

    /// Ends a subscription.
    pub fn leave_subscriber(&mut self, key: ConnectionId) {
        self.subscriber_hung_up(key);
        self.forget_subscriber(key);
    }

    fn forget_subscriber(&mut self, key: ConnectionId) {
        self.subscriptions.remove(key);
        self.clients.remove_subscriber(key);
        self.measure_speech();
        self.note_wanted_data();
    }

    /// Removes all streams of a subscription whose PeerConnection has ended. It can subscribe
    /// again.
    pub fn subscriber_hung_up(&mut self, key: ConnectionId) {
        let before = self.received(key);
        if self.subscriptions.change(key, Subscriber::end).is_err() {
            return;
        }
        self.notify_unsubscribed(key, &before);
        self.measure_speech();
        self.note_wanted_data();
    }

    /// Adds and removes streams of a subscription.
    pub fn change(&mut self, key: ConnectionId, change: Change) -> Result<Outcome, Refusal> {
        let before = self.received(key);
        let changed = self.change_subscriber(key, |it, all| it.change(change, all))??;
        self.note_wanted_data();
        self.notify_unsubscribed(key, &before);
        let offer = |subscriber: &mut Subscriber| subscriber.negotiation.change(changed);
        let outcome = self.outcome(key, offer)?;
        if let Outcome::Offer(_) = outcome {
            self.notify_subscription(key, &Event::Resubscribed(key));
        }
        Ok(outcome)
    }

    /// Puts other sources on m-lines.
    pub fn switch(&mut self, key: ConnectionId, switch: Switch) -> Result<Switched, Refusal> {
        let change = |it: &mut Subscriber, all: &Publications| it.switch(switch, all);
        let Switching { changes, revived } = self.change_subscriber(key, change)??;
        let mut offer = None;
        let renegotiate = |subscriber: &mut Subscriber| subscriber.negotiation.renegotiate(false);
        if revived && self.subscriptions.change(key, renegotiate)? == Offer::Now {
            offer = self.offer_by_itself(key);
            if offer.is_some() {
                self.notify_subscription(key, &Event::Resubscribed(key));
            }
        }
        Ok(Switched { changes, offer })
    }

    /// Changes the settings of a subscription.
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
            self.send_layer(key, layer);
        }
        if !configure.offers() {
            return Ok(Outcome::Done);
        }
        let offer =
            |subscriber: &mut Subscriber| subscriber.negotiation.renegotiate(configure.restart);
        self.outcome(key, offer)
    }

    /// Makes an offer if `due` returns that.
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

    /// Stops or resumes all media of a subscription.
    pub fn pause(&mut self, key: ConnectionId, paused: bool) -> Result<(), Refusal> {
        self.change_subscriber(key, |it, all| it.pause(paused, all))?;
        self.note_wanted_data();
        Ok(())
    }

    /// Takes the client's answer.
    pub fn accept(&mut self, key: ConnectionId, answer: &Description) -> Result<(), Refusal> {
        self.change_subscriber(key, |it, all| it.accept(answer, all))?;
        self.note_wanted_data();
        // The client may not decode the codec of a publisher on a seat.
        if self.subscriptions.get(key)?.has_seats() {
            self.reseat_all();
        }
        Ok(())
    }

    /// Makes the offer that waited for the answer to the last one.
    pub fn offer_pending(&mut self, key: ConnectionId) {
        let next = |subscriber: &mut Subscriber| subscriber.negotiation.next();
        let offer = self.subscriptions.change(key, next);
        if offer == Ok(Offer::Now) {
            self.send_offer(key);
        }
    }

    /// Notes that the client's offer replaced ours, which will have no answer.
    pub fn offer_replaced(&mut self, key: ConnectionId) {
        // A subscription that has ended has no offer.
        let _ = self
            .subscriptions
            .change(key, |subscriber| subscriber.negotiation.replaced());
    }

    /// Offers the removal of m-lines whose publisher has gone.
    pub(super) fn offer_removal(&mut self, key: ConnectionId) {
        let offer = self.subscriptions.change(key, Subscriber::offer_removal);
        if offer == Ok(Offer::Now) {
            self.send_offer(key);
        }
    }

    /// Makes an offer without a request, and tells the client.
    fn send_offer(&mut self, key: ConnectionId) {
        let Some(offer) = self.offer_by_itself(key) else {
            return;
        };
        if let Some(client) = self.clients.subscriber(key) {
            let told = Told::new(self, Notice::Offered(key));
            client.send(&told, Some(offer));
        }
        self.notify_subscription(key, &Event::Resubscribed(key));
    }

    /// Makes an offer without a request. Returns `None` if the PeerConnection is being closed,
    /// which ends the subscription.
    fn offer_by_itself(&mut self, key: ConnectionId) -> Option<LocalJsep> {
        let failed = |error: &Refusal| {
            tracing::debug!(%error, "a subscription cannot be renegotiated");
        };
        self.offer(key).inspect_err(failed).ok()
    }

    /// Offers all m-lines of a subscription. The last offer has to be answered.
    fn offer(&mut self, key: ConnectionId) -> Result<LocalJsep, Refusal> {
        let (room, settings, publications) = (&self.name, &self.settings, &self.publications);
        self.subscriptions.change(key, |subscriber| {
            subscriber.offer(room, settings, publications)
        })?
    }
}
