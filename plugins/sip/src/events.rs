//! Events for clients.

use portunus_core::Object;

/// Makes the result of an event.
pub(crate) fn named_event(name: &str) -> Object {
    Object::new().with("event", name)
}
