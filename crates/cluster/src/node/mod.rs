//! The state machine of a node.
//!
//! Its parts own their state: [`Members`] the nodes on the bus, [`Homes`] the homes on the bus,
//! [`Links`] the links and what waits for them, [`Places`] what is open here. The files beside this
//! one are the steps: `beat` keeps the node's own entry, `settling` decides what becomes of a home,
//! `linking` keeps the links, `detours` the paths through third nodes, `hearing` decides who is
//! lost, `sharing` registers at homes and shares items, `sending` chooses what is sent next.

mod beat;
mod detours;
mod hearing;
mod linking;
mod report;
mod sending;
mod settling;
mod sharing;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::bus::{Bucket, BusEvent, BusRequest, Entry, OpId, Outcome, Write};
use crate::counters::Counters;
use crate::event::{Event, Output};
use crate::homes::{Homes, Observed};
use crate::id::{Epoch, NodeId, Revision};
use crate::key::HomeKey;
use crate::links::{Links, Pace};
use crate::members::{Life, Members};
use crate::places::{Places, Purpose};
use crate::record::{HomeRecord, Load, NodeRecord};
use crate::settings::NodeSettings;
use crate::wire::{MAX_ITEM, MAX_PAYLOAD};

use beat::Beat;
pub use report::Sizes;

/// How long new things wait for the first connection to the bus before they are refused.
const FIRST_BUS: Duration = Duration::from_secs(5);

/// Between two looks at the links.
const TICK: Duration = Duration::from_millis(250);

/// The most items of this node in one room: 10,000 resources, and what their keeper says besides.
const MAX_ITEMS: usize = 10_016;

/// Something that the server wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// Find the home of something, or become it.
    Open(HomeKey),
    /// As `Open`, for something that only this node can have. If it gets a home, that is this node.
    Claim(HomeKey),
    /// It is no longer needed here. At the home it stays while other nodes have it open.
    Release(HomeKey),
    /// It has ended for all. Only its home may say so; elsewhere this does what `Release` does.
    End(HomeKey),
    /// Set an item of this node: a member, a source.
    Set {
        /// Of what.
        key: HomeKey,
        /// Its name.
        item: String,
        /// Its value.
        value: Bytes,
    },
    /// Remove an item of this node.
    Remove {
        /// Of what.
        key: HomeKey,
        /// Its name.
        item: String,
    },
    /// Send a message: to the home, or from the home to a registered node, or to all of them.
    Message {
        /// About what.
        key: HomeKey,
        /// To whom, at the home. `None` means all. Elsewhere it goes to the home.
        to: Option<NodeId>,
        /// The content.
        payload: Bytes,
    },
    /// Send a message about no room to a node to which there is a link. Otherwise it is dropped.
    Direct {
        /// To whom.
        to: NodeId,
        /// The purpose, as the server numbers it.
        channel: u32,
        /// The content.
        payload: Bytes,
    },
    /// Begin to drain, or undo that: no new homes, and those that there are go to other nodes.
    Drain(bool),
    /// The load, for the node's entry.
    Load(Load),
    /// Leave the cluster for good, because the server ends.
    Leave,
}

/// A demand cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// The name or the content is too long.
    #[error("too long for the cluster: names have 512 bytes at most, contents 63,488")]
    Long,
    /// There are too many items.
    #[error("a room has 10,000 items of a node at most")]
    Many,
    /// It is not open here.
    #[error("it is not open on this node")]
    NotOpen,
}

/// What a request to the bus is for.
#[derive(Debug, Clone)]
enum Op {
    Beat {
        sent: Instant,
    },
    Farewell,
    Home {
        key: HomeKey,
        record: Option<HomeRecord>,
        generation: u64,
        purpose: Purpose,
    },
}

/// The state machine of a node.
#[derive(Debug)]
pub struct Node {
    settings: NodeSettings,
    started: Instant,
    /// When it was last called.
    entered: Instant,
    load: Load,
    is_draining: bool,
    /// Whether it is outside the cluster for good.
    is_outside: bool,
    bus_connected: bool,
    beat: Beat,
    members: Members,
    homes: Homes,
    links: Links,
    /// What the other nodes were told of who is heard.
    heard: BTreeMap<NodeId, Epoch>,
    /// The number of the last path that this node has opened.
    next_path: u64,
    places: Places,
    ops: BTreeMap<OpId, Op>,
    next_op: u64,
    registrations: Pace,
    handovers: Pace,
    outputs: VecDeque<Output>,
    counters: Counters,
    ticked: Instant,
}

impl Node {
    /// Returns a node that knows nobody yet.
    pub fn new(settings: NodeSettings, now: Instant) -> Self {
        Node {
            next_path: settings.epoch.0,
            settings,
            started: now,
            entered: now,
            load: Load::default(),
            is_draining: false,
            is_outside: false,
            bus_connected: false,
            beat: Beat::new(now),
            members: Members::default(),
            homes: Homes::default(),
            links: Links::default(),
            heard: BTreeMap::new(),
            places: Places::default(),
            ops: BTreeMap::new(),
            next_op: 0,
            registrations: Pace::new(now),
            handovers: Pace::new(now),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            ticked: now,
        }
    }

