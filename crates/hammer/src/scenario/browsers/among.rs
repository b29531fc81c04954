//! The load of hammer's own participants on the same server, besides the browsers.

use std::env;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::scenario::{ScenarioError, load};

/// A scenario to start.
#[derive(Debug)]
pub(super) struct Among {
    /// The words as they were given.
    pub(super) name: String,
    words: Vec<String>,
}

/// A scenario that runs. It ends with this value.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    status: Option<ExitStatus>,
}

/// Splits the words as a shell does. Unbalanced quotes give none.
pub(super) fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_default()
}

impl Among {
    /// Takes the words, which have been checked.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            words: words(name),
        }
    }

    /// Starts it against the server of `options`.
    pub(super) fn start(self, options: &load::Options) -> Result<Running, ScenarioError> {
        let start = || {
            let target = &options.target;
            let mut command = Command::new(env::current_exe()?);
            command.args(self.words).args(["--janus", &target.janus]);
            for (option, value) in [
                ("--api-secret", &target.api_secret),
                ("--token", &target.token),
            ] {
                if let Some(value) = value {
                    command.args([option, value]);
                }
            }
            if let Some(addresses) = options.addresses {
                command.args(["--addresses", &addresses.to_string()]);
            }
            command.stdin(Stdio::null()).spawn()
        };
        let child = start().map_err(ScenarioError::Among)?;
        Ok(Running {
            child,
            status: None,
        })
    }
}

impl Running {
    /// Returns whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Returns its status, if it failed.
    pub(super) fn failure(&self) -> Option<ExitStatus> {
        self.status.filter(|status| !status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
