//! The services and their methods, and which request belongs to which.

use super::ServiceError;
use crate::token::Grants;

/// What the path of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Room(RoomMethod),
    Egress(EgressMethod),
    Ingress(IngressMethod),
    Sip(SipMethod),
    /// A method that LiveKit has and this server does not, with the grant that it needs.
    Missing(Need),
}

/// A method of `RoomService` or `AgentDispatchService`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoomMethod {
    CreateRoom,
    ListRooms,
    DeleteRoom,
    ListParticipants,
    GetParticipant,
    RemoveParticipant,
    MutePublishedTrack,
    UpdateParticipant,
    UpdateSubscriptions,
    SendData,
    UpdateRoomMetadata,
    ForwardParticipant,
    MoveParticipant,
    PerformRpc,
    CreateDispatch,
    DeleteDispatch,
    ListDispatch,
}

/// A method of `Egress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EgressMethod {
    StartRoomComposite,
    StartParticipant,
    StartTrackComposite,
    StartTrack,
    UpdateLayout,
    UpdateStream,
    List,
    Stop,
}

/// A method of `Ingress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IngressMethod {
    Create,
    Update,
    List,
    Delete,
}

/// A method of `SIP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SipMethod {
    CreateInbound,
    UpdateInbound,
    GetInbound,
    ListInbound,
    CreateOutbound,
    UpdateOutbound,
    GetOutbound,
    ListOutbound,
    DeleteTrunk,
    CreateRule,
    UpdateRule,
    ListRules,
    DeleteRule,
    CreateParticipant,
    Transfer,
}

/// The grant that a service needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    RoomRecord,
    SipAdmin,
    SipCall,
}

impl Need {
    /// Returns whether a token has the grant for any room.
    pub(super) fn is_met(self, grants: &Grants) -> bool {
        let video = grants.video.as_ref();
        let sip = grants.sip.as_ref();
        match self {
            Need::RoomRecord => video.is_some_and(|video| video.room_record),
            Need::SipAdmin => sip.is_some_and(|sip| sip.admin),
            Need::SipCall => sip.is_some_and(|sip| sip.call),
        }
    }
}

/// The start of all paths.
const PREFIX: &str = "/twirp/";

/// Finds the method of a request.
pub(super) fn find(http_method: &str, path: &str) -> Result<Method, ServiceError> {
    if http_method != "POST" {
        let text = format!("unsupported method {http_method:?} (only POST is allowed)");
        return Err(ServiceError::bad_route(text, http_method, path));
    }
    let names = path.strip_prefix(PREFIX).and_then(|it| it.split_once('/'));
    let method = names.and_then(|(service, method)| match service {
        "livekit.RoomService" => room_method(method).map(Method::Room),
        "livekit.AgentDispatchService" => dispatch_method(method).map(Method::Room),
        "livekit.Egress" => egress_method(method),
        "livekit.Ingress" => ingress_method(method).map(Method::Ingress),
        "livekit.SIP" => sip_method(method),
        _ => None,
    });
    method.ok_or_else(|| {
        let text = format!("no handler for path {path:?}");
        ServiceError::bad_route(text, http_method, path)
    })
}

fn room_method(name: &str) -> Option<RoomMethod> {
    Some(match name {
        "CreateRoom" => RoomMethod::CreateRoom,
        "ListRooms" => RoomMethod::ListRooms,
        "DeleteRoom" => RoomMethod::DeleteRoom,
        "ListParticipants" => RoomMethod::ListParticipants,
        "GetParticipant" => RoomMethod::GetParticipant,
        "RemoveParticipant" => RoomMethod::RemoveParticipant,
        "MutePublishedTrack" => RoomMethod::MutePublishedTrack,
        "UpdateParticipant" => RoomMethod::UpdateParticipant,
        "UpdateSubscriptions" => RoomMethod::UpdateSubscriptions,
        "SendData" => RoomMethod::SendData,
        "UpdateRoomMetadata" => RoomMethod::UpdateRoomMetadata,
        "ForwardParticipant" => RoomMethod::ForwardParticipant,
        "MoveParticipant" => RoomMethod::MoveParticipant,
        "PerformRpc" => RoomMethod::PerformRpc,
        _ => return None,
    })
}

