//! Statistics events: of the server, and of all PeerConnections in turn.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use portunus_media::PeerId;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Inner;
use crate::context::Context;
use crate::events::{EventKind, EventsConfig, ServerFigures};
use crate::handle::WeakHandle;

/// How often statistics of some PeerConnections are published, while there are subscribers.
const TICK: Duration = Duration::from_millis(100);

/// How often subscribers are checked for while there are none.
const IDLE: Duration = Duration::from_secs(1);

/// How long the media plane may take for the statistics of a tick.
const PATIENCE: Duration = Duration::from_secs(1);

/// Publishes statistics for as long as the core exists, unless they are disabled.
pub(super) async fn run(gateway: Weak<Inner>) {
    let config = gateway
        .upgrade()
        .map(|it| it.context.facts.statistics.clone());
    let Some(config) = config else {
        return;
    };
    if config.stats_period == 0 {
        return;
    }
    let period = Duration::from_secs(config.stats_period.into());
    let mut turns = Turns::new(&config, Instant::now());
    let mut update = Instant::now() + period;
    let mut wake = update;
    loop {
        sleep_until(wake).await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        let context = &gateway.context;
        let now = Instant::now();
        if now >= update {
            publish_server(context, config.stats_period);
            update = (update + period).max(now);
        }
        let wanted = context.facts.events.wants(EventKind::Media);
        context.media.want_last_stats(wanted);
        if wanted {
            publish_due(&gateway, &mut turns, now).await;
        } else {
            turns = Turns::new(&config, now);
        }
        let interval = turns.interval.as_millis() as u64;
        let shown = &context.counters.statistics_interval_ms;
        shown.store(if wanted { interval } else { 0 }, Ordering::Relaxed);
        wake = update.min(Instant::now() + if wanted { TICK } else { IDLE });
    }
}

impl Inner {
    /// Returns all peers with their handles.
    fn peers(&self) -> Vec<(PeerId, WeakHandle)> {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        let handles = sessions.iter().flat_map(|session| self.handles.of(session));
        handles
            .filter_map(|handle| Some((handle.peer()?, handle.downgrade())))
            .collect()
    }
}

fn publish_server(context: &Context, period: u32) {
    let counters = &context.counters;
    context.facts.events.update(ServerFigures {
        sessions: counters.sessions.load(Ordering::Relaxed),
        handles: counters.handles.load(Ordering::Relaxed),
        peer_connections: counters.peer_connections.load(Ordering::Relaxed),
        period,
    });
}

/// Publishes the statistics of the PeerConnections that are due.
async fn publish_due(gateway: &Inner, turns: &mut Turns<(PeerId, WeakHandle)>, now: Instant) {
    turns.begin(now, || {
        let mut all = gateway.peers();
        // In the same order each time, so that the intervals of each are equal.
        all.sort_unstable_by_key(|(peer, _)| *peer);
        all
    });
    let mut asked = turns.due(now);
    asked.retain(|(peer, handle)| handle.upgrade().is_some_and(|handle| handle.is_up(*peer)));
    let stats = gateway
        .context
        .media
        .line_stats(asked.iter().map(|(peer, _)| *peer));
    let Ok(stats) = timeout_at(now + PATIENCE, stats).await else {
        return;
    };
    for (peer, handle) in asked {
        if let (Some(stats), Some(handle)) = (stats.get(&peer), handle.upgrade()) {
            turns.spend(handle.publish_statistics_of(peer, stats));
        }
    }
}

/// The order of PeerConnections: each once per period, evenly spread, or over more time if there
/// would be too many events per second.
#[derive(Debug)]
struct Turns<T> {
    period: Duration,
    /// Events per second.
    rate: f64,
    /// Events that may be published now. Negative if the last tick published too many.
    budget: f64,
    budgeted: Instant,
    began: Option<Instant>,
    all: usize,
    waiting: Vec<T>,
    /// The time from one turn of a PeerConnection to its next.
    interval: Duration,
    is_stretched: bool,
}

impl<T> Turns<T> {
    fn new(config: &EventsConfig, now: Instant) -> Self {
        let period = Duration::from_secs(config.stats_period.into());
        Turns {
            period,
            rate: config.max_stats_rate.into(),
            budget: 0.0,
            budgeted: now,
            began: None,
            all: 0,
            waiting: Vec::new(),
            interval: period,
            is_stretched: false,
        }
    }

