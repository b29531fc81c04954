//! The configuration of the transports. The defaults are those of Janus.

mod http;
mod unix;
pub(crate) mod values;
mod websocket;
mod whip;

pub use http::HttpConfig;
pub use unix::{UnixConfig, UnixKind};
pub use values::FileMode;
pub use websocket::WebSocketConfig;
pub use whip::{IceServer, WhipAuthorization, WhipConfig};

use crate::{AdminApiConfig, MqttConfig, NatsConfig, RabbitConfig, TlsConfig};

/// The configuration of all transports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiConfig {
    /// HTTP: the Janus API by long polling, and the web pages.
    pub http: HttpConfig,
    /// WHIP and WHEP, on the ports of HTTP.
    pub whip: WhipConfig,
    /// WebSocket.
    pub websocket: WebSocketConfig,
    /// Unix socket.
    pub unix: UnixConfig,
    /// MQTT.
    pub mqtt: MqttConfig,
    /// RabbitMQ.
    pub rabbitmq: RabbitConfig,
    /// NATS.
    pub nats: NatsConfig,
    /// The Admin API, on ports of its own.
    pub admin: AdminApiConfig,
    /// The certificate for HTTPS and secure WebSocket.
    pub tls: TlsConfig,
}