    /// Returns its settings.
    pub fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    /// Returns its counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns whether the bus has confirmed this node within 10 s.
    pub fn is_confirmed(&self) -> bool {
        self.beat.is_confirmed()
    }

    /// Has another certificate from now on, which its entry on the bus names.
    pub fn certified(&mut self, fingerprint: String, now: Instant) {
        self.settings.fingerprint = fingerprint;
        self.beat.hurry(now);
    }

    /// Returns the next thing to do or to know.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when [`Node::tick`] has to be called next.
    pub fn deadline(&self) -> Instant {
        let tick = self.ticked + TICK;
        let next = self.places.next_timer().map_or(tick, |at| at.min(tick));
        next.max(self.entered)
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Instant) {
        self.enter(now);
        self.ticked = now;
        self.tick_beat(now);
        self.tick_links(now);
        for node in self.members.expired(now) {
            self.settle_homes_of(&node, now);
        }
        for key in self.places.due(now) {
            self.settle(&key, now);
        }
        let startup = self.started + FIRST_BUS;
        if !self.bus_connected && now >= startup && now < startup + TICK + TICK {
            self.settle_all(now);
        }
    }

    /// Takes what comes from the bus.
    pub fn bus_event(&mut self, event: BusEvent, now: Instant) {
        self.enter(now);
        match event {
            BusEvent::Connected => self.bus_connected = true,
            BusEvent::Lost => {
                self.bus_connected = false;
                self.members.bus_lost();
                self.homes.bus_lost();
                self.settle_all(now);
            }
            BusEvent::Snapshot { bucket, generation } => match bucket {
                Bucket::Nodes => {
                    self.members.reread();
                    self.beat.reread(generation);
                }
                Bucket::Homes => self.homes.reread(generation),
            },
            BusEvent::Entry(entry) => self.entry(entry, now),
            BusEvent::Current(Bucket::Nodes) => {
                self.members.reread_ends(now);
                self.tick_beat(now);
                self.dial_members(now);
                self.settle_everything(now);
            }
            BusEvent::Current(Bucket::Homes) => {
                for key in self.homes.reread_ends() {
                    self.settle(&key, now);
                }
                self.settle_everything(now);
            }
            BusEvent::Written { id, outcome } => self.written(id, outcome, now),
        }
    }

    /// Takes what the server wants.
    pub fn demand(&mut self, demand: Demand, now: Instant) -> Result<(), DemandError> {
        self.enter(now);
        match demand {
            Demand::Open(key) => self.open(&key, false, now),
            Demand::Claim(key) => self.open(&key, true, now),
            Demand::Release(key) => self.release(&key, false, now),
            Demand::End(key) => self.release(&key, true, now),
            Demand::Set { key, item, value } => {
                if item.len() > MAX_ITEM || value.len() > MAX_PAYLOAD {
                    return Err(DemandError::Long);
                }
                let entry = self.places.get_mut(&key).filter(|it| it.is_open);
                let entry = entry.ok_or(DemandError::NotOpen)?;
                if entry.own.len() >= MAX_ITEMS && !entry.own.contains_key(&item) {
                    return Err(DemandError::Many);
                }
                entry.own.insert(item.clone(), value);
                self.share_own(&key, item);
            }
            Demand::Remove { key, item } => {
                let entry = self.places.get_mut(&key).ok_or(DemandError::NotOpen)?;
                if entry.own.remove(&item).is_some() {
                    self.share_own(&key, item);
                }
            }
            Demand::Message { key, to, payload } => {
                if payload.len() > MAX_PAYLOAD {
                    return Err(DemandError::Long);
                }
                self.send_message(&key, to.as_ref(), payload)?;
            }
            Demand::Direct {
                to,
                channel,
                payload,
            } => {
                if payload.len() > MAX_PAYLOAD {
                    return Err(DemandError::Long);
                }
                let frame = crate::wire::Frame::Direct { channel, payload };
                self.send(&to, frame);
            }
            Demand::Drain(on) => {
                if std::mem::replace(&mut self.is_draining, on) != on {
                    self.beat.hurry(now);
                    self.tick_beat(now);
                    self.settle_all(now);
                }
            }
            Demand::Load(load) => self.load = load,
            Demand::Leave => self.leave(now),
        }
        Ok(())
    }

    /// The server needs something, which stays at this node if `is_pinned`.
    fn open(&mut self, key: &HomeKey, is_pinned: bool, now: Instant) {
        let entry = self.places.entry(key, now);
        entry.is_ended = false;
        entry.is_pinned = is_pinned;
        if !std::mem::replace(&mut entry.is_open, true) {
            self.replay_items(key);
        }
        self.settle(key, now);
    }

    /// Notes the time of a call. After a stall links get time anew.
    fn enter(&mut self, now: Instant) {
        let idle = now.saturating_duration_since(self.entered);
        self.entered = now.max(self.entered);
        self.forgive_silence(idle, now);
    }

