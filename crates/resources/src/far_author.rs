//! The author of a request at one node of a cluster, for the node that answers the request.

use std::net::{IpAddr, Ipv6Addr};

use portunus_core::{ClientAddress, Right, Rights};
use serde::{Deserialize, Serialize};

use crate::{Asker, ClientElsewhere, Id, Maker};

/// The author of a request, as its node knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarAuthor {
    rights: Vec<Right>,
    /// The address, for limits. All clients without one count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    /// Whether it uses the Admin API.
    #[serde(default)]
    administers: bool,
    /// Whether it shows a token that is signed for the room.
    #[serde(default)]
    is_signed: bool,
}

impl FarAuthor {
    /// Returns the author of a request about `room`, with the token that it shows.
    pub fn of(asker: &Asker, room: &Id, token: Option<&str>) -> Self {
        let address = match asker.maker {
            Maker::Client(ClientAddress::Ipv4(address)) => Some(address.into()),
            Maker::Client(ClientAddress::Ipv6([a, b, c, d])) => {
                Some(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            Maker::Client(ClientAddress::Unix | ClientAddress::Broker(_)) | Maker::Operator => None,
        };
        let all = Right::ALL.into_iter();
        FarAuthor {
            rights: all.filter(|right| asker.may(*right)).collect(),
            address,
            administers: asker.is_administrator(),
            is_signed: asker.shows_signed_token(room, token),
        }
    }

    /// Returns it as the home sees it. `is_own`: the request is about its own participation.
    pub fn asker(&self, is_own: bool) -> Asker {
        if self.administers {
            return Asker::administrator();
        }
        let rights = self.rights.iter();
        let rights = rights.fold(Rights::NONE, |all, right| all.and((*right).into()));
        let address = self
            .address
            .map_or(ClientAddress::Unix, ClientAddress::from);
        let client = ClientElsewhere {
            is_signed: self.is_signed,
            is_own,
        };
        Asker::elsewhere(rights, address, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_has_the_same_rights_at_the_home() {
        let address = ClientAddress::Ipv6([1, 2, 3, 4]);
        let rights = Rights::from(Right::Record).and(Right::Forward.into());
        let client = ClientElsewhere {
            is_signed: false,
            is_own: false,
        };
        let there = Asker::elsewhere(rights, address, client);
        let author = FarAuthor::of(&there, &Id::Number(1), None);
        let asker = author.asker(false);
        assert_eq!(asker.rights, rights);
        assert_eq!(asker.maker, Maker::Client(address));
        assert!(!asker.is_administrator());
        assert!(!asker.shows_signed_token(&Id::Number(1), None));
        let author = FarAuthor::of(&Asker::administrator(), &Id::Number(1), None);
        assert!(author.asker(false).is_administrator());
    }
}
