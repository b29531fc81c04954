#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::future::pending;
use std::sync::Mutex;

use axum::body::to_bytes;
use axum::http::header::ALLOW;
use livekit_protocol as lk;
use portunus_config::Secret;
use prost::Message;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::limits;
use crate::services::{
    Answer, EgressAnswer, EgressRequest, IngressAnswer, IngressRequest, Rooms, SipAnswer,
    SipRequest,
};
use crate::token::{Grants, SipGrant, VideoGrant};

/// Rooms that note what is asked of them.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Noted {
    fn note(&self, what: &str, room: &str) {
        self.0.lock().unwrap().push(format!("{what} {room}"));
    }
}

fn known(room: &str) -> Answer<()> {
    match room {
        "den" => Ok(()),
        _ => Err(ServiceError::no_room()),
    }
}

impl Rooms for Noted {
    async fn create_room(&self, request: lk::CreateRoomRequest) -> Answer<lk::Room> {
        self.note("create", &request.name);
        Ok(lk::Room {
            sid: "RM_1".to_owned(),
            name: request.name,
            empty_timeout: request.empty_timeout,
            ..Default::default()
        })
    }

    async fn list_rooms(&self, names: Vec<String>) -> Answer<Vec<lk::Room>> {
        self.note("list", &names.join(","));
        Ok(Vec::new())
    }

    async fn delete_room(&self, room: String) -> Answer<()> {
        self.note("delete", &room);
        known(&room)
    }

    async fn list_participants(&self, room: String) -> Answer<Vec<lk::ParticipantInfo>> {
        self.note("participants", &room);
        Ok(Vec::new())
    }

    async fn get_participant(
        &self,
        request: lk::RoomParticipantIdentity,
    ) -> Answer<lk::ParticipantInfo> {
        self.note("get", &request.room);
        Err(ServiceError::no_participant())
    }

    async fn remove_participant(&self, request: lk::RoomParticipantIdentity) -> Answer<()> {
        self.note("remove", &request.room);
        Ok(())
    }

    async fn mute_published_track(
        &self,
        request: lk::MuteRoomTrackRequest,
    ) -> Answer<Option<lk::TrackInfo>> {
        self.note("mute", &request.room);
        match request.muted {
            true => Ok(None),
            false => Err(ServiceError::no_remote_unmute()),
        }
    }

    async fn update_participant(
        &self,
        request: lk::UpdateParticipantRequest,
    ) -> Answer<lk::ParticipantInfo> {
        self.note("update", &request.room);
        Ok(lk::ParticipantInfo::default())
    }

    async fn update_subscriptions(&self, request: lk::UpdateSubscriptionsRequest) -> Answer<()> {
        self.note("subscriptions", &request.room);
        Ok(())
    }

    async fn send_data(&self, request: lk::SendDataRequest) -> Answer<()> {
        self.note("data", &request.room);
        Ok(())
    }

    async fn update_room_metadata(
        &self,
        request: lk::UpdateRoomMetadataRequest,
    ) -> Answer<lk::Room> {
        self.note("metadata", &request.room);
        Ok(lk::Room::default())
    }

    async fn forward_participant(&self, request: lk::ForwardParticipantRequest) -> Answer<()> {
        self.note("forward", &request.room);
        Ok(())
    }

    async fn move_participant(&self, request: lk::MoveParticipantRequest) -> Answer<()> {
        self.note("move", &request.room);
        Ok(())
    }

    async fn create_dispatch(
        &self,
        request: lk::CreateAgentDispatchRequest,
    ) -> Answer<lk::AgentDispatch> {
        self.note("dispatch", &request.room);
        Ok(lk::AgentDispatch::default())
    }

    async fn delete_dispatch(
        &self,
        request: lk::DeleteAgentDispatchRequest,
    ) -> Answer<lk::AgentDispatch> {
        self.note("end", &request.room);
        Ok(lk::AgentDispatch::default())
    }

    async fn list_dispatch(
        &self,
        request: lk::ListAgentDispatchRequest,
    ) -> Answer<Vec<lk::AgentDispatch>> {
        self.note("dispatches", &request.room);
        Ok(vec![lk::AgentDispatch::default()])
    }

    async fn perform_rpc(&self, request: lk::PerformRpcRequest) -> Answer<String> {
        self.note("rpc", &request.room);
        match request.method.as_str() {
            "never" => pending().await,
            method => Ok(method.to_owned()),
        }
    }
}

