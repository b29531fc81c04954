//! How a server gets its plugins: each has a name, reads its own section of the configuration, and starts from it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portunus_audio::AudioThreads;
use portunus_config::{Configuration, PrintError, Probe, Section, Table, keys_of};
use portunus_media::MediaPlane;
use portunus_record::Recorder;

use crate::events::EventBus;
use crate::{Doors, Networks, Plugin};

/// A plugin that a server can start knowing only its type.
pub trait ConfiguredPlugin: Plugin + Sized {
    /// Its name in the configuration: its section is `[NAME]`, and `[plugins.NAME]` says whether it is enabled.
    const NAME: &'static str;

    /// What it can be told; `()` if that is nothing.
    type Config: Configuration;

    /// Why it does not start.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Starts it.
    fn from_config(
        config: Self::Config,
        context: PluginContext,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;
}

/// What a server gives a plugin to start with.
#[derive(Debug, Clone)]
pub struct PluginContext {
    /// The media plane, for what is not done through a handle.
    pub media: MediaPlane,
    /// What recordings are made with.
    pub recorder: Recorder,
    /// Where audio rooms run.
    pub audio: AudioThreads,
    /// Where requests may have the server send media to, or connect to.
    pub outgoing: Networks,
    /// Where it tells what does not concern a single handle, see [`EventBus::of_plugin`].
    pub events: EventBus,
    /// What plugins offer each other.
    pub doors: Doors,
}

/// A plugin in the list of those that a server has.
#[derive(Clone, Copy)]
pub struct Registration {
    name: &'static str,
    read: fn(&mut Section<'_>) -> PluginConfig,
}

impl Registration {
    /// The registration of this plugin.
    pub const fn of<P: ConfiguredPlugin>() -> Self {
        Registration {
            name: P::NAME,
            read: read::<P>,
        }
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Reads its section of a file; without keys of its own it has none.
    pub fn read(&self, file: &mut Section<'_>) -> PluginConfig {
        (self.read)(file)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.name).finish()
    }
}

fn read<P: ConfiguredPlugin>(file: &mut Section<'_>) -> PluginConfig {
    let config = match P::Config::HAS_KEYS {
        true => file.section(P::NAME, P::Config::read),
        false => P::Config::default(),
    };
    PluginConfig(Box::new(Configured::<P>(config)))
}

/// A plugin with its configuration, not started yet.
#[derive(Debug)]
pub struct PluginConfig(Box<dyn Start>);

impl PluginConfig {
    /// The keys of its section with their values.
    pub fn keys(&self) -> Result<Table, PrintError> {
        self.0.keys()
    }

    /// Looks for faults of its section that reading cannot find.
    pub fn probe(&self, probe: &mut Probe) {
        self.0.probe(probe);
    }

    /// Starts the plugin.
    pub async fn start(self, context: PluginContext) -> Result<Arc<dyn Plugin>, PluginError> {
        self.0.start(context).await
    }
}

/// Why a plugin does not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the plugin {name}: {error}")]
pub struct PluginError {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The plugin's own error.
    #[source]
    pub error: Box<dyn std::error::Error + Send + Sync>,
}

type Starting = Pin<Box<dyn Future<Output = Result<Arc<dyn Plugin>, PluginError>> + Send>>;

/// What is the same for the configurations of all plugins.
trait Start: fmt::Debug + Send + Sync {
    fn keys(&self) -> Result<Table, PrintError>;
    fn probe(&self, probe: &mut Probe);
    fn start(self: Box<Self>, context: PluginContext) -> Starting;
}

struct Configured<P: ConfiguredPlugin>(P::Config);

impl<P: ConfiguredPlugin> Start for Configured<P> {
    fn keys(&self) -> Result<Table, PrintError> {
        match P::Config::HAS_KEYS {
            true => keys_of(&self.0),
            false => Ok(Table::new()),
        }
    }

    fn probe(&self, probe: &mut Probe) {
        self.0.probe(probe);
    }

    fn start(self: Box<Self>, context: PluginContext) -> Starting {
        Box::pin(async move {
            match P::from_config(self.0, context).await {
                Ok(plugin) => Ok(Arc::new(plugin) as Arc<dyn Plugin>),
                Err(error) => Err(PluginError {
                    name: P::NAME,
                    error: error.into(),
                }),
            }
        })
    }
}

impl<P: ConfiguredPlugin> fmt::Debug for Configured<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
