//! Sessions, handles, the plugin trait, events and configuration.
