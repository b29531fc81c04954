//! The names of rooms that clients of this node are about to make: the bus confirms each, so that no
//! two nodes make a room of one name.

use std::collections::HashMap;
use std::time::Duration;

use portunus_cluster::{HomeKey, Place};
use portunus_room::ClaimError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::Port;

/// How long a name is kept for its room.
const KEPT: Duration = Duration::from_secs(10);

/// The names that were claimed, and are not those of rooms yet.
#[derive(Debug, Default)]
pub(crate) struct NewNames(HashMap<HomeKey, NewName>);

#[derive(Debug)]
struct NewName {
    since: Instant,
    /// The client that waits for it.
    waiting: Option<oneshot::Sender<Result<(), ClaimError>>>,
    /// Where it is at home.
    place: Option<Place>,
}

impl NewNames {
    /// Claims a name for a client.
    pub(crate) async fn claim(
        &mut self,
        key: HomeKey,
        done: oneshot::Sender<Result<(), ClaimError>>,
        port: &Port,
    ) {
        if let Some(name) = self.0.get_mut(&key) {
            match &name.waiting {
                // That client has given up, so this one waits in its place.
                Some(former) if former.is_closed() => {
                    name.since = Instant::now();
                    name.waiting = Some(done);
                }
                // The client may be gone.
                _ => drop(done.send(Err(ClaimError::Taken))),
            }
            return;
        }
        let name = NewName {
            since: Instant::now(),
            waiting: Some(done),
            place: None,
        };
        self.0.insert(key.clone(), name);
        port.claim(&key).await;
    }

    /// The cluster says where a name is at home.
    pub(crate) async fn placed(&mut self, key: &HomeKey, place: &Place, port: &Port) {
        let Some(name) = self.0.get_mut(key) else {
            return;
        };
        let outcome = match place {
            Place::Here { .. } => Ok(()),
            Place::There { .. } => Err(ClaimError::Taken),
            Place::Nowhere(reason) => Err(ClaimError::Unknown(reason.to_string())),
        };
        name.place = Some(place.clone());
        let is_free = outcome.is_err();
        let waiting = name.waiting.take();
        let is_gone = waiting.is_some_and(|waiting| waiting.send(outcome).is_err());
        if is_free || is_gone {
            self.0.remove(key);
            port.release(key).await;
        }
    }

    /// There is a room of a name. Returns where the room is at home, if that is known.
    pub(crate) fn take(&mut self, key: &HomeKey) -> Option<Place> {
        self.0.remove(key)?.place
    }

    /// Releases names of which no rooms were made.
    pub(crate) async fn release_unused(&mut self, now: Instant, port: &Port) {
        let unused = self.0.extract_if(|_, name| name.since + KEPT <= now);
        for (key, _) in unused.collect::<Vec<_>>() {
            port.release(&key).await;
        }
    }
}
