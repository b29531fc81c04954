//! Trunks and rules that are added, removed, and found in the file of a former run.

use std::collections::HashSet;

use livekit_protocol as lk;
use portunus_telephony::PhoneTrunk;

use super::trunks::{self, inbound, outbound};
use super::{MAX_ENTRIES, Sip, error, no_rule};
use crate::ids::IdKind;
use crate::saved::{Content, Store};
use crate::services::{Answer, Code};

impl Sip {
    fn store(&self) -> Store {
        let means = self.means();
        means.map(|means| means.store.clone()).unwrap_or_default()
    }

    /// Adds a trunk, or replaces the one of its id.
    pub(super) async fn add_inbound(
        &self,
        mut trunk: lk::SipInboundTrunkInfo,
    ) -> Answer<Box<lk::SipInboundTrunkInfo>> {
        trunks::check_inbound(&trunk)?;
        if trunk.sip_trunk_id.is_empty() {
            trunk.sip_trunk_id = IdKind::Trunk.random();
        }
        let before: Vec<_> = self
            .inbound(&trunk.sip_trunk_id)
            .iter()
            .map(inbound)
            .collect();
        let after = [inbound(&trunk)];
        self.replace_trunks(&before, &after)?;
        let put = {
            let mut registry = self.registry();
            let known = &mut registry.inbound;
            let put = put(known, trunk.clone(), |it| {
                it.sip_trunk_id == trunk.sip_trunk_id
            });
            put.map(|()| self.store().keep(Content::InboundTrunk(trunk.clone())))
        };
        if put.is_err() {
            self.replace_trunks(&after, &before)?;
        }
        put?.done().await?;
        Ok(Box::new(trunk))
    }

    /// Adds a trunk, or replaces the one of its id.
    pub(super) async fn add_outbound(
        &self,
        mut trunk: lk::SipOutboundTrunkInfo,
    ) -> Answer<Box<lk::SipOutboundTrunkInfo>> {
        trunks::check_outbound(&trunk)?;
        if trunk.sip_trunk_id.is_empty() {
            trunk.sip_trunk_id = IdKind::Trunk.random();
        }
        let before = self.outbound(&trunk.sip_trunk_id);
        let before = before.map(|trunk| outbound(&trunk)).unwrap_or_default();
        let after = outbound(&trunk);
        self.replace_trunks(&before, &after)?;
        let put = {
            let mut registry = self.registry();
            let known = &mut registry.outbound;
            let put = put(known, trunk.clone(), |it| {
                it.sip_trunk_id == trunk.sip_trunk_id
            });
            put.map(|()| self.store().keep(Content::OutboundTrunk(trunk.clone())))
        };
        if put.is_err() {
            self.replace_trunks(&after, &before)?;
        }
        put?.done().await?;
        Ok(Box::new(trunk))
    }

    /// Removes a trunk of either direction.
    pub(super) async fn delete_trunk(&self, id: &str) -> Answer<Box<lk::SipTrunkInfo>> {
        let telephone = self.telephone()?;
        let removed = match self.inbound(id) {
            Ok(trunk) => {
                telephone.remove_trunk(id);
                trunks::of_inbound(trunk)
            }
            Err(_) => {
                let trunk = self.outbound(id)?;
                for name in trunks::names(&trunk) {
                    telephone.remove_trunk(&name);
                }
                trunks::of_outbound(trunk)
            }
        };
        let saving = {
            let mut registry = self.registry();
            registry.inbound.retain(|it| it.sip_trunk_id != id);
            registry.outbound.retain(|it| it.sip_trunk_id != id);
            self.store().remove(id)
        };
        saving.done().await?;
        Ok(Box::new(removed))
    }

