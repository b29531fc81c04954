//! SIP: telephones in rooms, by trunks and rules that the services set.

mod dispatch;
mod entrance;
mod line;
mod outgoing;
mod registry;
mod trunks;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use livekit_protocol as lk;
use portunus_audio::AudioThreads;
use portunus_media::MediaPlane;
use portunus_telephony::{DialId, Entrance, IncomingCall, Reception, Telephone, Telephony};

use crate::hall::Halls;
use crate::ids::IdKind;
use crate::saved::Store;
use crate::services::{Answer, Code, ServiceError, SipAnswer, SipRequest};
use dispatch::choices;
use entrance::{IncomingEntrance, by_name};
use trunks::apply;

/// The most trunks of each direction, and rules.
const MAX_ENTRIES: usize = 10_000;

/// Attributes of participants with a telephone.
mod attribute {
    pub(super) const CALL_ID: &str = "sip.callID";
    pub(super) const FULL_CALL_ID: &str = "sip.callIDFull";
    pub(super) const STATUS: &str = "sip.callStatus";
    pub(super) const NUMBER: &str = "sip.phoneNumber";
    pub(super) const TRUNK: &str = "sip.trunkID";
    pub(super) const TRUNK_NUMBER: &str = "sip.trunkPhoneNumber";
    pub(super) const RULE: &str = "sip.ruleID";
}

/// What telephones need of the server.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub(crate) audio: AudioThreads,
    pub(crate) telephony: Telephony,
    pub(crate) media: MediaPlane,
    pub(crate) halls: Arc<dyn Halls>,
    /// Where trunks and rules are kept.
    pub(crate) store: Store,
}

/// The trunks, rules and calls of a server; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Sip(Arc<Shared>);

#[derive(Default)]
struct Shared {
    means: OnceLock<Means>,
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    inbound: Vec<lk::SipInboundTrunkInfo>,
    outbound: Vec<lk::SipOutboundTrunkInfo>,
    rules: Vec<lk::SipDispatchRuleInfo>,
    calls: HashMap<DialId, CallEntry>,
}

/// A call with its participant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallEntry {
    room: String,
    identity: String,
}

impl fmt::Debug for Sip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sip").finish_non_exhaustive()
    }
}

impl Sip {
    /// Sets what telephones need, once.
    pub(crate) fn open(&self, means: Means) {
        let _ = self.0.means.set(means);
    }

    fn means(&self) -> Option<&Means> {
        self.0.means.get()
    }

