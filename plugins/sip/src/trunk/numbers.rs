//! Trunks that are set while the server runs: their numbers and addresses.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use portunus_core::Network;
use portunus_telephony::PhoneTrunk;

use super::config::{TrunkConfig, digits};

/// The numbers of a trunk. Empty lists mean all numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) called: Vec<String>,
    pub(super) callers: Vec<String>,
}

impl Numbers {
    /// Returns whether a call is the trunk's.
    pub(super) fn take(&self, called: &str, caller: Option<&str>) -> bool {
        let plain = |number: &str| digits(number).unwrap_or_else(|| number.to_owned());
        let is_in = |numbers: &[String], number: &str| {
            let number = plain(number);
            numbers.is_empty() || numbers.iter().any(|known| plain(known) == number)
        };
        is_in(&self.called, called) && is_in(&self.callers, caller.unwrap_or_default())
    }
}

/// The trunks that are set now, for the decision where SIP may be sent; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PhoneTrunks(Arc<RwLock<Vec<TrunkConfig>>>);

/// Clones of one are equal.
impl PartialEq for PhoneTrunks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PhoneTrunks {}

impl PhoneTrunks {
    pub(super) fn add(&self, trunk: TrunkConfig) {
        let mut trunks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        trunks.push(trunk);
    }

    pub(super) fn remove(&self, name: &str) {
        let mut trunks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        trunks.retain(|trunk| trunk.name != name);
    }

    /// Returns whether this is an address of a trunk. A trunk that everybody may call by has none.
    pub(crate) fn are_at(&self, address: IpAddr) -> bool {
        let trunks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        trunks.iter().any(|trunk| {
            let named = trunk.from.iter().filter(|network| network.parts().1 > 0);
            let calls = named.clone().any(|network| network.contains(address));
            calls || trunk.serves_at(address)
        })
    }
}

impl TrunkConfig {
    /// Returns the configuration of a trunk, or why it is wrong.
    pub(super) fn of(trunk: PhoneTrunk) -> Result<Self, String> {
        let network = |text: &String| {
            let text = text.trim();
            let parsed = text.parse::<Network>();
            parsed.map_err(|_| format!("{text:?} is no address and no network"))
        };
        let config = TrunkConfig {
            from: trunk.from.iter().map(network).collect::<Result<_, _>>()?,
            name: trunk.name,
            caller_user: trunk.caller_user,
            caller_password: trunk.caller_password,
            server: trunk.server,
            identity: trunk.identity,
            user: trunk.user,
            password: trunk.password,
            max_calls: trunk.max_calls,
            ..TrunkConfig::default()
        };
        match !config.server.is_empty() && config.outgoing().is_none() {
            true => Err(format!(
                "{:?} or {:?} is no sip: URI",
                config.server, config.identity
            )),
            false => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_trunk_takes_calls_of_its_numbers() {
        let numbers = Numbers {
            called: vec!["+49 30 1234".to_owned()],
            callers: vec!["+1202".to_owned()],
        };
        assert!(numbers.take("+49301234", Some("+1-202")));
        assert!(!numbers.take("+49301235", Some("+1202")));
        assert!(!numbers.take("+49301234", Some("+1203")));
        assert!(!numbers.take("+49301234", None));
        let all = Numbers {
            called: Vec::new(),
            callers: Vec::new(),
        };
        assert!(all.take("anything", None));
    }

    #[test]
    fn a_trunk_for_all_callers_opens_no_way_to_them() {
        let trunks = PhoneTrunks::default();
        let of = |from: &[&str], server: &str| {
            TrunkConfig::of(PhoneTrunk {
                name: "a".to_owned(),
                from: from.iter().map(|text| (*text).to_owned()).collect(),
                server: server.to_owned(),
                identity: "sip:1@h".to_owned(),
                ..PhoneTrunk::default()
            })
        };
        let (inside, outside) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        trunks.add(of(&["0.0.0.0/0"], "").unwrap());
        assert!(!trunks.are_at(inside));
        trunks.add(of(&["10.0.0.1"], "").unwrap());
        assert!(trunks.are_at(inside) && !trunks.are_at(outside));
        trunks.remove("a");
        assert!(!trunks.are_at(inside));
        trunks.add(of(&[], "sip:10.0.0.2:5070").unwrap());
        assert!(trunks.are_at(outside));
        assert!(of(&["nowhere"], "").is_err());
        assert!(of(&[], "http://h").is_err());
    }
}
