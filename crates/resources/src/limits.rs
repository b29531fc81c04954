//! The limits of what strangers make.

use std::time::Duration;

use portunus_core::{ClientAddress, Right, Rights};

/// The limits of resources of clients without [`Right::Administer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limit of present resources of one client. 0 permits none.
    pub max_per_client: usize,
    /// The limit of present resources of all such clients.
    pub max_from_clients: usize,
    /// The time after which an unused resource of a client ends. 0 means never.
    pub unused_timeout: Duration,
}

impl Default for Limits {
    /// Enough for clients that share an address. After 6 hours, a resource of the morning is still
    /// there in the afternoon, and the rest of a flood is gone the next day.
    fn default() -> Self {
        Limits {
            max_per_client: 20,
            max_from_clients: 500,
            unused_timeout: Duration::from_secs(6 * 3_600),
        }
    }
}

/// The maker of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The operator of the server, by the configuration or by a request with the right to
    /// administer. There are no limits.
    Operator,
    /// Anybody else.
    Client(ClientAddress),
}

impl Maker {
    /// Returns the maker of a request with these rights and this address.
    pub fn of(rights: Rights, client: ClientAddress) -> Self {
        match rights.may(Right::Administer) {
            true => Maker::Operator,
            false => Maker::Client(client),
        }
    }
}

/// A reached limit, with its number. The texts name the keys of the plugin's section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// The limit of one client.
    #[error("what one address makes may be {0} at most, see max_per_client")]
    OfClient(usize),
    /// That of all clients together.
    #[error("what clients make may be {0} at most, see max_from_clients")]
    OfClients(usize),
}
