#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use serde_json::json;

use portunus_tokens::{Credentials, JwtVerifier, Rights, StoredToken, TokensConfig};

use super::*;

const PACKAGES: [&str; 3] = ["janus.plugin.a", "janus.plugin.b", "janus.plugin.c"];

fn tokens() -> Tokens {
    let config = TokensConfig {
        token_auth: true,
        stored: vec![StoredToken {
            token: "configured".to_owned(),
            plugins: vec!["janus.plugin.a".to_owned()],
            rights: vec![Right::Record],
        }],
        ..TokensConfig::default()
    };
    Tokens::new(config, JwtVerifier::default())
}

/// The reply's members, or the error's code and text.
fn ask(tokens: &Tokens, verb: &str, members: Value) -> Result<Value, (u16, String)> {
    let fields = Fields(members.as_object().unwrap());
    let answer = super::answer(tokens, verb, fields, &PACKAGES);
    answer
        .map(Value::from)
        .map_err(|error| (error.code(), error.to_string()))
}

fn data(plugins: &[&str]) -> Result<Value, (u16, String)> {
    Ok(json!({ "data": { "plugins": plugins } }))
}

fn code(answer: Result<Value, (u16, String)>) -> u16 {
    answer.unwrap_err().0
}

fn listed(tokens: &Tokens) -> Value {
    ask(tokens, "list_tokens", json!({})).unwrap()["data"]["tokens"].clone()
}

fn admits(tokens: &Tokens, token: &str) -> bool {
    tokens.admits(Credentials {
        api_secret: None,
        token: Some(token),
    })
}

#[test]
fn a_token_opens_what_it_was_added_for() {
    let tokens = tokens();
    assert!(!admits(&tokens, "t"));
    let all = ask(
        &tokens,
        "add_token",
        json!({ "token": "all", "plugins": [] }),
    );
    assert_eq!(all, data(&PACKAGES));
    let skips = json!({ "token": "t", "plugins": ["janus.plugin.b", 7, "unknown"] });
    assert_eq!(ask(&tokens, "add_token", skips), data(&["janus.plugin.b"]));
    assert!(admits(&tokens, "t"));
    assert!(
        tokens.opens(Some("t"), "janus.plugin.b") && !tokens.opens(Some("t"), "janus.plugin.a")
    );
    // Unknown plugins do not become all plugins.
    let none = json!({ "token": "none", "plugins": ["unknown"] });
    assert_eq!(ask(&tokens, "add_token", none), data(&[]));
    assert!(admits(&tokens, "none") && !tokens.opens(Some("none"), "janus.plugin.a"));

    let more = json!({ "token": "t", "plugins": ["janus.plugin.a"] });
    let both = ["janus.plugin.a", "janus.plugin.b"];
    assert_eq!(ask(&tokens, "add_token", more), data(&both));
    assert_eq!(
        listed(&tokens),
        json!([
            { "token": "all", "allowed_plugins": PACKAGES, "rights": [] },
            { "token": "configured", "allowed_plugins": ["janus.plugin.a"], "rights": ["record"] },
            { "token": "t", "allowed_plugins": both, "rights": [] },
        ])
    );
}

#[test]
fn plugins_are_allowed_and_disallowed() {
    let tokens = tokens();
    let with = |plugins: &[&str]| json!({ "token": "configured", "plugins": plugins });
    let allowed = ask(&tokens, "allow_token", with(&["janus.plugin.c"]));
    assert_eq!(allowed, data(&["janus.plugin.a", "janus.plugin.c"]));
    let left = ask(
        &tokens,
        "disallow_token",
        with(&["janus.plugin.a", "janus.plugin.b"]),
    );
    assert_eq!(left, data(&["janus.plugin.c"]));
    let left = ask(&tokens, "disallow_token", with(&["janus.plugin.c"]));
    assert_eq!(left, data(&[]));
    // It is there still, but opens nothing.
    assert_eq!(listed(&tokens), json!([]));
    assert!(admits(&tokens, "configured") && !tokens.opens(Some("configured"), "janus.plugin.a"));
    let allowed = ask(&tokens, "allow_token", with(&["janus.plugin.a"]));
    assert_eq!(allowed, data(&["janus.plugin.a"]));

    ask(&tokens, "add_token", json!({ "token": "all" })).unwrap();
    let all = json!({ "token": "all", "plugins": ["janus.plugin.a"] });
    assert_eq!(ask(&tokens, "allow_token", all.clone()), data(&PACKAGES));
    assert!(tokens.opens(Some("all"), "a plugin to come"));
    assert_eq!(
        ask(&tokens, "disallow_token", all),
        data(&["janus.plugin.b", "janus.plugin.c"])
    );
    assert!(!tokens.opens(Some("all"), "a plugin to come"));
}

