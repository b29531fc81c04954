//! The servers that this one connects to: brokers, registrars, backends of event handlers.

use std::time::Duration;

use portunus_core::configuration::Remote;
use tokio::time::timeout;

use super::finding::{Check, Finding};

/// The time limit of a server.
const LIMIT: Duration = Duration::from_secs(5);

/// Tries all of them at once.
pub(super) async fn examine(remotes: Vec<Remote>) -> Vec<Finding> {
    let tasks: Vec<_> = remotes
        .into_iter()
        .map(|it| tokio::spawn(reach(it)))
        .collect();
    let mut findings = Vec::with_capacity(tasks.len());
    for task in tasks {
        findings.extend(task.await);
    }
    findings
}

async fn reach(remote: Remote) -> Finding {
    let Remote {
        key,
        address,
        attempt,
    } = remote;
    let reason = match timeout(LIMIT, attempt).await {
        Ok(Ok(())) => {
            return Finding::ok(Check::Connection, format!("{address} answers ({key})."));
        }
        Ok(Err(reason)) => reason,
        Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
    };
    let change = format!(
        "See that it runs, that a firewall lets this machine connect to it, and that {key} is its \
         address."
    );
    Finding::error(Check::Connection, format!("{address} ({key}): {reason}.")).change(change)
}
