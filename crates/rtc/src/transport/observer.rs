//! The observer of a transport's decrypted packets.
//!
//! An observer holds the keys meanwhile. So the packets of all other transports pay nothing for it,
//! while those of an observed one take the path of those without keys.

use std::fmt;
use std::time::Instant;

use portunus_rtp::SeqNo;

use super::{DropReason, Received, Srtp, Transport, TransportError};
use crate::Path;

/// Receives the decrypted RTP and RTCP packets of a transport.
pub trait PacketObserver: fmt::Debug + Send {
    /// Takes an authentic packet received on `path`, or one sent on it. Its bytes are in two
    /// consecutive parts.
    fn packet(&self, direction: Direction, path: Path, packet: [&[u8]; 2]);
}

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer to this side.
    Incoming,
    /// From this side to the peer.
    Outgoing,
}

#[derive(Debug)]
pub(super) struct Observed {
    observer: Box<dyn PacketObserver>,
    pub(super) srtp: Option<Box<Srtp>>,
}

impl Transport {
    /// Sets the observer, or removes it. Returns the previous one.
    pub fn observe(
        &mut self,
        observer: Option<Box<dyn PacketObserver>>,
    ) -> Option<Box<dyn PacketObserver>> {
        let before = self.observed.take().map(|observed| *observed);
        let (before, srtp) = match before {
            Some(Observed { observer, srtp }) => (Some(observer), srtp),
            None => (None, self.srtp.take()),
        };
        match observer {
            Some(observer) => self.observed = Some(Box::new(Observed { observer, srtp })),
            None => self.srtp = srtp,
        }
        before
    }

    #[cold]
    pub(super) fn observed_srtp(&self) -> Option<&Srtp> {
        self.observed.as_ref()?.srtp.as_deref()
    }

    #[cold]
    pub(super) fn seal_observed_rtp(
        &self,
        index: SeqNo,
        (header_len, len): (usize, usize),
        tail: &[u8],
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        let observed = self.observed.as_deref();
        let Some(Observed {
            observer,
            srtp: Some(srtp),
        }) = observed
        else {
            return Err(TransportError::NoKeys);
        };
        if let (Some(pair), Some(head)) = (self.ice.selected(), buf.get(..len)) {
            observer.packet(Direction::Outgoing, Path::from(pair), [head, tail]);
        }
        let sealer = &srtp.sealer;
        Ok(sealer.seal_rtp_with_tail(index, header_len, len, tail, buf)?)
    }

    #[cold]
    pub(super) fn seal_observed_rtcp(
        &mut self,
        len: usize,
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        let Some(Observed {
            observer,
            srtp: Some(srtp),
        }) = self.observed.as_deref_mut()
        else {
            return Err(TransportError::NoKeys);
        };
        if let (Some(pair), Some(packet)) = (self.ice.selected(), buf.get(..len)) {
            observer.packet(Direction::Outgoing, Path::from(pair), [packet, &[]]);
        }
        Ok(srtp.sealer.seal_rtcp(len, buf)?)
    }

    #[cold]
    pub(super) fn receive_observed_rtp(
        &mut self,
        now: Instant,
        path: Path,
        datagram: &mut [u8],
    ) -> Received {
        let received = self.open_observed(path, datagram, Srtp::open_rtp);
        if let Received::Rtp { .. } = received {
            self.ice.hear_media(now, path);
        }
        received
    }

    #[cold]
    pub(super) fn receive_observed_rtcp(&mut self, path: Path, datagram: &mut [u8]) -> Received {
        self.open_observed(path, datagram, Srtp::open_rtcp)
    }

    fn open_observed(
        &mut self,
        path: Path,
        datagram: &mut [u8],
        open: impl FnOnce(&mut Srtp, &mut [u8]) -> Received,
    ) -> Received {
        let Some(Observed {
            observer,
            srtp: Some(srtp),
        }) = self.observed.as_deref_mut()
        else {
            return Received::Dropped(DropReason::NoKeys);
        };
        let received = open(srtp, datagram);
        if let Received::Rtp { len, .. } | Received::Rtcp { len } = received
            && let Some(plain) = datagram.get(..len)
        {
            observer.packet(Direction::Incoming, path, [plain, &[]]);
        }
        received
    }
}
