//! Decides what becomes of a home, from what the bus and the links say.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{FIRST_BUS, Node, Op};
use crate::bus::{Bucket, Write};
use crate::event::{Event, Output, Place, Unplaced};
use crate::id::{Epoch, NodeId, Revision};
use crate::key::HomeKey;
use crate::members::{Life, rank};
use crate::places::{Purpose, Role};
use crate::record::HomeRecord;
use crate::settings::WithoutBus;
use crate::wire::{About, Frame};

/// How long a home that came unasked stays without anybody, since others may still register.
const ADOPTED: Duration = Duration::from_secs(15);

/// How long a home waits before it looks again whether a node without a link is lost.
const LINGER: Duration = Duration::from_secs(1);

/// How long a deleted home has time to say that it has ended: the bus may be faster than the link.
const ENDING: Duration = Duration::from_secs(1);

/// The heirs of a home try one after the other.
const HEIR_STEP: Duration = Duration::from_millis(100);
const HEIR_LIMIT: Duration = Duration::from_secs(2);

/// Nodes that do not have it open delete a home that nobody has taken.
const ORPHAN: Duration = Duration::from_secs(5);
const ORPHAN_STEP: Duration = Duration::from_secs(1);
const ORPHAN_LIMIT: Duration = Duration::from_secs(30);

/// Before a write that failed, or a registration that was refused, is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// Above this share of its busiest worker a node lets others have new homes.
pub(super) const BUSY: f32 = 0.7;

/// The most homes that are handed over in a second.
const HANDOVERS: u32 = 50;

impl Node {
    pub(super) fn settle_all(&mut self, now: Instant) {
        for key in self.places.keys() {
            self.settle(&key, now);
        }
    }

    /// Looks at all homes, once the bus is there: some may be of nodes that are gone.
    pub(super) fn settle_everything(&mut self, now: Instant) {
        if self.bus_is_ready() {
            let lifeless = self
                .homes
                .iter()
                .filter(|(_, _, home)| self.life(&home.node, home.epoch, now) != Life::Alive);
            let keys: Vec<_> = lifeless.map(|(key, _, _)| key.clone()).collect();
            for key in keys {
                self.settle(&key, now);
            }
        }
        self.settle_all(now);
    }

    /// Looks at all homes that a node has, and at those that are to be decided.
    pub(super) fn settle_homes_of(&mut self, node: &NodeId, now: Instant) {
        let of_node = self.homes.iter().filter(|(_, _, home)| home.node == *node);
        let keys: Vec<_> = of_node.map(|(key, _, _)| key.clone()).collect();
        for key in keys {
            self.settle(&key, now);
        }
    }

    /// Decides what becomes of a home. It may be called at any time.
    pub(super) fn settle(&mut self, key: &HomeKey, now: Instant) {
        let home = self.homes.get(key);
        let found = home.and_then(|it| Some((it.revision, it.record.clone()?)));
        let (id, epoch) = (self.settings.id.clone(), self.settings.epoch);
        match found {
            Some((revision, record)) if record.is(&id, epoch) => {
                self.be_home(key, revision, now);
            }
            Some((revision, record)) => match self.life(&record.node, record.epoch, now) {
                Life::Alive => self.go_there(key, revision, &record, now),
                Life::Unknown(until) => {
                    self.go_there(key, revision, &record, now);
                    if let Some(until) = until {
                        self.places.wake(key, until);
                    }
                }
                Life::Dead => self.inherit(key, revision, &record, now),
            },
            None => self.be_vacant(key, now),
        }
        self.tell(key, now);
    }

