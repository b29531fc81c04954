//! The feeds from a thread to all workers.

use std::collections::VecDeque;

use portunus_media::ingest::FeedError;
use portunus_media::{IngestId, MediaPlane, RouteId, ThreadFeed};

/// The feed of each worker. Packets for a full feed are dropped; changes of routes and mixes are
/// retried.
#[derive(Debug)]
pub(crate) struct Feeds {
    feeds: Vec<ThreadFeed>,
    media: MediaPlane,
    waiting: VecDeque<(usize, Change)>,
}

/// A change that must reach a worker.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Only if the route comes from the second ingest, if given.
    Redirect(RouteId, Option<IngestId>, IngestId),
    Remove(IngestId),
}

impl Feeds {
    pub(crate) fn new(media: &MediaPlane) -> Self {
        Self {
            feeds: (0..media.workers()).map(|n| media.thread_feed(n)).collect(),
            media: media.clone(),
            waiting: VecDeque::new(),
        }
    }

    /// Sends a packet to an ingest.
    pub(crate) fn send(&mut self, ingest: IngestId, packet: &[u8]) {
        if let Some(feed) = self.feeds.get_mut(ingest.worker()) {
            // The feed counts dropped packets.
            let _ = feed.send(ingest, packet);
        }
    }

    /// Redirects a route of a worker to another ingest of it.
    pub(crate) fn redirect(&mut self, route: RouteId, ingest: IngestId) {
        self.change(ingest.worker(), Change::Redirect(route, None, ingest));
    }

    /// Redirects a route only if it still comes from `before`.
    pub(crate) fn redirect_from(&mut self, route: RouteId, before: IngestId, ingest: IngestId) {
        self.change(
            ingest.worker(),
            Change::Redirect(route, Some(before), ingest),
        );
    }

    /// Ends an ingest.
    pub(crate) fn remove(&mut self, ingest: IngestId) {
        self.change(ingest.worker(), Change::Remove(ingest));
    }

    /// Wakes the workers for what was sent.
    pub(crate) fn deliver(&mut self) {
        while let Some((worker, change)) = self.waiting.pop_front() {
            if !self.try_change(worker, change) {
                self.waiting.push_front((worker, change));
                break;
            }
        }
        for feed in &mut self.feeds {
            feed.deliver();
        }
    }

    /// Returns the number of packets dropped so far.
    pub(crate) fn overrun(&self) -> u64 {
        self.feeds.iter().map(ThreadFeed::overrun).sum()
    }

    fn change(&mut self, worker: usize, change: Change) {
        if !self.waiting.is_empty() || !self.try_change(worker, change) {
            self.waiting.push_back((worker, change));
        }
    }

    /// Returns false if the feed is full.
    fn try_change(&mut self, worker: usize, change: Change) -> bool {
        let Some(feed) = self.feeds.get_mut(worker) else {
            if let Change::Remove(ingest) = change {
                // Nobody waits for its end.
                let _ = self.media.remove_ingest(ingest);
            }
            return true;
        };
        let done = match change {
            Change::Redirect(route, None, ingest) => feed.redirect(route, ingest),
            Change::Redirect(route, Some(before), ingest) => {
                feed.redirect_from(route, before, ingest)
            }
            Change::Remove(ingest) => feed.remove(ingest),
        };
        done != Err(FeedError::Full)
    }
}
