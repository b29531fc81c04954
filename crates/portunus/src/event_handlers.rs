//! The event handlers of this server. This is the only place that names them.

use portunus_core::events::EventHandlerRegistration;

/// All event handlers.
pub(crate) const EVENT_HANDLERS: &[EventHandlerRegistration] = &[];
