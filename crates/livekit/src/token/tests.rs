#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use livekit_protocol::participant_info::Kind;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW: u64 = 1_800_000_000;

fn keys() -> Keys {
    let pair = |key: &str, secret: &str| (key.to_owned(), Secret::from(secret));
    Keys::new([pair("devkey", "secret"), pair("other", "another secret")])
}

/// Makes a token with this header and these claims.
fn token(header: &Value, claims: &Value, secret: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let secret = EncodingKey::from_secret(secret.as_bytes());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &secret, Algorithm::HS256);
    format!("{message}.{}", signature.unwrap())
}

/// Makes a token with these claims, and an issuer and an expiry if they have none.
fn signed(mut claims: Value) -> String {
    let members = claims.as_object_mut().unwrap();
    members.entry("iss").or_insert(json!("devkey"));
    members.entry("exp").or_insert(json!(NOW + 600));
    token(&json!({"alg": "HS256", "typ": "JWT"}), &claims, "secret")
}

fn fault(token: &str) -> TokenFault {
    keys().verify(token, NOW).unwrap_err()
}

fn reason(token: &str) -> InvalidToken {
    match fault(token) {
        TokenFault::Invalid { reason, .. } => reason,
        other => unreachable!("{other}"),
    }
}

#[test]
fn a_token_of_an_sdk_is_read() {
    // Made by livekit-server-sdk for Node, with the key devkey and the secret "secret".
    let claims = json!({
        "iss": "devkey", "sub": "alice", "nbf": NOW, "exp": NOW + 21_600, "name": "Alice",
        "metadata": "{}", "attributes": {"a": "b"}, "kind": "agent", "kindDetails": ["forwarded", "?"],
        "video": {"roomJoin": true, "room": "den", "canPublish": false, "canPublishSources": ["camera", "screen_share"]},
        "sip": {"admin": true},
        "roomConfig": {"emptyTimeout": 7, "max_participants": 2, "agents": [{"agentName": "bot"}], "new": 1},
        "roomPreset": "large", "unknown": [1],
    });
    let verified = keys().verify(&signed(claims), NOW).unwrap();
    assert_eq!(verified.key, "devkey");
    assert_eq!(verified.expires_at, NOW + 21_600);
    let grants = verified.grants;
    assert_eq!(grants.identity, "alice");
    assert_eq!(grants.name, "Alice");
    assert_eq!(grants.participant_kind(), Kind::Agent);
    assert_eq!(grants.participant_kind_details().len(), 1);
    assert_eq!(grants.attributes["a"], "b");
    assert!(grants.sip.unwrap().admin);
    assert_eq!(grants.join(), Ok("den"));
    let options = grants.room_config.clone().unwrap();
    assert_eq!(options.empty_timeout, 7);
    assert_eq!(options.max_participants, 2);
    assert_eq!(options.agents[0].agent_name, "bot");
    let permission = grants.video.unwrap().permission();
    assert!(permission.can_subscribe && !permission.can_publish && !permission.can_publish_data);
    assert_eq!(permission.can_publish_sources, [1, 3]);
}

#[test]
fn permissions_that_are_unset_have_defaults() {
    let all = VideoGrant::default().permission();
    assert!(all.can_subscribe && all.can_publish && all.can_publish_data);
    assert!(!all.can_update_metadata && !all.can_subscribe_metrics && !all.hidden);
    let data = VideoGrant {
        can_publish: Some(false),
        can_publish_data: Some(true),
        ..VideoGrant::default()
    };
    assert!(data.permission().can_publish_data);
}

#[test]
fn permissions_that_were_changed_come_back() {
    let mut grant = VideoGrant::default();
    let mut permission = grant.permission();
    permission.can_publish_sources = vec![2];
    permission.can_update_metadata = true;
    permission.can_subscribe = false;
    grant.set_permission(&permission);
    assert_eq!(grant.can_publish_sources, ["microphone"]);
    assert_eq!(grant.permission(), permission);
}

#[test]
fn members_that_are_null_count_as_absent() {
    let claims = json!({"sub": null, "jti": "bob", "name": null, "video": {"roomJoin": true, "room": "r", "canPublish": null}});
    let grants = keys().verify(&signed(claims), NOW).unwrap().grants;
    assert_eq!(grants.identity, "bob");
    assert!(grants.video.unwrap().permission().can_publish);
}