fn dispatch_method(name: &str) -> Option<RoomMethod> {
    match name {
        "CreateDispatch" => Some(RoomMethod::CreateDispatch),
        "DeleteDispatch" => Some(RoomMethod::DeleteDispatch),
        "ListDispatch" => Some(RoomMethod::ListDispatch),
        _ => None,
    }
}

fn egress_method(name: &str) -> Option<Method> {
    Some(Method::Egress(match name {
        "StartRoomCompositeEgress" => EgressMethod::StartRoomComposite,
        "StartParticipantEgress" => EgressMethod::StartParticipant,
        "StartTrackCompositeEgress" => EgressMethod::StartTrackComposite,
        "StartTrackEgress" => EgressMethod::StartTrack,
        "UpdateLayout" => EgressMethod::UpdateLayout,
        "UpdateStream" => EgressMethod::UpdateStream,
        "ListEgress" => EgressMethod::List,
        "StopEgress" => EgressMethod::Stop,
        "StartEgress" | "StartWebEgress" => return Some(Method::Missing(Need::RoomRecord)),
        _ => return None,
    }))
}

fn ingress_method(name: &str) -> Option<IngressMethod> {
    Some(match name {
        "CreateIngress" => IngressMethod::Create,
        "UpdateIngress" => IngressMethod::Update,
        "ListIngress" => IngressMethod::List,
        "DeleteIngress" => IngressMethod::Delete,
        _ => return None,
    })
}

fn sip_method(name: &str) -> Option<Method> {
    Some(Method::Sip(match name {
        "CreateSIPInboundTrunk" => SipMethod::CreateInbound,
        "UpdateSIPInboundTrunk" => SipMethod::UpdateInbound,
        "GetSIPInboundTrunk" => SipMethod::GetInbound,
        "ListSIPInboundTrunk" => SipMethod::ListInbound,
        "CreateSIPOutboundTrunk" => SipMethod::CreateOutbound,
        "UpdateSIPOutboundTrunk" => SipMethod::UpdateOutbound,
        "GetSIPOutboundTrunk" => SipMethod::GetOutbound,
        "ListSIPOutboundTrunk" => SipMethod::ListOutbound,
        "DeleteSIPTrunk" => SipMethod::DeleteTrunk,
        "CreateSIPDispatchRule" => SipMethod::CreateRule,
        "UpdateSIPDispatchRule" => SipMethod::UpdateRule,
        "ListSIPDispatchRule" => SipMethod::ListRules,
        "DeleteSIPDispatchRule" => SipMethod::DeleteRule,
        "CreateSIPParticipant" => SipMethod::CreateParticipant,
        "TransferSIPParticipant" => SipMethod::Transfer,
        "ListSIPTrunk" => return Some(Method::Missing(Need::SipAdmin)),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::Code;

    #[test]
    fn a_path_names_a_method() {
        let find = |name: &str| find("POST", &format!("/twirp/livekit.{name}"));
        let expected = Method::Room(RoomMethod::PerformRpc);
        assert_eq!(find("RoomService/PerformRpc"), Ok(expected));
        for (name, need) in [
            ("Egress/StartWebEgress", Need::RoomRecord),
            ("SIP/ListSIPTrunk", Need::SipAdmin),
        ] {
            assert_eq!(find(name), Ok(Method::Missing(need)));
        }
    }

    #[test]
    fn other_paths_and_methods_have_no_handler() {
        for path in [
            "/twirp/livekit.RoomService/Nothing",
            "/twirp/livekit.RoomService/CreateRoom/",
            "/twirp/livekit.RoomService",
            "/twirp/livekit.Nothing/CreateRoom",
            "/twirp//",
            "/other/livekit.RoomService/CreateRoom",
            "",
        ] {
            let found = find("POST", path);
            assert_eq!(found.map_err(|it| it.code()), Err(Code::BadRoute), "{path}");
        }
        let path = "/twirp/livekit.RoomService/CreateRoom";
        let found = find("GET", path);
        let expected = serde_json::json!({
            "code": "bad_route",
            "msg": "unsupported method \"GET\" (only POST is allowed)",
            "meta": {"twirp_invalid_route": "GET /twirp/livekit.RoomService/CreateRoom"},
        });
        assert_eq!(found.map_err(|it| it.to_json()), Err(expected));
    }
}
