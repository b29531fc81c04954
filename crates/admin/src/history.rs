//! `history`: the last hour of the server, a value for each minute, for the dashboard. Janus has no
//! such request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portunus_core::{Gateway, Object};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

/// The interval of readings.
const READING: Duration = Duration::from_secs(2);
/// The readings of a minute.
const READINGS: usize = 30;
/// The minutes that are kept.
const MINUTES: usize = 60;

/// The load of the server at a moment, or the highest values of a minute.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    sessions: u64,
    peer_connections: u64,
    /// In bit/s.
    bits_in: u64,
    bits_out: u64,
    /// Of the busiest worker, from 0 to 1.
    core_share: f64,
    /// How late the latest worker was, in s.
    lag: f64,
}

impl Reading {
    fn of(gateway: &Gateway) -> Self {
        let counters = gateway.counters().snapshot();
        let workers = gateway.media().worker_stats();
        let highest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        Reading {
            sessions: counters.sessions,
            peer_connections: counters.peer_connections,
            bits_in: workers.iter().map(|it| it.received_bits).sum(),
            bits_out: workers.iter().map(|it| it.sent_bits).sum(),
            core_share: highest(&mut workers.iter().map(|it| it.core_share)),
            lag: highest(&mut workers.iter().map(|it| it.lag_max.as_secs_f64())),
        }
    }

    fn max(self, other: Self) -> Self {
        Reading {
            sessions: self.sessions.max(other.sessions),
            peer_connections: self.peer_connections.max(other.peer_connections),
            bits_in: self.bits_in.max(other.bits_in),
            bits_out: self.bits_out.max(other.bits_out),
            core_share: self.core_share.max(other.core_share),
            lag: self.lag.max(other.lag),
        }
    }
}

/// The last hour. The newest minute is the last one, and not over yet.
#[derive(Debug, Default)]
struct History {
    minutes: VecDeque<Reading>,
    /// The readings of the newest minute.
    readings: usize,
}

impl History {
    fn add(&mut self, reading: Reading) {
        match self.minutes.back_mut().filter(|_| self.readings < READINGS) {
            Some(minute) => {
                *minute = minute.max(reading);
                self.readings += 1;
            }
            None => {
                self.minutes.push_back(reading);
                self.readings = 1;
            }
        }
        while self.minutes.len() > MINUTES {
            self.minutes.pop_front();
        }
    }
}

/// The history, shared by requests and the task that adds to it.
#[derive(Debug, Default)]
pub(super) struct SharedHistory(Mutex<History>);

impl SharedHistory {
    /// Returns the members of the reply.
    pub(super) fn told(&self) -> Object {
        let history = self.lock();
        let list = |read: fn(&Reading) -> Value| history.minutes.iter().map(read).collect();
        let lists: [(&str, Value); 6] = [
            ("sessions", list(|it| json!(it.sessions))),
            ("peer_connections", list(|it| json!(it.peer_connections))),
            ("bits_in", list(|it| json!(it.bits_in))),
            ("bits_out", list(|it| json!(it.bits_out))),
            ("core_share", list(|it| json!(it.core_share))),
            ("lag_max", list(|it| json!(it.lag))),
        ];
        let lists = lists.into_iter();
        lists.fold(Object::new(), |told, (name, list)| told.with(name, list))
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the history of a server. It is followed for as long as somebody holds it.
pub(super) fn follow(gateway: &Gateway) -> Arc<SharedHistory> {
    let history = Arc::<SharedHistory>::default();
    tokio::spawn(read(gateway.clone(), Arc::downgrade(&history)));
    history
}

async fn read(gateway: Gateway, history: Weak<SharedHistory>) {
    let mut ticks = interval(READING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(history) = history.upgrade() else {
            return;
        };
        let reading = Reading::of(&gateway);
        history.lock().add(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sessions: u64) -> Reading {
        Reading {
            sessions,
            ..Reading::default()
        }
    }

    #[test]
    fn a_minute_has_its_highest_values_and_an_hour_is_kept() {
        let history = SharedHistory::default();
        for sessions in [3, 9, 4] {
            history.lock().add(at(sessions));
        }
        let told = Value::from(history.told());
        assert_eq!(told.get("sessions"), Some(&json!([9])));
        for minute in 0..70 {
            for _ in 0..READINGS {
                history.lock().add(at(minute));
            }
        }
        let minutes = history.lock().minutes.clone();
        assert_eq!(minutes.len(), MINUTES);
        assert_eq!(minutes.back().map(|it| it.sessions), Some(69));
    }
}