impl Services for Noted {
    fn purse(&self, _: Requester) -> Purse {
        Purse::default()
    }

    async fn egress(&self, request: EgressRequest) -> Answer<EgressAnswer> {
        self.note("egress", "");
        match request {
            EgressRequest::List(_) => Ok(EgressAnswer::List(Vec::new())),
            _ => Ok(EgressAnswer::Info(Box::default())),
        }
    }

    async fn ingress(&self, request: IngressRequest) -> Answer<IngressAnswer> {
        self.note("ingress", "");
        match request {
            IngressRequest::List(_) => Ok(IngressAnswer::List(Vec::new())),
            _ => Ok(IngressAnswer::Info(Box::default())),
        }
    }

    async fn sip(&self, _: SipRequest) -> Answer<SipAnswer> {
        self.note("sip", "");
        Ok(SipAnswer::ListRules(Vec::new()))
    }
}

fn keys() -> Keys {
    Keys::new([("devkey".to_owned(), Secret::from("secret"))])
}

/// Makes a token that is valid now.
fn token(grants: &Grants) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let valid = Duration::from_secs(60);
    keys()
        .sign("devkey", grants, since.as_secs(), valid)
        .unwrap()
}

fn with_video(video: VideoGrant) -> String {
    token(&Grants {
        video: Some(video),
        ..Grants::default()
    })
}

fn everything() -> String {
    with_video(VideoGrant {
        room_create: true,
        room_list: true,
        room_admin: true,
        room: "den".to_owned(),
        destination_room: "attic".to_owned(),
        ..VideoGrant::default()
    })
}

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: axum::body::Bytes,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

async fn send(rooms: &Arc<Noted>, request: Request) -> Reply {
    let response = router(rooms.clone(), keys).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    Reply {
        status: head.status.as_u16(),
        headers: head.headers,
        body: to_bytes(body, usize::MAX).await.unwrap(),
    }
}

fn post(path: &str, token: &str, body: impl Into<Body>) -> Request {
    let builder = Request::post(format!("/twirp/livekit.{path}"))
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, format!("Bearer {token}"));
    builder.body(body.into()).unwrap()
}

/// Calls a method with JSON, and returns the status and the code, if it is an error.
async fn call(path: &str, token: &str, body: &Value) -> (u16, String) {
    let rooms = Arc::new(Noted::default());
    let reply = send(&rooms, post(path, token, body.to_string())).await;
    let code = reply.json()["code"].as_str().unwrap_or("").to_owned();
    let calls = rooms.0.lock().unwrap().len();
    let forbidden = [
        "unauthenticated",
        "invalid_argument",
        "unimplemented",
        "malformed",
    ];
    if forbidden.contains(&code.as_str()) {
        assert_eq!(calls, 0, "{path} must not reach the rooms");
    } else {
        assert_eq!(calls, 1, "{path} must reach the rooms: {code}");
    }
    (reply.status, code)
}

const METHODS: [(&str, &str); 17] = [
    ("CreateDispatch", "dispatch den"),
    ("DeleteDispatch", "end den"),
    ("ListDispatch", "dispatches den"),
    ("CreateRoom", "create den"),
    ("ListRooms", "list "),
    ("DeleteRoom", "delete den"),
    ("ListParticipants", "participants den"),
    ("GetParticipant", "get den"),
    ("RemoveParticipant", "remove den"),
    ("MutePublishedTrack", "mute den"),
    ("UpdateParticipant", "update den"),
    ("UpdateSubscriptions", "subscriptions den"),
    ("SendData", "data den"),
    ("UpdateRoomMetadata", "metadata den"),
    ("ForwardParticipant", "forward den"),
    ("MoveParticipant", "move den"),
    ("PerformRpc", "rpc den"),
];

fn body_for_all() -> Value {
    json!({
        "name": "den", "room": "den", "identity": "alice", "muted": true,
        "destination_identity": "alice", "destination_room": "attic", "method": "m",
    })
}

