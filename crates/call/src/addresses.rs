//! The addresses that far ends get: of their own family (RFC 6157).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use portunus_core::media::ingest::interface_address;
use portunus_core::sdp::plain::FarSession;

use crate::{CallError, CallSettings};

/// The port of the discard service. Nothing is sent there; the system only selects a source address
/// for it.
const DISCARD: u16 = 9;

impl CallSettings {
    /// Returns the address for a far end at `far`: the configured one if it has the same family,
    /// else the one that the system sends from. Returns `None` if no socket takes RTP of this
    /// family.
    pub(crate) fn address_towards(&self, far: IpAddr) -> Option<IpAddr> {
        if is_same_family(self.address, far) {
            return Some(self.address);
        }
        let bound = match self.interface.as_deref().filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => Some(interface_address(name).ok()?),
        };
        match bound {
            Some(bound) if bound == IpAddr::from(Ipv4Addr::UNSPECIFIED) => None,
            Some(bound) if !bound.is_unspecified() => is_same_family(bound, far).then_some(bound),
            _ => source_towards(far),
        }
    }

    /// Returns the address for the sender of a description. It stays `now` if the description has
    /// no address.
    pub(crate) fn address_for(&self, far: &FarSession, now: IpAddr) -> Result<IpAddr, CallError> {
        match far.address() {
            Some(far) => self.address_towards(far).ok_or(CallError::Family(far)),
            None => Ok(now),
        }
    }

    /// Checks that a far end's offer can be answered: the target of media, and the own address.
    pub fn check_offer(&self, far: &FarSession) -> Result<(), CallError> {
        self.check_far(far)?;
        self.address_for(far, self.address).map(drop)
    }
}

fn is_same_family(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4()
}

/// Returns the source address of this machine towards `far`, or `None` without a route.
fn source_towards(far: IpAddr) -> Option<IpAddr> {
    let any = match far {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(far, DISCARD)).ok()?;
    let source = socket.local_addr().ok()?.ip();
    (!source.is_unspecified()).then_some(source)
}
