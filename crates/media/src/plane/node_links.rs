//! Links to other nodes, and the sources that cross them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use portunus_graph::{RouteId, RouteOptions, SourceRef};

use super::MediaPlane;
use crate::MediaError;
use crate::command::{Command, NewNodeLink, NodeLinkCommand};
use crate::node_link::{
    KeyChange, KeyUse, NodeLink, NodeLinkId, NodeLinkKey, NodeLinkOptions, NodeLinkStatus,
    RelayCount, RelayOptions, RelayedStream,
};
use crate::outlet::{Encodings, LinkOutlet, OutletEnd};
use crate::sys::MediaSocket;

impl MediaPlane {
    /// Opens a socket on each worker for the links to all other nodes, with port `port` for worker
    /// 0 and the next ones for the others. 0 means any free ports. Returns their addresses, by
    /// worker. It is called once, before links are added. Other nodes must reach `address`, and
    /// take packets from there only.
    pub fn open_node_links(
        &self,
        address: IpAddr,
        port: u16,
    ) -> Result<Vec<SocketAddr>, MediaError> {
        let bind = |index: usize| {
            let port = match port {
                0 => 0,
                port => u16::try_from(usize::from(port) + index)
                    .map_err(|_| MediaError::NodeLinkPort { port, index })?,
            };
            let address = SocketAddr::new(address, port);
            let socket = MediaSocket::bind(address);
            socket.map_err(|error| MediaError::NodeLinkSocket { address, error })
        };
        let sockets = (0..self.workers()).map(bind);
        let sockets = sockets.collect::<Result<Vec<MediaSocket>, MediaError>>()?;
        let addresses = sockets.iter().map(MediaSocket::local).collect();
        for (worker, socket) in (0..).zip(sockets) {
            let open = NodeLinkCommand::Open(Box::new(socket));
            self.send_to(worker, Command::NodeLink(open));
        }
        Ok(addresses)
    }

    /// Adds a link to another node. It lives until [`MediaPlane::remove_node_link`].
    pub fn add_node_link(&self, options: &NodeLinkOptions) -> NodeLink {
        let id = NodeLinkId(self.next_id());
        let add = |worker: usize| {
            let status = Arc::<NodeLinkStatus>::default();
            let new = NewNodeLink {
                id,
                options: options.clone(),
                status: Arc::clone(&status),
            };
            let add = NodeLinkCommand::Add(Box::new(new));
            self.send_to(worker as u16, Command::NodeLink(add));
            status
        };
        // A plane without workers, as tests have it, has a link, too.
        let statuses = (0..self.workers().max(1)).map(add).collect();
        NodeLink { id, statuses }
    }

    /// Replaces the key of what is received by a link. `number` is 1 for the first replacement, and
    /// one more each time. Packets with the key before are taken until the next replacement. The
    /// other node replaces the key of what it sends after that.
    pub fn set_node_link_key(&self, link: NodeLinkId, number: u32, key: &NodeLinkKey) {
        self.change_key(link, KeyUse::Receive, number, key);
    }

    /// Replaces the key of what is sent by a link, once the other node knows it.
    pub fn use_node_link_key(&self, link: NodeLinkId, number: u32, key: &NodeLinkKey) {
        self.change_key(link, KeyUse::Send, number, key);
    }

    fn change_key(&self, link: NodeLinkId, usage: KeyUse, number: u32, key: &NodeLinkKey) {
        for worker in 0..self.workers() {
            let change = KeyChange {
                usage,
                number,
                key: key.clone(),
            };
            let set = NodeLinkCommand::SetKey(link, Box::new(change));
            self.send_to(worker as u16, Command::NodeLink(set));
        }
    }

    /// Removes a link. Its streams end; outlets and ingests stay until they are removed.
    pub fn remove_node_link(&self, link: NodeLinkId) {
        for worker in 0..self.workers() {
            let remove = NodeLinkCommand::Remove(link);
            self.send_to(worker as u16, Command::NodeLink(remove));
        }
    }

    /// Sends an encoding of a source to another node. `options` gates it and limits its layers;
    /// [`MediaPlane::set_route`] and [`MediaPlane::remove_route`] change and end it. It ends with
    /// its source. It starts with what the source keeps for new viewers, or with a keyframe
    /// request. Packets that the other node misses are sent again.
    pub fn relay(
        &self,
        from: impl Into<SourceRef>,
        options: RouteOptions,
        relay: RelayOptions,
    ) -> (RouteId, Arc<RelayCount>) {
        let count = Arc::<RelayCount>::default();
        let linked = LinkOutlet::new(relay, Arc::clone(&count));
        let encodings = Encodings::Layers(relay.encoding);
        let end = OutletEnd::Link(Box::new(linked));
        let id = self.add_outlet(from.into(), options, encodings, end);
        (id, count)
    }

    /// Takes a stream of another node as an encoding of an ingest
    /// ([`crate::IngestFeed::Node`]). Missing packets are requested, and so are keyframes that
    /// viewers need.
    pub fn receive_relayed(&self, stream: RelayedStream) {
        let receive = NodeLinkCommand::Receive(stream);
        self.send_to(stream.ingest.worker, Command::NodeLink(receive));
    }

    /// Refuses the packets of a stream from now on.
    pub fn forget_relayed(&self, stream: RelayedStream) {
        let forget = NodeLinkCommand::Forget(stream.link, stream.ssrc);
        self.send_to(stream.ingest.worker, Command::NodeLink(forget));
    }
}
