//! The keys that the configuration of all plugins with resources has.

use std::path::PathBuf;

use crate::{Ids, Limits};

/// The configuration of a plugin's resources. [`resource_config!`](crate::resource_config) makes
/// the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceKeys {
    /// The key of those who create resources, and see private ones.
    pub admin_key: Option<String>,
    /// The kind of ids.
    pub ids: Ids,
    /// The file of permanent resources. Without it there are none.
    pub save: Option<PathBuf>,
    /// The limits of what strangers make.
    pub limits: Limits,
    /// Wrong secrets that a client may show at once. 0: any number.
    pub max_wrong: u32,
}

/// Declares the section of a plugin with resources: a struct with the seven keys that all of these
/// sections have, and with the plugin's own fields, each with its default. In parentheses are the
/// default [`Limits`].
///
/// The struct has a `Default`, serde's traits, `fn resource_keys(&self) -> ResourceKeys` for
/// [`Resources::start`](crate::Resources::start), and `fn probe_save`, which
/// [`Configuration::probe`] is to call. The plugin implements [`Configuration`], and depends on
/// `serde`.
///
/// [`Configuration`]: portunus_core::configuration::Configuration
/// [`Configuration::probe`]: portunus_core::configuration::Configuration::probe
///
/// ```
/// use portunus_resources::{Limits, resource_config};
///
/// resource_config! {
///     /// The configuration of the plugin.
///     pub struct BoardConfig (Limits::default()) {
///         /// The number of strokes that a board keeps.
///         pub history: u32 = 1_000,
///     }
/// }
///
/// let config = BoardConfig { max_per_client: 2, ..BoardConfig::default() };
/// assert_eq!(config.resource_keys().limits.max_per_client, 2);
/// ```
#[macro_export]
macro_rules! resource_config {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Config:ident ($limits:expr) {
            $(
                $(#[$field_meta:meta])*
                $field_visibility:vis $field:ident : $Type:ty = $default:expr,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $visibility struct $Config {
            /// The key of those who create resources, and see private ones.
            #[serde(with = "::portunus_core::configuration::optional")]
            pub admin_key: Option<String>,
            /// Ids are text.
            pub string_ids: bool,
            /// The file of permanent resources. Without it there are none.
            #[serde(with = "::portunus_core::configuration::optional")]
            pub save: Option<::std::path::PathBuf>,
            /// The limit of resources of one client without the right to administer. 0 permits
            /// none.
            pub max_per_client: usize,
            /// The limit of resources of all such clients.
            pub max_from_clients: usize,
            /// The time after which an unused resource of such a client ends. 0 means never.
            #[serde(with = "::portunus_core::configuration::seconds")]
            pub unused_timeout: ::std::time::Duration,
            /// The limit of wrong secrets, pins and tokens of such a client at once for one
            /// resource, and of wrong admin keys. 0 means no limit.
            pub max_wrong: u32,
            $(
                $(#[$field_meta])*
                $field_visibility $field: $Type,
            )*
        }

        impl Default for $Config {
            fn default() -> Self {
                let limits: $crate::Limits = $limits;
                $Config {
                    admin_key: None,
                    string_ids: false,
                    save: None,
                    max_per_client: limits.max_per_client,
                    max_from_clients: limits.max_from_clients,
                    unused_timeout: limits.unused_timeout,
                    max_wrong: 20,
                    $($field: $default,)*
                }
            }
        }

        impl $Config {
            /// Returns the configuration of the plugin's resources.
            pub fn resource_keys(&self) -> $crate::ResourceKeys {
                $crate::ResourceKeys {
                    admin_key: self.admin_key.clone(),
                    ids: $crate::Ids::of(self.string_ids),
                    save: self.save.clone(),
                    limits: $crate::Limits {
                        max_per_client: self.max_per_client,
                        max_from_clients: self.max_from_clients,
                        unused_timeout: self.unused_timeout,
                    },
                    max_wrong: self.max_wrong,
                }
            }

            /// Checks that the file of permanent resources can be written.
            pub fn probe_save(&self, probe: &mut ::portunus_core::configuration::Probe) {
                if let Some(file) = &self.save {
                    probe.written_file("save", file);
                }
            }
        }
    };
}
