//! Opens the sockets and starts the workers.

use std::net::IpAddr;

use portunus_sdp::negotiated::Fingerprint;
use tokio::sync::mpsc;

use crate::plane::WorkerPort;
use crate::{MediaConfig, MediaError, PeerEvent};

pub(crate) struct Started {
    pub(crate) workers: Vec<WorkerPort>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) address: IpAddr,
    pub(crate) events: mpsc::Receiver<PeerEvent>,
}

pub(crate) fn start(_config: MediaConfig) -> Result<Started, MediaError> {
    Err(MediaError::NoAddress)
}
