//! Commands that concern the network of a worker.

use std::time::Instant;

use crate::command::NetworkCommand;
use crate::worker::Worker;

impl Worker {
    pub(super) fn take_network_command(&mut self, command: NetworkCommand, now: Instant) {
        match command {
            NetworkCommand::UpdateCandidates => self.offer(),
            NetworkCommand::SetTurnServer(server) => {
                self.set_turn_server(server.map(|server| *server), now);
            }
            NetworkCommand::TakePipe(passed) => self.take_passed_pipe(*passed, now),
        }
    }
}
