//! Trunks and rules of the services: checks, changes, and what the telephone knows of them.

use livekit_protocol as lk;
use livekit_protocol::SipTransport;
use portunus_telephony::PhoneTrunk;

use super::error;
use crate::services::{Answer, Code, ServiceError};

/// The most calls of a trunk.
const MAX_CALLS: usize = 1_000;

/// The networks of all addresses.
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Returns the telephone's trunk for calls that come in.
pub(super) fn inbound(trunk: &lk::SipInboundTrunkInfo) -> PhoneTrunk {
    let from = match trunk.allowed_addresses.is_empty() {
        true => EVERYWHERE.map(str::to_owned).to_vec(),
        false => trunk.allowed_addresses.clone(),
    };
    PhoneTrunk {
        name: trunk.sip_trunk_id.clone(),
        from,
        caller_user: trunk.auth_username.clone(),
        caller_password: trunk.auth_password.clone(),
        called: trunk.numbers.clone(),
        callers: trunk.allowed_numbers.clone(),
        max_calls: MAX_CALLS,
        ..PhoneTrunk::default()
    }
}

/// Returns the telephone's trunks for calls that go out: one for each number that they may come from.
pub(super) fn outbound(trunk: &lk::SipOutboundTrunkInfo) -> Vec<PhoneTrunk> {
    let transport = match trunk.transport() {
        SipTransport::Auto => "",
        SipTransport::Udp => ";transport=udp",
        SipTransport::Tcp => ";transport=tcp",
        SipTransport::Tls => ";transport=tls",
    };
    let host = match trunk.from_host.is_empty() {
        true => &trunk.address,
        false => &trunk.from_host,
    };
    let of = |number: &String| PhoneTrunk {
        name: name(&trunk.sip_trunk_id, number),
        server: format!("sip:{}{transport}", trunk.address),
        identity: format!("sip:{number}@{host}"),
        user: trunk.auth_username.clone(),
        password: trunk.auth_password.clone(),
        max_calls: MAX_CALLS,
        ..PhoneTrunk::default()
    };
    trunk.numbers.iter().map(of).collect()
}

/// Returns the names of the telephone's trunks for calls that go out.
pub(super) fn names(trunk: &lk::SipOutboundTrunkInfo) -> impl Iterator<Item = String> {
    let numbers = trunk.numbers.iter();
    numbers.map(|number| name(&trunk.sip_trunk_id, number))
}

/// Returns the name of the telephone's trunk for calls from a number.
pub(super) fn name(id: &str, number: &str) -> String {
    format!("{id} {number}")
}

/// Checks a trunk for calls that come in.
pub(super) fn check_inbound(trunk: &lk::SipInboundTrunkInfo) -> Answer<()> {
    let is_open = trunk.numbers.is_empty()
        && trunk.allowed_addresses.is_empty()
        && trunk.auth_username.is_empty();
    if is_open {
        let text = "for security, one of the fields must be set: numbers, allowed_addresses, auth_username";
        return Err(wrong(text));
    }
    if trunk.auth_username.is_empty() != trunk.auth_password.is_empty() {
        return Err(wrong("auth_username and auth_password need each other"));
    }
    check_encryption(trunk.media_encryption, trunk.media.as_ref())
}

/// Checks a trunk for calls that go out.
pub(super) fn check_outbound(trunk: &lk::SipOutboundTrunkInfo) -> Answer<()> {
    if trunk.address.is_empty() || trunk.address.contains(|c: char| !c.is_ascii_graphic()) {
        return Err(wrong("no address specified"));
    }
    if trunk.address.contains("sip:") || trunk.address.contains(['@', ';', '<', '>']) {
        return Err(wrong("address is a host, perhaps with a port, and no URI"));
    }
    if trunk.numbers.is_empty() {
        return Err(wrong("no numbers specified"));
    }
    let is_number = |number: &String| {
        !number.is_empty()
            && number
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-_.*#".contains(&byte))
    };
    if !trunk.numbers.iter().all(is_number) {
        return Err(wrong("a number has a character that it cannot have"));
    }
    check_encryption(trunk.media_encryption, trunk.media.as_ref())
}

/// Checks a rule.
pub(super) fn check_rule(rule: &lk::SipDispatchRuleInfo) -> Answer<()> {
    use lk::sip_dispatch_rule::Rule;
    let inner = rule.rule.as_ref().and_then(|rule| rule.rule.as_ref());
    let pin = match inner {
        None => return Err(wrong("missing rule")),
        Some(Rule::DispatchRuleDirect(rule)) if rule.room_name.is_empty() => {
            return Err(wrong("missing room name"));
        }
        Some(Rule::DispatchRuleDirect(rule)) => &rule.pin,
        Some(Rule::DispatchRuleIndividual(rule)) => &rule.pin,
        Some(Rule::DispatchRuleCallee(rule)) => &rule.pin,
    };
    match pin.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(()),
        false => Err(wrong("a pin has digits only")),
    }
}

/// SRTP is taken when it is offered, and is not required.
fn check_encryption(old: i32, media: Option<&lk::SipMediaConfig>) -> Answer<()> {
    let required = i32::from(lk::SipMediaEncryption::SipMediaEncryptRequire);
    let new = media.and_then(|media| media.encryption);
    match old == required || new == Some(required) {
        true => Err(ServiceError::unimplemented(
            "encryption of media cannot be required",
        )),
        false => Ok(()),
    }
}

