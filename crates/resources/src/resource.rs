//! A resource of a plugin.

use std::fmt::Debug;
use std::sync::Arc;

use crate::{Id, Written};

/// A resource of a plugin: a room or a mountpoint.
pub trait Resource: Debug + Send + Sync + 'static {
    /// Its description in the configuration.
    type Written: Written;

    /// The member of requests that names a resource, such as `room`.
    const MEMBER: &'static str;

    /// Returns whether this key of the configuration can change during use.
    fn is_editable(_key: &str) -> bool {
        false
    }

    /// Returns its id.
    fn id(&self) -> &Id;

    /// Returns its key in the configuration, see [`Written::key`].
    fn key(&self) -> Id {
        self.id().clone()
    }

    /// Applies the [editable](Resource::is_editable) values of `written`. It may be in use.
    fn apply(&self, _written: &Self::Written) {}

    /// Returns whether it is in lists for administrators only.
    fn is_private(&self) -> bool;

    /// Returns whether it is in use. Requests that name it count by themselves.
    fn is_used(&self) -> bool;

    /// Returns whether clients would lose it if it ended.
    fn has_clients(&self) -> bool {
        self.is_used()
    }

    /// Ends it as a request does, unless it is in use or has ended. Returns whether it did.
    fn end_unused(self: Arc<Self>) -> impl Future<Output = bool> + Send;
}
