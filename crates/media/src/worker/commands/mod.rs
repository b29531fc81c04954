//! How a worker carries out commands, in a file for each part.

mod ingests;
mod legs;
mod network;
mod node_links;
mod peers;
mod routes;
mod sources;

use std::time::Instant;

use super::Worker;
use super::guard::guarded;
use crate::command::Command;
use crate::{CloseReason, MediaIdentity, MediaSettings};

impl Worker {
    /// Carries out the commands that wait.
    pub(crate) fn take_commands(&mut self, now: Instant) {
        let Some(inbox) = self.others.own_inbox().cloned() else {
            return;
        };
        while let Some(command) = inbox.take() {
            let of = command.peer();
            if guarded(|| self.take_command(command, now)).is_none()
                && let Some(slot) = of.and_then(|peer| self.peers.slot(peer))
            {
                self.end_peer(slot, CloseReason::Internal, now);
            }
            self.ask_for_keyframes(now);
        }
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Peer(peer, command) => self.take_peer_command(peer, command, now),
            Command::Route(route, command) => self.take_route_command(route, command, now),
            Command::Outlet(command) => self.take_outlet_command(command, now),
            Command::Source(source, command) => self.take_source_command(source, command, now),
            Command::Ingest(command) => self.take_ingest_command(command, now),
            Command::Leg(command) => self.take_leg_command(command, now),
            Command::Network(command) => self.take_network_command(command, now),
            Command::NodeLink(command) => self.take_node_link_command(command, now),
            Command::LineStats { peers, reply } => {
                // The caller may be gone: then nobody needs the answer.
                let _ = reply.send(self.peers.line_figures(peers, &self.graph, now));
            }
            Command::Configure(settings) => self.configure(settings),
            Command::SetIdentity(MediaIdentity(identity)) => self.peers.set_identity(identity),
            Command::Shutdown => self.shut_down(now),
        }
    }

    fn configure(&mut self, settings: MediaSettings) {
        self.graph.set_nack_queue(settings.nack_queue);
        self.graph.nack_optimizations = settings.nack_optimizations;
        self.peers.set_streams(|streams| {
            streams.no_media = Some(settings.silence());
            streams.slow_link_threshold = settings.slow_link_threshold;
        });
    }

    fn shut_down(&mut self, now: Instant) {
        self.running = false;
        for peer in self.peers.ids() {
            self.close_peer(peer, now);
        }
        self.release_turn();
        self.network.flush();
    }
}
