//! The configuration of trunks.

use portunus_core::Network;
use std::net::IpAddr;

use portunus_core::configuration::Section;
use portunus_sip::message::{Host, SipUri, Uri};
use serde::{Deserialize, Serialize};

/// A trunk: a telephone provider or exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrunkConfig {
    /// Its name, for `dial_out`.
    pub name: String,
    /// The networks of its calls, to which SIP may also be sent. Empty if it does not call.
    pub from: Vec<Network>,
    /// The user of its digest when it calls. Empty if its address is enough.
    pub caller_user: String,
    /// The password of that user.
    pub caller_password: String,
    /// The prefix of called numbers, before the number of the room.
    pub prefix: String,
    /// The room of all its calls. Empty for the room with the called number.
    pub room: String,
    /// The server to call telephones by: a `sip:` URI. Empty disables it.
    pub server: String,
    /// The calling identity: a `sip:` URI of the provider.
    pub identity: String,
    /// The user of the digest to the server. Empty for that of the identity.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Whether the identity is registered at the server, so that calls arrive here.
    pub register: bool,
    /// The prefixes of numbers that may be called, such as `+49`. Empty allows all.
    pub numbers: Vec<String>,
    /// The maximum number of calls, in both directions.
    pub max_calls: usize,
}

impl Default for TrunkConfig {
    fn default() -> Self {
        TrunkConfig {
            name: String::new(),
            from: Vec::new(),
            caller_user: String::new(),
            caller_password: String::new(),
            prefix: String::new(),
            room: String::new(),
            server: String::new(),
            identity: String::new(),
            user: String::new(),
            password: String::new(),
            register: false,
            numbers: Vec::new(),
            max_calls: 30,
        }
    }
}

/// Checks the trunks of a section.
pub(crate) fn check(trunks: &[TrunkConfig], section: &mut Section<'_>) {
    for (n, trunk) in trunks.iter().enumerate() {
        let is_named = !trunk.name.is_empty();
        section.require(&["trunks"], is_named, "each trunk needs a name");
        let is_first = trunks.iter().take(n).all(|other| other.name != trunk.name);
        section.require(&["trunks"], is_first, "two trunks have the same name");
        let pair = (
            trunk.caller_user.is_empty(),
            trunk.caller_password.is_empty(),
        );
        let text = "a trunk needs both of caller_user and caller_password, or none";
        section.require(&["trunks"], pair.0 == pair.1, text);
        let is_sip = |uri: &str| uri.is_empty() || sip(uri).is_some();
        let text = "server and identity of a trunk are sip: URIs";
        section.require(
            &["trunks"],
            is_sip(&trunk.server) && is_sip(&trunk.identity),
            text,
        );
        let text = "a trunk with a server needs an identity";
        let has_identity = trunk.server.is_empty() || !trunk.identity.is_empty();
        section.require(&["trunks"], has_identity, text);
        let text = "a trunk registers at its server: that is missing";
        section.require(
            &["trunks"],
            !trunk.register || !trunk.server.is_empty(),
            text,
        );
        section.require(
            &["trunks"],
            trunk.max_calls > 0,
            "max_calls of a trunk is 1 at least",
        );
    }
}

/// Parses a `sip:` URI.
fn sip(uri: &str) -> Option<SipUri> {
    uri.parse::<Uri>().ok()?.as_sip().cloned()
}

impl TrunkConfig {
    /// Returns the server and the identity for calls, or `None` if the trunk only calls us.
    pub(crate) fn outgoing(&self) -> Option<(SipUri, SipUri)> {
        sip(&self.server).zip(sip(&self.identity))
    }

    /// Whether calls from this address are the trunk's.
    pub(crate) fn calls_from(&self, address: IpAddr) -> bool {
        self.from.iter().any(|network| network.contains(address))
    }