    /// This node is the home.
    fn be_home(&mut self, key: &HomeKey, revision: Revision, now: Instant) {
        let entry = self.places.entry(key, now);
        entry.home_dead = None;
        if entry.role != Role::Here(revision) {
            let was_wanted = entry.is_open || entry.is_claimed;
            let is_fresh = entry.role == Role::Seeking && was_wanted;
            entry.keep_until = if is_fresh { now } else { now + ADOPTED };
            entry.is_claimed = false;
            entry.role = Role::Here(revision);
            entry.registered.clear();
            entry.absent.clear();
            entry.outdate(None);
            self.forget_lost_owners(key);
        }
        // A node without a link that is not lost may still come back.
        let entry = self.places.entry(key, now);
        let links = &self.links;
        let is_alive = |node: &NodeId| links.get(node).is_some_and(|it| !it.is_lost && !it.is_up());
        if entry.absent.iter().any(is_alive) {
            entry.keep_until = entry.keep_until.max(now + LINGER);
        }
        if now < entry.keep_until {
            let until = entry.keep_until;
            self.places.wake(key, until);
        } else {
            for node in entry.absent.clone() {
                self.end_registration(key, &node);
            }
            self.drop_stale(key, None);
        }
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let (is_used, is_pinned) = (entry.is_used(now), entry.is_pinned);
        if entry.write.is_some() || !self.bus_is_ready() || self.waits(key, now) {
            return;
        }
        if !is_used {
            self.write_home(key, None, Some(revision), Purpose::End, now);
        } else if self.is_draining && !is_pinned {
            self.hand_over(key, revision, now);
        }
    }

