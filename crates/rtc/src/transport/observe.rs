//! Whoever is shown the packets of a transport in the clear.
//!
//! While there is such an observer, the keys are with it. So the packets of all other transports pay nothing for it: those of an observed
//! one take the way of those for which there are no keys.

use std::fmt;
use std::time::Instant;

use portunus_rtp::SeqNo;

use super::{DropReason, Received, Srtp, Transport, TransportError};
use crate::Path;

/// Is shown the RTP and RTCP packets of a transport in the clear, as they come and leave.
pub trait PacketObserver: fmt::Debug + Send {
    /// A packet that came by `path` and is authentic, or that leaves by it; its bytes are in two parts, one after the other.
    fn packet(&self, direction: Direction, path: Path, packet: [&[u8]; 2]);
}

/// The way of a packet.
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
    /// Has the packets shown to `observer` from now on, or to nobody. Gives back the one before.
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
        (header_len, len, tail): (usize, usize, &[u8]),
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
