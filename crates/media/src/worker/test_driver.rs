//! A worker without a network, which tests drive turn by turn.

use std::net::SocketAddr;
use std::time::Instant;

use super::Worker;
use crate::PeerId;
use crate::sys::SendCounters;

impl Worker {
    /// Keeps datagrams for [`Worker::take_kept`] instead of sending them.
    pub(crate) fn keep_datagrams(&mut self) {
        self.network.keep();
    }

    /// Drops datagrams instead of sending them.
    pub(crate) fn drop_datagrams(&mut self) {
        self.network.drop();
    }

    /// Returns the datagrams kept since the last call.
    pub(crate) fn take_kept(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.network.take_kept()
    }

    /// Keeps datagrams to other nodes for [`Worker::take_kept_for_nodes`] instead of sending them.
    pub(crate) fn keep_for_nodes(&mut self) {
        self.node_links.keep();
    }

    /// Drops datagrams to other nodes instead of sending them.
    pub(crate) fn drop_for_nodes(&mut self) {
        self.node_links.drop();
    }

    /// The number of datagrams sent to other nodes so far.
    pub(crate) fn sent_to_nodes(&self) -> u64 {
        let nothing = SendCounters::default();
        self.node_links.counted(nothing).datagrams
    }

    /// Sends what is due to other nodes.
    pub(crate) fn run_for_nodes(&mut self, now: Instant) {
        self.ingests.send_feedback(now);
        self.send_node_link_feedback();
        self.run_node_links(now);
    }

    /// Returns the datagrams to other nodes kept since the last call.
    pub(crate) fn take_kept_for_nodes(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.node_links.take_kept()
    }

    /// Takes a datagram of an ingest.
    pub(crate) fn take_ingested(
        &mut self,
        slot: usize,
        encoding: u8,
        datagram: &mut [u8],
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take(slot, encoding, (None, datagram), &mut into, now);
    }

    /// Takes a datagram of an ingest's RTCP port.
    pub(crate) fn take_ingest_rtcp(
        &mut self,
        slot: usize,
        (remote, datagram): (SocketAddr, &[u8]),
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take_rtcp(slot, (remote, datagram), &mut into, now);
    }

    /// Takes a datagram as if it had come by socket `index` of the ingests.
    pub(crate) fn take_by_port(
        &mut self,
        index: usize,
        (remote, datagram): (SocketAddr, &mut [u8]),
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take_by_port(index, (remote, datagram), &mut into, now);
    }

    /// Takes what feeds have.
    #[cfg(test)]
    pub(crate) fn receive_fed(&mut self, now: Instant) {
        let (ingests, mut into) = self.intake();
        ingests.receive_fed(&mut into, now);
    }

    /// Ends a turn.
    pub(crate) fn flush(&mut self) {
        self.network.flush();
        self.node_links.flush();
    }

    /// The peer whose datagrams come from an address.
    #[cfg(test)]
    pub(crate) fn owner(&self, address: SocketAddr) -> Option<PeerId> {
        self.peers.owner(address)
    }

    /// The number of packets in the pacer of a peer.
    pub(crate) fn waiting(&self, peer: PeerId) -> Option<usize> {
        let pacer = self.peers.get(self.peers.slot(peer)?)?.sending.pacer()?;
        Some(pacer.len())
    }

    /// The number of datagrams sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.network.counters().datagrams
    }

    /// Removes the time limit of handshakes, as the clock would differ from run to run.
    pub(crate) fn take_time_for_handshakes(&mut self) {
        self.handshakes.take_time();
    }
}
