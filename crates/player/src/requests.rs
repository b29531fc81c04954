//! What is wanted of a player while it plays.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;

/// Lets players stand still: one, or several together. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hold(Arc<watch::Sender<bool>>);

impl Default for Hold {
    /// One that holds nothing yet.
    fn default() -> Self {
        Hold(Arc::new(watch::Sender::new(false)))
    }
}

impl Hold {
    /// Lets its players stand still, or go on from there. A position can be gone to meanwhile.
    pub fn set(&self, hold: bool) {
        self.0
            .send_if_modified(|held| std::mem::replace(held, hold) != hold);
    }

    /// Whether its players stand still.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }
}

/// What is wanted of a player.
pub(crate) struct Requests {
    seeks: watch::Receiver<Duration>,
    holds: watch::Receiver<bool>,
}

/// What comes next.
pub(crate) enum Turn {
    Packet,
    Seek(Duration),
    /// Nobody wants anything any more.
    Over,
}

impl Requests {
    pub(crate) fn new(seeks: watch::Receiver<Duration>, hold: &Hold) -> Self {
        let mut holds = hold.0.subscribe();
        holds.mark_changed();
        Self { seeks, holds }
    }

    /// Waits until the file's time `at` is due, which is as much later as the file is held.
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
