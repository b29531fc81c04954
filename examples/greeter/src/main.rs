//! A whole server with this plugin and this event handler only. The argument is its configuration,
//! with the sections `[websocket]`, `[greeter]` and `[events.printer]`. Without one it has its
//! defaults.

use std::error::Error;
use std::process::ExitCode;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, Transports, WebSocketConfig};
use portunus_audio::{AudioConfig, AudioThreads};
use portunus_core::configuration::{self, Configuration, Section};
use portunus_core::events::{EventBus, EventHandlerConfig, EventHandlerRegistration};
use portunus_core::media::{MediaConfig, MediaPlane};
use portunus_core::record::Recorder;
use portunus_core::{
    CoreConfig, Gateway, Networks, PluginConfig, PluginContext, Registration, ServerFacts, Services,
};
use portunus_greeter::{Greeter, Printer};
use portunus_telephony::Telephony;

/// A server may have any number of these.
const PLUGINS: &[Registration] = &[Registration::of::<Greeter>()];

/// And of these.
const EVENT_HANDLERS: &[EventHandlerRegistration] = &[EventHandlerRegistration::of::<Printer>()];

/// The sections of the file.
struct Config {
    websocket: WebSocketConfig,
    plugins: Vec<PluginConfig>,
    event_handlers: Vec<EventHandlerConfig>,
}

impl Config {
    fn read(file: &mut Section<'_>) -> Self {
        Config {
            websocket: file.section("websocket", WebSocketConfig::read),
            plugins: PLUGINS.iter().map(|plugin| plugin.read(file)).collect(),
            event_handlers: file.section("events", |section| {
                let handlers = EVENT_HANDLERS.iter();
                handlers.map(|handler| handler.read(section)).collect()
            }),
        }
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => String::new(),
    };
    match configuration::read(&text, Config::read) {
        Ok(config) => serve(config).await?,
        Err(mistakes) => {
            mistakes.iter().for_each(|mistake| eprintln!("{mistake}"));
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    let any_port = MediaConfig {
        port: 0,
        ..MediaConfig::default()
    };
    let (media, events) = MediaPlane::start(any_port)?;
    let bus = EventBus::new("Greeter", false);
    for handler in config.event_handlers {
        if handler.is_enabled() {
            handler.start(&bus).await?;
        }
    }
    let recorder = Recorder::default();
    let services = Services::default()
        .with(AudioThreads::new(
            AudioConfig::default(),
            media.clone(),
            recorder.clone(),
        ))
        .with(Telephony::default());
    let context = PluginContext {
        media: media.clone(),
        recorder,
        outgoing: Networks::default(),
        events: bus.clone(),
        services,
    };
    let mut plugins = Vec::new();
    for plugin in config.plugins {
        plugins.push(plugin.start(context.clone()).await?.plugin);
    }
    let facts = ServerFacts {
        events: bus.clone(),
        ..ServerFacts::default()
    };
    let gateway = Gateway::new(CoreConfig::default(), media, events, plugins, facts);
    let mut api = ApiConfig {
        websocket: config.websocket,
        ..ApiConfig::default()
    };
    api.http.enabled = false;
    api.admin.enabled = false;
    let transports = Transports::start(
        api,
        Administration::new(gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await?;
    let port = transports.ws().first().map_or(0, |address| address.port());
    println!("ws://localhost:{port} says hello; Ctrl-C ends it");
    tokio::signal::ctrl_c().await?;
    gateway.shutdown().await;
    transports.shutdown().await;
    bus.end().await;
    Ok(())
}
