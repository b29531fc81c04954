//! Registers at homes, and shares items and messages.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::settling::RETRY;
use super::{DemandError, MAX_ITEMS, Node};
use crate::event::{Event, Output};
use crate::id::{NodeId, Revision};
use crate::key::HomeKey;
use crate::links::ItemName;
use crate::places::{Entry, Item, Purpose, Role, There};
use crate::record::HomeRecord;
use crate::wire::{About, Frame, KnownHome};

/// How long a home waits for a node whose link broke to register again.
const ABSENCE: Duration = Duration::from_secs(5);

impl Node {
    /// Asks the home to register this node, if there is a link and that is not asked yet.
    pub(super) fn ask(&mut self, key: &HomeKey) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let Role::There(there) = &entry.role else {
            return;
        };
        if there.is_registered || there.is_asked || !entry.is_open {
            return;
        }
        let (node, epoch) = (there.node.clone(), there.epoch);
        if self.hears_up(&node, epoch)
            && let Some(link) = self.links.up_mut(&node)
        {
            link.registers.insert(key.clone());
        }
    }

    /// Tells the home that this node has it no longer open.
    pub(super) fn unregister(&mut self, key: &HomeKey, there: &There) {
        if let Some(link) = self.links.up_mut(&there.node) {
            link.registers.remove(key);
            link.unsent.remove(key);
        }
        if there.is_registered || there.is_asked {
            let about = About {
                key: key.clone(),
                revision: there.revision,
            };
            self.send(&there.node, Frame::Unregister(about));
        }
    }

    /// Shares an item of this node that has changed.
    pub(super) fn share_own(&mut self, key: &HomeKey, name: String) {
        let owner = self.settings.id.clone();
        self.share(key, &ItemName { owner, name });
    }

    /// Shares an item that has changed: from the home with all others, elsewhere with the home.
    fn share(&mut self, key: &HomeKey, item: &ItemName) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let to: Vec<NodeId> = match &entry.role {
            Role::Here(_) => entry.registered.iter().cloned().collect(),
            Role::There(there) if there.is_registered && item.owner == self.settings.id => {
                vec![there.node.clone()]
            }
            Role::There(_) | Role::Seeking => Vec::new(),
        };
        for node in to.into_iter().filter(|node| *node != item.owner) {
            if let Some(link) = self.links.up_mut(&node) {
                link.share(key, [item.clone()]);
            }
        }
    }

    /// Has all items sent to a node that the other side does not have: as home those of all others,
    /// elsewhere the own ones.
    fn share_all(&mut self, key: &HomeKey, with: &NodeId) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let own = entry.own.keys().map(|name| ItemName {
            owner: self.settings.id.clone(),
            name: name.clone(),
        });
        let mut items: Vec<ItemName> = own.collect();
        if let Role::Here(_) = entry.role {
            for (owner, of) in entry.others.iter().filter(|(owner, _)| *owner != with) {
                // Old ones count until their owner says otherwise, or is gone.
                items.extend(of.0.keys().map(|name| ItemName {
                    owner: owner.clone(),
                    name: name.clone(),
                }));
            }
        }
        if let Some(link) = self.links.up_mut(with) {
            link.share(key, items);
            link.unsent.entry(key.clone()).or_default().sync = true;
        }
    }

    pub(super) fn send_message(
        &mut self,
        key: &HomeKey,
        to: Option<&NodeId>,
        payload: Bytes,
    ) -> Result<(), DemandError> {
        let entry = self.places.get(key).ok_or(DemandError::NotOpen)?;
        let revision = revision_of(entry).ok_or(DemandError::NotOpen)?;
        let nodes: Vec<NodeId> = match &entry.role {
            Role::Here(_) => {
                let all = entry.registered.iter();
                all.filter(|node| to.is_none_or(|to| to == *node))
                    .cloned()
                    .collect()
            }
            Role::There(there) => vec![there.node.clone()],
            Role::Seeking => Vec::new(),
        };
        for node in nodes {
            let about = About {
                key: key.clone(),
                revision,
            };
            let payload = payload.clone();
            self.send(&node, Frame::Message { about, payload });
        }
        Ok(())
    }

    /// Takes a frame about a room.
    pub(super) fn room_frame(&mut self, from: &NodeId, frame: Frame, now: Instant) {
        match frame {
            Frame::Register(about) => self.register(from, about, now),
            Frame::Registered(about) => self.registered(from, &about),
            Frame::Refused { about, home } => self.refused(from, &about, home, now),
            Frame::Unregister(about) => {
                if self.is_home_at(&about) {
                    self.forget_registration(&about.key, from, now);
                }
            }
            Frame::Item {
                about,
                owner,
                name,
                value,
            } => {
                if self.may_share(from, &about, &owner) {
                    self.set_item(&about.key, ItemName { owner, name }, value);
                } else {
                    self.counters.fenced_messages += 1;
                }
            }
            Frame::Synced(about) => self.synced(from, &about),
            Frame::Ended(about) => self.ended(from, &about, now),
            Frame::Message { about, payload } => {
                if self.is_home_of(from, &about) || self.has_registered(from, &about) {
                    self.outputs.push_back(Output::Event(Event::Message {
                        key: about.key,
                        from: from.clone(),
                        payload,
                    }));
                } else {
                    self.counters.fenced_messages += 1;
                }
            }
            Frame::Hello { .. }
            | Frame::Ping { .. }
            | Frame::Pong { .. }
            | Frame::Direct { .. }
            | Frame::Hears { .. }
            | Frame::Via(_) => {}
        }
    }

    /// A node wants to register here.
    fn register(&mut self, from: &NodeId, about: About, now: Instant) {
        let ends = |entry: &Entry| entry.is_ended || entry.write == Some(Purpose::End);
        let may = self.is_home_at(&about) && !self.places.get(&about.key).is_some_and(ends);
        if !may {
            self.counters.refused_registrations += 1;
            let home = self.homes.get(&about.key);
            let home = home.filter(|home| home.revision > about.revision);
            let home = home.and_then(|home| {
                let record = home.record.as_ref()?;
                Some(KnownHome {
                    revision: home.revision,
                    node: record.node.clone(),
                    epoch: record.epoch,
                })
            });
            return self.send(from, Frame::Refused { about, home });
        }
        let key = about.key.clone();
        if let Some(entry) = self.places.get_mut(&key) {
            entry.outdate(Some(from));
            let was_absent = entry.absent.remove(from);
            if entry.registered.insert(from.clone()) && !was_absent {
                self.outputs.push_back(Output::Event(Event::Registered {
                    key: key.clone(),
                    node: from.clone(),
                }));
            }
        }
        self.send(from, Frame::Registered(about));
        self.share_all(&key, from);
        if self.is_draining {
            self.settle(&key, now);
        }
    }

    /// The home has registered this node.
    fn registered(&mut self, from: &NodeId, about: &About) {
        if !self.is_home_of(from, about) {
            self.counters.fenced_messages += 1;
            return;
        }
        if let Some(entry) = self.places.get_mut(&about.key)
            && let Role::There(there) = &mut entry.role
        {
            there.is_registered = true;
            there.is_asked = false;
            // All items of the others follow.
            entry.outdate(None);
        }
        self.share_all(&about.key, from);
    }

    /// A node is not the home that this one takes it for.
    fn refused(&mut self, from: &NodeId, about: &About, home: Option<KnownHome>, now: Instant) {
        if !self.is_home_of(from, about) {
            return;
        }
        if let Some(Role::There(there)) = self.places.get_mut(&about.key).map(|it| &mut it.role) {
            there.is_registered = false;
            there.is_asked = false;
        }
        if let Some(home) = home
            && !self.homes.is_current()
        {
            // The bus cannot say so, so the node's word counts until it is back.
            let record = HomeRecord {
                node: home.node,
                epoch: home.epoch,
                since: 0,
            };
            self.observe(&about.key, home.revision, Some(record), now);
        }
        self.places.wake(&about.key, now + RETRY);
    }

    fn synced(&mut self, from: &NodeId, about: &About) {
        let key = &about.key;
        if self.is_home_of(from, about) {
            self.drop_stale(key, None);
            let event = Event::Accepted { key: key.clone() };
            self.outputs.push_back(Output::Event(event));
        } else if self.has_registered(from, about) {
            self.drop_stale(key, Some(from));
        } else {
            self.counters.fenced_messages += 1;
        }
    }

    fn ended(&mut self, from: &NodeId, about: &About, now: Instant) {
        if !self.is_home_of(from, about) {
            self.counters.fenced_messages += 1;
            return;
        }
        if let Some(entry) = self.places.get_mut(&about.key)
            && entry.is_open
        {
            let key = about.key.clone();
            self.outputs.push_back(Output::Event(Event::Ended { key }));
            entry.is_open = false;
            entry.told = None;
            entry.own.clear();
            self.settle(&about.key, now);
        }
    }

    /// Returns whether `from` is the home, at that revision.
    fn is_home_of(&self, from: &NodeId, about: &About) -> bool {
        let entry = self.places.get(&about.key);
        entry.is_some_and(|entry| {
            matches!(&entry.role, Role::There(there)
                if there.node == *from && there.revision == about.revision)
        })
    }

    /// Returns whether this node is the home, at that revision.
    fn is_home_at(&self, about: &About) -> bool {
        let entry = self.places.get(&about.key);
        entry.is_some_and(|entry| entry.role == Role::Here(about.revision)) && !self.is_outside
    }

    /// Returns whether `from` is registered at this home, at that revision.
    fn has_registered(&self, from: &NodeId, about: &About) -> bool {
        let entry = self.places.get(&about.key);
        self.is_home_at(about) && entry.is_some_and(|it| it.registered.contains(from))
    }

    /// Returns whether `from` may say what `owner` has.
    fn may_share(&self, from: &NodeId, about: &About, owner: &NodeId) -> bool {
        let of_others = *owner != self.settings.id;
        let by_home = of_others && self.is_home_of(from, about);
        by_home || (owner == from && self.has_registered(from, about))
    }

    fn set_item(&mut self, key: &HomeKey, item: ItemName, value: Option<Bytes>) {
        let Some(entry) = self.places.get_mut(key) else {
            return;
        };
        let items = entry.others.entry(item.owner.clone()).or_default();
        let news = match value.clone() {
            Some(value) => {
                if items.0.len() >= MAX_ITEMS && !items.0.contains_key(&item.name) {
                    self.counters.dropped_items += 1;
                    return;
                }
                let known = items.0.insert(
                    item.name.clone(),
                    Item {
                        value: value.clone(),
                        is_stale: false,
                    },
                );
                known.is_none_or(|known| known.value != value)
            }
            None => items.0.remove(&item.name).is_some(),
        };
        if items.0.is_empty() {
            entry.others.remove(&item.owner);
        }
        if news {
            self.item_event(key, &item, value);
        }
        // An item that came again was old before, so the others may lack it.
        if matches!(self.places.get(key).map(|it| &it.role), Some(Role::Here(_))) {
            self.share(key, &item);
        }
    }

    /// Tells the server of an item, if it has the room open.
    fn item_event(&mut self, key: &HomeKey, item: &ItemName, value: Option<Bytes>) {
        if !self.places.get(key).is_some_and(|entry| entry.is_open) {
            return;
        }
        self.outputs.push_back(Output::Event(Event::Item {
            key: key.clone(),
            node: item.owner.clone(),
            item: item.name.clone(),
            value,
        }));
    }

    /// Tells the server of all items that the others have.
    pub(super) fn replay_items(&mut self, key: &HomeKey) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let mut items = Vec::new();
        for (owner, of) in &entry.others {
            let owner = || owner.clone();
            let of = of.0.iter().map(|(name, item)| {
                let (owner, name) = (owner(), name.clone());
                (ItemName { owner, name }, item.value.clone())
            });
            items.extend(of);
        }
        for (item, value) in items {
            self.item_event(key, &item, Some(value));
        }
    }

    /// Removes items that did not come again.
    pub(super) fn drop_stale(&mut self, key: &HomeKey, of: Option<&NodeId>) {
        let Some(entry) = self.places.get_mut(key) else {
            return;
        };
        for (owner, name) in entry.take_stale(of) {
            let item = ItemName { owner, name };
            self.item_event(key, &item, None);
            self.share(key, &item);
        }
    }

    /// Ends a node's registration at this home, and decides whether that stays.
    fn forget_registration(&mut self, key: &HomeKey, node: &NodeId, now: Instant) {
        self.end_registration(key, node);
        self.settle(key, now);
    }

    /// Ends a node's registration at this home.
    pub(super) fn end_registration(&mut self, key: &HomeKey, node: &NodeId) {
        let Some(entry) = self.places.get_mut(key) else {
            return;
        };
        let was_registered = entry.registered.remove(node) || entry.absent.remove(node);
        for name in entry.take_items(node) {
            let item = ItemName {
                owner: node.clone(),
                name,
            };
            self.item_event(key, &item, None);
            self.share(key, &item);
        }
        if let Some(link) = self.links.get_mut(node) {
            link.unsent.remove(key);
        }
        if was_registered {
            self.outputs.push_back(Output::Event(Event::Unregistered {
                key: key.clone(),
                node: node.clone(),
            }));
        }
    }

    /// The home has come here: what nodes had that are lost is gone.
    pub(super) fn forget_lost_owners(&mut self, key: &HomeKey) {
        let Some(entry) = self.places.get(key) else {
            return;
        };
        let links = &self.links;
        let is_lost = |owner: &&NodeId| links.get(owner).is_none_or(|link| link.is_lost);
        let lost: Vec<NodeId> = entry.others.keys().filter(is_lost).cloned().collect();
        for owner in lost {
            self.end_registration(key, &owner);
        }
    }

    /// A node is lost: what it had is gone, where this node can tell.
    pub(super) fn forget_items(&mut self, node: &NodeId, now: Instant) {
        for key in self.places.keys() {
            let Some(entry) = self.places.get_mut(&key) else {
                continue;
            };
            match &entry.role {
                Role::Here(_) => self.forget_registration(&key, node, now),
                Role::There(there) if there.node == *node => {
                    for name in entry.take_items(node) {
                        let item = ItemName {
                            owner: node.clone(),
                            name,
                        };
                        self.item_event(&key, &item, None);
                    }
                    entry_is_old(self.places.get_mut(&key));
                }
                // The home says what others have.
                Role::There(_) | Role::Seeking => {}
            }
        }
    }

    /// The link to a node is gone: registrations have to be asked for again.
    pub(super) fn unlink(&mut self, node: &NodeId, now: Instant) {
        for key in self.places.keys() {
            let Some(entry) = self.places.get_mut(&key) else {
                continue;
            };
            if entry.registered.remove(node) {
                entry.absent.insert(node.clone());
                entry.outdate(Some(node));
                entry.keep_until = entry.keep_until.max(now + ABSENCE);
                let until = entry.keep_until;
                self.places.wake(&key, until);
                continue;
            }
            if let Role::There(there) = &mut entry.role
                && there.node == *node
            {
                there.is_registered = false;
                there.is_asked = false;
                self.tell(&key, now);
            }
        }
    }

    /// The link to a node is up: homes on it are asked, and it has time to register here again.
    pub(super) fn relink(&mut self, node: &NodeId, now: Instant) {
        for key in self.places.keys() {
            let Some(entry) = self.places.get_mut(&key) else {
                continue;
            };
            if entry.absent.contains(node) {
                entry.keep_until = entry.keep_until.max(now + ABSENCE);
                let until = entry.keep_until;
                self.places.wake(&key, until);
            }
            let entry = self.places.get(&key);
            let is_there =
                |entry: &Entry| matches!(&entry.role, Role::There(there) if there.node == *node);
            if entry.is_some_and(is_there) {
                self.settle(&key, now);
            }
        }
    }
}

fn entry_is_old(entry: Option<&mut Entry>) {
    if let Some(entry) = entry {
        entry.outdate(None);
    }
}

/// Returns the revision of the home that a node obeys.
pub(super) fn revision_of(entry: &Entry) -> Option<Revision> {
    match &entry.role {
        Role::Here(revision) => Some(*revision),
        Role::There(there) => Some(there.revision),
        Role::Seeking => None,
    }
}
