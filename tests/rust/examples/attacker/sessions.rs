//! Sessions and PeerConnections that are created and left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::call::Call;
use crate::http::Http;
use crate::{ADDRESSES, Options, Tally, address};

/// Connections that create sessions, per address.
const MAKERS: usize = 4;

/// Creates sessions by HTTP as fast as possible, and does nothing with them.
pub async fn sessions(options: &Options) -> Tally {
    let left = Arc::new(AtomicUsize::new(options.sessions));
    let until = Instant::now() + options.time();
    let mut makers = JoinSet::new();
    for n in 0..MAKERS * ADDRESSES {
        let (left, server) = (left.clone(), options.http);
        makers.spawn(async move {
            let (mut held, mut refused) = (0, 0);
            let mut http = Http::connect(address(n), server).await.unwrap();
            let one = |left: usize| left.checked_sub(1);
            while Instant::now() < until && left.fetch_update(Relaxed, Relaxed, one).is_ok() {
                match http.session().await {
                    Ok(Some(_)) => held += 1,
                    Ok(None) => {
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    Err(_) => return (held, refused + 1),
                }
            }
            (held, refused)
        });
    }
    tally(makers.join_all().await, until).await
}

/// Creates PeerConnections that offer their addresses, and never check.
pub async fn peers(options: &Options) -> Tally {
    let until = Instant::now() + options.time();
    let mut makers = JoinSet::new();
    for n in 0..ADDRESSES {
        let server = options.http;
        makers.spawn(async move {
            let (mut held, mut refused) = (0, 0);
            while Instant::now() < until {
                match Call::negotiate(address(n), server).await {
                    Some(_) => held += 1,
                    None => {
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
            (held, refused)
        });
    }
    tally(makers.join_all().await, until).await
}

async fn tally(made: Vec<(u64, u64)>, until: Instant) -> Tally {
    tokio::time::sleep_until(until.into()).await;
    let (held, refused): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    let (held, refused) = (held.iter().sum(), refused.iter().sum());
    Tally {
        sent: held + refused,
        held,
        refused,
        ..Tally::default()
    }
}
