//! Trunks and rules that are added, removed, and found in the file of a former run.

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
        self.set_trunks([inbound(&trunk)])?;
        let saving = {
            let mut registry = self.registry();
            let known = &mut registry.inbound;
            put(known, trunk.clone(), |it| {
                it.sip_trunk_id == trunk.sip_trunk_id
            })?;
            self.store().keep(Content::InboundTrunk(trunk.clone()))
        };
        saving.done().await?;
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
        let telephone = self.telephone()?;
        let before = self.outbound(&trunk.sip_trunk_id).ok();
        for name in before.iter().flat_map(trunks::names) {
            telephone.remove_trunk(&name);
        }
        self.set_trunks(outbound(&trunk))?;
        let saving = {
            let mut registry = self.registry();
            let known = &mut registry.outbound;
            put(known, trunk.clone(), |it| {
                it.sip_trunk_id == trunk.sip_trunk_id
            })?;
            self.store().keep(Content::OutboundTrunk(trunk.clone()))
        };
        saving.done().await?;
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
