#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use proptest::prelude::*;
use serde_json::json;

use super::*;

const ROOM: &str = "janus.plugin.videoroom";
const STREAMING: &str = "janus.plugin.streaming";

fn read(claims: Value) -> Result<Claims, TokenFault> {
    Claims::read(claims.as_object().unwrap())
}

#[test]
fn a_token_that_names_nothing_opens_everything_and_gives_no_right() {
    let claims = read(json!({})).unwrap();
    assert!(claims.opens(ROOM) && claims.opens_room(ROOM, "7"));
    assert!(!claims.names_rooms());
    assert_eq!(claims.rights(), Rights::NONE);
    assert_eq!(claims.subject(), None);
}

#[test]
fn plugins_are_packages_or_their_last_parts() {
    let claims = read(json!({ "plugins": ["videoroom", STREAMING] })).unwrap();
    assert!(claims.opens(ROOM) && claims.opens(STREAMING));
    for other in ["janus.plugin.echotest", "videoroom.x", "plugin", ""] {
        assert!(!claims.opens(other), "{other}");
        assert!(!claims.opens_room(other, "7"), "{other}");
    }
    assert!(!read(json!({ "plugins": [] })).unwrap().opens(ROOM));
}

#[test]
fn rooms_are_numbers_or_texts_and_may_be_of_one_plugin() {
    let rooms = json!({ "rooms": [1234, "stage", "streaming:5", "janus.plugin.videoroom:6"] });
    let claims = read(rooms).unwrap();
    assert!(claims.names_rooms());
    for (package, id, opened) in [
        (ROOM, "1234", true),
        (STREAMING, "1234", true),
        (ROOM, "stage", true),
        (STREAMING, "5", true),
        (ROOM, "5", false),
        (ROOM, "6", true),
        (STREAMING, "6", false),
        (ROOM, "123", false),
        (ROOM, "", false),
    ] {
        assert_eq!(claims.opens_room(package, id), opened, "{package} {id}");
    }
    let claims = read(json!({ "plugins": ["streaming"], "rooms": [1] })).unwrap();
    assert!(claims.opens_room(STREAMING, "1") && !claims.opens_room(ROOM, "1"));
    assert!(!read(json!({ "rooms": [] })).unwrap().opens_room(ROOM, "1"));
}

#[test]
fn rights_that_there_are_not_give_nothing() {
    let claims = read(json!({ "rights": ["record", "Forward", "all", "administer"] })).unwrap();
    let expected: Rights = [Right::Record, Right::Administer].into_iter().collect();
    assert_eq!(claims.rights(), expected);
}

#[test]
fn a_claim_of_a_wrong_type_is_a_fault() {
    for claims in [
        json!({ "plugins": "videoroom" }),
        json!({ "plugins": null }),
        json!({ "plugins": [1] }),
        json!({ "rooms": 1234 }),
        json!({ "rooms": [1.5] }),
        json!({ "rooms": [-1] }),
        json!({ "rooms": [["1"]] }),
        json!({ "rights": "record" }),
        json!({ "rights": [true] }),
        json!({ "sub": 7 }),
        json!({ "sub": "x".repeat(257) }),
        json!({ "exp": "9" }),
        json!({ "exp": -1 }),
        json!({ "exp": null }),
        json!({ "nbf": 1e300 }),
        json!({ "iss": ["a"] }),
        json!({ "aud": 1 }),
    ] {
        let fault = read(claims.clone()).unwrap_err();
        assert!(matches!(fault, TokenFault::Malformed(_)), "{claims}");
    }
}

#[test]
fn a_token_holds_between_its_times() {
    let claims = read(json!({ "nbf": 100, "exp": 200.5 })).unwrap();
    for (now, leeway, expected) in [
        (99, 0, Err(TokenFault::NotYet)),
        (99, 1, Ok(())),
        (100, 0, Ok(())),
        (199, 0, Ok(())),
        (200, 0, Err(TokenFault::Expired)),
        (229, 30, Ok(())),
        (230, 30, Err(TokenFault::Expired)),
        (u64::MAX, u64::MAX, Err(TokenFault::Expired)),
    ] {
        assert_eq!(claims.hold(now, leeway), expected, "{now} {leeway}");
    }
}

#[test]
fn a_token_is_what_the_rules_ask_for() {
    let rules = |issuer: Option<&str>, audience: Option<&str>, require_expiry| Rules {
        issuer: issuer.map(str::to_owned),
        audience: audience.map(str::to_owned),
        require_expiry,
        leeway: 0,
    };
    let claims = read(json!({ "iss": "a", "aud": ["x", "y"] })).unwrap();
    assert_eq!(claims.keep(&rules(None, None, false)), Ok(()));
    assert_eq!(claims.keep(&rules(Some("a"), Some("y"), false)), Ok(()));
    let refused = |rules: Rules| claims.keep(&rules).unwrap_err();
    let expiry = refused(rules(None, None, true));
    assert_eq!(expiry, TokenFault::Malformed("exp is missing"));
    assert_eq!(refused(rules(Some("b"), None, false)), TokenFault::Issuer);
    assert_eq!(refused(rules(None, Some("z"), false)), TokenFault::Audience);
    let silent = read(json!({})).unwrap();
    assert_eq!(
        silent.keep(&rules(Some("a"), None, false)),
        Err(TokenFault::Issuer)
    );
    assert_eq!(
        silent.keep(&rules(None, Some("x"), false)),
        Err(TokenFault::Audience)
    );
    let one = read(json!({ "aud": "x" })).unwrap();
    assert_eq!(one.keep(&rules(None, Some("x"), false)), Ok(()));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z:.0-9]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::from)
    })
}

proptest! {
    /// However a token is put together, it opens no room that it does not name.
    #[test]
    fn claims_never_open_more_than_they_say(
        rooms in value(), plugins in value(), rights in value(), exp in value(),
    ) {
        let claims = json!({
            "rooms": rooms.clone(), "plugins": plugins.clone(), "rights": rights, "exp": exp,
        });
        if let Ok(claims) = read(claims) {
            prop_assert!(claims.names_rooms());
            prop_assert!(!claims.opens_room(ROOM, "a room that is in no token"));
            let named = plugins.as_array().unwrap();
            let names = |name: &str| named.contains(&name.into());
            prop_assert_eq!(claims.opens(ROOM), names(ROOM) || names("videoroom"));
            let _ = claims.hold(u64::MAX, u64::MAX);
        }
    }
}
