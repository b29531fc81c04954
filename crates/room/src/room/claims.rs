//! What other nodes of a cluster claim at the home of a room before their clients join or publish.
//!
//! The home orders all joins: an id and a place among the publishers are claimed there first, so that
//! clients of two nodes cannot have the same one.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::State;
use crate::{PersonId, Refusal};

/// The time after which a claim ends, unless its client is in the room by then.
const VALID: Duration = Duration::from_secs(3);
/// The limit of claims of a room. Further clients are refused until some have ended.
const MOST: usize = 10_000;

/// The reason why a client cannot join in the place of another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefusal {
    /// The room has as many participants as it may have.
    #[error("the room is full")]
    Full,
    /// The room refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The claims of other nodes.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_id: HashMap<PersonId, Claim>,
    /// The participants at other nodes whose media is not up yet. They have a place.
    connecting: HashSet<PersonId>,
}

/// The claim of a node.
#[derive(Debug)]
struct Claim {
    /// Empty for the home itself.
    node: String,
    until: Instant,
    has_place: bool,
    /// The session of a client that others may replace.
    session: Option<String>,
}

/// A client at a node that is about to join, and that another one replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    /// The node.
    pub node: String,
    /// The client's session, as its door calls it.
    pub session: String,
}

impl Claims {
    /// Checks that no node has claimed this id.
    pub(super) fn check_free(&self, id: &PersonId) -> Result<(), Refusal> {
        let claim = self.by_id.get(id);
        match claim.is_some_and(|claim| Instant::now() < claim.until) {
            true => Err(Refusal::IdExists(id.to_string())),
            false => Ok(()),
        }
    }

    /// Returns how many places are claimed, besides those of `publishing` and of `except`.
    fn places(&self, publishing: impl Fn(&PersonId) -> bool, except: Option<&PersonId>) -> usize {
        let now = Instant::now();
        let valid = self.by_id.iter();
        let valid = valid.filter(|(_, claim)| claim.has_place && now < claim.until);
        let claimed = valid.map(|(id, _)| id);
        let connecting = self.connecting.iter();
        let connecting = connecting.filter(|id| {
            let claim = self.by_id.get(*id);
            !claim.is_some_and(|claim| claim.has_place && now < claim.until)
        });
        let ids = claimed.chain(connecting);
        ids.filter(|id| Some(*id) != except && !publishing(id))
            .count()
    }

    /// The participant is in the room, or gone.
    pub(super) fn forget(&mut self, id: &PersonId) {
        self.by_id.remove(id);
        self.connecting.remove(id);
    }

    /// Returns how many of the claimed ids nobody has yet, without `except`.
    fn joining(&self, present: impl Fn(&PersonId) -> bool, except: &PersonId) -> usize {
        let now = Instant::now();
        let valid = self.by_id.iter().filter(|(_, claim)| now < claim.until);
        valid
            .filter(|(id, _)| *id != except && !present(id))
            .count()
    }

    fn add(&mut self, id: &PersonId, node: &str, has_place: bool) -> Result<(), Refusal> {
        let now = Instant::now();
        if self.by_id.len() >= MOST {
            self.by_id.retain(|_, claim| now < claim.until);
        }
        if self.by_id.len() >= MOST {
            return Err(Refusal::TooManyJoins);
        }
        let claim = Claim {
            node: node.to_owned(),
            until: now + VALID,
            has_place,
            session: None,
        };
        self.by_id.insert(id.clone(), claim);
        Ok(())
    }
}

impl State {
    /// At the home of the room: lets a client of another node join as `id`. Nobody else can do so
    /// for 3 s. With `publishes`, it has a place among the publishers, too.
    pub fn claim(&mut self, id: &PersonId, node: &str, publishes: bool) -> Result<(), Refusal> {
        // The node itself decides between two of its own clients, and one that joins again may be
        // gone there already.
        if !self.roster.get(id).is_some_and(|person| person.is_at(node)) {
            self.roster.check_free(id)?;
        }
        let claim = self.claims.by_id.get(id);
        if claim.is_some_and(|claim| claim.node != node) {
            self.claims.check_free(id)?;
        }
        if publishes {
            self.check_places(Some(id))?;
        }
        self.claims.add(id, node, publishes)
    }

    /// At the home of the room: lets a client join as `id` in the place of any other that is about to
    /// join. `node` is empty for a client of the home. `limit` is the most participants.
    ///
    /// A participant that has the id already is left to the door. The client claims no place among
    /// the publishers.
    pub fn claim_over(
        &mut self,
        id: &PersonId,
        (node, session): (&str, &str),
        limit: Option<usize>,
    ) -> Result<Option<Displaced>, ClaimRefusal> {
        let now = Instant::now();
        let claim = self.claims.by_id.get(id);
        let before = claim.filter(|claim| now < claim.until && claim.node != node);
        let displaced = match before {
            Some(Claim {
                session: Some(session),
                node,
                ..
            }) => Some(Displaced {
                node: node.clone(),
                session: session.clone(),
            }),
            Some(Claim { session: None, .. }) => {
                return Err(Refusal::IdExists(id.to_string()).into());
            }
            None => None,
        };
        let present = |id: &PersonId| self.roster.get(id).is_some();
        let people = self.roster.iter().filter(|person| !person.is_dummy());
        let taken = people.filter(|person| person.id() != id).count();
        let taken = taken.saturating_add(self.claims.joining(present, id));
        if limit.is_some_and(|limit| taken >= limit) {
            return Err(ClaimRefusal::Full);
        }
        self.claims.add(id, node, false)?;
        if let Some(claim) = self.claims.by_id.get_mut(id) {
            claim.session = Some(session.to_owned());
        }
        Ok(displaced)
    }

    /// Ends the claim of a client of this node, which joins now.
    pub fn take_claim(&mut self, id: &PersonId, session: &str) {
        let claim = self.claims.by_id.get(id);
        if claim.is_some_and(|it| it.node.is_empty() && it.session.as_deref() == Some(session)) {
            self.claims.by_id.remove(id);
        }
    }

    /// At the home of the room: lets a participant at another node begin to publish.
    pub fn claim_place(&mut self, id: &PersonId, node: &str) -> Result<(), Refusal> {
        if !self.publishes_elsewhere(id) {
            self.check_places(Some(id))?;
        }
        self.claims.add(id, node, true)
    }

    /// Notes whether a participant at another node is about to publish. It has a place then.
    pub fn connects_elsewhere(&mut self, id: &PersonId, is_connecting: bool) {
        match is_connecting {
            true => self.claims.connecting.insert(id.clone()),
            false => self.claims.connecting.remove(id),
        };
    }

    /// Removes a participant at another node who has this id, since the home of the room has given
    /// the id to a client of this node.
    pub fn yield_id(&mut self, id: &PersonId) {
        if self.roster.get(id).is_some_and(|it| it.is_elsewhere()) {
            // It is there.
            let _ = self.leave_elsewhere(id);
        }
    }

    fn publishes_elsewhere(&self, id: &PersonId) -> bool {
        self.publications.get(id).is_some() || self.claims.connecting.contains(id)
    }

    /// Checks that there is a place for one more publisher, here and at other nodes. `of` has none
    /// yet.
    pub(super) fn check_places(&self, of: Option<&PersonId>) -> Result<(), Refusal> {
        let publishing = |id: &PersonId| self.publications.get(id).is_some();
        if of.is_some_and(publishing) {
            return Ok(());
        }
        let claimed = self.claims.places(publishing, of);
        self.publications
            .check_limit(self.settings.publishers, claimed)
    }
}
