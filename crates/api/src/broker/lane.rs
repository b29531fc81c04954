//! The client of the core for all requesters at a broker, with the reply options of each request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portunus_brokers::Reply;
use portunus_core::{Client, Posted};

use crate::pace::{Api, Pace};

/// The most requests of the Janus API whose replies wait to be written.
const JANUS_AHEAD: usize = 256;

/// The most requests of the Admin API without a written reply.
const ADMIN_AHEAD: usize = 64;

/// The client of one API.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) client: Client,
    pub(super) pace: Pace,
    next: AtomicU64,
    /// The reply options of requests without a reply.
    wanted: Mutex<HashMap<u64, Reply>>,
}

impl Lane {
    pub(super) fn new(api: Api, client: Client) -> Self {
        let ahead = match api {
            Api::Janus => JANUS_AHEAD,
            Api::Admin => ADMIN_AHEAD,
        };
        Lane {
            client,
            pace: Pace::ahead(ahead),
            next: AtomicU64::new(0),
            wanted: Mutex::default(),
        }
    }

    /// Returns the client for a request with these reply options.
    pub(super) fn asking(&self, reply: Reply) -> Client {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.wanted().insert(number, reply);
        self.client.asking(number)
    }

    /// Returns the reply options of this message if it is a reply.
    pub(super) fn reply_of(&self, posted: &Posted) -> Option<Reply> {
        self.wanted().remove(&posted.answers?)
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<u64, Reply>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
