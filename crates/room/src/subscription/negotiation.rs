//! Offers and answers of a subscription: what has to be offered, and when.

use super::payloads::Payloads;

/// The state of offers and answers, and the changes for the next offer. At most one offer has no
/// answer.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    signaling: Signaling,
    pending: Pending,
    /// The client made the offer, so the room makes none.
    pub(super) of_client: bool,
    /// The payload types that were given out.
    pub(super) payloads: Payloads,
}

/// In the words of the PeerConnection's `signalingState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Signaling {
    /// There is no PeerConnection.
    #[default]
    Closed,
    /// Our offer waits for its answer.
    HaveLocalOffer,
    /// The last offer was answered.
    Stable,
}

/// The reasons for the next offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pending {
    offer: bool,
    restart: bool,
    /// M-lines of gone publishers. They are offered with the client's next change only.
    removals: bool,
}

/// The offer that a change needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// None.
    Nothing,
    /// It is offered now.
    Now,
    /// It is offered once the last offer is answered.
    Later,
}

impl Negotiation {
    /// Notes a change that the client requested, and whether it `changed` anything.
    pub(crate) fn change(&mut self, changed: bool) -> Offer {
        if !changed && !self.pending.offer && !self.pending.removals {
            return Offer::Nothing;
        }
        self.needed()
    }

    /// Notes a change without a request, or a request for an offer, which restarts ICE if
    /// `restart`.
    pub(crate) fn renegotiate(&mut self, restart: bool) -> Offer {
        if self.of_client {
            return Offer::Nothing;
        }
        self.pending.restart |= restart;
        self.needed()
    }

    /// Notes that m-lines lost their publisher. With `autoupdate`, the offer is due.
    pub(super) fn removed(&mut self, autoupdate: bool) -> Offer {
        if autoupdate {
            return self.renegotiate(false);
        }
        self.pending.removals = true;
        Offer::Nothing
    }

    /// Returns the offer to make after an answer.
    pub(crate) fn next(&mut self) -> Offer {
        match self.pending.offer || self.pending.restart {
            true => self.renegotiate(false),
            false => Offer::Nothing,
        }
    }

    fn needed(&mut self) -> Offer {
        self.pending.offer = true;
        match self.signaling {
            Signaling::HaveLocalOffer => Offer::Later,
            Signaling::Closed | Signaling::Stable => Offer::Now,
        }
    }

    /// Notes that everything was offered.
    pub(super) fn offered(&mut self) {
        self.signaling = Signaling::HaveLocalOffer;
        self.pending = Pending::default();
    }

    /// Notes that our offer was answered.
    pub(super) fn answered(&mut self) {
        self.signaling = Signaling::Stable;
    }

    /// Notes that the room answered the client's offer. It makes no offers from then on.
    pub(super) fn answered_client(&mut self) {
        self.signaling = Signaling::Stable;
        self.of_client = true;
    }

    /// Notes that the client's offer replaced the room's, which will have no answer.
    pub(crate) fn replaced(&mut self) {
        if self.signaling == Signaling::HaveLocalOffer {
            self.signaling = Signaling::Stable;
            self.pending.offer = true;
        }
    }

    /// Returns whether the last offer was answered.
    pub(super) fn is_stable(&self) -> bool {
        self.signaling == Signaling::Stable
    }

    /// Returns whether something waits to be offered.
    pub(super) const fn pending_offer(&self) -> bool {
        self.pending.offer
    }

    /// Returns whether the next offer restarts ICE.
    pub(super) const fn restarts(&self) -> bool {
        self.pending.restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a negotiation whose first offer was made.
    fn offered() -> Negotiation {
        let mut negotiation = Negotiation::default();
        assert_eq!(negotiation.change(true), Offer::Now);
        negotiation.offered();
        negotiation
    }

    #[test]
    fn one_offer_waits_for_its_answer_and_all_changes_for_the_next() {
        let mut negotiation = offered();
        assert_eq!(negotiation.change(true), Offer::Later);
        assert_eq!(negotiation.renegotiate(true), Offer::Later);
        negotiation.answered();
        assert!(negotiation.restarts());
        assert_eq!(negotiation.next(), Offer::Now);
        negotiation.offered();
        negotiation.answered();
        assert!(!negotiation.restarts());
        assert_eq!(negotiation.next(), Offer::Nothing);
    }

    #[test]
    fn a_change_that_comes_to_nothing_is_not_offered() {
        let mut negotiation = offered();
        negotiation.answered();
        assert_eq!(negotiation.change(false), Offer::Nothing);
        assert_eq!(negotiation.change(true), Offer::Now);
        // It could not be made: the next request tries again.
        assert_eq!(negotiation.change(false), Offer::Now);
    }

    #[test]
    fn without_autoupdate_removals_are_offered_with_the_next_change() {
        let mut negotiation = offered();
        negotiation.answered();
        assert_eq!(negotiation.removed(false), Offer::Nothing);
        assert_eq!(negotiation.next(), Offer::Nothing);
        assert_eq!(negotiation.change(false), Offer::Now);
        negotiation.offered();
        negotiation.answered();
        assert_eq!(negotiation.removed(true), Offer::Now);
    }

    #[test]
    fn an_offer_that_was_replaced_is_made_again() {
        let mut negotiation = offered();
        negotiation.replaced();
        assert_eq!(negotiation.next(), Offer::Now);
        negotiation.offered();
        negotiation.answered();
        negotiation.replaced();
        assert_eq!(negotiation.next(), Offer::Nothing);
    }

    #[test]
    fn a_client_that_offers_gets_no_offers() {
        let mut negotiation = Negotiation::default();
        negotiation.answered_client();
        assert!(negotiation.is_stable());
        assert_eq!(negotiation.renegotiate(true), Offer::Nothing);
        assert_eq!(negotiation.removed(true), Offer::Nothing);
        assert_eq!(negotiation.next(), Offer::Nothing);
    }
}
