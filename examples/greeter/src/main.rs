//! A whole server with one plugin: ours. The argument is the port of its WebSocket, 8188 if there is none.

use std::error::Error;
use std::sync::Arc;

use portunus_api::{ApiConfig, Transports};
use portunus_core::media::{MediaConfig, MediaPlane};
use portunus_core::{CoreConfig, Gateway, ServerFacts};
use portunus_greeter::Greeter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut api = ApiConfig::default();
    api.http.enabled = false;
    let port = std::env::args().nth(1);
    api.websocket.port = port.as_deref().unwrap_or("8188").parse()?;
    let any_port = MediaConfig {
        port: 0,
        ..MediaConfig::default()
    };
    let (media, events) = MediaPlane::start(any_port)?;
    let (plugins, facts) = (vec![Arc::new(Greeter) as _], ServerFacts::default());
    let gateway = Gateway::new(CoreConfig::default(), media, events, plugins, facts);
    let transports = Transports::start(api, gateway.clone()).await?;
    let port = transports.ws().first().map_or(0, |address| address.port());
    println!("ws://localhost:{port} says hello; Ctrl-C ends it");
    tokio::signal::ctrl_c().await?;
    gateway.shutdown().await;
    transports.shutdown().await;
    Ok(())
}
