//! The requests to a player while it plays.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;

/// Pauses one player, or several together. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hold(Arc<watch::Sender<bool>>);

impl Default for Hold {
    /// Returns a hold that pauses nothing.
    fn default() -> Self {
        Hold(Arc::new(watch::Sender::new(false)))
    }
}

impl Hold {
    /// Pauses or resumes the players. They can seek while paused.
    pub fn set(&self, hold: bool) {
        self.0
            .send_if_modified(|held| std::mem::replace(held, hold) != hold);
    }

    /// Whether the players are paused.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }
}

/// The receiver of requests.
pub(crate) struct Requests {
    seeks: watch::Receiver<Duration>,
    holds: watch::Receiver<bool>,
}

/// The next step of a player.
pub(crate) enum Turn {
    Packet,
    Seek(Duration),
    /// The player was dropped.
    Over,
}

impl Requests {
    pub(crate) fn new(seeks: watch::Receiver<Duration>, hold: &Hold) -> Self {
        let mut holds = hold.0.subscribe();
        holds.mark_changed();
        Self { seeks, holds }
    }

    /// Waits until the file's time `at` is due. Pauses delay that.
    pub(crate) async fn turn(&mut self, clock: &mut Clock, at: Duration) -> Turn {
        loop {
            if !*self.holds.borrow_and_update() {
                tokio::select! {
                    biased;
                    Ok(()) = self.seeks.changed() => break Turn::Seek(*self.seeks.borrow_and_update()),
                    Ok(()) = self.holds.changed() => continue,
                    () = sleep_until(clock.due(at)) => break Turn::Packet,
                }
            }
            let since = Instant::now();
            let turn = tokio::select! {
                biased;
                Ok(()) = self.seeks.changed() => Some(Turn::Seek(*self.seeks.borrow_and_update())),
                changed = self.holds.changed() => changed.is_err().then_some(Turn::Over),
            };
            clock.stood_still(since.elapsed());
            if let Some(turn) = turn {
                break turn;
            }
        }
    }
}
