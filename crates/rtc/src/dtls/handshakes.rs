//! The handshake of a connection, and those that other ClientHellos have begun.
//!
//! Somebody who knows the peer's address can send a ClientHello in the peer's name. The peer's own has another random, so each random
//! has a handshake, and the handshake that is completed first counts. A forged one is never: it lacks the peer's certificate.

use std::collections::VecDeque;
use std::time::Instant;

use openssl::ssl::{SslContext, SslContextRef};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::DtlsError;
use super::handshake::{Handshake, Progress};
use super::randoms::Randoms;

/// Handshakes beside the one that is answered. Each takes some tens of KiB.
const MOST_OTHERS: usize = 2;

/// Handshakes under way, of which one is answered.
#[derive(Debug)]
pub(crate) struct Handshakes {
    context: SslContext,
    role: DtlsRole,
    fingerprints: Vec<Fingerprint>,
    /// The one whose ClientHello came last: only its flight is sent again.
    current: Handshake,
    /// The oldest first.
    others: VecDeque<Handshake>,
}

impl Handshakes {
    /// Starts a handshake; the client's first datagrams are appended to `out`.
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

    /// Takes a datagram; answers are appended to `out`.
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

    /// Gives a datagram to those that are not answered. Returns what comes of the one that is done.
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

    /// From now on, answers the handshake whose ClientHello has this random, which begins if there is none.
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

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.current.poll_timeout()
    }

    /// Sends the last flight again if it is time to; gives up in the end.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), DtlsError> {
        self.current.handle_timeout(now, out)
    }
}