    fn entry(&mut self, entry: Entry, now: Instant) {
        match entry.bucket {
            Bucket::Nodes => self.node_entry(&entry, now),
            Bucket::Homes => self.home_entry(&entry, now),
        }
    }

    fn node_entry(&mut self, entry: &Entry, now: Instant) {
        let Ok(id) = NodeId::new(&entry.key) else {
            self.counters.bad_entries += 1;
            return;
        };
        let record = entry.value.as_deref().map(NodeRecord::parse);
        let record = match record {
            Some(Ok(record)) => Some(record),
            Some(Err(_)) => {
                self.counters.bad_entries += 1;
                return;
            }
            None => None,
        };
        if id == self.settings.id {
            let epoch = record.map(|record| record.epoch);
            let (seen, own) = (entry.sequence, self.settings.epoch);
            if self.beat.observe(seen, epoch, own) && !self.is_outside {
                self.outputs.push_back(Output::Event(Event::NameTaken));
                self.step_out(now);
            }
            return;
        }
        let Some(record) = record else {
            self.members.remove(&id);
            self.lose_if_down(&id, now);
            self.settle_homes_of(&id, now);
            return;
        };
        let known = self.members.get(&id).map(|it| &it.record);
        let same_run = known.is_some_and(|known| known.epoch == record.epoch);
        let same_state = known.is_some_and(|known| known.state == record.state);
        if !self.members.set(id.clone(), record, now) {
            self.counters.bad_entries += 1;
            return;
        }
        if self.members.is_current() && !(same_run && same_state) {
            self.dial_members(now);
            self.settle_homes_of(&id, now);
        }
    }

    fn home_entry(&mut self, entry: &Entry, now: Instant) {
        let Ok(key) = HomeKey::parse(&entry.key) else {
            self.counters.bad_entries += 1;
            return;
        };
        let record = match entry.value.as_deref().map(HomeRecord::parse) {
            Some(Ok(record)) => Some(record),
            Some(Err(_)) => {
                self.counters.bad_entries += 1;
                return;
            }
            None => None,
        };
        let revision = self.homes.at(entry.sequence);
        self.observe(&key, revision, record, now);
    }

    /// Takes what is said about a home.
    fn observe(
        &mut self,
        key: &HomeKey,
        revision: Revision,
        record: Option<HomeRecord>,
        now: Instant,
    ) {
        match self.homes.observe(key, revision, record) {
            Observed::Newer => self.settle(key, now),
            Observed::Known => {}
            Observed::TooMany => self.counters.bad_entries += 1,
        }
    }

    fn written(&mut self, id: OpId, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Done(_) => {}
            Outcome::Conflict => self.counters.bus_conflicts += 1,
            Outcome::Unknown => self.counters.bus_unknown += 1,
        }
        match self.ops.remove(&id) {
            Some(Op::Beat { sent }) => self.beat_written(sent, outcome, now),
            Some(Op::Home {
                key,
                record,
                generation,
                purpose,
            }) => {
                let written = match outcome {
                    Outcome::Done(sequence) => Some(Revision {
                        generation,
                        sequence,
                    }),
                    Outcome::Conflict | Outcome::Unknown => None,
                };
                self.home_written(&key, purpose, written.map(|it| (it, record)), now);
            }
            Some(Op::Farewell) | None => {}
        }
    }

    /// Sends a request to the bus.
    fn request(&mut self, bucket: Bucket, key: String, write: Write, op: Op) {
        self.next_op += 1;
        let id = OpId(self.next_op);
        self.counters.bus_writes += 1;
        self.ops.insert(id, op);
        self.outputs.push_back(Output::Bus(BusRequest {
            id,
            bucket,
            key,
            write,
        }));
    }

    /// Returns whether the bus is there, and all its entries are known.
    fn bus_is_ready(&self) -> bool {
        let is_current = self.members.is_current() && self.homes.is_current();
        self.bus_connected && is_current && !self.is_outside
    }

    /// Judges whether a run of a node exists.
    fn life(&self, node: &NodeId, epoch: Epoch, now: Instant) -> Life {
        if self.links.hears(node, epoch) {
            return Life::Alive;
        }
        if *node == self.settings.id {
            // Another run of this node, which this one has replaced.
            return Life::Dead;
        }
        self.members.life(node, epoch, now)
    }

    /// Leaves the cluster because the server ends: others need not wait for the expiry.
    fn leave(&mut self, now: Instant) {
        if self.is_outside {
            return;
        }
        if let Some(sequence) = self.beat.present()
            && self.bus_is_ready()
        {
            let key = self.settings.id.as_str().to_owned();
            self.request(Bucket::Nodes, key, Write::Delete(sequence), Op::Farewell);
        }
        self.step_out(now);
    }

    /// Ends all that ties this node to the cluster.
    fn step_out(&mut self, now: Instant) {
        self.is_outside = true;
        self.close_all_links(now);
        self.settle_all(now);
    }
}
