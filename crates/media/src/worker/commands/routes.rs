//! Commands that concern routes and outlets.

use std::time::Instant;

use portunus_graph::{RouteId, RouteOptions};

use crate::command::{OutletCommand, RouteCommand};
use crate::worker::Worker;
use crate::worker::graph::RouteEnds;

impl Worker {
    pub(super) fn take_route_command(
        &mut self,
        route: RouteId,
        command: RouteCommand,
        now: Instant,
    ) {
        match command {
            RouteCommand::Add { from, to, options } => {
                self.add_route(route, RouteEnds { from, to }, options, now);
            }
            RouteCommand::Set(options) => self.set_route(route, options, now),
            RouteCommand::Remove => self.remove_route(route, now),
        }
    }

    pub(super) fn take_outlet_command(&mut self, command: OutletCommand, now: Instant) {
        match command {
            OutletCommand::Add(outlet) => {
                let graph = (&mut self.graph, &mut self.peers);
                let with = (self.poller.registry(), &mut self.node_links);
                self.outlets.add(*outlet, graph, with, now);
            }
            OutletCommand::RequestKeyframe(outlet) => {
                self.outlets.ask_keyframe(outlet, &mut self.graph);
            }
        }
    }

    fn add_route(&mut self, id: RouteId, ends: RouteEnds, options: RouteOptions, now: Instant) {
        let (peers, others) = (&mut self.peers, &self.others);
        let added = self.graph.add_route(id, ends, options, peers, others, now);
        // Requests a keyframe if it can be relayed now. One that comes before the viewer is
        // connected would only delay the one that the viewer needs.
        if let Some(slot) = added {
            self.relaying().prime_route(slot, now);
        }
    }

    fn set_route(&mut self, id: RouteId, options: RouteOptions, now: Instant) {
        let Some(slot) = self.graph.slot(id) else {
            return self.outlets.set(id, options, &mut self.graph);
        };
        if self.graph.set_route(slot, options, &mut self.peers, now) {
            self.relaying().prime_route(slot, now);
        }
    }
}
