//! The registration of plugins: their names, their configurations, and their start.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portunus_config::{Configuration, PrintError, Probe, Section, Table, keys_of};
use portunus_media::MediaPlane;
use portunus_record::Recorder;

use crate::events::EventBus;
use crate::{Networks, Plugin, Services};

/// A plugin that a server can start knowing only its type.
pub trait ConfiguredPlugin: Plugin + Sized {
    /// Its name in the configuration: `[NAME]` is its section, and `[plugins.NAME]` enables it.
    const NAME: &'static str;

    /// Its configuration, or `()` if it has none.
    type Config: Configuration + Clone;

    /// An error that keeps it from starting.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Starts the plugin.
    fn from_config(
        config: Self::Config,
        context: PluginContext,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Checks that [`ConfiguredPlugin::reload`] can apply a configuration, as far as possible
    /// beforehand. May block.
    fn check_reload(&self, _new: &Self::Config) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Applies a configuration to the running plugin: only the keys of [`Configuration::LIVE`].
    /// `running` is the configuration that was applied last.
    fn reload(
        &self,
        _running: &Self::Config,
        _new: &Self::Config,
    ) -> impl Future<Output = PluginReloaded> + Send {
        async { PluginReloaded::default() }
    }
}

/// The outcome of a reload of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginReloaded {
    /// Changes besides keys, such as `room 1234 created`.
    pub changed: Vec<String>,
    /// Changes that failed or have to wait.
    pub warnings: Vec<String>,
}

/// The parts of the server that a plugin starts with.
#[derive(Debug, Clone)]
pub struct PluginContext {
    /// The media plane, for operations without a handle.
    pub media: MediaPlane,
    /// The recorder.
    pub recorder: Recorder,
    /// The networks that requests may make the server send media to, or connect to.
    pub outgoing: Networks,
    /// The bus for events without a handle, see [`EventBus::of_plugin`].
    pub events: EventBus,
    /// Services that the core does not know, such as the threads of audio rooms.
    pub services: Services,
}

/// A plugin in the list of a server.
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

    /// Reads its section of a file, if its configuration has keys.
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

/// A configured plugin that is not started yet.
#[derive(Debug)]
pub struct PluginConfig(Box<dyn Start>);

impl PluginConfig {
    /// Returns the keys of its section with their values.
    pub fn keys(&self) -> Result<Table, PrintError> {
        self.0.keys()
    }

    /// Finds faults in its section that reading does not find.
    pub fn probe(&self, probe: &mut Probe) {
        self.0.probe(probe);
    }

    /// Returns the keys of its section that can change while it runs.
    pub fn live(&self) -> &'static [&'static str] {
        self.0.live()
    }

    /// Starts the plugin.
    pub async fn start(self, context: PluginContext) -> Result<StartedPlugin, PluginError> {
        self.0.start(context).await
    }
}

/// A running plugin.
pub struct StartedPlugin {
    /// The plugin.
    pub plugin: Arc<dyn Plugin>,
    running: Box<dyn Running>,
}

impl StartedPlugin {
    /// Checks that a configuration of this plugin can be applied. May block.
    pub fn check_reload(&self, new: &PluginConfig) -> Result<(), PluginError> {
        self.running.check(new.0.as_ref())
    }

    /// Applies a configuration of this plugin as far as possible while it runs.
    pub async fn reload(&mut self, new: PluginConfig) -> PluginReloaded {
        self.running.reload(new.0).await
    }
}

impl fmt::Debug for StartedPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.plugin.info();
        f.debug_tuple("StartedPlugin").field(&info.package).finish()
    }
}

/// The error of a plugin that does not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the plugin {name}: {error}")]
pub struct PluginError {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The plugin's own error.
    #[source]
    pub error: Box<dyn std::error::Error + Send + Sync>,
}

type Starting = Pin<Box<dyn Future<Output = Result<StartedPlugin, PluginError>> + Send>>;
type Applying<'a> = Pin<Box<dyn Future<Output = PluginReloaded> + Send + 'a>>;

/// The common interface of all plugins' configurations.
trait Start: Any + fmt::Debug + Send + Sync {
    fn live(&self) -> &'static [&'static str];
    fn keys(&self) -> Result<Table, PrintError>;
    fn probe(&self, probe: &mut Probe);
    fn start(self: Box<Self>, context: PluginContext) -> Starting;
}

/// The common interface of all running plugins.
trait Running: Send + Sync {
    fn check(&self, new: &dyn Start) -> Result<(), PluginError>;
    fn reload(&mut self, new: Box<dyn Start>) -> Applying<'_>;
}

struct Configured<P: ConfiguredPlugin>(P::Config);

/// A running plugin with the configuration that was applied last.
struct Applied<P: ConfiguredPlugin> {
    plugin: Arc<P>,
    config: P::Config,
}

impl<P: ConfiguredPlugin> Start for Configured<P> {
    fn live(&self) -> &'static [&'static str] {
        P::Config::LIVE
    }

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
            let config = self.0.clone();
            let plugin = P::from_config(self.0, context).await;
            let plugin = Arc::new(plugin.map_err(failed::<P>)?);
            let running = Box::new(Applied {
                plugin: plugin.clone(),
                config,
            });
            Ok(StartedPlugin { plugin, running })
        })
    }
}

impl<P: ConfiguredPlugin> Running for Applied<P> {
    fn check(&self, new: &dyn Start) -> Result<(), PluginError> {
        let new: &dyn Any = new;
        match new.downcast_ref::<Configured<P>>() {
            Some(new) => self.plugin.check_reload(&new.0).map_err(failed::<P>),
            // Sections are matched by the plugins' names.
            None => Ok(()),
        }
    }

    fn reload(&mut self, new: Box<dyn Start>) -> Applying<'_> {
        let new: Box<dyn Any> = new;
        let new = new.downcast::<Configured<P>>().ok();
        Box::pin(async move {
            let Some(new) = new else {
                return PluginReloaded::default();
            };
            let reloaded = self.plugin.reload(&self.config, &new.0).await;
            self.config = new.0;
            reloaded
        })
    }
}

fn failed<P: ConfiguredPlugin>(error: P::Error) -> PluginError {
    PluginError {
        name: P::NAME,
        error: error.into(),
    }
}

impl<P: ConfiguredPlugin> fmt::Debug for Configured<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
