//! How many files the process may open: each connection of a client, each ingest's port and each recording takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A server with fewer soon turns clients away.
pub(crate) const FEW: u64 = 4_096;

/// Raises the limit to what the system allows (the soft limit to the hard one): most systems begin with 1,024, for the sake of
/// programs that call `select`, which nothing here does.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let wanted = Rlimit {
            current: maximum,
            maximum,
        };
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => tracing::info!(from = current, to = maximum, "may open more files"),
            Err(error) => {
                tracing::warn!(limit = current, %error, "cannot raise the limit of open files");
            }
        }
    }
    let limit = getrlimit(Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < FEW) {
        tracing::warn!(
            limit,
            "few files may be open, and each connection of a client takes one: raise the hard limit \
             (`ulimit -Hn`, systemd's LimitNOFILE=, Docker's --ulimit nofile=)"
        );
    }
}
