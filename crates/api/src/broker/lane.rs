//! A client of the core, for all who ask by a broker, and what each of them wants of its replies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portunus_brokers::Reply;
use portunus_core::{Client, Posted};

use crate::pace::{Api, Pace};

/// Requests of the Janus API whose replies may wait to be written.
const JANUS_AHEAD: usize = 256;

/// The same of the Admin API. Those whose replies are not there yet are among them.
const ADMIN_AHEAD: usize = 64;

/// One API's client.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) client: Client,
    pub(super) pace: Pace,
    next: AtomicU64,
    /// What is wanted of the replies to the requests that have none yet.
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

    /// The client as it makes a request whose sender wants this of the reply.
    pub(super) fn asking(&self, reply: Reply) -> Client {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.wanted().insert(number, reply);
        self.client.asking(number)
    }

    /// What is wanted of this message, if it is a reply.
    pub(super) fn reply_of(&self, posted: &Posted) -> Option<Reply> {
        self.wanted().remove(&posted.answers?)
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<u64, Reply>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
