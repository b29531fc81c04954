//! Dispatch rules: the room and the participant of a call that comes in.

use std::collections::HashMap;

use livekit_protocol::sip_dispatch_rule::Rule;
use livekit_protocol::{RoomConfiguration, SipDispatchRuleInfo};
use portunus_telephony::IncomingCall;

/// The characters of the random end of a room's name.
const RANDOM: usize = 12;

/// A rule that fits a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// The id of the rule. Empty for a room that is called by its name.
    pub(super) rule: String,
    /// The pin that callers enter. Empty means none.
    pub(super) pin: String,
    pub(super) room: RoomName,
    pub(super) metadata: String,
    pub(super) attributes: HashMap<String, String>,
    pub(super) hides_number: bool,
    pub(super) room_config: Option<RoomConfiguration>,
}

/// The name of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoomName {
    /// Always the same.
    Fixed(String),
    /// With a random end, which makes it new.
    New(String),
}

impl RoomName {
    /// Returns the name for a call.
    pub(super) fn name(&self) -> String {
        match self {
            RoomName::Fixed(name) => name.clone(),
            RoomName::New(start) => {
                let random = uuid::Uuid::new_v4().simple().to_string();
                format!(
                    "{start}_{}",
                    random.chars().take(RANDOM).collect::<String>()
                )
            }
        }
    }
}

/// Returns the rules for a call. Those that name its trunk come before those for all trunks, and
/// rules without a pin let callers in at once.
pub(super) fn choices(rules: &[SipDispatchRuleInfo], call: &IncomingCall) -> Vec<Choice> {
    let caller = call.caller.as_deref().unwrap_or_default();
    let is_in = |list: &[String], number: &str| {
        list.is_empty() || list.iter().any(|it| plain(it) == plain(number))
    };
    let fits = |rule: &&SipDispatchRuleInfo| {
        let is_trunk = rule.trunk_ids.is_empty() || rule.trunk_ids.contains(&call.trunk);
        is_trunk && is_in(&rule.inbound_numbers, caller) && is_in(&rule.numbers, &call.called)
    };
    let fitting: Vec<&SipDispatchRuleInfo> = rules.iter().filter(fits).collect();
    let is_special = |rule: &&SipDispatchRuleInfo| !rule.trunk_ids.is_empty();
    let special = fitting.iter().any(is_special);
    let fitting = fitting.into_iter().filter(|it| !special || is_special(it));
    let choices: Vec<Choice> = fitting.filter_map(|rule| choice(rule, call)).collect();
    match choices.iter().find(|choice| choice.pin.is_empty()) {
        Some(open) => vec![open.clone()],
        None => choices,
    }
}

fn choice(info: &SipDispatchRuleInfo, call: &IncomingCall) -> Option<Choice> {
    let caller = call.caller.clone().unwrap_or_else(|| "unknown".to_owned());
    let joined = |prefix: &str, number: &str| match prefix.is_empty() {
        true => number.to_owned(),
        false => format!("{prefix}_{number}"),
    };
    let (pin, room) = match info.rule.as_ref()?.rule.as_ref()? {
        Rule::DispatchRuleDirect(rule) => (&rule.pin, RoomName::Fixed(rule.room_name.clone())),
        Rule::DispatchRuleIndividual(rule) => {
            let name = joined(&rule.room_prefix, &caller);
            let room = match rule.no_randomness {
                true => RoomName::Fixed(name),
                false => RoomName::New(name),
            };
            (&rule.pin, room)
        }
        Rule::DispatchRuleCallee(rule) => {
            let name = joined(&rule.room_prefix, &call.called);
            let room = match rule.randomize {
                true => RoomName::New(name),
                false => RoomName::Fixed(name),
            };
            (&rule.pin, room)
        }
    };
    Some(Choice {
        rule: info.sip_dispatch_rule_id.clone(),
        pin: pin.clone(),
        room,
        metadata: info.metadata.clone(),
        attributes: info.attributes.clone(),
        hides_number: info.hide_phone_number,
        room_config: info.room_config.clone(),
    })
}

/// Returns a number without what people write between its digits.
fn plain(number: &str) -> String {
    number.chars().filter(|c| !" -()./".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use livekit_protocol::{SipDispatchRule, SipDispatchRuleDirect, SipDispatchRuleIndividual};

    use super::*;

    fn call() -> IncomingCall {
        IncomingCall {
            trunk: "ST_1".to_owned(),
            called: "+4930".to_owned(),
            caller: Some("+1202".to_owned()),
            call_id: "c".to_owned(),
        }
    }

    fn direct(room: &str, pin: &str, trunks: &[&str]) -> SipDispatchRuleInfo {
        SipDispatchRuleInfo {
            sip_dispatch_rule_id: format!("SDR_{room}"),
            rule: Some(SipDispatchRule {
                rule: Some(Rule::DispatchRuleDirect(SipDispatchRuleDirect {
                    room_name: room.to_owned(),
                    pin: pin.to_owned(),
                })),
            }),
            trunk_ids: trunks.iter().map(|id| (*id).to_owned()).collect(),
            ..SipDispatchRuleInfo::default()
        }
    }

    fn rooms(rules: &[SipDispatchRuleInfo]) -> Vec<String> {
        let choices = choices(rules, &call());
        choices.iter().map(|choice| choice.room.name()).collect()
    }

    #[test]
    fn rules_of_the_trunk_come_first_and_pins_choose_the_room() {
        let all = direct("all", "", &[]);
        assert_eq!(rooms(std::slice::from_ref(&all)), ["all"]);
        let own = direct("own", "", &["ST_1"]);
        assert_eq!(rooms(&[all.clone(), own.clone()]), ["own"]);
        assert_eq!(rooms(&[direct("other", "", &["ST_2"])]), [""; 0]);
        let (one, two) = (direct("one", "1", &["ST_1"]), direct("two", "2", &["ST_1"]));
        assert_eq!(rooms(&[all, one.clone(), two.clone()]), ["one", "two"]);
        assert_eq!(rooms(&[one, own, two]), ["own"]);
        let others = SipDispatchRuleInfo {
            inbound_numbers: vec!["+1 203".to_owned()],
            ..direct("others", "", &[])
        };
        assert_eq!(rooms(&[others]), [""; 0]);
    }

    #[test]
    fn each_caller_may_have_a_room_of_its_own() {
        let individual = |no_randomness| SipDispatchRuleInfo {
            rule: Some(SipDispatchRule {
                rule: Some(Rule::DispatchRuleIndividual(SipDispatchRuleIndividual {
                    room_prefix: "call".to_owned(),
                    no_randomness,
                    ..SipDispatchRuleIndividual::default()
                })),
            }),
            ..SipDispatchRuleInfo::default()
        };
        assert_eq!(rooms(&[individual(true)]), ["call_+1202"]);
        let (one, other) = (rooms(&[individual(false)]), rooms(&[individual(false)]));
        assert!(one.iter().all(|name| name.starts_with("call_+1202_")));
        assert_ne!(one, other);
    }
}