/// Changes a list.
pub(super) fn apply(list: &mut Vec<String>, update: Option<lk::ListUpdate>) {
    let Some(update) = update else { return };
    if update.clear {
        list.clear();
    }
    if !update.set.is_empty() {
        *list = update.set;
    }
    list.retain(|it| !update.remove.contains(it));
    for new in update.add {
        if !list.contains(&new) {
            list.push(new);
        }
    }
}

/// Changes a trunk for calls that come in.
pub(super) fn update_inbound(
    trunk: &mut lk::SipInboundTrunkInfo,
    update: lk::SipInboundTrunkUpdate,
) {
    apply(&mut trunk.numbers, update.numbers);
    apply(&mut trunk.allowed_addresses, update.allowed_addresses);
    apply(&mut trunk.allowed_numbers, update.allowed_numbers);
    set(&mut trunk.auth_username, update.auth_username);
    set(&mut trunk.auth_password, update.auth_password);
    set(&mut trunk.name, update.name);
    set(&mut trunk.metadata, update.metadata);
    set(&mut trunk.media_encryption, update.media_encryption);
}

/// Changes a trunk for calls that go out.
pub(super) fn update_outbound(
    trunk: &mut lk::SipOutboundTrunkInfo,
    update: lk::SipOutboundTrunkUpdate,
) {
    apply(&mut trunk.numbers, update.numbers);
    set(&mut trunk.address, update.address);
    set(&mut trunk.transport, update.transport);
    set(&mut trunk.destination_country, update.destination_country);
    set(&mut trunk.auth_username, update.auth_username);
    set(&mut trunk.auth_password, update.auth_password);
    set(&mut trunk.name, update.name);
    set(&mut trunk.metadata, update.metadata);
    set(&mut trunk.from_host, update.from_host);
    set(&mut trunk.media_encryption, update.media_encryption);
}

fn set<T>(value: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *value = new;
    }
}

/// Describes a trunk as former versions do.
pub(super) fn of_inbound(trunk: lk::SipInboundTrunkInfo) -> lk::SipTrunkInfo {
    lk::SipTrunkInfo {
        sip_trunk_id: trunk.sip_trunk_id,
        kind: lk::sip_trunk_info::TrunkKind::TrunkInbound.into(),
        inbound_addresses: trunk.allowed_addresses,
        inbound_numbers: trunk.allowed_numbers,
        inbound_username: trunk.auth_username,
        name: trunk.name,
        metadata: trunk.metadata,
        outbound_number: trunk.numbers.into_iter().next().unwrap_or_default(),
        ..lk::SipTrunkInfo::default()
    }
}

/// Describes a trunk as former versions do.
pub(super) fn of_outbound(trunk: lk::SipOutboundTrunkInfo) -> lk::SipTrunkInfo {
    lk::SipTrunkInfo {
        sip_trunk_id: trunk.sip_trunk_id,
        kind: lk::sip_trunk_info::TrunkKind::TrunkOutbound.into(),
        outbound_address: trunk.address,
        outbound_number: trunk.numbers.into_iter().next().unwrap_or_default(),
        outbound_username: trunk.auth_username,
        transport: trunk.transport,
        name: trunk.name,
        metadata: trunk.metadata,
        ..lk::SipTrunkInfo::default()
    }
}

fn wrong(text: &'static str) -> ServiceError {
    error(Code::InvalidArgument, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbound_trunk_is_not_open_to_everybody() {
        let mut trunk = lk::SipInboundTrunkInfo::default();
        assert!(check_inbound(&trunk).is_err());
        trunk.numbers = vec!["+4930".to_owned()];
        assert_eq!(check_inbound(&trunk), Ok(()));
        trunk.auth_username = "al".to_owned();
        assert!(check_inbound(&trunk).is_err());
    }

    #[test]
    fn an_outbound_trunk_has_an_account_for_each_number() {
        let trunk = lk::SipOutboundTrunkInfo {
            sip_trunk_id: "ST_1".to_owned(),
            address: "h:5070".to_owned(),
            transport: SipTransport::Tcp.into(),
            numbers: vec!["+1".to_owned(), "+2".to_owned()],
            ..Default::default()
        };
        assert_eq!(check_outbound(&trunk), Ok(()));
        let trunks = outbound(&trunk);
        let shown: Vec<_> = trunks.iter().map(|it| (&*it.name, &*it.identity)).collect();
        assert_eq!(
            shown,
            [("ST_1 +1", "sip:+1@h:5070"), ("ST_1 +2", "sip:+2@h:5070")]
        );
        assert!(
            trunks
                .iter()
                .all(|it| it.server == "sip:h:5070;transport=tcp")
        );
        for wrong in ["", "sip:h", "a@h", "h>;x"] {
            let trunk = lk::SipOutboundTrunkInfo {
                address: wrong.to_owned(),
                ..trunk.clone()
            };
            assert!(check_outbound(&trunk).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_changed_in_place() {
        let mut list = vec!["a".to_owned(), "b".to_owned()];
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
        let update = lk::ListUpdate {
            add: texts(&["b", "c"]),
            remove: texts(&["a"]),
            ..Default::default()
        };
        apply(&mut list, Some(update));
        assert_eq!(list, ["b", "c"]);
        apply(&mut list, None);
        assert_eq!(list, ["b", "c"]);
        let update = lk::ListUpdate {
            clear: true,
            ..Default::default()
        };
        apply(&mut list, Some(update));
        assert!(list.is_empty());
    }
}
