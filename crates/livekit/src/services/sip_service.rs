//! The service `SIP`.

use livekit_protocol as lk;

use super::json::schema;
use super::method::{Need, SipMethod};
use super::room_service::Call;
use super::{Code, ServiceError, Services};

/// A request to the service.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum SipRequest {
    CreateInbound(Box<lk::SipInboundTrunkInfo>),
    UpdateInbound(Box<lk::UpdateSipInboundTrunkRequest>),
    GetInbound(String),
    ListInbound(lk::ListSipInboundTrunkRequest),
    CreateOutbound(Box<lk::SipOutboundTrunkInfo>),
    UpdateOutbound(Box<lk::UpdateSipOutboundTrunkRequest>),
    GetOutbound(String),
    ListOutbound(lk::ListSipOutboundTrunkRequest),
    DeleteTrunk(String),
    CreateRule(Box<lk::SipDispatchRuleInfo>),
    UpdateRule(Box<lk::UpdateSipDispatchRuleRequest>),
    ListRules(lk::ListSipDispatchRuleRequest),
    DeleteRule(String),
    CreateParticipant(Box<lk::CreateSipParticipantRequest>),
    Transfer(Box<lk::TransferSipParticipantRequest>),
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum SipAnswer {
    Inbound(Box<lk::SipInboundTrunkInfo>),
    GotInbound(lk::SipInboundTrunkInfo),
    ListInbound(Vec<lk::SipInboundTrunkInfo>),
    Outbound(Box<lk::SipOutboundTrunkInfo>),
    GotOutbound(lk::SipOutboundTrunkInfo),
    ListOutbound(Vec<lk::SipOutboundTrunkInfo>),
    Trunk(Box<lk::SipTrunkInfo>),
    Rule(Box<lk::SipDispatchRuleInfo>),
    ListRules(Vec<lk::SipDispatchRuleInfo>),
    Participant(Box<lk::SipParticipantInfo>),
    Transfer(Box<lk::TransferSipParticipantResponse>),
}

