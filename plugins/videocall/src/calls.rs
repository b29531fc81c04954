//! The users of the plugin.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::mpsc;

use crate::far::{CallDemand, Crossing, Others};
use crate::users::Users;

/// The users of the plugin, as the server and the plugin share them; cheap to clone. Without a
/// cluster there are no other nodes.
///
/// In a cluster a name is registered at one node, and called from all. A user's node claims the
/// name for as long as the user is there. In a call between two nodes each side is a user at the
/// other node too, without a handle: its descriptions and data go there as messages, its media as
/// sources of the node.
#[derive(Clone, Default)]
pub struct VideoCalls(Arc<Inner>);

#[derive(Default)]
struct Inner {
    users: Mutex<Users>,
    others: OnceLock<Others>,
}

impl fmt::Debug for VideoCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VideoCalls").finish_non_exhaustive()
    }
}

impl VideoCalls {
    /// Begins to know other nodes. Returns what the plugin needs of the cluster, which has to be
    /// taken. Only the first call counts.
    pub fn begin(&self, crossing: Arc<dyn Crossing>) -> mpsc::Receiver<CallDemand> {
        let (others, demands) = Others::new(crossing);
        // A server is one node.
        let _ = self.0.others.set(others);
        demands
    }

    pub(crate) fn users(&self) -> MutexGuard<'_, Users> {
        self.0.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the other nodes, if there is a cluster.
    pub(crate) fn others(&self) -> Option<&Others> {
        self.0.others.get()
    }
}
