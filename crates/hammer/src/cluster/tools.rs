//! The programs of a cluster: where they are.

use std::env;
use std::path::{Path, PathBuf};

/// The program of the bus.
const NATS_SERVER: &str = "nats-server";

/// Finds the bus: the given program, or one in `PATH`, or the one that `scripts/setup cluster`
/// installs. The error says what to do.
pub(crate) fn nats_server(given: Option<&Path>) -> Result<PathBuf, String> {
    let installed = || {
        let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?;
        let path = cache.join("portunus/tools").join(NATS_SERVER);
        path.is_file().then_some(path)
    };
    // Debian's is too old for clusters, so the installed one goes first.
    let found = || installed().or_else(|| in_path(NATS_SERVER));
    given.map(Path::to_owned).or_else(found).ok_or_else(|| {
        "there is no nats-server in PATH or in ~/.cache/portunus/tools: \
         go install github.com/nats-io/nats-server/v2@v2.11.10"
            .to_owned()
    })
}

/// Finds the program of the nodes: the given one, or the one beside this program, or in `PATH`.
pub(super) fn portunus(given: Option<&Path>) -> Result<PathBuf, String> {
    let beside = || {
        let path = env::current_exe().ok()?.with_file_name("portunus");
        path.is_file().then_some(path)
    };
    let found = || beside().or_else(|| in_path("portunus"));
    let none = "there is no program portunus beside portunus-hammer or in PATH";
    given
        .map(Path::to_owned)
        .or_else(found)
        .ok_or_else(|| none.to_owned())
}

fn in_path(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    let mut candidates = env::split_paths(&paths).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file())
}
