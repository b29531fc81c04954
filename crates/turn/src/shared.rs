//! What all clients of a TURN server share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::answers::Answers;
use crate::counters::{Counters, count, uncount};
use crate::nonces::Nonces;
use crate::places::{Full, Place, Places};
use crate::{Keychain, MediaAddresses, TurnTotals};

/// A moment, by the clock that only runs forward and by that of the calendar.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For how long things last.
    pub instant: Instant,
    /// Seconds since 1970, for what expires.
    pub unix: u64,
}

impl Now {
    /// The present moment.
    pub fn read() -> Self {
        let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Now {
            instant: Instant::now(),
            unix: unix.as_secs(),
        }
    }
}

/// How much clients may have.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Allocations at a time.
    pub allocations: usize,
    /// The same of one client address.
    pub allocations_per_address: usize,
    /// How long an allocation lasts at most without being refreshed.
    pub lifetime: Duration,
}

/// What all clients share: secrets, addresses, limits and counters.
#[derive(Debug)]
pub struct Shared {
    pub(crate) keychain: Keychain,
    pub(crate) nonces: Nonces,
    pub(crate) answers: Answers,
    pub(crate) counters: Counters,
    pub(crate) lifetime: Duration,
    places: Arc<Places>,
    /// Locked for moments, by requests only: an allocation keeps the addresses that it last saw.
    media: Mutex<Arc<MediaAddresses>>,
}

impl Shared {
    /// `nonce_key` is a random number that nobody knows.
    pub fn new(
        keychain: Keychain,
        nonce_key: [u8; 32],
        limits: Limits,
        media: MediaAddresses,
        now: Instant,
    ) -> Self {
        Shared {
            keychain,
            nonces: Nonces::new(nonce_key),
            answers: Answers::new(now),
            counters: Counters::default(),
            lifetime: limits.lifetime,
            places: Places::new(limits.allocations, limits.allocations_per_address),
            media: Mutex::new(Arc::new(media)),
        }
    }

    /// Replaces the addresses that may be relayed to. An allocation follows with its next request.
    pub fn set_media(&self, media: MediaAddresses) {
        *self.media.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(media);
    }

    /// What was done since the start.
    pub fn totals(&self) -> TurnTotals {
        self.counters.totals()
    }

    pub(crate) fn media(&self) -> Arc<MediaAddresses> {
        let media = self.media.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&media)
    }

    pub(crate) fn take_place(&self, client: IpAddr) -> Result<Place, Full> {
        self.places.take(client)
    }

    pub(crate) fn allocation_made(&self) {
        count(&self.counters.allocations);
        count(&self.counters.allocated);
    }

    pub(crate) fn allocation_ended(&self) {
        uncount(&self.counters.allocations);
    }
}
