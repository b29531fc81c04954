//! How a server gets its plugins: each has a name, reads its own section of the configuration, and starts from it.

use std::any::Any;
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
    type Config: Configuration + Clone;

    /// Why it does not start.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Starts it.
    fn from_config(
        config: Self::Config,
        context: PluginContext,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Checks that [`ConfiguredPlugin::reload`] can apply a configuration, as far as that can be told before. It may block.
    fn check_reload(&self, _new: &Self::Config) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Applies a configuration while the plugin runs: the keys of [`Configuration::LIVE`], and no others. `running` is the one
    /// that was applied last.
    fn reload(
        &self,
        _running: &Self::Config,
        _new: &Self::Config,
    ) -> impl Future<Output = PluginReloaded> + Send {
        async { PluginReloaded::default() }
    }
}

/// What came of a configuration that a plugin has applied while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginReloaded {
    /// What is different now beside keys, such as `room 1234 created`.
    pub changed: Vec<String>,
    /// What could not be done, or has to wait.
    pub warnings: Vec<String>,
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

    /// The keys of its section that can change while it runs.
    pub fn live(&self) -> &'static [&'static str] {
        self.0.live()
    }

    /// Starts the plugin.
    pub async fn start(self, context: PluginContext) -> Result<StartedPlugin, PluginError> {
        self.0.start(context).await
    }
}

/// A plugin that runs.
pub struct StartedPlugin {
    /// The plugin.
    pub plugin: Arc<dyn Plugin>,
    running: Box<dyn Running>,
}

impl StartedPlugin {
    /// Checks that a configuration of this plugin can be applied. It may block.
    pub fn check_reload(&self, new: &PluginConfig) -> Result<(), PluginError> {
        self.running.check(new.0.as_ref())
    }

    /// Applies a configuration of this plugin, as far as that is possible while it runs.
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

type Starting = Pin<Box<dyn Future<Output = Result<StartedPlugin, PluginError>> + Send>>;
type Applying<'a> = Pin<Box<dyn Future<Output = PluginReloaded> + Send + 'a>>;

/// What is the same for the configurations of all plugins.
trait Start: Any + fmt::Debug + Send + Sync {
    fn live(&self) -> &'static [&'static str];
    fn keys(&self) -> Result<Table, PrintError>;
    fn probe(&self, probe: &mut Probe);
    fn start(self: Box<Self>, context: PluginContext) -> Starting;
}

/// What is the same for all plugins that run.
trait Running: Send + Sync {
    fn check(&self, new: &dyn Start) -> Result<(), PluginError>;
    fn reload(&mut self, new: Box<dyn Start>) -> Applying<'_>;
}

struct Configured<P: ConfiguredPlugin>(P::Config);

/// A plugin that runs, with the configuration that was applied last.
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
            // Sections are told apart by the plugins' names.
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
