//! Commands that concern a leg.

use std::time::Instant;

use crate::command::LegCommand;
use crate::worker::Worker;

impl Worker {
    pub(super) fn take_leg_command(&mut self, command: LegCommand, now: Instant) {
        if let LegCommand::Route { .. } = command {
            // What came before is for the leg as it was.
            self.relay_fresh(now);
        }
        let (legs, ingests) = (&mut self.legs, &mut self.ingests);
        let (others, registry) = (&self.others, self.poller.registry());
        match command {
            LegCommand::Add(leg) => {
                let graph = (&mut self.graph, &mut self.peers);
                legs.add(*leg, ingests, graph, others, registry);
            }
            LegCommand::SetRemote { leg, remote } => {
                legs.set_remote(leg, &remote, ingests, (&mut self.graph, others), now);
            }
            LegCommand::SetGates { leg, gates } => {
                legs.set_gates(leg, gates, ingests, (&mut self.graph, others), now);
            }
            LegCommand::Route { leg, from, options } => {
                let graph = (&mut self.graph, &mut self.peers);
                legs.route(leg, from, *options, graph, others);
            }
            LegCommand::PassKeys { leg, from } => {
                legs.pass_keys(leg, from, (&mut self.graph, &mut self.peers), others);
            }
            LegCommand::SendTones { leg, tones } => legs.send_tones(leg, &tones, now),
            LegCommand::Remove { leg, done } => {
                if legs.remove(leg, &mut self.graph, others, registry, now) {
                    self.remove_ingest(leg.ingest(), now);
                }
                drop(done);
            }
        }
    }
}
