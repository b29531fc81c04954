//! Passes what arrives from far ends to the sources of their legs.

use std::net::SocketAddr;
use std::time::Instant;

use super::{Legs, Place, Role};
use crate::ingest::Refused;
use crate::leg::{Datagram, NotTaken, RtcpFeedback};
use crate::sys::{ReceiveBatch, take_errors};
use crate::worker::guard::guarded;
use crate::worker::ingests::{Ingests, Intake};

/// The number of messages per recvmmsg call.
const MESSAGES: usize = 8;
/// The maximum number of datagrams per turn. The rest waits in the sockets, which take turns: a
/// flood takes nothing from others.
const DATAGRAMS_PER_TURN: usize = 64;
/// The maximum number of errors that are read at a time.
const ERRORS: usize = 64;

impl Legs {
    /// Takes what has arrived for legs. Returns whether there is more.
    pub(in crate::worker) fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        ingests: &mut Ingests,
        into: &mut Intake<'_>,
        now: Instant,
    ) -> bool {
        let mut budget = DATAGRAMS_PER_TURN;
        for _ in 0..self.ready.len() {
            if budget == 0 {
                break;
            }
            let Some(place) = self.ready.pop_front() else {
                break;
            };
            let more = self.receive_from(place, (batch, &mut budget), ingests, into, now);
            if more {
                self.ready.push_back(place);
            } else if let Some(leg) = self.slots.get_mut(place.leg) {
                leg.port(place.role).is_ready = false;
            }
            self.schedule(place.leg);
        }
        !self.ready.is_empty()
    }

    /// Reads a socket, up to the budget. Returns whether it may have more.
    fn receive_from(
        &mut self,
        place: Place,
        (batch, budget): (&mut ReceiveBatch, &mut usize),
        ingests: &mut Ingests,
        into: &mut Intake<'_>,
        now: Instant,
    ) -> bool {
        while let Some(leg) = self.slots.get_mut(place.leg) {
            let socket = &leg.port(place.role).socket;
            let received = batch.receive_up_to(socket, MESSAGES).unwrap_or(0);
            if received == 0 {
                // An error makes the socket readable like a datagram, and is reported once before
                // what arrived.
                let errors = match place.role {
                    Role::Rtp => take_errors(socket, ERRORS),
                    Role::Rtcp => 0,
                };
                for _ in 0..errors {
                    leg.state.had_error();
                }
                if errors == 0 {
                    return false;
                }
                *budget = budget.saturating_sub(1);
            }
            for message in batch.iter(received) {
                for datagram in message.data.chunks_mut(message.stride) {
                    *budget = budget.saturating_sub(1);
                    self.take(place, (message.remote, datagram), ingests, into, now);
                }
            }
            if (1..MESSAGES).contains(&received) {
                return false;
            }
            if *budget == 0 {
                return true;
            }
        }
        false
    }

    /// Takes a datagram of a socket.
    fn take(
        &mut self,
        place: Place,
        (from, datagram): (SocketAddr, &mut [u8]),
        ingests: &mut Ingests,
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        let Some(leg) = self.slots.get_mut(place.leg) else {
            return;
        };
        let ingest = leg.ingest;
        let taken = guarded(|| match place.role {
            Role::Rtp => leg.state.take_rtp(from, datagram, now),
            Role::Rtcp => {
                let told = leg.state.take_rtcp(from, datagram, false, now);
                told.map(Datagram::Rtcp)
            }
        });
        // After a fault of ours, the datagram is dropped.
        let taken = taken.unwrap_or(Err(NotTaken::Refused(Refused::Malformed)));
        match taken {
            Ok(Datagram::Packet(len)) => {
                if let Some(packet) = datagram.get_mut(..len) {
                    ingests.take(ingest, 0, (Some(from), packet), into, now);
                }
            }
            Ok(Datagram::Rtcp(told)) => self.take_feedback(place.leg, told, ingests, into, now),
            Ok(Datagram::Ignored) => {
                leg.state.status.incoming().ignore(now);
                into.counters.ingest_ignored();
            }
            Err(NotTaken::Stranger) => {
                leg.state.status.note_stranger();
                into.counters.ingest_refused(Refused::Foreign, 1);
            }
            Err(NotTaken::Refused(why)) => {
                ingests.refuse((ingest, None), Some(from), why, into.counters, now);
            }
        }
    }

    fn take_feedback(
        &mut self,
        slot: usize,
        told: RtcpFeedback,
        ingests: &Ingests,
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        if told.keyframe {
            self.want_keyframe(slot, into.graph);
        }
        self.send_again(slot, into.graph);
        if let Some(clock) = told.clock
            && let Some(leg) = self.slots.get(slot)
        {
            ingests.take_report((leg.ingest, 0), clock, into, now);
        }
    }
}
