//! The node's own entry on the bus.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Node, Op};
use crate::bus::{Bucket, Outcome, Write};
use crate::event::{Event, Output};
use crate::id::Epoch;
use crate::record::{NodeRecord, NodeState};

/// Between two writes.
pub(super) const INTERVAL: Duration = Duration::from_secs(3);

/// Without a confirmed write for this long, the node counts itself as unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(10);

/// Before a write that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The state of the node's own entry.
#[derive(Debug)]
pub(super) struct Beat {
    /// When the next write is due.
    next: Instant,
    is_in_flight: bool,
    /// The sequence number of the entry that there is.
    present: Option<u64>,
    /// The highest sequence number that was written by this run.
    written: u64,
    generation: u64,
    /// When the last confirmed write was sent.
    renewed: Option<Instant>,
    is_confirmed: bool,
}

impl Beat {
    pub(super) fn new(now: Instant) -> Self {
        Beat {
            next: now,
            is_in_flight: false,
            present: None,
            written: 0,
            generation: 0,
            renewed: None,
            is_confirmed: false,
        }
    }

    pub(super) const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    pub(super) const fn present(&self) -> Option<u64> {
        self.present
    }

    /// Returns when the last confirmed write was sent.
    pub(super) const fn renewed(&self) -> Option<Instant> {
        self.renewed
    }

    /// Has the entry written at once.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.next = now;
    }

    /// Begins to read the entries of a bucket of this generation.
    pub(super) fn reread(&mut self, generation: u64) {
        self.present = None;
        if generation != self.generation {
            (self.generation, self.written) = (generation, 0);
        }
    }

    /// Takes this node's entry. Returns whether a later run of this node has written it.
    pub(super) fn observe(&mut self, sequence: u64, epoch: Option<Epoch>, own: Epoch) -> bool {
        if self.present.is_some_and(|known| sequence < known) {
            return false;
        }
        let was_written = self.written > 0 && sequence > self.written;
        self.present = epoch.map(|_| sequence);
        match epoch {
            Some(epoch) if epoch == own => {
                self.written = self.written.max(sequence);
                false
            }
            Some(_) => was_written,
            None => false,
        }
    }
}

impl Node {
    /// Writes the node's entry when it is due, and notes when the bus was silent for too long.
    pub(super) fn tick_beat(&mut self, now: Instant) {
        let silent = self.beat.renewed.is_none_or(|at| {
            let since = now.saturating_duration_since(at);
            since >= UNCONFIRMED
        });
        if silent && self.beat.is_confirmed {
            self.beat.is_confirmed = false;
            self.outputs
                .push_back(Output::Event(Event::Confirmed(false)));
        }
        let is_due = now >= self.beat.next && !self.beat.is_in_flight;
        if !is_due || !self.bus_connected || !self.members.is_current() || self.is_outside {
            return;
        }
        let value = Bytes::from(self.own_record().to_value());
        let write = match self.beat.present {
            Some(sequence) => Write::Update(value, sequence),
            None => Write::Create(value),
        };
        self.beat.is_in_flight = true;
        self.beat.next = now + INTERVAL;
        let key = self.settings.id.as_str().to_owned();
        self.request(Bucket::Nodes, key, write, Op::Beat { sent: now });
    }

    pub(super) fn beat_written(&mut self, sent: Instant, outcome: Outcome, now: Instant) {
        self.beat.is_in_flight = false;
        match outcome {
            Outcome::Done(sequence) => {
                let own = self.settings.epoch;
                self.beat.observe(sequence, Some(own), own);
                self.beat.renewed = Some(sent);
                if !self.beat.is_confirmed {
                    self.beat.is_confirmed = true;
                    self.outputs
                        .push_back(Output::Event(Event::Confirmed(true)));
                }
            }
            Outcome::Conflict | Outcome::Unknown => {
                self.beat.next = self.beat.next.min(now + RETRY);
            }
        }
    }

    /// Returns what this node says of itself.
    pub(super) fn own_record(&self) -> NodeRecord {
        NodeRecord {
            epoch: self.settings.epoch,
            state: match self.is_draining {
                true => NodeState::Draining,
                false => NodeState::Serving,
            },
            versions: self.settings.versions,
            control: self.settings.control.clone(),
            relay: self.settings.relay.clone(),
            fingerprint: self.settings.fingerprint.clone(),
            region: self.settings.region.clone(),
            url: self.settings.urls.http.clone(),
            websocket_url: self.settings.urls.websocket.clone(),
            livekit_url: self.settings.urls.livekit.clone(),
            load: self.load,
        }
    }
}