#[test]
fn texts_of_faults_are_those_of_livekit() {
    for text in ["", "a", "a.b", "a.b.c", "e30.e30.", "....", "e30.bnVsbA.AA"] {
        assert_eq!(fault(text), TokenFault::Malformed, "{text}");
    }
    let stranger = signed(json!({"iss": "nobody"}));
    assert_eq!(fault(&stranger).to_string(), "invalid API key: nobody");
    assert_eq!(
        fault(&signed(json!({"iss": ""}))).to_string(),
        "invalid API key: "
    );
    let late = signed(json!({"exp": NOW - 61}));
    assert_eq!(
        fault(&late).answer(),
        format!("invalid token: {late}, error: token has invalid claims: token is expired")
    );
    assert_eq!(
        reason(&signed(json!({"nbf": NOW + 61}))),
        InvalidToken::NotYet
    );
    assert_eq!(
        reason(&signed(json!({"exp": null}))),
        InvalidToken::NoExpiry
    );
    assert_eq!(fault(&stranger).answer(), "invalid API key: nobody");
    let wrong = |claims| matches!(reason(&signed(claims)), InvalidToken::Claims(_));
    assert_eq!(reason(&signed(json!({"exp": -1}))), InvalidToken::Expired);
    assert_eq!(
        fault(&signed(json!({"exp": "soon"}))),
        TokenFault::Malformed
    );
    assert_eq!(fault(&signed(json!({"nbf": []}))), TokenFault::Malformed);
    assert!(wrong(json!({"name": 1})));
    assert!(wrong(json!({"video": {"roomJoin": 1}})));
    assert!(wrong(json!({"roomConfig": {"emptyTimeout": "x"}})));
    assert!(matches!(
        fault(&signed(json!({"iss": 5}))),
        TokenFault::Malformed
    ));
}

#[test]
fn a_token_that_holds_later_is_not_in_the_text_for_logs() {
    let early = signed(json!({"nbf": NOW + 61}));
    let fault = fault(&early);
    assert_eq!(
        fault.to_string(),
        "invalid token: token has invalid claims: token is not valid yet"
    );
    assert!(!format!("{fault:?}").contains(&early));
}

#[test]
fn the_clocks_may_differ_by_a_minute() {
    for claims in [
        json!({"exp": NOW - 59}),
        json!({"nbf": NOW + 60}),
        json!({"exp": (NOW - 59) as f64 + 0.5}),
    ] {
        assert!(keys().verify(&signed(claims), NOW).is_ok());
    }
    assert_eq!(
        reason(&signed(json!({"exp": NOW - 60}))),
        InvalidToken::Expired
    );
}

#[test]
fn only_hs256_with_the_secret_of_the_issuer_holds() {
    let claims = json!({"iss": "devkey", "exp": NOW + 600});
    let none = token(&json!({"alg": "none"}), &claims, "secret");
    let expected = InvalidToken::Algorithm("none".to_owned());
    assert_eq!(reason(&none), expected);
    let unsigned = none.rsplit_once('.').unwrap().0.to_owned() + ".";
    assert_eq!(reason(&unsigned), expected);
    for algorithm in ["HS384", "RS256", "hs256", ""] {
        let token = token(&json!({"alg": algorithm}), &claims, "secret");
        assert!(matches!(reason(&token), InvalidToken::Algorithm(_)));
    }
    let other = token(&json!({"alg": "HS256"}), &claims, "another secret");
    assert_eq!(reason(&other), InvalidToken::Signature);
    assert_eq!(
        fault(&token(&json!({}), &claims, "secret")),
        TokenFault::Malformed
    );
    let empty = Keys::new([(String::new(), Secret::from("secret"))]);
    let nameless = token(&json!({"alg": "HS256"}), &json!({"exp": NOW}), "secret");
    assert!(empty.verify(&nameless, NOW).is_err());
}

