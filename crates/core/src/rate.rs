//! The rate of requests of each client.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ClientAddress;

/// Limits the requests of each client: a burst, and then a rate.
///
/// Each client has one point in time: when it will have made up for all its requests at the given
/// rate. Clients that have made up are forgotten, which bounds the number of entries.
#[derive(Debug)]
pub(crate) struct RequestRate {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The time that a request costs, or `None` if there is no limit.
    cost: Option<Duration>,
    /// How far ahead of the rate a client may be.
    ahead: Duration,
    clients: HashMap<ClientAddress, Instant>,
}

impl RequestRate {
    /// Allows `rate` requests per second and `burst` at once. A rate of 0 means no limit.
    pub(crate) fn new(rate: u32, burst: u32) -> Self {
        let (cost, ahead) = price(rate, burst);
        RequestRate {
            state: Mutex::new(State {
                cost,
                ahead,
                clients: HashMap::new(),
            }),
        }
    }

    /// Changes the rate and the burst. Earlier requests still count.
    pub(crate) fn set(&self, rate: u32, burst: u32) {
        let mut state = self.state();
        (state.cost, state.ahead) = price(rate, burst);
    }

    /// Counts a request. Returns false if the client exceeds its rate; then the request does not
    /// count.
    pub(crate) fn take(&self, client: ClientAddress) -> bool {
        let mut state = self.state();
        let Some(cost) = state.cost else {
            return true;
        };
        let now = Instant::now();
        let ahead = state.ahead;
        let made_up = state.clients.entry(client).or_insert(now);
        let next = (*made_up).max(now) + cost;
        let fits = next.duration_since(now) <= ahead;
        if fits {
            *made_up = next;
        }
        fits
    }

    /// Forgets clients that have made up for their requests.
    pub(crate) fn forget(&self) {
        let now = Instant::now();
        self.state().clients.retain(|_, made_up| *made_up > now);
    }

    #[cfg(test)]
    fn known(&self) -> usize {
        self.state().clients.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the cost of a request at a rate, and how far ahead of it a client may be.
fn price(rate: u32, burst: u32) -> (Option<Duration>, Duration) {
    let cost = (rate > 0).then(|| Duration::from_secs(1) / rate.max(1));
    let ahead = cost.unwrap_or_default().saturating_mul(burst.max(1));
    (cost, ahead)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ONE: ClientAddress = ClientAddress::Ipv4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: ClientAddress = ClientAddress::Ipv4(Ipv4Addr::new(192, 0, 2, 2));

    fn taken(rate: &RequestRate, client: ClientAddress, tries: usize) -> usize {
        (0..tries).filter(|_| rate.take(client)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_its_burst_and_then_its_rate() {
        let rate = RequestRate::new(10, 30);
        assert_eq!(taken(&rate, ONE, 100), 30);
        assert_eq!(taken(&rate, OTHER, 100), 30);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(taken(&rate, ONE, 100), 10);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(taken(&rate, ONE, 100), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_who_ask_no_more_are_forgotten() {
        let rate = RequestRate::new(10, 30);
        taken(&rate, ONE, 30);
        taken(&rate, OTHER, 10);
        tokio::time::advance(Duration::from_secs(2)).await;
        rate.forget();
        assert_eq!(rate.known(), 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        rate.forget();
        assert_eq!(rate.known(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_that_changes_holds_for_those_who_are_known() {
        let rate = RequestRate::new(10, 30);
        assert_eq!(taken(&rate, ONE, 100), 30);
        rate.set(0, 1);
        assert_eq!(taken(&rate, ONE, 100), 100);
        rate.set(1, 2);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(taken(&rate, ONE, 100), 2);
    }

    #[test]
    fn without_a_rate_nothing_is_refused() {
        let rate = RequestRate::new(0, 0);
        assert_eq!(taken(&rate, ONE, 10_000), 10_000);
        assert_eq!(rate.known(), 0);
    }
}