    /// Gives a home to a registered node.
    fn hand_over(&mut self, key: &HomeKey, revision: Revision, now: Instant) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let fit = |node: &&NodeId| {
            let member = self.members.get(node);
            self.links.up(node).is_some() && member.is_some_and(|it| it.record.is_serving())
        };
        let fit: Vec<_> = entry.registered.iter().filter(fit).cloned().collect();
        let heir = fit
            .iter()
            .min_by_key(|node| crate::members::hash(key, node));
        let member = heir.and_then(|node| Some((node, self.members.get(node)?)));
        let Some((node, member)) = member else {
            return;
        };
        let record = HomeRecord {
            node: node.clone(),
            epoch: member.record.epoch,
            since: 0,
        };
        if self.handovers.take(now, HANDOVERS) {
            self.write_home(key, Some(record), Some(revision), Purpose::Handover, now);
        } else {
            let next = self.handovers.next();
            self.places.wake(key, next);
        }
    }

    /// Another node is the home.
    fn go_there(&mut self, key: &HomeKey, revision: Revision, home: &HomeRecord, now: Instant) {
        let Some(entry) = self.places.get_mut(key) else {
            return;
        };
        entry.home_dead = None;
        let is_known = matches!(&entry.role, Role::There(there)
            if there.revision == revision && home.is(&there.node, there.epoch));
        if !is_known {
            let has_given_it = entry.write == Some(Purpose::Handover);
            if matches!(entry.role, Role::Here(_)) && !has_given_it {
                self.counters.yields += 1;
            }
            entry.move_to(home, revision);
        }
        if !entry.is_open {
            // It was kept for others only, and these go to the new home.
            self.tell(key, now);
            if let Some(entry) = self.places.get(key)
                && entry.write.is_none()
            {
                self.places.remove(key);
            }
            return;
        }
        self.ask(key);
    }

    /// The home is dead: a node that has it open takes it, or some node deletes it.
    fn inherit(&mut self, key: &HomeKey, revision: Revision, home: &HomeRecord, now: Instant) {
        let is_open = self.places.get(key).is_some_and(|it| it.is_open);
        let noticed = self.places.get(key).and_then(|it| it.home_dead);
        if is_open {
            self.go_there(key, revision, home, now);
        }
        if !self.bus_is_ready() {
            return;
        }
        let serving = self.members.iter().filter(|(_, it)| it.record.is_serving());
        let place = rank(key, &self.settings.id, serving.map(|(id, _)| id));
        let wait = match is_open {
            true => HEIR_STEP.saturating_mul(place).min(HEIR_LIMIT),
            false => ORPHAN + ORPHAN_STEP.saturating_mul(place).min(ORPHAN_LIMIT),
        };
        let late = if self.is_draining {
            HEIR_LIMIT
        } else {
            Duration::ZERO
        };
        let entry = self.places.entry(key, now);
        let dead = noticed.unwrap_or(now);
        entry.home_dead = Some(dead);
        if entry.write.is_some() {
            return;
        }
        let at = (dead + wait + late).max(entry.retry.unwrap_or(now));
        if now < at {
            self.places.wake(key, at);
        } else if is_open {
            let own = self.own_home();
            self.write_home(key, Some(own), Some(revision), Purpose::Takeover, now);
        } else {
            self.write_home(key, None, Some(revision), Purpose::End, now);
        }
    }

    /// There is no home.
    fn be_vacant(&mut self, key: &HomeKey, now: Instant) {
        let Some(entry) = self.places.get_mut(key) else {
            self.homes.forget(key);
            return;
        };
        entry.home_dead = None;
        if let Role::There(there) = &entry.role {
            let link = self.links.up(&there.node);
            let is_linked = link.is_some_and(|link| link.epoch == Some(there.epoch));
            // A home with registered nodes is deleted only after its end, so it is not claimed yet.
            if entry.is_open && there.is_registered && is_linked {
                let until = *entry.end_until.get_or_insert(now + ENDING);
                if now < until {
                    return self.places.wake(key, until);
                }
            }
            entry.role = Role::Seeking;
            entry.end_until = None;
            entry.outdate(None);
        }
        if entry.write.is_some() {
            return;
        }
        if !entry.is_used(now) {
            self.places.remove(key);
            self.homes.forget(key);
            return;
        }
        if self.is_outside {
            entry.role = Role::Seeking;
            return;
        }
        let is_pinned = entry.is_pinned;
        if self.bus_is_ready() {
            if !self.waits(key, now) {
                let home = match is_pinned {
                    true => self.own_home(),
                    false => self.pick_home(),
                };
                self.write_home(key, Some(home), None, Purpose::Claim, now);
            }
        } else if self.bus_is_away(now)
            && self.settings.without_bus == WithoutBus::Local
            && let Some(entry) = self.places.get_mut(key)
            && entry.role == Role::Seeking
        {
            entry.role = Role::Here(Revision::LOCAL);
        }
    }

    /// Returns whether the bus is away, and not only about to be connected for the first time.
    fn bus_is_away(&self, now: Instant) -> bool {
        let was_there = self.beat.renewed().is_some();
        !self.bus_connected && (was_there || now >= self.started + FIRST_BUS)
    }

    /// Returns whether a write has to wait, because one has just failed.
    fn waits(&mut self, key: &HomeKey, now: Instant) -> bool {
        let retry = self.places.get(key).and_then(|entry| entry.retry);
        match retry.filter(|at| now < *at) {
            Some(at) => {
                self.places.wake(key, at);
                true
            }
            None => false,
        }
    }

    fn own_home(&self) -> HomeRecord {
        HomeRecord {
            node: self.settings.id.clone(),
            epoch: self.settings.epoch,
            since: 0,
        }
    }

    /// Returns the home for something new: this node, or the least loaded one of its region if this
    /// one is busy or is being drained.
    fn pick_home(&self) -> HomeRecord {
        if !self.is_draining && self.load.worker <= BUSY {
            return self.own_home();
        }
        let others = self.members.iter().filter(|(id, member)| {
            let record = &member.record;
            let is_near = record.region == self.settings.region;
            is_near && record.is_serving() && self.links.up(id).is_some()
        });
        let least = others.min_by(|(_, a), (_, b)| {
            let (a, b) = (a.record.load.worker, b.record.load.worker);
            a.total_cmp(&b)
        });
        match least {
            Some((id, member)) if self.is_draining || member.record.load.worker < BUSY => {
                HomeRecord {
                    node: id.clone(),
                    epoch: member.record.epoch,
                    since: 0,
                }
            }
            _ => self.own_home(),
        }
    }

    /// Writes or deletes a home, if it is still as `known`.
    fn write_home(
        &mut self,
        key: &HomeKey,
        record: Option<HomeRecord>,
        known: Option<Revision>,
        purpose: Purpose,
        now: Instant,
    ) {
        let value = record.as_ref().map(|record| Bytes::from(record.to_value()));
        let write = match (value, known) {
            (Some(value), Some(known)) => Write::Update(value, known.sequence),
            (Some(value), None) => Write::Create(value),
            (None, Some(known)) => Write::Delete(known.sequence),
            (None, None) => return,
        };
        let op = Op::Home {
            key: key.clone(),
            record,
            generation: self.homes.at(0).generation,
            purpose,
        };
        self.request(Bucket::Homes, key.as_str().to_owned(), write, op);
        let entry = self.places.entry(key, now);
        entry.write = Some(purpose);
        entry.is_claimed = purpose == Purpose::Claim;
    }

    /// Takes the outcome of such a write: the new entry if it is written.
    pub(super) fn home_written(
        &mut self,
        key: &HomeKey,
        purpose: Purpose,
        written: Option<(Revision, Option<HomeRecord>)>,
        now: Instant,
    ) {
        if let Some(entry) = self.places.get_mut(key) {
            entry.write = None;
            entry.retry = written.is_none().then(|| now + RETRY);
            entry.is_claimed &= written.is_some();
        }
        let Some((revision, record)) = written else {
            self.settle(key, now);
            return;
        };
        match purpose {
            Purpose::Claim => self.counters.claims += 1,
            Purpose::Takeover => self.counters.takeovers += 1,
            Purpose::Handover => {
                self.counters.handovers += 1;
                // It is no yield, since this node has done it.
                if let (Some(entry), Some(home)) = (self.places.get_mut(key), &record) {
                    entry.move_to(home, revision);
                }
            }
            Purpose::End => {}
        }
        self.observe(key, revision, record, now);
        // The bus may have told of it before.
        self.settle(key, now);
    }

    /// The server does not need it any more, or it has ended for all.
    pub(super) fn release(&mut self, key: &HomeKey, ends: bool, now: Instant) {
        let Some(entry) = self.places.get_mut(key) else {
            return;
        };
        entry.is_open = false;
        entry.told = None;
        let own: Vec<_> = std::mem::take(&mut entry.own).into_keys().collect();
        match entry.role.clone() {
            Role::Here(revision) if ends => {
                entry.is_ended = true;
                let registered = std::mem::take(&mut entry.registered);
                entry.absent.clear();
                entry.others.clear();
                let about = About {
                    key: key.clone(),
                    revision,
                };
                for node in registered {
                    self.send(&node, Frame::Ended(about.clone()));
                }
            }
            Role::Here(_) => {
                for item in own {
                    self.share_own(key, item);
                }
            }
            Role::There(there) => {
                entry.others.clear();
                self.unregister(key, &there);
            }
            Role::Seeking => {}
        }
        self.settle(key, now);
    }

    /// Tells the server where something is at home, if that has changed.
    pub(super) fn tell(&mut self, key: &HomeKey, now: Instant) {
        let is_away = self.bus_is_away(now);
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let place = match &entry.role {
            _ if self.is_outside => Some(Place::Nowhere(Unplaced::NameTaken)),
            Role::Here(revision) => Some(Place::Here {
                revision: *revision,
            }),
            Role::There(there) => Some(Place::There {
                node: there.node.clone(),
                revision: there.revision,
                is_reachable: self.hears_up(&there.node, there.epoch),
            }),
            Role::Seeking if is_away => Some(Place::Nowhere(Unplaced::NoBus)),
            Role::Seeking => None,
        };
        let concerns = entry.is_open || matches!(entry.role, Role::Here(_)) || entry.told.is_some();
        if !concerns || entry.is_ended || place.is_none() || entry.told == place {
            return;
        }
        let Some(place) = place else {
            return;
        };
        if let Some(entry) = self.places.get_mut(key) {
            entry.told = Some(place.clone());
        }
        let key = key.clone();
        self.outputs
            .push_back(Output::Event(Event::Home { key, place }));
    }

    /// Returns whether there is a link to this run of a node.
    pub(super) fn hears_up(&self, node: &NodeId, epoch: Epoch) -> bool {
        let link = self.links.up(node);
        link.is_some_and(|link| link.epoch == Some(epoch))
    }
}
