//! `[plugins]`, and the sections of the plugins themselves.

use portunus_core::PluginConfig;
use portunus_core::configuration::{PrintError, Section, Sections, keys_of};
use serde::{Deserialize, Serialize};

use crate::plugins::PLUGINS;

/// A plugin with its configuration.
#[derive(Debug)]
pub(crate) struct PluginSettings {
    name: &'static str,
    switch: Switch,
    /// The configuration in its own section.
    pub(crate) own: PluginConfig,
}

/// `[plugins.NAME]`: the common keys of plugins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Switch {
    enabled: bool,
    /// Whether it publishes events.
    events: bool,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            enabled: true,
            events: true,
        }
    }
}

impl PluginSettings {
    /// Reads the configurations of all plugins.
    pub(crate) fn read_all(file: &mut Section<'_>) -> Vec<Self> {
        let switches: Vec<Switch> = file.section("plugins", |plugins| {
            let names = PLUGINS.iter().map(|plugin| plugin.name());
            names
                .map(|name| plugins.section(name, Section::keys))
                .collect()
        });
        let settings = |(plugin, switch): (&portunus_core::Registration, Switch)| {
            let own = plugin.read(file);
            if !switch.enabled {
                file.listens_nowhere(plugin.name());
            }
            PluginSettings {
                name: plugin.name(),
                switch,
                own,
            }
        };
        PLUGINS.iter().zip(switches).map(settings).collect()
    }

    /// Adds the configurations of all plugins.
    pub(crate) fn add_all(settings: &[Self], sections: &mut Sections) -> Result<(), PrintError> {
        for plugin in settings {
            let section = format!("plugins.{}", plugin.name);
            sections.add(&section, keys_of(&plugin.switch)?, &[]);
        }
        for plugin in settings {
            sections.add(plugin.name, plugin.own.keys()?, plugin.own.live());
        }
        Ok(())
    }

    /// Its name in the configuration.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it publishes events.
    pub(crate) fn has_events(&self) -> bool {
        self.switch.events
    }

    /// Whether clients can attach to it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.switch.enabled
    }
}
