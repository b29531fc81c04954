//! The exit statuses of the program.

/// The server cannot start.
pub(crate) const CANNOT_START: u8 = 1;
/// The command line or the configuration is wrong; clap uses the same status.
pub(crate) const WRONG_USE: u8 = 2;
