//! Remote candidates with mDNS names, by which browsers hide local addresses
//! (draft-ietf-mmusic-mdns-ice-candidates). Machines in the same network can resolve them (RFC
//! 6762).

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mdns_sd::{HostnameResolutionEvent, Receiver, ServiceDaemon};
use portunus_media::{MediaPlane, PeerId};
use portunus_rtc::{mdns_name, with_address};
use portunus_sdp::negotiated::Negotiated;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

/// How long an answer may take: a query and two repetitions. ICE tries for longer.
const PATIENCE: Duration = Duration::from_secs(4);
/// The most candidates that wait for an address.
const MOST_WAITING: usize = 256;
/// The most names that are remembered.
const MOST_NAMES: usize = 1_024;
/// How long a name is remembered, like records of hosts (RFC 6762 section 10).
const LIFETIME: Duration = Duration::from_secs(120);
/// How long it is remembered that nobody answers.
const LIFETIME_WITHOUT_ANSWER: Duration = Duration::from_secs(10);
/// The most addresses of a name that are used.
const MOST_ADDRESSES: usize = 4;

/// The names whose addresses were requested.
pub(crate) struct MdnsNames {
    /// Started by the first name. `None` if it could not start.
    daemon: OnceLock<Option<ServiceDaemon>>,
    port: u16,
    names: Mutex<HashMap<String, Name>>,
    waiting: Arc<Semaphore>,
}

struct Name {
    asked: Instant,
    /// Empty if there was no answer.
    addresses: Arc<OnceCell<Vec<IpAddr>>>,
}

impl Name {
    fn is_current(&self, now: Instant) -> bool {
        let lifetime = match self.addresses.get() {
            Some(addresses) if addresses.is_empty() => LIFETIME_WITHOUT_ANSWER,
            _ => LIFETIME,
        };
        now.saturating_duration_since(self.asked) < lifetime
    }
}

impl fmt::Debug for MdnsNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MdnsNames")
    }
}

impl Default for MdnsNames {
    fn default() -> Self {
        MdnsNames::at(mdns_sd::MDNS_PORT)
    }
}

impl MdnsNames {
    /// Queries responders at this port.
    fn at(port: u16) -> Self {
        MdnsNames {
            daemon: OnceLock::new(),
            port,
            names: Mutex::default(),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
        }
    }

    /// Returns the addresses of a name. Empty if there is no answer, or if too many names are known
    /// already.
    async fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let Some(addresses) = self.entry(name) else {
            return Vec::new();
        };
        addresses.get_or_init(|| self.ask(name)).await.clone()
    }

    fn entry(&self, name: &str) -> Option<Arc<OnceCell<Vec<IpAddr>>>> {
        let (key, now) = (name.to_ascii_lowercase(), Instant::now());
        let mut names = self.names();
        if let Some(known) = names.get(&key).filter(|known| known.is_current(now)) {
            return Some(Arc::clone(&known.addresses));
        }
        if names.len() >= MOST_NAMES {
            names.retain(|_, known| known.is_current(now));
        }
        if names.len() >= MOST_NAMES {
            return None;
        }
        let addresses = Arc::<OnceCell<_>>::default();
        let name = Name {
            asked: now,
            addresses: Arc::clone(&addresses),
        };
        names.insert(key, name);
        Some(addresses)
    }

    async fn ask(&self, name: &str) -> Vec<IpAddr> {
        let Some(daemon) = self.daemon() else {
            return Vec::new();
        };
        let name = format!("{name}.");
        let limit = u64::try_from(PATIENCE.as_millis()).ok();
        let addresses = match daemon.resolve_hostname(&name, limit) {
            Ok(events) => tokio::time::timeout(PATIENCE, first_addresses(&events)).await,
            Err(error) => {
                tracing::debug!(%error, name, "cannot ask for an mDNS name");
                return Vec::new();
            }
        };
        // Otherwise it ends at its deadline.
        let _ = daemon.stop_resolve_hostname(&name);
        let addresses = addresses.unwrap_or_default();
        tracing::debug!(name, ?addresses, "asked for an mDNS name");
        addresses
    }

    fn daemon(&self) -> Option<&ServiceDaemon> {
        let start = || match ServiceDaemon::new_with_port(self.port) {
            Ok(daemon) => Some(daemon),
            Err(error) => {
                tracing::warn!(%error, "cannot resolve mDNS names of clients; media.mdns = false turns this off");
                None
            }
        };
        self.daemon.get_or_init(start).as_ref()
    }

    fn names(&self) -> MutexGuard<'_, HashMap<String, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MdnsNames {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take().flatten() {
            // Otherwise it ends with the process.
            let _ = daemon.shutdown();
        }
    }
}

async fn first_addresses(events: &Receiver<HostnameResolutionEvent>) -> Vec<IpAddr> {
    loop {
        match events.recv_async().await {
            Ok(HostnameResolutionEvent::AddressesFound(_, found)) => {
                let mut found: Vec<IpAddr> = found.iter().map(|it| it.to_ip_addr()).collect();
                found.sort();
                found.truncate(MOST_ADDRESSES);
                return found;
            }
            Ok(HostnameResolutionEvent::SearchTimeout(_)) | Err(_) => return Vec::new(),
            Ok(_) => {}
        }
    }
}

/// Passes remote candidates to the media plane, after resolving their mDNS names.
#[derive(Debug, Clone)]
pub(crate) struct RemoteCandidates {
    media: MediaPlane,
    /// `None` if names are not resolved.
    names: Option<Arc<MdnsNames>>,
}

impl RemoteCandidates {
    pub(crate) fn new(media: MediaPlane, resolves_names: bool) -> Self {
        let names = resolves_names.then(Arc::default);
        RemoteCandidates { media, names }
    }

    /// Passes the outcome of a negotiation to the media plane. Candidates with mDNS names follow
    /// once they are resolved.
    pub(crate) fn negotiate(&self, peer: PeerId, mut negotiated: Negotiated) {
        let is_hidden = |text: &mut String| self.names.is_some() && mdns_name(text).is_some();
        let candidates = &mut negotiated.transport.candidates;
        let hidden: Vec<String> = candidates.extract_if(.., is_hidden).collect();
        self.media.negotiate(peer, negotiated);
        for text in hidden {
            self.add(peer, text);
        }
    }

    /// Passes a candidate to the media plane. A candidate with an mDNS name waits until the name is
    /// resolved. With an unknown name it is passed on unchanged, and counted there.
    pub(crate) fn add(&self, peer: PeerId, text: String) {
        let waits = self.names.as_ref().filter(|_| mdns_name(&text).is_some());
        let place = waits.and_then(|names| Arc::clone(&names.waiting).try_acquire_owned().ok());
        let Some(place) = place else {
            return self.media.add_candidate(peer, text);
        };
        let this = self.clone();
        tokio::spawn(async move {
            let _place = place;
            let addresses = match (&this.names, mdns_name(&text)) {
                (Some(names), Some(name)) => names.resolve(name).await,
                _ => Vec::new(),
            };
            if addresses.is_empty() {
                return this.media.add_candidate(peer, text);
            }
            for address in addresses {
                let resolved = with_address(&text, address);
                this.media.add_candidate(peer, resolved);
            }
        });
    }
}

#[cfg(test)]
mod tests;