impl Call<'_> {
    /// Carries out a call of the service.
    pub(super) async fn sip<S: Services>(
        &self,
        method: SipMethod,
        services: &S,
    ) -> Result<Vec<u8>, ServiceError> {
        let need = match method {
            SipMethod::CreateParticipant | SipMethod::Transfer => Need::SipCall,
            _ => Need::SipAdmin,
        };
        if !need.is_met(self.grants) {
            return Err(ServiceError::denied());
        }
        let request = self.sip_request(method)?;
        // A participant is put into a room, or is taken from it.
        if let SipRequest::Transfer(request) = &request {
            self.require(|video| video.is_admin_of(&request.room_name))?;
        }
        self.write_sip(services.sip(request).await?)
    }

    fn sip_request(&self, method: SipMethod) -> Result<SipRequest, ServiceError> {
        let (format, body) = (self.format, self.body);
        let missing = |what: &'static str| ServiceError::new(Code::InvalidArgument, what);
        Ok(match method {
            SipMethod::CreateInbound => {
                let request: lk::CreateSipInboundTrunkRequest = format.read(body)?;
                let mut trunk = request.trunk.ok_or_else(|| missing("missing trunk"))?;
                trunk.sip_trunk_id.clear();
                SipRequest::CreateInbound(Box::new(trunk))
            }
            SipMethod::UpdateInbound => SipRequest::UpdateInbound(Box::new(format.read(body)?)),
            SipMethod::GetInbound => {
                let request: lk::GetSipInboundTrunkRequest = format.read(body)?;
                SipRequest::GetInbound(request.sip_trunk_id)
            }
            SipMethod::ListInbound => SipRequest::ListInbound(format.read(body)?),
            SipMethod::CreateOutbound => {
                let request: lk::CreateSipOutboundTrunkRequest = format.read(body)?;
                let mut trunk = request.trunk.ok_or_else(|| missing("missing trunk"))?;
                trunk.sip_trunk_id.clear();
                SipRequest::CreateOutbound(Box::new(trunk))
            }
            SipMethod::UpdateOutbound => SipRequest::UpdateOutbound(Box::new(format.read(body)?)),
            SipMethod::GetOutbound => {
                let request: lk::GetSipOutboundTrunkRequest = format.read(body)?;
                SipRequest::GetOutbound(request.sip_trunk_id)
            }
            SipMethod::ListOutbound => SipRequest::ListOutbound(format.read(body)?),
            SipMethod::DeleteTrunk => {
                let request: lk::DeleteSipTrunkRequest = format.read(body)?;
                SipRequest::DeleteTrunk(request.sip_trunk_id)
            }
            SipMethod::CreateRule => {
                let request: lk::CreateSipDispatchRuleRequest = format.read(body)?;
                SipRequest::CreateRule(Box::new(rule_of(request)))
            }
            SipMethod::UpdateRule => SipRequest::UpdateRule(Box::new(format.read(body)?)),
            SipMethod::ListRules => SipRequest::ListRules(format.read(body)?),
            SipMethod::DeleteRule => {
                let request: lk::DeleteSipDispatchRuleRequest = format.read(body)?;
                SipRequest::DeleteRule(request.sip_dispatch_rule_id)
            }
            SipMethod::CreateParticipant => {
                SipRequest::CreateParticipant(Box::new(format.read(body)?))
            }
            SipMethod::Transfer => SipRequest::Transfer(Box::new(format.read(body)?)),
        })
    }

    fn write_sip(&self, answer: SipAnswer) -> Result<Vec<u8>, ServiceError> {
        let format = self.format;
        match answer {
            SipAnswer::Inbound(trunk) => format.write(&*trunk, &schema::INBOUND),
            SipAnswer::GotInbound(trunk) => {
                let trunk = Some(trunk);
                let answer = lk::GetSipInboundTrunkResponse { trunk };
                format.write(&answer, &schema::GET_INBOUND)
            }
            SipAnswer::ListInbound(items) => {
                let answer = lk::ListSipInboundTrunkResponse { items };
                format.write(&answer, &schema::LIST_INBOUND)
            }
            SipAnswer::Outbound(trunk) => format.write(&*trunk, &schema::OUTBOUND),
            SipAnswer::GotOutbound(trunk) => {
                let trunk = Some(trunk);
                let answer = lk::GetSipOutboundTrunkResponse { trunk };
                format.write(&answer, &schema::GET_OUTBOUND)
            }
            SipAnswer::ListOutbound(items) => {
                let answer = lk::ListSipOutboundTrunkResponse { items };
                format.write(&answer, &schema::LIST_OUTBOUND)
            }
            SipAnswer::Trunk(trunk) => format.write(&*trunk, &schema::SIP_TRUNK),
            SipAnswer::Rule(rule) => format.write(&*rule, &schema::SIP_RULE),
            SipAnswer::ListRules(items) => {
                let answer = lk::ListSipDispatchRuleResponse { items };
                format.write(&answer, &schema::LIST_SIP_RULES)
            }
            SipAnswer::Participant(info) => format.write(&*info, &schema::SIP_PARTICIPANT),
            SipAnswer::Transfer(answer) => format.write(&*answer, &schema::SIP_TRANSFER),
        }
    }
}

/// Returns the rule of a request, which former versions have in the request itself.
fn rule_of(request: lk::CreateSipDispatchRuleRequest) -> lk::SipDispatchRuleInfo {
    if let Some(mut rule) = request.dispatch_rule {
        rule.sip_dispatch_rule_id.clear();
        return rule;
    }
    lk::SipDispatchRuleInfo {
        rule: request.rule,
        trunk_ids: request.trunk_ids,
        hide_phone_number: request.hide_phone_number,
        inbound_numbers: request.inbound_numbers,
        name: request.name,
        metadata: request.metadata,
        attributes: request.attributes,
        room_preset: request.room_preset,
        room_config: request.room_config,
        ..lk::SipDispatchRuleInfo::default()
    }
}
