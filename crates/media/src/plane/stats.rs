//! Statistics of peers and workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;

use portunus_graph::PeerId;
use tokio::sync::oneshot;

use super::{MediaPlane, WorkerPort};
use crate::command::{Command, PeerCommand};
use crate::{LineStats, MediaTotals, PeerStats, WorkerStats};

impl MediaPlane {
    /// Returns what all workers did since the start.
    pub fn totals(&self) -> MediaTotals {
        let mut sum = MediaTotals::default();
        for worker in &self.shared.workers {
            sum.peers += worker.peers.load(Ordering::Relaxed) as u64;
            worker.totals.add_to(&mut sum);
            worker.turn.add_to(&mut sum.relayed);
        }
        sum
    }

    /// Returns what each worker did in the last seconds.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        let stats = |(index, worker): (usize, &WorkerPort)| {
            let peers = worker.peers.load(Ordering::Relaxed);
            worker.load.stats(index, peers)
        };
        self.shared.workers.iter().enumerate().map(stats).collect()
    }

    /// Requests the statistics of a peer immediately. Returns `None` if there is no such peer.
    pub fn stats(
        &self,
        peer: PeerId,
    ) -> impl Future<Output = Option<PeerStats>> + Send + 'static + use<> {
        let (reply, stats) = oneshot::channel();
        self.send(peer, PeerCommand::Stats(reply));
        let text = |line: &String| line.trim_start_matches("candidate:").to_owned();
        let local = self.candidates(peer).iter().map(text).collect();
        async move {
            let mut stats = stats.await.ok()?;
            stats.ice.local = local;
            Some(stats)
        }
    }

    /// Returns what the m-lines of many peers carry, without peers that are gone. It costs less
    /// than [`MediaPlane::stats`] of each.
    pub fn line_stats(
        &self,
        peers: impl IntoIterator<Item = PeerId>,
    ) -> impl Future<Output = HashMap<PeerId, LineStats>> + Send + 'static {
        let mut by_worker = BTreeMap::<u16, Vec<PeerId>>::new();
        for peer in peers {
            by_worker.entry(peer.worker).or_default().push(peer);
        }
        let ask = |(worker, peers)| {
            let (reply, stats) = oneshot::channel();
            self.send_to(worker, Command::LineStats { peers, reply });
            stats
        };
        let asked: Vec<_> = by_worker.into_iter().map(ask).collect();
        async move {
            let mut all = HashMap::new();
            for stats in asked {
                // A worker that has ended has no peers.
                all.extend(stats.await.unwrap_or_default());
            }
            all
        }
    }

    /// Sets whether the end of a peer that was not requested is reported with its last statistics
    /// ([`crate::PeerEvent::last`]).
    pub fn want_last_stats(&self, wanted: bool) {
        self.shared.last_stats.store(wanted, Ordering::Relaxed);
    }
}
