//! The addresses that far ends are told: of the family that they use themselves (RFC 6157).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use portunus_core::media::ingest::interface_address;
use portunus_core::sdp::plain::FarSession;

use crate::{CallError, CallSettings};

/// The port of the discard service. Nothing is sent there: the system is only asked which address it would send from.
const DISCARD: u16 = 9;

impl CallSettings {
    /// The address that a far end at `far` can send to: the configured one, if it is of the same family, else the one that the system sends
    /// from. `None` if RTP is not taken by this family.
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

    /// The address that the maker of a description is told, where that was `now` before. It stays if the description says nowhere to send to.
    pub(crate) fn address_for(&self, far: &FarSession, now: IpAddr) -> Result<IpAddr, CallError> {
        match far.address() {
            Some(far) => self.address_towards(far).ok_or(CallError::Family(far)),
            None => Ok(now),
        }
    }

    /// Checks that a far end's offer can be answered: where media would go, and from what address.
    pub fn check_offer(&self, far: &FarSession) -> Result<(), CallError> {
        self.check_far(far)?;
        self.address_for(far, self.address).map(drop)
    }
}

fn is_same_family(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4()
}

/// The address of this machine that the system sends from to `far`. `None` if it has no way there.
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
