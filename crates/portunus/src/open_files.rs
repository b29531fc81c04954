//! The limit of open files. Each client connection, each ingest port and each recording takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// With fewer, a server soon refuses clients.
pub(crate) const FEW: u64 = 4_096;

/// Raises the soft limit to the hard limit. Most systems start with 1,024 for programs that call
/// `select`, which the server does not.
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
