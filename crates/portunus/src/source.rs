//! The options that say where a server's configuration is.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::{Announced, Config, ConfigError, DEFAULT_FILE};

/// The file of a server's configuration, and options that replace keys of it.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The configuration [default: /etc/portunus/portunus.toml if there is one, else the defaults
    /// of all keys]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// Media worker threads; 0 means one for each core [default: media.workers of the
    /// configuration, which is 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    workers: Option<u16>,

    /// Let all workers share the ports of media, as media.one_port of the configuration does
    #[arg(long)]
    one_port: bool,

    /// What clients are told instead of the machine's address, as in media.announced, whose place
    /// it takes; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    announce: Vec<Announced>,
}

impl Source {
    /// Reads the configuration of the server.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        let mut config = load(self.file().as_deref())?;
        if let Some(workers) = self.workers {
            config.media.workers = workers.into();
        }
        if self.one_port {
            config.media.one_port = true;
        }
        if !self.announce.is_empty() {
            config.reached.announced = self.announce.clone();
        }
        config.read_environment()?;
        Ok(config)
    }

    /// Returns the configuration's file, or `None` if the defaults are used.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        file(&self.config)
    }
}

/// Returns the file that was named, or the default one if it may exist.
pub(crate) fn file(named: &Option<PathBuf>) -> Option<PathBuf> {
    // A file that cannot be examined exists: the server must not run without its secrets.
    let may_exist = |file: &PathBuf| !matches!(file.try_exists(), Ok(false));
    let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(may_exist);
    named.clone().or_else(default)
}

/// Reads the configuration of a file. Without a file it has all defaults.
pub(crate) fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
    match file {
        Some(file) => Config::load(file),
        None => Ok(Config::default()),
    }
}