    fn telephone(&self) -> Answer<&Arc<dyn Telephone>> {
        let telephone = self.means().and_then(|means| means.telephony.telephone());
        let text = "this server has no telephones: the plugin sip is off";
        telephone.ok_or_else(|| error(Code::Unavailable, text))
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        let registry = self.0.registry.lock();
        registry.unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the telephone of a participant is connected.
    fn begins(&self, call: DialId, entry: CallEntry) {
        self.registry().calls.insert(call, entry);
    }

    /// Notes that a call has ended.
    fn ended(&self, call: DialId) {
        self.registry().calls.remove(&call);
    }

    /// Serves a request.
    pub(crate) async fn serve(&self, request: SipRequest) -> Answer<SipAnswer> {
        Ok(match request {
            SipRequest::CreateInbound(trunk) => SipAnswer::Inbound(self.add_inbound(*trunk).await?),
            SipRequest::UpdateInbound(request) => {
                use lk::update_sip_inbound_trunk_request::Action;
                let id = request.sip_trunk_id;
                let mut trunk = self.inbound(&id)?;
                match request.action {
                    Some(Action::Replace(new)) => trunk = new,
                    Some(Action::Update(update)) => trunks::update_inbound(&mut trunk, update),
                    None => return Err(error(Code::InvalidArgument, "action is required")),
                }
                trunk.sip_trunk_id = id;
                SipAnswer::Inbound(self.add_inbound(trunk).await?)
            }
            SipRequest::GetInbound(id) => SipAnswer::GotInbound(self.inbound(&id)?),
            SipRequest::ListInbound(request) => {
                let registry = self.registry();
                let (ids, numbers) = (&request.trunk_ids, &request.numbers);
                let is_wanted = |it: &&lk::SipInboundTrunkInfo| {
                    is_listed(ids, &it.sip_trunk_id) && has_number(numbers, &it.numbers)
                };
                let trunks = registry.inbound.iter().filter(is_wanted);
                SipAnswer::ListInbound(trunks.cloned().collect())
            }
            SipRequest::CreateOutbound(trunk) => {
                SipAnswer::Outbound(self.add_outbound(*trunk).await?)
            }
            SipRequest::UpdateOutbound(request) => {
                use lk::update_sip_outbound_trunk_request::Action;
                let id = request.sip_trunk_id;
                let mut trunk = self.outbound(&id)?;
                match request.action {
                    Some(Action::Replace(new)) => trunk = new,
                    Some(Action::Update(update)) => trunks::update_outbound(&mut trunk, update),
                    None => return Err(error(Code::InvalidArgument, "action is required")),
                }
                trunk.sip_trunk_id = id;
                SipAnswer::Outbound(self.add_outbound(trunk).await?)
            }
            SipRequest::GetOutbound(id) => SipAnswer::GotOutbound(self.outbound(&id)?),
            SipRequest::ListOutbound(request) => {
                let registry = self.registry();
                let (ids, numbers) = (&request.trunk_ids, &request.numbers);
                let is_wanted = |it: &&lk::SipOutboundTrunkInfo| {
                    is_listed(ids, &it.sip_trunk_id) && has_number(numbers, &it.numbers)
                };
                let trunks = registry.outbound.iter().filter(is_wanted);
                SipAnswer::ListOutbound(trunks.cloned().collect())
            }
            SipRequest::DeleteTrunk(id) => SipAnswer::Trunk(self.delete_trunk(&id).await?),
            SipRequest::CreateRule(rule) => SipAnswer::Rule(self.add_rule(*rule).await?),
            SipRequest::UpdateRule(request) => {
                use lk::update_sip_dispatch_rule_request::Action;
                let id = request.sip_dispatch_rule_id;
                let known = self
                    .registry()
                    .rules
                    .iter()
                    .find(|it| it.sip_dispatch_rule_id == id)
                    .cloned();
                let mut rule = known.ok_or_else(no_rule)?;
                match request.action {
                    Some(Action::Replace(new)) => rule = new,
                    Some(Action::Update(update)) => {
                        apply(&mut rule.trunk_ids, update.trunk_ids);
                        rule.rule = update.rule.or(rule.rule);
                        rule.name = update.name.unwrap_or(rule.name);
                        rule.metadata = update.metadata.unwrap_or(rule.metadata);
                        rule.attributes.extend(update.attributes);
                    }
                    None => return Err(error(Code::InvalidArgument, "action is required")),
                }
                rule.sip_dispatch_rule_id = id;
                SipAnswer::Rule(self.add_rule(rule).await?)
            }
            SipRequest::ListRules(request) => {
                let registry = self.registry();
                let (ids, trunks) = (&request.dispatch_rule_ids, &request.trunk_ids);
                let is_wanted = |it: &&lk::SipDispatchRuleInfo| {
                    let is_of = it.trunk_ids.is_empty() || has_number(trunks, &it.trunk_ids);
                    is_listed(ids, &it.sip_dispatch_rule_id) && (trunks.is_empty() || is_of)
                };
                let rules = registry.rules.iter().filter(is_wanted);
                SipAnswer::ListRules(rules.cloned().collect())
            }
            SipRequest::DeleteRule(id) => SipAnswer::Rule(self.delete_rule(&id).await?),
            SipRequest::CreateParticipant(request) => {
                SipAnswer::Participant(Box::new(self.call(*request).await?))
            }
            SipRequest::Transfer(request) => {
                SipAnswer::Transfer(Box::new(self.transfer(&request)?))
            }
        })
    }

    fn inbound(&self, id: &str) -> Answer<lk::SipInboundTrunkInfo> {
        let registry = self.registry();
        let found = registry.inbound.iter().find(|it| it.sip_trunk_id == id);
        found.cloned().ok_or_else(no_trunk)
    }

    fn outbound(&self, id: &str) -> Answer<lk::SipOutboundTrunkInfo> {
        let registry = self.registry();
        let found = registry.outbound.iter().find(|it| it.sip_trunk_id == id);
        found.cloned().ok_or_else(no_trunk)
    }

    /// Asks the far end of a participant's call to call somebody else.
    fn transfer(
        &self,
        request: &lk::TransferSipParticipantRequest,
    ) -> Answer<lk::TransferSipParticipantResponse> {
        let to = &request.transfer_to;
        if !to.starts_with("tel:") && !to.starts_with("sip:") {
            let text = "transfer_to has to start with tel: or sip:";
            return Err(error(Code::InvalidArgument, text));
        }
        let entry = CallEntry {
            room: request.room_name.clone(),
            identity: request.participant_identity.clone(),
        };
        let call = {
            let registry = self.registry();
            let mut calls = registry.calls.iter();
            calls
                .find(|(_, known)| **known == entry)
                .map(|(call, _)| *call)
        };
        let call = call.ok_or_else(ServiceError::no_participant)?;
        match self.telephone()?.transfer(call, to) {
            true => Ok(lk::TransferSipParticipantResponse {
                transfer_id: IdKind::SipTransfer.random(),
                status: lk::SipTransferStatus::StsTransferOngoing.into(),
                ..lk::TransferSipParticipantResponse::default()
            }),
            false => Err(ServiceError::no_participant()),
        }
    }
}

/// The receiver of calls. It keeps nothing, because the trunks keep the telephones, which keep it.
pub(crate) struct Receiver(Weak<Shared>);

impl Sip {
    /// Returns the receiver of calls.
    pub(crate) fn receiver(&self) -> Receiver {
        Receiver(Arc::downgrade(&self.0))
    }
}

impl Reception for Receiver {
    fn receive(&self, call: &IncomingCall) -> Option<Arc<dyn Entrance>> {
        let sip = Sip(self.0.upgrade()?);
        let choices = choices(&sip.registry().rules, call);
        let entrance = IncomingEntrance {
            sip,
            call: Some(call.clone()),
            choices,
        };
        (!entrance.choices.is_empty()).then(|| Arc::new(entrance) as _)
    }

    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>> {
        let sip = Sip(self.0.upgrade()?);
        let hall = sip.means()?.halls.find(room)?;
        Some(Arc::new(by_name(sip, &hall)))
    }
}

fn is_listed(ids: &[String], id: &str) -> bool {
    ids.is_empty() || ids.iter().any(|it| it == id)
}

fn has_number(wanted: &[String], numbers: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|number| numbers.contains(number))
}

fn no_trunk() -> ServiceError {
    error(Code::NotFound, "requested sip trunk does not exist")
}

fn no_rule() -> ServiceError {
    error(Code::NotFound, "requested sip dispatch rule does not exist")
}

fn error(code: Code, text: impl Into<std::borrow::Cow<'static, str>>) -> ServiceError {
    ServiceError::new(code, text)
}
