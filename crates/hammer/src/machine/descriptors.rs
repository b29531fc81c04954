//! How many files and sockets hammer may have open.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Asks for as many descriptors as the system gives: each participant may need one.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
