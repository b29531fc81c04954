//! Requests of the control plane to the workers of a simulation.

use portunus_graph::{KeyframeInterval, PeerId, RouteOptions, TrackRef};
use portunus_rtp::Mid;
use tokio::sync::oneshot;

use super::Simulation;
use crate::command::{Command, PeerCommand, RouteCommand, SourceCommand};
use crate::{LineStats, MediaSettings, PeerStats};

impl Simulation {
    /// Sets the options of a viewer's video.
    pub fn set_options(&mut self, watcher: usize, options: RouteOptions) {
        self.set_options_of(watcher, 0, options);
    }

    /// The same for another m-line than the first.
    pub fn set_options_of(&mut self, watcher: usize, line: usize, options: RouteOptions) {
        let route = self.watchers[watcher].routes[line];
        self.order(
            route.worker,
            Command::Route(route, RouteCommand::Set(options)),
        );
    }

    /// Sets the interval of keyframe requests to a publisher. `None` disables them.
    pub fn ask_keyframes(&mut self, camera: usize, interval: Option<KeyframeInterval>) {
        let peer = self.camera_peer(camera);
        let mid = Mid::new("0").expect("a valid mid");
        let source = TrackRef { peer, mid }.into();
        self.order(
            peer.worker,
            Command::Source(source, SourceCommand::SetKeyframeInterval(interval)),
        );
    }

    /// Encrypts a publisher's media end to end, except for the first `clear` bytes of each payload.
    pub fn encrypt(&mut self, camera: usize, clear: usize) {
        self.cameras[camera].encrypted_after = Some(clear);
        let peer = self.camera_peer(camera);
        self.order(peer.worker, Command::Peer(peer, PeerCommand::SetOpaque));
    }

    /// Requests a keyframe of a publisher.
    pub fn request_keyframe(&mut self, camera: usize) {
        let peer = self.camera_peer(camera);
        self.order(
            peer.worker,
            Command::Peer(peer, PeerCommand::RequestKeyframe),
        );
    }

    /// Caps a publisher, in bit/s.
    pub fn set_bitrate(&mut self, camera: usize, bitrate: Option<u64>) {
        let peer = self.camera_peer(camera);
        self.order(
            peer.worker,
            Command::Peer(peer, PeerCommand::SetBitrate(bitrate)),
        );
    }

    /// Sends the estimate of a viewer by REMB, in bit/s.
    pub fn set_receiver_estimate(&mut self, watcher: usize, bitrate: u64) {
        let connection = &mut self.watchers[watcher].connection;
        connection.limit_bitrate(Some(bitrate), self.now);
    }

    /// The server's statistics of a viewer.
    pub fn stats(&mut self, watcher: usize) -> PeerStats {
        self.stats_of(self.peer_at(self.watchers[watcher].address))
    }

    /// The server's statistics of a publisher.
    pub fn camera_stats(&mut self, camera: usize) -> PeerStats {
        self.stats_of(self.camera_peer(camera))
    }

    /// What the m-lines of a viewer and a publisher carry, requested together with those of a
    /// missing peer.
    pub fn line_stats(&mut self, watcher: usize, camera: usize) -> [LineStats; 2] {
        let viewer = self.peer_at(self.watchers[watcher].address);
        let publisher = self.camera_peer(camera);
        assert_eq!(viewer.worker, publisher.worker, "one worker is asked");
        let nobody = PeerId {
            serial: u64::MAX,
            ..viewer
        };
        let (reply, mut stats) = oneshot::channel();
        let peers = vec![viewer, nobody, publisher];
        self.order(viewer.worker, Command::LineStats { peers, reply });
        let bare = &mut self.workers[usize::from(viewer.worker)];
        bare.worker.take_commands(self.now);
        let stats = stats.try_recv().expect("the worker answers");
        let (peers, stats): (Vec<_>, Vec<_>) = stats.into_iter().unzip();
        assert_eq!(peers, [viewer, publisher]);
        stats.try_into().expect("two of them")
    }

    /// Changes the settings of all workers.
    pub fn configure(&mut self, settings: MediaSettings) {
        for bare in &self.workers {
            bare.inbox.send(Command::Configure(settings));
        }
    }

    fn stats_of(&mut self, peer: PeerId) -> PeerStats {
        let (reply, mut stats) = oneshot::channel();
        self.order(peer.worker, Command::Peer(peer, PeerCommand::Stats(reply)));
        let bare = &mut self.workers[usize::from(peer.worker)];
        bare.worker.take_commands(self.now);
        stats.try_recv().expect("the peer is there")
    }

    /// The number of packets in a viewer's pacer. `None` without a pacer or without the viewer.
    pub fn waiting(&self, watcher: usize) -> Option<usize> {
        let peer = self.peer_at(self.watchers[watcher].address);
        self.workers[usize::from(peer.worker)].worker.waiting(peer)
    }
}
