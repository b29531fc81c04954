//! Limits of all phones together: those of transfers, and those of clients without the right to
//! administer.

use std::collections::HashMap;
use std::time::Duration;

use portunus_core::ClientAddress;
use tokio::time::Instant;

use crate::config::SipConfig;
use crate::refusal::Refusal;

const MINUTE: Duration = Duration::from_secs(60);

/// The maximum number of clients that are counted separately. All others share one count.
const MAX_CLIENTS: usize = 10_000;

/// The maximum number of transfers that peers ask for.
pub(crate) const MAX_TRANSFERS: usize = 1_000;

/// The maximum number of those from outside of calls. The rest is reserved for calls.
pub(crate) const MAX_OUTSIDE_TRANSFERS: usize = MAX_TRANSFERS / 2;

/// The recent requests of clients.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The maximum number of requests in a minute; 0 means no limit.
    rate: u32,
    clients: HashMap<Option<ClientAddress>, Spent>,
}

/// A leaky bucket.
#[derive(Debug, Clone, Copy)]
struct Spent {
    requests: f64,
    at: Instant,
}

impl Limits {
    pub(crate) fn new(config: &SipConfig) -> Self {
        Limits {
            rate: config.requests_per_minute,
            clients: HashMap::new(),
        }
    }

    /// Counts a request that begins something at a SIP server.
    pub(crate) fn spend(&mut self, client: ClientAddress, now: Instant) -> Result<(), Refusal> {
        if self.rate == 0 {
            return Ok(());
        }
        let rate = f64::from(self.rate);
        let is_known = self.clients.contains_key(&Some(client));
        let key = (is_known || self.clients.len() < MAX_CLIENTS).then_some(client);
        let spent = self.clients.entry(key).or_insert(Spent {
            requests: 0.0,
            at: now,
        });
        let passed = now.saturating_duration_since(spent.at).as_secs_f64();
        spent.requests = (spent.requests - passed * rate / MINUTE.as_secs_f64()).max(0.0);
        spent.at = now;
        if spent.requests + 1.0 > rate {
            return Err(Refusal::TooMany("too many requests from your address"));
        }
        spent.requests += 1.0;
        Ok(())
    }

    /// Forgets clients without requests for a minute.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.clients
            .retain(|_, spent| now.saturating_duration_since(spent.at) < MINUTE);
    }
}