#[test]
fn a_token_that_the_server_made_is_read_again() {
    let mut grants = Grants {
        identity: "carol".to_owned(),
        name: "Carol".to_owned(),
        video: Some(VideoGrant {
            room_join: true,
            room: "den".to_owned(),
            can_subscribe: Some(false),
            ..VideoGrant::default()
        }),
        room_config: Some(livekit_protocol::RoomConfiguration {
            departure_timeout: 3,
            ..Default::default()
        }),
        ..Grants::default()
    };
    grants.attributes.insert("k".to_owned(), "v".to_owned());
    let keys = keys();
    let key = &keys.first().unwrap();
    let token = keys.sign(key, &grants, NOW, Duration::from_secs(600));
    let verified = keys.verify(&token.unwrap(), NOW).unwrap();
    assert_eq!(verified.grants, grants);
    assert_eq!(verified.expires_at, NOW + 600);
    let stranger = keys.sign("nobody", &grants, NOW, Duration::from_secs(600));
    assert_eq!(stranger, Err(SigningError::NoKey));
}

#[test]
fn the_header_comes_before_the_query() {
    assert_eq!(of_request(None, None), Ok(None));
    assert_eq!(of_request(Some(""), Some("q")), Ok(Some("q")));
    assert_eq!(of_request(Some("Bearer h"), Some("q")), Ok(Some("h")));
    assert_eq!(of_request(Some("Bearer "), Some("q")), Ok(None));
    for header in ["bearer h", "Basic h", "h"] {
        assert_eq!(of_request(Some(header), None), Err(TokenFault::NoBearer));
    }
}

#[test]
fn joining_needs_a_right_an_identity_and_a_room() {
    let join = |identity: String, room: String, room_join| {
        let video = Some(VideoGrant {
            room_join,
            room,
            ..VideoGrant::default()
        });
        let grants = Grants {
            identity,
            video,
            ..Grants::default()
        };
        grants.join().map(str::to_owned)
    };
    let of = |text: &str| text.to_owned();
    assert_eq!(Grants::default().join(), Err(JoinFault::NoGrant));
    assert_eq!(join(of("a"), of("r"), false), Err(JoinFault::Denied));
    assert_eq!(join(of(""), of(""), true), Err(JoinFault::NoIdentity));
    assert_eq!(join(of("a"), of(""), true), Err(JoinFault::NoRoom));
    assert_eq!(
        join("a".repeat(257), of("r"), true),
        Err(JoinFault::LongIdentity)
    );
    assert_eq!(
        join(of("a"), "r".repeat(257), true),
        Err(JoinFault::LongRoom)
    );
    let longest = join("a".repeat(256), "r".repeat(256), true);
    assert_eq!(longest, Ok("r".repeat(256)));
    assert_eq!(JoinFault::Denied.status(), 401);
    assert_eq!(JoinFault::NoRoom.status(), 400);
}

#[test]
fn no_log_has_a_secret() {
    assert_eq!(format!("{:?}", keys()), r#"{"devkey", "other"}"#);
}

proptest! {
    #[test]
    fn any_text_is_refused(text in ".{0,200}") {
        prop_assert!(keys().verify(&text, NOW).is_err());
    }

    #[test]
    fn a_changed_byte_is_refused(at in 0_usize..400, bit in 0_u8..7) {
        let token = signed(json!({"sub": "alice", "video": {"roomJoin": true, "room": "den"}}));
        let mut bytes = token.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let changed = String::from_utf8_lossy(&bytes).into_owned();
        // The last character has two bits that the signature does not use.
        if let Ok(verified) = keys().verify(&changed, NOW) {
            prop_assert_eq!(at, token.len() - 1);
            prop_assert_eq!(verified.grants.identity, "alice");
        }
    }

    #[test]
    fn grants_come_back(identity in ".{1,40}", name in ".{0,40}", publish in proptest::option::of(any::<bool>()),
                        attributes in proptest::collection::hash_map(".{0,9}", ".{0,9}", 0..4)) {
        let video = Some(VideoGrant { room_join: true, room: name.clone(), can_publish: publish, ..VideoGrant::default() });
        let grants = Grants { identity, name, attributes, video, ..Grants::default() };
        let token = keys().sign("other", &grants, NOW, Duration::from_secs(1)).unwrap();
        prop_assert_eq!(keys().verify(&token, NOW).unwrap().grants, grants);
    }
}
