//! Peers: created, negotiated, changed and closed.

use std::sync::atomic::Ordering;

use portunus_graph::{PeerId, TalkDetection, TrackRef};
use portunus_sdp::negotiated::{Fingerprint, IceCredentials, Negotiated};

use super::MediaPlane;
use crate::backlog::Backlog;
use crate::command::{Command, PeerCommand};
use crate::user_fragment::with_worker;
use crate::{DataMessage, DataOptions};

/// The maximum size of data channel messages that wait for a worker, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The options of a new peer.
#[derive(Debug, Clone)]
pub struct PeerOptions {
    /// Our ICE credentials. The peer must get [`MediaPlane::local_ice`] of them.
    pub ice: IceCredentials,
    /// Whether our ICE agent is the controlling one (the side that offers).
    pub controlling: bool,
    /// The worker. `None` chooses the one with the fewest peers.
    pub worker: Option<usize>,
}

impl MediaPlane {
    /// Creates a peer, which waits for [`MediaPlane::negotiate`].
    pub fn create_peer(&self, options: PeerOptions) -> PeerId {
        self.create_peer_with_fingerprint(options).0
    }

    /// As [`MediaPlane::create_peer`]. Also returns the fingerprint of the certificate that the
    /// peer presents.
    pub fn create_peer_with_fingerprint(&self, options: PeerOptions) -> (PeerId, Fingerprint) {
        let workers = &self.shared.workers;
        let fewest = || {
            let load = |n: &usize| workers.get(*n).map(|w| w.peers.load(Ordering::Relaxed));
            (0..workers.len()).min_by_key(load).unwrap_or(0)
        };
        let worker = options
            .worker
            .filter(|n| *n < workers.len())
            .unwrap_or_else(fewest);
        let peer = PeerId {
            worker: worker as u16,
            serial: self.next_id(),
        };
        if let Some(port) = workers.get(worker) {
            port.peers.fetch_add(1, Ordering::Relaxed);
        }
        let PeerOptions {
            ice, controlling, ..
        } = options;
        let ice = self.local_ice(peer, ice);
        let fingerprint = self.locked_fingerprint();
        self.send(peer, PeerCommand::Create { ice, controlling });
        (peer, fingerprint.clone())
    }

    /// Applies the outcome of an offer/answer exchange.
    pub fn negotiate(&self, peer: PeerId, negotiated: Negotiated) {
        self.send(peer, PeerCommand::Negotiate(Box::new(negotiated)));
    }

    /// Returns our credentials for a peer: if workers share a port, the user fragment ends with the
    /// number of its worker.
    pub fn local_ice(&self, peer: PeerId, ice: IceCredentials) -> IceCredentials {
        match self.shared.one_port {
            true => IceCredentials {
                ufrag: with_worker(&ice.ufrag, peer.worker),
                pwd: ice.pwd,
            },
            false => ice,
        }
    }

    /// Starts an ICE restart with new credentials from [`MediaPlane::local_ice`]. DTLS and SRTP
    /// continue.
    pub fn restart_ice(&self, peer: PeerId, ice: IceCredentials) {
        self.send(peer, PeerCommand::RestartIce(ice));
    }

    /// Adds a trickled candidate: the text of the `candidate` member of the client's message.
    pub fn add_candidate(&self, peer: PeerId, candidate: String) {
        self.send(peer, PeerCommand::AddCandidate(candidate));
    }

    /// Closes a peer. [`crate::Event::Closed`] follows.
    pub fn close_peer(&self, peer: PeerId) {
        self.send(peer, PeerCommand::Close);
    }

    /// Caps what the peer sends, by REMB, in bit/s. `None` means no cap.
    pub fn set_bitrate(&self, peer: PeerId, bitrate: Option<u64>) {
        self.send(peer, PeerCommand::SetBitrate(bitrate));
    }

    /// Notes that the peer's media is encrypted end to end, so that payloads cannot tell keyframes.
    /// Descriptors outside of the encryption still do.
    pub fn set_opaque(&self, peer: PeerId) {
        self.send(peer, PeerCommand::SetOpaque);
    }

    /// Requests a keyframe on all video of the peer.
    pub fn request_keyframe(&self, peer: PeerId) {
        self.send(peer, PeerCommand::RequestKeyframe);
    }

    /// Reports by [`crate::Event::Talking`] when the peer starts and stops talking on an m-line, if
    /// its packets have audio levels. `None` disables that.
    pub fn detect_talking(&self, track: TrackRef, detection: Option<TalkDetection>) {
        let TrackRef { peer, mid } = track;
        let command = PeerCommand::DetectTalking { mid, detection };
        self.send(peer, command);
    }

    /// Reports by [`crate::Event::Speech`] how much is spoken on an m-line, if its packets have
    /// audio levels. False disables that.
    pub fn measure_speech(&self, track: TrackRef, wanted: bool) {
        let TrackRef { peer, mid } = track;
        let command = PeerCommand::MeasureSpeech { mid, wanted };
        self.send(peer, command);
    }

    /// Opens a data channel, if there is none with this label.
    pub fn open_data(&self, peer: PeerId, label: String, options: DataOptions) {
        self.send(peer, PeerCommand::OpenData { label, options });
    }

    /// Sends a message on the data channel with its label, and opens the channel if there is none.
    /// The message is dropped and counted if too many wait for the worker.
    pub fn send_data(&self, peer: PeerId, message: DataMessage) {
        self.send_data_with(peer, message, DataOptions::default());
    }

    /// As [`Self::send_data`]. If it opens the channel, that has these `options`.
    pub fn send_data_with(&self, peer: PeerId, message: DataMessage, options: DataOptions) {
        let size = message.size().saturating_add(size_of::<Command>());
        let port = self.shared.workers.get(usize::from(peer.worker));
        let held = match port {
            Some(port) => port.messages.hold(size, MAX_MESSAGE_BYTES),
            None => Backlog::default().hold(size, MAX_MESSAGE_BYTES),
        };
        match (held, port) {
            (Some(held), _) => {
                let command = PeerCommand::SendData {
                    message,
                    options,
                    held,
                };
                self.send(peer, command);
            }
            (None, Some(port)) => port.totals.message_refused(),
            (None, None) => {}
        }
    }
}
