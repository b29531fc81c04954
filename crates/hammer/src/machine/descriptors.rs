//! The limit of open files and sockets.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as possible: each participant may need a descriptor.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