    /// Adds a rule, or replaces the one of its id.
    pub(super) async fn add_rule(
        &self,
        mut rule: lk::SipDispatchRuleInfo,
    ) -> Answer<Box<lk::SipDispatchRuleInfo>> {
        trunks::check_rule(&rule)?;
        if rule.sip_dispatch_rule_id.is_empty() {
            rule.sip_dispatch_rule_id = IdKind::DispatchRule.random();
        }
        let saving = {
            let mut registry = self.registry();
            let id = &rule.sip_dispatch_rule_id;
            put(&mut registry.rules, rule.clone(), |it| {
                it.sip_dispatch_rule_id == *id
            })?;
            self.store().keep(Content::Rule(rule.clone()))
        };
        saving.done().await?;
        Ok(Box::new(rule))
    }

    /// Removes a rule.
    pub(super) async fn delete_rule(&self, id: &str) -> Answer<Box<lk::SipDispatchRuleInfo>> {
        let (rule, saving) = {
            let mut registry = self.registry();
            let rules = &mut registry.rules;
            let index = rules.iter().position(|it| it.sip_dispatch_rule_id == id);
            let rule = rules.remove(index.ok_or_else(no_rule)?);
            (rule, self.store().remove(id))
        };
        saving.done().await?;
        Ok(Box::new(rule))
    }

    /// Adds a trunk of a former run.
    pub(crate) fn restore_inbound(&self, trunk: lk::SipInboundTrunkInfo) {
        self.restore_trunks([inbound(&trunk)]);
        self.registry().inbound.push(trunk);
    }

    /// Adds a trunk of a former run.
    pub(crate) fn restore_outbound(&self, trunk: lk::SipOutboundTrunkInfo) {
        self.restore_trunks(outbound(&trunk));
        self.registry().outbound.push(trunk);
    }

    /// Adds a rule of a former run.
    pub(crate) fn restore_rule(&self, rule: lk::SipDispatchRuleInfo) {
        self.registry().rules.push(rule);
    }

    /// Gives the telephone the trunks `after` in place of those `before`. If it refuses one of them,
    /// it keeps those before.
    fn replace_trunks(&self, before: &[PhoneTrunk], after: &[PhoneTrunk]) -> Answer<()> {
        let telephone = self.telephone()?;
        let mut set = HashSet::new();
        let mut refused = None;
        for trunk in after {
            if let Err(fault) = telephone.set_trunk(trunk.clone()) {
                refused = Some(fault);
                break;
            }
            set.insert(&*trunk.name);
        }
        let Some(refused) = refused else {
            let gone = before.iter().filter(|trunk| !set.contains(&*trunk.name));
            gone.for_each(|trunk| telephone.remove_trunk(&trunk.name));
            return Ok(());
        };
        for trunk in before {
            if set.remove(&*trunk.name)
                && let Err(fault) = telephone.set_trunk(trunk.clone())
            {
                tracing::warn!(trunk = trunk.name, "a trunk is lost: {fault}");
            }
        }
        set.iter().for_each(|name| telephone.remove_trunk(name));
        Err(error(Code::InvalidArgument, refused.to_string()))
    }

    fn set_trunks(&self, trunks: impl IntoIterator<Item = PhoneTrunk>) -> Answer<()> {
        let telephone = self.telephone()?;
        for trunk in trunks {
            let set = telephone.set_trunk(trunk);
            set.map_err(|fault| error(Code::InvalidArgument, fault.to_string()))?;
        }
        Ok(())
    }

    /// Sets trunks whose services wait for no answer. They stay listed if there are no telephones.
    fn restore_trunks(&self, trunks: impl IntoIterator<Item = PhoneTrunk>) {
        if let Err(error) = self.set_trunks(trunks) {
            tracing::warn!("a saved trunk of LiveKit's services is not used: {error}");
        }
    }
}

