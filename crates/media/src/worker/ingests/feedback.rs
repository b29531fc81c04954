//! RTCP to the senders of ingests: keyframe requests and bitrates.

use std::time::Instant;

use smallvec::SmallVec;

use super::Ingests;
use crate::ingest::{IngestId, Remote};
use crate::node_link::NodeLinkId;

/// When feedback for senders is due.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum FeedbackDue {
    /// Unknown.
    #[default]
    Unknown,
    /// Not before something changes.
    Never,
    At(Instant),
}

/// RTCP of an ingest for another node.
#[derive(Debug)]
pub(in crate::worker) struct NodeFeedback {
    pub(in crate::worker) link: NodeLinkId,
    /// The worker of the other node.
    pub(in crate::worker) far: u16,
    /// A compound that begins with our SSRC.
    pub(in crate::worker) compound: SmallVec<[u8; 64]>,
    /// The number of keyframe requests in it.
    pub(in crate::worker) keyframes: u64,
}

/// Room for the feedback to one sender.
const DATAGRAM: usize = 256;

impl Ingests {
    /// Returns when feedback is due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        match self.feedback_due {
            FeedbackDue::Unknown | FeedbackDue::Never => None,
            FeedbackDue::At(at) => Some(at),
        }
    }

    /// Notes that there may be new feedback for a sender.
    pub(super) fn changed(&mut self) {
        self.feedback_due = FeedbackDue::Unknown;
    }

    /// Requests a keyframe of an ingest.
    pub(in crate::worker) fn want_keyframe(&mut self, id: IngestId, encoding: u8) {
        if let Some(ingest) = self.get_mut(id) {
            ingest.upstream.want_keyframe(encoding);
            self.changed();
        }
    }

    /// Sends the feedback that is due.
    pub(in crate::worker) fn send_feedback(&mut self, now: Instant) {
        match self.feedback_due {
            FeedbackDue::Never => return,
            FeedbackDue::At(at) if at > now => return,
            FeedbackDue::At(_) | FeedbackDue::Unknown => {}
        }
        let mut next: Option<Instant> = None;
        for (_, ingest) in &mut self.slots {
            let Some(due) = ingest.upstream.poll_timeout(now) else {
                continue;
            };
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            let mut datagram = [0; DATAGRAM];
            let Some(feedback) = ingest.upstream.poll_transmit(now, &mut datagram) else {
                continue;
            };
            for _ in 0..feedback.keyframes {
                ingest.status.asked_for_keyframe();
            }
            let out = datagram.get(..feedback.len).unwrap_or_default();
            let port = ingest.rtcp.and_then(|port| self.ports.get(port));
            match (feedback.to, port, &ingest.feed) {
                (Remote::Address(to), Some(port), _) => {
                    if let Err(error) = port.socket.send(out, to) {
                        tracing::debug!(%error, %to, "feedback cannot be sent to an ingest's sender");
                    }
                }
                (Remote::Feed, _, Some(feed)) => {
                    if !feed.send_feedback(out) {
                        tracing::debug!("feedback cannot be sent to an ingest's sender");
                    }
                }
                (Remote::Leg, ..) if feedback.keyframes > 0 => self.asked.push(ingest.id),
                (Remote::Node(link, far), ..) => self.for_nodes.push(NodeFeedback {
                    link,
                    far,
                    compound: SmallVec::from_slice(out),
                    keyframes: feedback.keyframes,
                }),
                (Remote::Address(_) | Remote::Feed | Remote::Leg, ..) => {}
            }
            if let Some(due) = ingest.upstream.poll_timeout(now) {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.feedback_due = next.map_or(FeedbackDue::Never, FeedbackDue::At);
    }

    /// Takes the next feedback for another node.
    pub(in crate::worker) fn next_node_feedback(&mut self) -> Option<NodeFeedback> {
        self.for_nodes.pop()
    }

    /// Requests a keyframe of the ingest in a slot.
    pub(in crate::worker) fn want_keyframe_of(&mut self, slot: usize, encoding: u8) {
        if let Some(ingest) = self.slots.get_mut(slot) {
            ingest.upstream.want_keyframe(encoding);
            self.changed();
        }
    }

    /// Takes the next ingest of a leg of which a keyframe is needed.
    pub(in crate::worker) fn next_asked(&mut self) -> Option<IngestId> {
        self.asked.pop()
    }

    /// Notes the bitrate that a viewer of an ingest can take. Returns whether the ingest is on this
    /// worker.
    pub(in crate::worker) fn viewer_takes(
        &mut self,
        id: IngestId,
        bitrate: u64,
        now: Instant,
    ) -> bool {
        let Some(ingest) = self.get_mut(id) else {
            return false;
        };
        ingest.upstream.viewer_takes(bitrate, now);
        self.changed();
        true
    }
}
