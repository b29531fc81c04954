//! The running server, and the processes that hold ports.

use std::collections::HashMap;
use std::time::Duration;

use portunus_core::configuration::{Listener, Protocol};
use procfs::net::TcpState;
use procfs::process::{FDTarget, all_processes};
use tokio::time::timeout;

use super::finding::{Check, Finding};
use crate::config::Config;
use crate::health;

/// The time limit of a health check.
const LIFE: Duration = Duration::from_secs(2);

/// The name of the server's process.
const NAME: &str = "portunus";

/// A process that holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: i32,
    pub(super) name: String,
}

impl Holder {
    /// Whether it is a server of this program.
    pub(super) fn is_server(&self) -> bool {
        self.name == NAME
    }
}

/// The processes that hold ports, as far as this process can see them.
#[derive(Debug, Default)]
pub(super) struct Holders(HashMap<(bool, u16), Holder>);

impl Holders {
    /// Examines all processes. Blocks.
    pub(super) fn read() -> Self {
        let mut ports = HashMap::<u64, (bool, u16)>::new();
        let tcp = [procfs::net::tcp(), procfs::net::tcp6()];
        for entry in tcp.into_iter().flatten().flatten() {
            if entry.state == TcpState::Listen {
                ports.insert(entry.inode, (true, entry.local_address.port()));
            }
        }
        let udp = [procfs::net::udp(), procfs::net::udp6()];
        for entry in udp.into_iter().flatten().flatten() {
            ports.insert(entry.inode, (false, entry.local_address.port()));
        }
        let mut holders = HashMap::new();
        for process in all_processes().into_iter().flatten().flatten() {
            // Those of other users may be hidden.
            let Ok(files) = process.fd() else {
                continue;
            };
            for file in files.flatten() {
                let FDTarget::Socket(inode) = file.target else {
                    continue;
                };
                if let Some(port) = ports.get(&inode)
                    && let Ok(stat) = process.stat()
                {
                    let (pid, name) = (stat.pid, stat.comm);
                    holders.entry(*port).or_insert(Holder { pid, name });
                }
            }
        }
        Holders(holders)
    }

    /// Returns the process that holds a port, if it is known.
    pub(super) fn of(&self, protocol: Protocol, port: u16) -> Option<&Holder> {
        self.0.get(&(protocol == Protocol::Tcp, port))
    }
}

/// Returns the process of the only server on this machine. Of a process with more rights nothing
/// else is visible.
fn only_process() -> Option<i32> {
    let own = i32::try_from(std::process::id()).ok();
    let processes = all_processes().into_iter().flatten().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    let mut servers = stats.filter(|it| it.comm == NAME && Some(it.pid) != own);
    let first = servers.next()?.pid;
    servers.next().is_none().then_some(first)
}

/// The server that runs with the configuration, if there is one.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Whether one runs.
    pub(super) is_running: bool,
    /// Its process, if it is known.
    pub(super) pid: Option<i32>,
    /// The text of its health check, unless it is healthy.
    trouble: Option<String>,
}

impl Server {
    /// Checks its health, and finds the process that holds the ports of the configuration.
    pub(super) async fn find(config: &Config, holders: &Holders) -> Self {
        let life = match health::url(&config.api.http, "livez") {
            Some(url) => timeout(LIFE, health::get(&url)).await.ok(),
            None => None,
        };
        let life = life.and_then(Result::ok);
        let held = |it: &Listener| holders.of(it.protocol, *it.ports.start()).cloned();
        let mut held = config.listeners.iter().filter_map(held);
        let pid = held.find(Holder::is_server).map(|holder| holder.pid);
        let answer = life.map(|answer| answer.succeeded());
        let answers = match &answer {
            Some(Ok(text)) => text.trim_end() == "ok",
            // Another web server has no such page.
            Some(Err(_)) => pid.is_some(),
            None => false,
        };
        let is_running = answers || pid.is_some();
        Server {
            is_running,
            pid: pid.or_else(|| only_process().filter(|_| is_running)),
            trouble: answer.and_then(Result::err).filter(|_| answers),
        }
    }

    pub(super) fn finding(&self) -> Finding {
        let process = self.pid.map(|pid| format!(" (process {pid})"));
        let process = process.unwrap_or_default();
        match &self.trouble {
            Some(trouble) => {
                let text = format!("The server runs{process}, and says: {trouble}.");
                Finding::error(Check::Server, text)
                    .change("See its log, and start it anew if this lasts.")
            }
            None if self.is_running => {
                Finding::ok(Check::Server, format!("The server runs{process}."))
            }
            None => Finding::note(
                Check::Server,
                "The server does not run. Its ports are tried as it would take them.",
            ),
        }
    }
}