/// Adds an entry, in place of the one that it replaces.
fn put<T>(list: &mut Vec<T>, entry: T, is_replaced: impl Fn(&T) -> bool) -> Answer<()> {
    if let Some(known) = list.iter_mut().find(|it| is_replaced(it)) {
        *known = entry;
        return Ok(());
    }
    if list.len() >= MAX_ENTRIES {
        return Err(error(Code::ResourceExhausted, "there are too many of them"));
    }
    list.push(entry);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use portunus_audio::{AudioConfig, AudioThreads};
    use portunus_media::MediaPlane;
    use portunus_record::Recorder;
    use portunus_telephony::{DialError, DialId, Dialled, Telephone, Telephony};

    use super::*;
    use crate::hall::{Hall, Halls};
    use crate::services::{SipAnswer, SipRequest};
    use crate::sip::Means;

    /// A telephone that refuses trunks for calls from the number `+666`.
    #[derive(Default)]
    struct Trunks(Mutex<BTreeMap<String, PhoneTrunk>>);

    impl Trunks {
        /// Returns the names of the trunks and their servers.
        fn shown(&self) -> Vec<(String, String)> {
            let trunks = self.0.lock().unwrap();
            let shown = trunks.values();
            shown
                .map(|it| (it.name.clone(), it.server.clone()))
                .collect()
        }
    }

    impl Telephone for Trunks {
        fn dial(&self, _: Dialled) -> Result<DialId, DialError> {
            Err(DialError::Busy)
        }

        fn end(&self, _: DialId) -> bool {
            false
        }

        fn set_trunk(&self, trunk: PhoneTrunk) -> Result<(), DialError> {
            if trunk.name.ends_with("+666") {
                return Err(DialError::Fault("no".to_owned()));
            }
            self.0.lock().unwrap().insert(trunk.name.clone(), trunk);
            Ok(())
        }

        fn remove_trunk(&self, name: &str) {
            self.0.lock().unwrap().remove(name);
        }
    }

    #[derive(Debug)]
    struct NoHalls;

    impl Halls for NoHalls {
        fn find(&self, _: &str) -> Option<Arc<Hall>> {
            None
        }

        fn open(&self, _: &str, _: Option<&lk::RoomConfiguration>) -> Result<Arc<Hall>, String> {
            Err("there are no rooms".to_owned())
        }
    }

    fn sip() -> (Sip, Arc<Trunks>) {
        let (media, ..) = MediaPlane::detached();
        let (telephony, trunks) = (Telephony::default(), Arc::new(Trunks::default()));
        telephony.offer_telephone(trunks.clone());
        let sip = Sip::default();
        sip.open(Means {
            audio: AudioThreads::new(AudioConfig::default(), media.clone(), Recorder::default()),
            telephony,
            media,
            halls: Arc::new(NoHalls),
            store: Store::default(),
        });
        (sip, trunks)
    }

    fn trunk(address: &str, numbers: &[&str]) -> lk::SipOutboundTrunkInfo {
        lk::SipOutboundTrunkInfo {
            address: address.to_owned(),
            numbers: numbers.iter().map(|it| (*it).to_owned()).collect(),
            ..lk::SipOutboundTrunkInfo::default()
        }
    }

    #[tokio::test]
    async fn a_trunk_stays_as_it_is_if_its_change_is_refused() {
        use lk::update_sip_outbound_trunk_request::Action;
        let (sip, trunks) = sip();
        let made = SipRequest::CreateOutbound(Box::new(trunk("old", &["+1", "+2"])));
        let SipAnswer::Outbound(made) = sip.serve(made).await.unwrap() else {
            panic!("another answer");
        };
        let before = trunks.shown();
        assert_eq!(before.len(), 2);
        let update = |new: lk::SipOutboundTrunkInfo| {
            SipRequest::UpdateOutbound(Box::new(lk::UpdateSipOutboundTrunkRequest {
                sip_trunk_id: made.sip_trunk_id.clone(),
                action: Some(Action::Replace(new)),
            }))
        };
        let refused = update(trunk("new", &["+3", "+2", "+666"]));
        assert!(sip.serve(refused).await.is_err());
        assert_eq!(trunks.shown(), before);
        assert_eq!(sip.outbound(&made.sip_trunk_id).unwrap(), *made);

        sip.serve(update(trunk("new", &["+3", "+2"])))
            .await
            .unwrap();
        let name = |number| trunks::name(&made.sip_trunk_id, number);
        let server = || "sip:new".to_owned();
        assert_eq!(
            trunks.shown(),
            [(name("+2"), server()), (name("+3"), server())]
        );
    }
}
