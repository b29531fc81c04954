//! The event handlers of this server. This is the only place that names them.

use portunus_core::events::EventHandlerRegistration;
use portunus_events::{File, Gelf, Mqtt, Nanomsg, Nats, RabbitMq, WebSocket, Webhook};

/// All event handlers.
pub(crate) const EVENT_HANDLERS: &[EventHandlerRegistration] = &[
    EventHandlerRegistration::of::<Webhook>(),
    EventHandlerRegistration::of::<WebSocket>(),
    EventHandlerRegistration::of::<File>(),
    EventHandlerRegistration::of::<Gelf>(),
    EventHandlerRegistration::of::<Nanomsg>(),
    EventHandlerRegistration::of::<Mqtt>(),
    EventHandlerRegistration::of::<RabbitMq>(),
    EventHandlerRegistration::of::<Nats>(),
];