    /// Starts the next period if all had their turn and the present period is over.
    fn begin(&mut self, now: Instant, all: impl FnOnce() -> Vec<T>) {
        if !self.waiting.is_empty() {
            return;
        }
        self.began = match self.began {
            Some(began) if now < began + self.period => return,
            Some(began) => {
                self.interval = self.period.max(now - began);
                self.log_if_stretched();
                let next = began + self.period;
                // Less than a tick late: the next period starts on time.
                Some(if now < next + TICK { next } else { now })
            }
            None => Some(now),
        };
        self.waiting = all();
        // The next one is taken from the end.
        self.waiting.reverse();
        self.all = self.waiting.len();
    }

    fn log_if_stretched(&mut self) {
        let is_stretched = self.interval >= self.period + 2 * TICK;
        if is_stretched && !self.is_stretched {
            tracing::warn!(
                "events with statistics of each PeerConnection come every {:.1} s instead of {} s: there are so many of them \
                 that more would be beyond events.max_stats_rate",
                self.interval.as_secs_f64(),
                self.period.as_secs()
            );
        }
        // Logged once.
        self.is_stretched |= is_stretched;
    }

    /// Returns those that are due.
    fn due(&mut self, now: Instant) -> Vec<T> {
        let passed = now.saturating_duration_since(self.budgeted);
        self.budgeted = now;
        let most = self.rate * TICK.as_secs_f64() * 2.0;
        self.budget = (self.budget + self.rate * passed.as_secs_f64()).min(most);
        let Some(began) = self.began.filter(|_| self.budget > 0.0) else {
            return Vec::new();
        };
        let over = (now.saturating_duration_since(began) + TICK).as_secs_f64();
        let share = (over / self.period.as_secs_f64()).min(1.0);
        let done = self.all - self.waiting.len();
        let due = (share * self.all as f64).ceil() as usize;
        // Each publishes one event at least.
        let due = due.saturating_sub(done).min(self.budget.ceil() as usize);
        let left = self.waiting.len().saturating_sub(due);
        let mut due = self.waiting.split_off(left);
        due.reverse();
        due
    }

    /// Notes how many events were published.
    fn spend(&mut self, events: usize) {
        self.budget -= events as f64;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;

    fn turns(stats_period: u32, max_stats_rate: u32) -> (Turns<usize>, Instant) {
        let config = EventsConfig {
            stats_period,
            max_stats_rate,
            ..EventsConfig::default()
        };
        let now = Instant::now();
        (Turns::new(&config, now), now)
    }

    /// Ticks for so long with so many, each of which makes `events`; gives when each had its turns.
    fn run(
        (turns, start): (&mut Turns<usize>, Instant),
        seconds: u32,
        (count, events): (usize, usize),
    ) -> Vec<Vec<Duration>> {
        let mut had = vec![Vec::new(); count];
        for n in 1..=seconds * 10 {
            let now = start + TICK * n;
            turns.begin(now, || (0..count).collect());
            for it in turns.due(now) {
                if let Some(had) = had.get_mut(it) {
                    had.push(now - start);
                }
                turns.spend(events);
            }
        }
        had
    }

    #[tokio::test(start_paused = true)]
    async fn each_has_its_turn_in_each_period_and_all_are_spread_over_it() {
        let (mut turns, start) = turns(1, 10_000);
        let had = run((&mut turns, start), 10, (100, 3));
        for times in &had {
            assert_eq!(times.len(), 10, "{times:?}");
            let apart = times.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(apart.clone().all(|apart| apart == Duration::from_secs(1)));
        }
        let in_a_tick = |n| had.iter().filter(|times| times[2] == TICK * n).count();
        let most = (1..100).map(in_a_tick).max();
        assert!(most <= Some(11), "{most:?}");
        assert!(!turns.is_stretched);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_are_told_of_less_often() {
        let (mut turns, start) = turns(1, 100);
        let had = run((&mut turns, start), 60, (200, 2));
        // 400 events at 100 a second.
        for times in had {
            assert!((13..=16).contains(&times.len()), "{times:?}");
        }
        assert!(turns.is_stretched);
        assert!(
            turns.interval >= Duration::from_secs(3),
            "{:?}",
            turns.interval
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_makes_more_events_than_a_tick_may_have_is_made_up_for() {
        let (mut turns, start) = turns(1, 10);
        let had = run((&mut turns, start), 100, (2, 50));
        for times in had {
            assert!((9..=12).contains(&times.len()), "{times:?}");
        }
    }
}
