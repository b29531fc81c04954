//! What strangers may make.

use std::time::Duration;

use portunus_core::{ClientAddress, Right, Rights};

/// What requesters without [`Right::Administer`] may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Resources that one client has made and that are there still; 0: clients make none.
    pub max_per_client: usize,
    /// The same of all such clients.
    pub max_from_clients: usize,
    /// How long what a client has made is there without being used; 0: for ever.
    pub unused_timeout: Duration,
}

impl Default for Limits {
    /// Enough for those who share an address. 6 hours: what is made in the morning is there in the afternoon, and what a
    /// flood has left is gone the next day.
    fn default() -> Self {
        Limits {
            max_per_client: 20,
            max_from_clients: 500,
            unused_timeout: Duration::from_secs(6 * 3_600),
        }
    }
}

/// Who makes a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Whoever runs the server, by its configuration or by a request with the right to administer. There are no limits.
    Operator,
    /// Anybody else.
    Client(ClientAddress),
}

impl Maker {
    /// Who makes a request with these rights, from there.
    pub fn of(rights: Rights, client: ClientAddress) -> Self {
        match rights.may(Right::Administer) {
            true => Maker::Operator,
            false => Maker::Client(client),
        }
    }
}

/// A limit that is reached, with the number that it is. The texts name the keys of the plugin's section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// That of one client.
    #[error("what one address makes may be {0} at most, see max_per_client")]
    OfClient(usize),
    /// That of all clients together.
    #[error("what clients make may be {0} at most, see max_from_clients")]
    OfClients(usize),
}
