//! A path: a connection between two nodes, whose frames a third one carries.

use bytes::Bytes;

use crate::id::NodeId;
use crate::wire::{Frame, Via};

/// The most frames that the other side has not confirmed. So a slow link fills no queue of the node
/// in the middle.
pub(crate) const WINDOW: u64 = 64;

/// After this number of frames they are confirmed, even if there is no frame to send.
const CONFIRM: u64 = 16;

/// One end of a path.
#[derive(Debug)]
pub(crate) struct Path {
    /// The node in the middle.
    pub(crate) middle: NodeId,
    /// Its number.
    pub(crate) number: u64,
    /// The version that is spoken, once the other side has named itself.
    pub(crate) version: Option<u32>,
    /// The first frame, until it is sent.
    hello: Option<Frame>,
    sent: u64,
    /// The last frame that the other side has received, and the last one that this side has.
    confirmed: u64,
    received: u64,
    /// The last frame whose receipt the other side knows.
    told: u64,
}

/// A frame on a path is missing, or out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

impl Path {
    pub(crate) fn new(middle: NodeId, number: u64, hello: Frame) -> Self {
        Path {
            middle,
            number,
            version: None,
            hello: Some(hello),
            sent: 0,
            confirmed: 0,
            received: 0,
            told: 0,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.version.is_some()
    }

    /// Returns whether a frame may be sent now.
    pub(crate) fn is_open(&self) -> bool {
        self.sent.saturating_sub(self.confirmed) < WINDOW
    }

    /// Returns the first frame, once.
    pub(crate) fn take_hello(&mut self) -> Option<Frame> {
        self.hello.take()
    }

    /// Takes the numbers of what has come. Returns an error if a frame is missing.
    pub(crate) fn receive(&mut self, via: &Via) -> Result<(), Gap> {
        self.confirmed = self.confirmed.max(via.received.min(self.sent));
        if via.number == 0 {
            return Ok(());
        }
        if via.number != self.received.saturating_add(1) {
            return Err(Gap);
        }
        self.received = via.number;
        Ok(())
    }

    /// Returns a frame for the other side as the node in the middle gets it.
    pub(crate) fn wrap(&mut self, from: &NodeId, to: &NodeId, frame: Bytes) -> Via {
        self.sent = self.sent.saturating_add(1);
        self.via(from, to, self.sent, frame)
    }

    /// Returns the confirmation of what was received, if it is due.
    pub(crate) fn confirmation(&mut self, from: &NodeId, to: &NodeId) -> Option<Via> {
        let is_due = self.received.saturating_sub(self.told) >= CONFIRM;
        is_due.then(|| self.via(from, to, 0, Bytes::new()))
    }

    fn via(&mut self, from: &NodeId, to: &NodeId, number: u64, frame: Bytes) -> Via {
        self.told = self.received;
        Via {
            from: from.clone(),
            to: to.clone(),
            path: self.number,
            number,
            received: self.received,
            is_closed: false,
            frame,
        }
    }
}

/// Returns the word that a path is closed.
pub(crate) fn closed(from: &NodeId, to: &NodeId, path: u64) -> Frame {
    Frame::Via(Via {
        from: from.clone(),
        to: to.clone(),
        path,
        number: 0,
        received: 0,
        is_closed: true,
        frame: Bytes::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn ends() -> (Path, Path, NodeId, NodeId) {
        let id = |name| NodeId::new(name).unwrap();
        let path = || Path::new(id("m"), 1, Frame::Ping { clock: 0 });
        (path(), path(), id("a"), id("c"))
    }

    #[test]
    fn no_more_frames_than_the_window_are_under_way() {
        let (mut near, mut far, a, c) = ends();
        let mut under_way = Vec::new();
        while near.is_open() {
            under_way.push(near.wrap(&a, &c, Bytes::new()));
        }
        assert_eq!(under_way.len(), 64);
        let mut confirmations = 0;
        for via in under_way {
            far.receive(&via).unwrap();
            if let Some(confirmation) = far.confirmation(&c, &a) {
                confirmations += 1;
                near.receive(&confirmation).unwrap();
            }
        }
        assert_eq!(confirmations, 4);
        assert!(near.is_open());
        // Who confirms what was never sent gains nothing.
        let mut lie = far.wrap(&c, &a, Bytes::new());
        lie.received = u64::MAX;
        near.receive(&lie).unwrap();
        let open = (0..100).take_while(|_| {
            let is_open = near.is_open();
            near.wrap(&a, &c, Bytes::new());
            is_open
        });
        assert_eq!(open.count(), 64);
    }

    #[test]
    fn a_frame_that_is_missing_or_comes_twice_is_noticed() {
        let (mut near, mut far, a, c) = ends();
        let first = near.wrap(&a, &c, Bytes::new());
        let second = near.wrap(&a, &c, Bytes::new());
        assert_eq!(far.receive(&second), Err(Gap));
        assert_eq!(far.receive(&first), Ok(()));
        assert_eq!(far.receive(&first), Err(Gap));
        assert_eq!(far.receive(&second), Ok(()));
    }
}