    /// Whether this is an address of the trunk's calls, or of its server.
    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        self.calls_from(address) || self.serves_at(address)
    }

    /// Whether this is the address of its server.
    pub(super) fn serves_at(&self, address: IpAddr) -> bool {
        let server = sip(&self.server).map(|uri| uri.host);
        server == Some(Host::Address(address.to_canonical()))
    }

    /// Returns the networks of its calls: first addresses with lengths of prefixes.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        self.from.iter().map(Network::parts)
    }

    /// Returns the room of a called number, or `None` if the number is not the trunk's.
    pub(crate) fn room_of(&self, called: &str) -> Option<String> {
        if !self.room.is_empty() {
            return Some(self.room.clone());
        }
        let called = digits(called).unwrap_or_else(|| called.to_owned());
        let prefix = digits(&self.prefix);
        let room = called.strip_prefix(prefix.as_deref().unwrap_or(&self.prefix))?;
        (!room.is_empty()).then(|| room.to_owned())
    }

    /// Returns the URI of a number, or of a name at the server, that may be called.
    pub(crate) fn callee(&self, to: &str) -> Result<Uri, NotCalled> {
        let host = sip(&self.server).ok_or(NotCalled::NoServer)?;
        let to = to.strip_prefix("tel:").unwrap_or(to);
        let called = match digits(to) {
            Some(number) => number,
            None if is_name(to) => to.to_owned(),
            None => return Err(NotCalled::NoNumber),
        };
        let begins = |with: &String| called.starts_with(digits(with).as_ref().unwrap_or(with));
        if !self.numbers.is_empty() && !self.numbers.iter().any(begins) {
            return Err(NotCalled::Forbidden);
        }
        Ok(host.with_user(&called).into())
    }
}

/// Returns the digits of a telephone number without separators, or `None` for another text.
pub(super) fn digits(text: &str) -> Option<String> {
    let number: String = text.chars().filter(|c| !" -()./".contains(*c)).collect();
    let digits = number.strip_prefix('+').unwrap_or(&number);
    let is_digit = |c: u8| c.is_ascii_digit() || c == b'*' || c == b'#';
    let is_number = !digits.is_empty() && digits.len() <= 32 && digits.bytes().all(is_digit);
    is_number.then_some(number)
}

/// Whether exchanges may name a telephone like this.
fn is_name(text: &str) -> bool {
    let is_letter = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_letter)
}

/// The reason why a number cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotCalled {
    NoServer,
    NoNumber,
    Forbidden,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn rooms_are_called_by_their_numbers() {
        let trunk = TrunkConfig {
            prefix: "+4930123".to_owned(),
            ..TrunkConfig::default()
        };
        assert_eq!(trunk.room_of("+49301231234").as_deref(), Some("1234"));
        assert_eq!(trunk.room_of("+4930123"), None);
        assert_eq!(trunk.room_of("+1202"), None);
        assert_eq!(trunk.room_of("+49 (30) 123-12.34").as_deref(), Some("1234"));
        let written = TrunkConfig {
            prefix: "+49 30-123".to_owned(),
            ..TrunkConfig::default()
        };
        assert_eq!(written.room_of("+49301231234").as_deref(), Some("1234"));
        assert_eq!(
            TrunkConfig::default().room_of("team-2").as_deref(),
            Some("team-2")
        );
        let one = TrunkConfig {
            room: "9".to_owned(),
            ..trunk
        };
        assert_eq!(one.room_of("whoever").as_deref(), Some("9"));
    }

    #[test]
    fn numbers_are_called_that_the_trunk_may_call() {
        let trunk = TrunkConfig {
            server: "sip:provider.example:5070".to_owned(),
            numbers: vec!["+49".to_owned(), "110".to_owned()],
            ..TrunkConfig::default()
        };
        let callee = |to: &str| trunk.callee(to).map(|uri| uri.to_string());
        let ok = Ok("sip:+4930555@provider.example:5070".to_owned());
        assert_eq!(callee("+49 (30) 555"), ok);
        assert_eq!(callee("tel:+49-30-555"), ok);
        assert_eq!(callee("+1202555"), Err(NotCalled::Forbidden));
        let written = TrunkConfig {
            numbers: vec!["+49 30".to_owned()],
            ..trunk.clone()
        };
        assert!(written.callee("+4930-555").is_ok());
        let named = TrunkConfig {
            numbers: Vec::new(),
            ..trunk.clone()
        };
        let named = named.callee("desk-2").unwrap().to_string();
        assert_eq!(named, "sip:desk-2@provider.example:5070");
        for no in ["", "+", "sip:ann@evil.example", "49;ext=1", "12@x"] {
            assert_eq!(callee(no), Err(NotCalled::NoNumber), "{no}");
        }
        assert_eq!(
            TrunkConfig::default().callee("110"),
            Err(NotCalled::NoServer)
        );
    }
}
