//! The state shared by all clients of a TURN server.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::answers::Answers;
use crate::counters::{Counters, count, uncount};
use crate::nonces::Nonces;
use crate::places::{Full, Place, Places};
use crate::{Keychain, MediaAddresses, TurnTotals};

/// The current time on the monotonic and on the calendar clock.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For durations.
    pub instant: Instant,
    /// Seconds since 1970, for expiry.
    pub unix: u64,
}

impl Now {
    /// Reads the current time.
    pub fn read() -> Self {
        let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Now {
            instant: Instant::now(),
            unix: unix.as_secs(),
        }
    }
}

/// The limits of clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most allocations at a time.
    pub allocations: usize,
    /// The most allocations of one client address.
    pub allocations_per_address: usize,
    /// The longest lifetime of an allocation without a refresh.
    pub lifetime: Duration,
}

/// The shared state: secrets, addresses, limits and counters.
#[derive(Debug)]
pub struct Shared {
    pub(crate) keychain: Keychain,
    pub(crate) nonces: Nonces,
    pub(crate) answers: Answers,
    pub(crate) counters: Counters,
    pub(crate) lifetime: Duration,
    places: Arc<Places>,
    /// Locked only briefly, by requests: an allocation keeps the addresses that it last saw.
    media: Mutex<Arc<MediaAddresses>>,
}

impl Shared {
    /// Makes the state. `nonce_key` is a secret random number.
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

    /// Replaces the addresses that may be relayed to. An allocation uses them from its next request
    /// on.
    pub fn set_media(&self, media: MediaAddresses) {
        *self.media.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(media);
    }

    /// Returns the totals since the start.
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