#[test]
fn a_removed_token_is_refused_at_once() {
    let tokens = tokens();
    let removed = ask(&tokens, "remove_token", json!({ "token": "configured" }));
    assert_eq!(removed, Ok(json!({})));
    assert!(!admits(&tokens, "configured"));
    let shown = Credentials {
        api_secret: None,
        token: Some("configured"),
    };
    assert_eq!(tokens.rights(false, shown, None), Rights::NONE);
    let again = ask(&tokens, "remove_token", json!({ "token": "configured" }));
    assert_eq!(again, Err((490, "Token configured not found".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn rights_and_a_time_can_be_given() {
    let tokens = tokens();
    let add = json!({ "token": "t", "rights": ["record", "forward", "record"], "expires": 60 });
    ask(&tokens, "add_token", add).unwrap();
    let entry = |tokens: &Tokens| listed(tokens)[1].clone();
    assert_eq!(entry(&tokens)["rights"], json!(["record", "forward"]));
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(entry(&tokens)["expires"], 40);
    // Members that are not given stay as they are.
    ask(&tokens, "add_token", json!({ "token": "t" })).unwrap();
    assert_eq!(entry(&tokens)["expires"], 40);
    let other = json!({ "token": "t", "rights": [] });
    ask(&tokens, "add_token", other).unwrap();
    assert_eq!(entry(&tokens)["rights"], json!([]));
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(!admits(&tokens, "t"));
    let expired = tokens.totals().refused.into_iter();
    assert!(expired.into_iter().any(|it| it == ("expired", 1)));
    let allow = json!({ "token": "t", "plugins": ["janus.plugin.a"] });
    assert_eq!(code(ask(&tokens, "allow_token", allow)), 470);
    assert_eq!(
        code(ask(&tokens, "remove_token", json!({ "token": "t" }))),
        490
    );
}

#[test]
fn requests_that_are_wrong_change_nothing_and_say_why() {
    let tokens = tokens();
    let before = listed(&tokens);
    let with = |plugins: Value| json!({ "token": "configured", "plugins": plugins });
    for (verb, members, expected) in [
        ("add_token", json!({}), 456),
        ("add_token", json!({ "token": 7 }), 467),
        ("add_token", json!({ "token": "" }), 467),
        ("add_token", json!({ "token": "x".repeat(4_097) }), 467),
        ("add_token", json!({ "token": "t", "plugins": "a" }), 467),
        ("add_token", json!({ "token": "t", "rights": ["all"] }), 467),
        (
            "add_token",
            json!({ "token": "t", "rights": "record" }),
            467,
        ),
        ("add_token", json!({ "token": "t", "expires": 0 }), 467),
        (
            "add_token",
            json!({ "token": "t", "expires": u64::MAX }),
            467,
        ),
        ("add_token", json!({ "token": "t", "expires": "1" }), 467),
        ("remove_token", json!({}), 456),
        ("remove_token", json!({ "token": 7 }), 467),
    ] {
        let answer = ask(&tokens, verb, members.clone());
        assert_eq!(code(answer), expected, "{verb} {members}");
    }
    for verb in ["allow_token", "disallow_token"] {
        for (members, expected) in [
            (json!({ "plugins": ["janus.plugin.a"] }), 456),
            (json!({ "token": "configured" }), 456),
            (with(json!("janus.plugin.a")), 467),
            (with(json!([])), 467),
            (with(json!([1])), 467),
            (with(json!(["janus.plugin.a", "unknown"])), 467),
        ] {
            let answer = ask(&tokens, verb, members.clone());
            assert_eq!(code(answer), expected, "{verb} {members}");
        }
        let unknown = json!({ "token": "x", "plugins": ["janus.plugin.a"] });
        let refused = ask(&tokens, verb, unknown);
        assert_eq!(refused, Err((470, "Token x not found".to_owned())));
    }
    assert_eq!(listed(&tokens), before);
}

#[test]
fn without_token_auth_there_are_no_such_requests() {
    let tokens = Tokens::new(TokensConfig::default(), JwtVerifier::default());
    for verb in [
        "add_token",
        "allow_token",
        "disallow_token",
        "list_tokens",
        "remove_token",
    ] {
        let refused = ask(&tokens, verb, json!({ "token": "t" }));
        let text = "Stored-Token based authentication disabled".to_owned();
        assert_eq!(refused, Err((490, text)), "{verb}");
    }
    assert_eq!(code(ask(&tokens, "info", json!({}))), 457);
}