#[tokio::test]
async fn each_method_reaches_the_rooms_with_its_grant_and_not_without() {
    for (method, expected) in METHODS {
        let rooms = Arc::new(Noted::default());
        let service = match method.ends_with("Dispatch") {
            true => "AgentDispatchService",
            false => "RoomService",
        };
        let path = format!("{service}/{method}");
        let request = post(&path, &everything(), body_for_all().to_string());
        let reply = send(&rooms, request).await;
        let expected_status = if method == "GetParticipant" { 404 } else { 200 };
        assert_eq!(reply.status, expected_status, "{method}");
        assert_eq!(*rooms.0.lock().unwrap(), [expected]);
        for video in [
            VideoGrant::default(),
            VideoGrant {
                room_admin: true,
                room: "other".to_owned(),
                room_join: true,
                ..VideoGrant::default()
            },
        ] {
            let answer = call(&path, &with_video(video), &body_for_all()).await;
            assert_eq!(answer, (401, "unauthenticated".to_owned()), "{method}");
        }
        let answer = call(&path, &token(&Grants::default()), &body_for_all()).await;
        assert_eq!(answer, (401, "unauthenticated".to_owned()), "{method}");
    }
}

#[tokio::test]
async fn a_destination_needs_a_grant_and_is_another_room() {
    for method in ["ForwardParticipant", "MoveParticipant"] {
        let path = format!("RoomService/{method}");
        let body = json!({"room": "den", "identity": "alice", "destination_room": "cellar"});
        let answer = call(&path, &everything(), &body).await;
        assert_eq!(answer, (401, "unauthenticated".to_owned()));
        let same = with_video(VideoGrant {
            room_admin: true,
            room: "den".to_owned(),
            destination_room: "den".to_owned(),
            ..VideoGrant::default()
        });
        let body = json!({"room": "den", "identity": "alice", "destination_room": "den"});
        let answer = call(&path, &same, &body).await;
        assert_eq!(answer, (400, "invalid_argument".to_owned()));
    }
}

#[tokio::test]
async fn sizes_are_checked_before_the_rooms_are_asked() {
    let long = |length: usize| "x".repeat(length);
    let wrong = (400, "invalid_argument".to_owned());
    for (method, body) in [
        ("CreateRoom", json!({"name": long(257)})),
        (
            "CreateRoom",
            json!({"metadata": long(limits::METADATA + 1)}),
        ),
        (
            "CreateRoom",
            json!({"agents": [{"metadata": long(limits::METADATA + 1)}]}),
        ),
        (
            "CreateRoom",
            json!({"agents": [{"attributes": {"a": long(limits::ATTRIBUTES)}}]}),
        ),
        (
            "UpdateParticipant",
            json!({"room": "den", "name": long(257)}),
        ),
        (
            "UpdateParticipant",
            json!({"room": "den", "metadata": long(limits::METADATA + 1)}),
        ),
        (
            "UpdateParticipant",
            json!({"room": "den", "attributes": {"a": long(limits::ATTRIBUTES)}}),
        ),
        (
            "UpdateRoomMetadata",
            json!({"room": "den", "metadata": long(limits::METADATA + 1)}),
        ),
        ("SendData", json!({"room": "den", "nonce": "AAAA"})),
        ("PerformRpc", json!({"room": "den"})),
    ] {
        let answer = call(&format!("RoomService/{method}"), &everything(), &body).await;
        assert_eq!(answer, wrong, "{method}");
    }
    let nonce = json!({"room": "den", "nonce": "AAAAAAAAAAAAAAAAAAAAAA=="});
    let answer = call("RoomService/SendData", &everything(), &nonce).await;
    assert_eq!(answer.0, 200);
}

#[tokio::test]
async fn services_that_do_not_exist_are_unimplemented_for_those_with_the_grant() {
    let all = token(&Grants {
        video: Some(VideoGrant {
            room_record: true,
            ingress_admin: true,
            room_admin: true,
            ..VideoGrant::default()
        }),
        sip: Some(SipGrant {
            admin: true,
            call: true,
        }),
        ..Grants::default()
    });
    for path in [
        "Egress/StartEgress",
        "Egress/StartWebEgress",
        "SIP/ListSIPTrunk",
    ] {
        let answer = call(path, &all, &json!({})).await;
        assert_eq!(answer, (501, "unimplemented".to_owned()));
        let answer = call(path, &with_video(VideoGrant::default()), &json!({})).await;
        assert_eq!(answer, (401, "unauthenticated".to_owned()));
    }
    for path in [
        "Egress/ListEgress",
        "Ingress/ListIngress",
        "SIP/ListSIPDispatchRule",
    ] {
        assert_eq!(call(path, &all, &json!({})).await.0, 200, "{path}");
        let answer = call(path, &with_video(VideoGrant::default()), &json!({})).await;
        assert_eq!(answer, (401, "unauthenticated".to_owned()));
    }
}

