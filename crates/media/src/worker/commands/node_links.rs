//! Commands that concern links to other nodes.

use std::time::Instant;

use crate::command::NodeLinkCommand;
use crate::worker::Worker;

impl Worker {
    pub(super) fn take_node_link_command(&mut self, command: NodeLinkCommand, now: Instant) {
        let links = &mut self.node_links;
        match command {
            NodeLinkCommand::Open(socket) => links.open(*socket, self.poller.registry()),
            NodeLinkCommand::Add(new) => links.add(*new, now),
            NodeLinkCommand::SetKey(link, change) => links.set_key(link, &change),
            NodeLinkCommand::Remove(link) => links.remove(link),
            NodeLinkCommand::Receive(stream) => links.expect(stream, &mut self.ingests, now),
            NodeLinkCommand::Forget(link, ssrc) => links.forget(link, ssrc),
        }
    }
}
