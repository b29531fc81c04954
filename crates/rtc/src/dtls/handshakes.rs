//! The handshake of a connection, and those that other ClientHellos started.
//!
//! Somebody who knows the peer's address can send a ClientHello in the peer's name. The peer's own
//! has another random, so each random has a handshake, and the first complete one counts. A forged
//! one never completes, since it lacks the peer's certificate.

use std::collections::VecDeque;
use std::time::Instant;

use openssl::ssl::{SslContext, SslContextRef};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::DtlsError;
use super::handshake::{Handshake, Progress};
use super::randoms::Randoms;

/// The most handshakes besides the current one. Each takes some tens of KiB.
const MOST_OTHERS: usize = 2;

/// The handshakes in progress. Only the current one is answered.
#[derive(Debug)]
pub(crate) struct Handshakes {
    context: SslContext,
    role: DtlsRole,
    fingerprints: Vec<Fingerprint>,
    /// The handshake with the latest ClientHello. Only its flight is retransmitted.
    current: Handshake,
    /// The other handshakes, the oldest first.
    others: VecDeque<Handshake>,
}

impl Handshakes {
    /// Starts a handshake. Appends the client's first datagrams to `out`.
    pub(crate) fn start(
        context: &SslContextRef,
        role: DtlsRole,
        fingerprints: Vec<Fingerprint>,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<Self, DtlsError> {
        Ok(Self {
            context: context.to_owned(),
            role,
            current: Handshake::start(context, role, fingerprints.clone(), now, out)?,
            fingerprints,
            others: VecDeque::new(),
        })
    }

    /// Takes a datagram. Appends answers to `out`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> Result<Progress, DtlsError> {
        if self.role == DtlsRole::Server
            && let Some(random) = Randoms::of(datagram).client
        {
            self.answer(random, now)?;
            return self.current.receive(now, datagram, out);
        }
        if let Some(done) = self.offer_to_others(now, datagram, out) {
            return Ok(done);
        }
        let before = out.len();
        match (
            self.current.receive(now, datagram, out),
            self.others.pop_back(),
        ) {
            (Ok(progress), other) => {
                self.others.extend(other);
                Ok(progress)
            }
            (Err(_), Some(other)) => {
                // The peer gets no alert of a handshake that another one replaces.
                out.truncate(before);
                self.current = other;
                Ok(Progress::Pending)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Passes a datagram to the other handshakes. Returns the result of the one that completes.
    fn offer_to_others(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> Option<Progress> {
        let mut done = None;
        self.others.retain_mut(|other| {
            let mut answers = Vec::new();
            match other.receive(now, datagram, &mut answers) {
                Ok(Progress::Pending) => true,
                Ok(progress) => {
                    out.append(&mut answers);
                    done = Some(progress);
                    false
                }
                Err(_) => false,
            }
        });
        done
    }

    /// Makes the handshake with this ClientHello random the current one. Starts it if there is
    /// none.
    fn answer(&mut self, random: [u8; 32], now: Instant) -> Result<(), DtlsError> {
        if self.current.client_random().is_none_or(|own| own == random) {
            return Ok(());
        }
        let of = |other: &Handshake| other.client_random() == Some(random);
        let known = self.others.iter().position(of);
        let next = match known.and_then(|at| self.others.remove(at)) {
            Some(known) => known,
            None => {
                let fingerprints = self.fingerprints.clone();
                let none = &mut Vec::new();
                let next = Handshake::start(&self.context, self.role, fingerprints, now, none)?;
                next.since(&self.current)
            }
        };
        if self.others.len() >= MOST_OTHERS {
            self.others.pop_front();
        }
        let former = std::mem::replace(&mut self.current, next);
        self.others.push_back(former);
        Ok(())
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.current.poll_timeout()
    }

    /// Retransmits the last flight if it is time, or fails after the deadline.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), DtlsError> {
        self.current.handle_timeout(now, out)
    }
}