#[tokio::test]
async fn json_and_protobuf_are_answered_in_kind() {
    let rooms = Arc::new(Noted::default());
    let body = r#"{"name":"den","emptyTimeout":7}"#;
    let reply = send(&rooms, post("RoomService/CreateRoom", &everything(), body)).await;
    assert_eq!(reply.headers[CONTENT_TYPE], "application/json");
    assert_eq!(reply.json()["empty_timeout"], 7);
    assert_eq!(reply.json()["creation_time"], "0");
    let request = lk::CreateRoomRequest {
        name: "den".to_owned(),
        ..Default::default()
    };
    let mut post = post(
        "RoomService/CreateRoom",
        &everything(),
        request.encode_to_vec(),
    );
    let protobuf = HeaderValue::from_static("application/protobuf");
    post.headers_mut().insert(CONTENT_TYPE, protobuf.clone());
    let reply = send(&rooms, post).await;
    assert_eq!(reply.headers[CONTENT_TYPE], protobuf);
    let room = lk::Room::decode(reply.body).unwrap();
    assert_eq!((room.sid.as_str(), room.name.as_str()), ("RM_1", "den"));
}

#[tokio::test]
async fn tokens_come_by_header_or_query_and_wrong_ones_are_refused_with_a_text() {
    let rooms = Arc::new(Noted::default());
    let path = "/twirp/livekit.RoomService/ListRooms";
    let request = |path: &str, header: Option<&str>| {
        let mut builder = Request::post(path).header(CONTENT_TYPE, "application/json");
        if let Some(header) = header {
            builder = builder.header(AUTHORIZATION, header);
        }
        builder.body(Body::from("{}")).unwrap()
    };
    let query = format!("{path}?a=b&access_token={}", everything());
    assert_eq!(send(&rooms, request(&query, None)).await.status, 200);
    let reply = send(&rooms, request(path, None)).await;
    assert_eq!(reply.json()["code"], "unauthenticated");
    for (header, text) in [
        (
            "Basic x",
            "invalid authorization header. Must start with Bearer ",
        ),
        ("Bearer x", "invalid authorization token"),
    ] {
        let reply = send(&rooms, request(&query, Some(header))).await;
        assert_eq!(reply.status, 401);
        assert_eq!(reply.body, text);
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_routes_are_known() {
    let rooms = Arc::new(Noted::default());
    for length in [MAX_BODY + 1, MAX_BODY] {
        let body = vec![b' '; length];
        let with_length = post("RoomService/ListRooms", &everything(), body.clone());
        let reply = send(&rooms, with_length).await;
        let expected = if length > MAX_BODY { 413 } else { 400 };
        assert_eq!(reply.status, expected);
        // A body whose length is not known before.
        let chunks: [Result<Vec<u8>, std::io::Error>; 1] = [Ok(body)];
        let stream = Body::from_stream(futures_util::stream::iter(chunks));
        let reply = send(&rooms, post("RoomService/ListRooms", &everything(), stream)).await;
        assert_eq!(reply.status, expected);
        assert_eq!(reply.json()["code"], "malformed");
    }
    let reply = send(&rooms, post("RoomService/Nothing", &everything(), "{}")).await;
    assert_eq!(reply.status, 404);
    let expected = "POST /twirp/livekit.RoomService/Nothing";
    assert_eq!(reply.json()["meta"]["twirp_invalid_route"], expected);
    let get = Request::get("/twirp/livekit.RoomService/ListRooms");
    let reply = send(&rooms, get.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.json()["code"], "bad_route");
    assert!(!reply.headers.contains_key(ALLOW));
    assert!(rooms.0.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_does_not_wait_gets_an_answer() {
    let rooms = Arc::new(Noted::default());
    let body = r#"{"room":"den","destination_identity":"alice","method":"never"}"#;
    let mut request = post("RoomService/PerformRpc", &everything(), body);
    let timeout = HeaderValue::from_static("1500");
    request.headers_mut().insert(TIMEOUT, timeout);
    let begun = tokio::time::Instant::now();
    let reply = send(&rooms, request).await;
    assert_eq!(begun.elapsed(), Duration::from_millis(1500));
    assert_eq!(reply.status, 408);
    let expected = json!({"code": "deadline_exceeded", "msg": "request timed out"});
    assert_eq!(reply.json(), expected);
}
