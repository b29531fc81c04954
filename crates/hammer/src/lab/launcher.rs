//! Starts a program inside a network namespace and on given cores: `hammer lab` puts it before each
//! command that it starts.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::machine::{pin_to, raise_descriptor_limit};

/// What to start, and where.
#[derive(Debug, Args)]
pub struct Options {
    /// The network namespace, as a file of /proc or /run/netns
    #[arg(long, value_name = "FILE")]
    pub netns: PathBuf,
    /// The cores that it may use
    #[arg(long, value_name = "N,N", value_delimiter = ',', required = true)]
    pub cores: Vec<usize>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The reason why nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InsideError {
    /// The namespace does not exist, or may not be entered.
    #[error("the namespace {path} cannot be entered: {source}")]
    Namespace {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The cores do not exist, or may not be used.
    #[error("the cores {cores:?} cannot be used: {source}")]
    Cores {
        /// The cores.
        cores: Vec<usize>,
        /// The system's error.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error("{} cannot be run: {source}", program.display())]
    Program {
        /// The program.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
}

/// Replaces this process by the program. Returns only if that fails.
pub fn run(options: Options) -> InsideError {
    let Options {
        netns: path,
        cores,
        command,
    } = options;
    let namespace = File::open(&path).and_then(|file| {
        setns(file, CloneFlags::CLONE_NEWNET)?;
        Ok(())
    });
    if let Err(source) = namespace {
        return InsideError::Namespace { path, source };
    }
    if let Err(source) = pin_to(&cores) {
        return InsideError::Cores { cores, source };
    }
    // For thousands of sockets. A server that gets fewer reports it.
    let _ = raise_descriptor_limit();
    // So that the program ends if the lab is killed.
    let _ = set_pdeathsig(Signal::SIGKILL);
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let source = Command::new(&program).args(words).exec();
    InsideError::Program { program, source }
}
