//! Checks at once whether the selected pair works when the peer is heard from another address.
//!
//! The agent checks a working pair every 5 s. That is too rare to notice that the peer has moved,
//! as it does when a NAT gives it another port or a phone changes from Wi-Fi to a mobile network.

use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use is::stun::{StunMessage, TransId};

use super::candidate::address;
use super::{Datagram, Ice, SelectedPair};
use crate::Path;
use crate::demux::{Transaction, stun_answer, stun_check};
use crate::path::TransportAddress;

/// The number of checks, and the pause between two of them.
const PROBES: usize = 4;
const PAUSE: Duration = Duration::from_millis(150);
/// The longest wait after the last check, besides the round trip of the pair.
const ANSWER: Duration = Duration::from_millis(300);
/// The time without checks after a pair has answered. Peers check spare pairs too.
const REST: Duration = Duration::from_secs(2);
/// The most bytes of a check.
const CHECK: usize = 512;

/// A doubt whether the selected pair works.
#[derive(Debug)]
struct Doubt {
    began: Instant,
    /// When the next check is sent, or the pair fails.
    next: Instant,
    /// Checks sent, or impossible to make.
    sent: usize,
}

/// The doubt, if there is one.
#[derive(Debug, Default)]
pub(super) struct Probe {
    doubt: Option<Doubt>,
    /// The checks of the last doubt. Media on the pair ends a doubt, often before the response.
    asked: Vec<Transaction>,
    /// No new doubt starts before this time.
    rest_until: Option<Instant>,
}

impl Probe {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.doubt.is_some()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.doubt.as_ref().map(|doubt| doubt.next)
    }

    /// Ends the doubt, since the selected pair works or is another one.
    pub(super) fn end(&mut self, now: Instant) {
        if self.doubt.take().is_some() {
            self.rest_until = Some(now + REST);
        }
    }
}

impl Ice {
    /// Takes note of an authentic message from `there`: the selected pair's address, or another
    /// one.
    pub(super) fn weigh(&mut self, there: TransportAddress, now: Instant) {
        let Some(pair) = self.selected.filter(|_| !self.agent.ice_lite()) else {
            return;
        };
        if pair.peer() == there {
            return self.probe.end(now);
        }
        let rests = self.probe.rest_until.is_some_and(|until| now < until);
        if self.probe.doubt.is_none() && !rests {
            self.probe.asked.clear();
            self.probe.doubt = Some(Doubt {
                began: now,
                next: now,
                sent: 0,
            });
        }
    }

    /// Takes a response to one of the checks. Returns whether it is one. Its path has been
    /// verified.
    pub(super) fn take_probe_answer(&mut self, datagram: &[u8], path: Path, now: Instant) -> bool {
        let is_ours = |transaction| self.probe.asked.contains(&transaction);
        if !stun_answer(datagram).is_some_and(is_ours) {
            return false;
        }
        let is_authentic = self.remote.as_ref().is_some_and(|remote| {
            StunMessage::parse(datagram)
                .is_ok_and(|message| message.verify(remote.pwd.as_bytes(), sha1))
        });
        if is_authentic && self.selected.is_some_and(|pair| pair.peer() == path.peer()) {
            // It also renews consent (RFC 7675 section 5.1).
            self.alive = self.alive.map(|_| now);
            self.probe.end(now);
        }
        is_authentic
    }

    /// Sends the next check that is due, or leaves a pair that has answered none.
    pub(super) fn run_probe(&mut self, now: Instant) {
        let Some(doubt) = &self.probe.doubt else {
            return;
        };
        let Some(pair) = self.selected else {
            return self.probe.end(now);
        };
        if now < doubt.next {
            return;
        }
        if doubt.sent < PROBES {
            return self.send_probe(pair, now);
        }
        let began = doubt.began;
        self.probe.end(now);
        self.leave_silent_pair(pair, began, now);
    }

    /// Leaves the selected pair, which has been silent since `began`, if another one works.
    /// Otherwise it is kept, since it may recover.
    fn leave_silent_pair(&mut self, pair: SelectedPair, began: Instant, now: Instant) {
        let since = now.saturating_duration_since(began);
        let heard = self.sources.heard_within(since + PAUSE, now);
        let heard: Vec<TransportAddress> = heard.filter(|there| *there != pair.peer()).collect();
        if !heard.iter().any(|there| self.is_valid(*there)) {
            return;
        }
        // Other pairs that fell silent with it are not tried one after the other.
        let is_dead = |there: &TransportAddress| !heard.contains(there) && self.is_valid(*there);
        let remotes = self.agent.remote_candidates().map(|c| address(&c));
        let mut dead: Vec<TransportAddress> = remotes.filter(is_dead).collect();
        if !dead.contains(&pair.peer()) {
            dead.push(pair.peer());
        }
        self.leave(&dead, now);
    }

    fn send_probe(&mut self, pair: SelectedPair, now: Instant) {
        let check = self.check(pair);
        let round_trip = self.rtt().unwrap_or_default();
        let Some(doubt) = &mut self.probe.doubt else {
            return;
        };
        doubt.sent += 1;
        doubt.next = match doubt.sent == PROBES {
            true => now + ANSWER + round_trip,
            false => now + PAUSE,
        };
        let Some((transaction, bytes)) = check else {
            return;
        };
        self.probe.asked.push(transaction);
        let path = Path::from(&pair);
        self.checks.note(transaction, path);
        self.out.push_back(Datagram { path, bytes });
    }

    /// Returns a check for the peer of a pair.
    fn check(&self, pair: SelectedPair) -> Option<(Transaction, Vec<u8>)> {
        let remote = self.remote.as_ref()?;
        let local = self.locals.iter().find(|it| it.base == pair.local)?;
        let mut candidates = self.agent.local_candidates();
        let priority = candidates.find(|it| it.addr() == local.address)?.prio();
        let username = format!("{}:{}", remote.ufrag, self.local_ufrag());
        let controls = self.agent.controlling();
        let check = StunMessage::binding_request(
            &username,
            TransId::new(),
            controls,
            self.tie_breaker,
            priority,
            false,
        );
        let mut bytes = vec![0; CHECK];
        let len = check.to_bytes(Some(remote.pwd.as_bytes()), &mut bytes, sha1);
        bytes.truncate(len.ok()?);
        Some((stun_check(&bytes)?, bytes))
    }
}

fn sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
    let mut context = hmac::Context::with_key(&key);
    for part in parts {
        context.update(part);
    }
    let mut sum = [0; 20];
    let tag = context.sign();
    for (to, from) in sum.iter_mut().zip(tag.as_ref()) {
        *to = *from;
    }
    sum
}
