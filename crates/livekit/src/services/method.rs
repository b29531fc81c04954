//! The services and their methods, and which request belongs to which.

use super::ServiceError;
use crate::token::Grants;

/// What the path of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Room(RoomMethod),
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

/// The grant that a service needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    RoomRecord,
    IngressAdmin,
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
            Need::IngressAdmin => video.is_some_and(|video| video.ingress_admin),
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
        "livekit.Egress" => missing_egress(method),
        "livekit.Ingress" => missing_ingress(method),
        "livekit.SIP" => missing_sip(method),
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

fn missing_egress(name: &str) -> Option<Method> {
    match name {
        "StartEgress"
        | "StartRoomCompositeEgress"
        | "StartWebEgress"
        | "StartParticipantEgress"
        | "StartTrackCompositeEgress"
        | "StartTrackEgress"
        | "UpdateLayout"
        | "UpdateStream"
        | "ListEgress"
        | "StopEgress" => Some(Method::Missing(Need::RoomRecord)),
        _ => None,
    }
}

fn missing_ingress(name: &str) -> Option<Method> {
    match name {
        "CreateIngress" | "UpdateIngress" | "ListIngress" | "DeleteIngress" => {
            Some(Method::Missing(Need::IngressAdmin))
        }
        _ => None,
    }
}

fn missing_sip(name: &str) -> Option<Method> {
    match name {
        "ListSIPTrunk"
        | "CreateSIPInboundTrunk"
        | "CreateSIPOutboundTrunk"
        | "UpdateSIPInboundTrunk"
        | "UpdateSIPOutboundTrunk"
        | "GetSIPInboundTrunk"
        | "GetSIPOutboundTrunk"
        | "ListSIPInboundTrunk"
        | "ListSIPOutboundTrunk"
        | "DeleteSIPTrunk"
        | "CreateSIPDispatchRule"
        | "UpdateSIPDispatchRule"
        | "ListSIPDispatchRule"
        | "DeleteSIPDispatchRule" => Some(Method::Missing(Need::SipAdmin)),
        "CreateSIPParticipant" | "TransferSIPParticipant" => Some(Method::Missing(Need::SipCall)),
        _ => None,
    }
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
            ("Egress/ListEgress", Need::RoomRecord),
            ("Ingress/CreateIngress", Need::IngressAdmin),
            ("SIP/ListSIPInboundTrunk", Need::SipAdmin),
            ("SIP/TransferSIPParticipant", Need::SipCall),
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
