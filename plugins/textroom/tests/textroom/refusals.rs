//! Requests that are refused: each wrong type, each code.

use serde_json::{Value, json};

use crate::world::{ROOM, World, code, merge};

/// A request: its name, its members with a value of the right type, and the number of the first
/// ones that are required.
type Request = (&'static str, Vec<(&'static str, Value)>, usize);

/// Returns the requests of the API.
fn requests() -> Vec<Request> {
    let room = || ("room", json!(ROOM));
    let secret = || ("secret", json!("s"));
    let text = |name| (name, json!("x"));
    let flag = |name| (name, json!(false));
    vec![
        ("list", vec![text("admin_key")], 0),
        ("listparticipants", vec![room()], 1),
        ("exists", vec![room()], 1),
        (
            "create",
            vec![
                ("room", json!(0)),
                text("description"),
                text("secret"),
                text("pin"),
                flag("is_private"),
                ("history", json!(1)),
                ("post", json!("")),
                ("allowed", json!(["a"])),
                flag("permanent"),
            ],
            0,
        ),
        (
            "edit",
            vec![
                room(),
                secret(),
                text("new_description"),
                ("new_secret", json!("s")),
                text("new_pin"),
                ("new_post", json!("")),
                flag("new_is_private"),
                flag("permanent"),
            ],
            1,
        ),
        (
            "allowed",
            vec![
                room(),
                ("action", json!("add")),
                secret(),
                ("allowed", json!(["a"])),
            ],
            2,
        ),
        ("kick", vec![room(), text("username"), secret()], 2),
        ("announcement", vec![room(), text("text"), secret()], 2),
        ("destroy", vec![room(), secret(), flag("permanent")], 1),
    ]
}

/// Returns the requests of data channels alone.
fn requests_of_members() -> Vec<Request> {
    let room = || ("room", json!(ROOM));
    let text = |name| (name, json!("x"));
    vec![
        (
            "join",
            vec![
                room(),
                text("username"),
                text("display"),
                text("pin"),
                text("token"),
                ("history", json!(true)),
            ],
            2,
        ),
        (
            "message",
            vec![
                room(),
                text("text"),
                text("to"),
                ("tos", json!(["a"])),
                ("ack", json!(true)),
            ],
            2,
        ),
        ("leave", vec![room()], 1),
    ]
}

/// Returns values of other types than that of a right value.
fn wrong(right: &Value) -> Vec<Value> {
    let all = [
        json!(1.5),
        json!({}),
        json!(null),
        json!("x"),
        json!(7),
        json!(true),
        json!([1]),
    ];
    let same = |value: &Value| match right {
        Value::String(_) => value.is_string(),
        Value::Number(_) => value.is_u64(),
        Value::Bool(_) => value.is_boolean(),
        _ => false,
    };
    all.into_iter().filter(|value| !same(value)).collect()
}

fn with(members: &[(&str, Value)]) -> Value {
    let members = members.iter().cloned();
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.collect())
}

#[tokio::test]
async fn every_member_of_a_wrong_type_is_named() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut client = world.attach().await;
    for (request, members, _) in requests() {
        for (name, right) in &members {
            for value in wrong(right) {
                let mut body = with(&members);
                body[*name] = value.clone();
                body["request"] = json!(request);
                let answer = client.request(body.clone()).await;
                assert_eq!(code(&answer), 414, "{body}: {answer}");
                let text = answer["error"].as_str().unwrap();
                assert!(text.contains(name), "{body}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn every_member_that_is_missing_is_named() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut client = world.attach().await;
    for (request, members, needed) in requests() {
        for (name, _) in members.iter().take(needed) {
            let mut body = with(&members);
            body.as_object_mut().unwrap().shift_remove(*name);
            body["request"] = json!(request);
            let answer = client.request(body.clone()).await;
            assert_eq!(code(&answer), 413, "{body}: {answer}");
            let text = format!("Missing mandatory element ({name})");
            assert_eq!(answer["error"], text, "{body}");
        }
    }
    let mut guest = world.guest().await;
    for (request, members, needed) in requests_of_members() {
        for (name, _) in members.iter().take(needed) {
            let mut body = with(&members);
            let members = body.as_object_mut().unwrap();
            members.shift_remove(*name);
            members.shift_remove("to");
            members.insert("textroom".to_owned(), json!(request));
            members.insert("transaction".to_owned(), json!("t"));
            let answer = guest.tell(&world, body.clone()).await;
            assert_eq!(code(&answer), 413, "{body}: {answer}");
            assert_eq!(
                answer["error"],
                format!("Missing mandatory element ({name})")
            );
            assert_eq!(answer["transaction"], "t");
        }
    }
}

#[tokio::test]
async fn data_channels_mind_types_as_the_api_does() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut guest = world.guest().await;
    let mut all = requests();
    all.extend(requests_of_members());
    for (request, members, _) in all {
        for (name, right) in &members {
            for value in wrong(right) {
                let mut body = with(&members);
                body[*name] = value;
                // A message has one of the two.
                let other = if *name == "tos" { "to" } else { "tos" };
                body.as_object_mut().unwrap().shift_remove(other);
                merge(
                    &mut body,
                    json!({ "textroom": request, "transaction": "t" }),
                );
                let answer = guest.tell(&world, body.clone()).await;
                assert_eq!(code(&answer), 414, "{body}: {answer}");
                assert!(answer["error"].as_str().unwrap().contains(name), "{answer}");
            }
        }
        // This number at once exceeds the rate.
        guest = world.guest().await;
    }
}

#[tokio::test]
async fn requests_that_there_are_not() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (body, expected) in [
        (json!({}), (413, "Missing mandatory element (request)")),
        (
            json!({ "request": 1 }),
            (414, "Invalid element type (request should be a string)"),
        ),
        (
            json!({ "request": "Dance" }),
            (415, "Unknown request 'Dance'"),
        ),
        (
            json!({ "request": "join", "room": ROOM }),
            (415, "Unknown request 'join'"),
        ),
        (
            json!({ "request": "leave" }),
            (415, "Unknown request 'leave'"),
        ),
        (
            json!({ "request": "message" }),
            (415, "Unknown request 'message'"),
        ),
    ] {
        let answer = client.request(body.clone()).await;
        let (code, text) = expected;
        let event = json!({ "textroom": "event", "error_code": code, "error": text });
        assert_eq!(answer, event, "{body}");
    }
}

#[tokio::test]
async fn what_needs_a_secret_is_refused_without_and_with_a_wrong_one() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut client = world.attach().await;
    for (request, members, _) in requests() {
        if !members.iter().any(|(name, _)| *name == "secret") || request == "create" {
            continue;
        }
        let mut body = with(&members);
        body["request"] = json!(request);
        body["secret"] = json!("guess");
        let answer = client.request(body.clone()).await;
        assert_eq!(code(&answer), 419, "{body}: {answer}");
        assert_eq!(answer["error"], "Unauthorized (wrong secret)");
        body.as_object_mut().unwrap().shift_remove("secret");
        let answer = client.request(body.clone()).await;
        assert_eq!(
            answer["error"], "Missing mandatory element (secret)",
            "{body}"
        );
        body["room"] = json!(99);
        let answer = client.request(body.clone()).await;
        assert_eq!(
            (code(&answer), &answer["error"]),
            (417, &json!("No such room (99)")),
            "{body}"
        );
    }
}

#[tokio::test]
async fn values_that_cannot_be() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (body, member) in [
        (json!({ "request": "create", "room": -1 }), "room"),
        (json!({ "request": "create", "history": 10_001 }), "history"),
        (json!({ "request": "create", "post": "nowhere" }), "post"),
        (json!({ "request": "create", "post": "ftp://a/" }), "post"),
        (
            json!({ "request": "edit", "room": ROOM, "new_post": "nowhere" }),
            "new_post",
        ),
        (
            json!({ "request": "allowed", "room": ROOM, "action": "x" }),
            "action",
        ),
        (
            json!({ "request": "allowed", "room": ROOM, "action": "add", "allowed": [1] }),
            "allowed",
        ),
    ] {
        let answer = client.request(body.clone()).await;
        assert_eq!(code(&answer), 414, "{body}: {answer}");
        assert!(
            answer["error"].as_str().unwrap().contains(member),
            "{answer}"
        );
    }
    for request in ["create", "edit", "destroy"] {
        let body = json!({ "request": request, "room": ROOM + u64::from(request == "create"),
                           "permanent": true });
        assert_eq!(code(&client.request(body).await), 499, "{request}");
    }
}

#[tokio::test]
async fn members_are_refused_what_makes_no_sense() {
    let world = World::new(json!({})).await;
    let mut al = world.member("al").await;
    let mut bo = world.guest().await;
    for (request, members, expected) in [
        (
            "join",
            json!({ "room": 9, "username": "bo" }),
            (417, "No such room (9)"),
        ),
        (
            "join",
            json!({ "username": "al" }),
            (420, "Username already taken"),
        ),
        ("leave", json!({}), (422, "Not in room 1234")),
        ("leave", json!({ "room": 9 }), (417, "No such room (9)")),
        ("message", json!({ "text": "x" }), (422, "Not in room 1234")),
        (
            "message",
            json!({ "room": 9, "text": "x" }),
            (417, "No such room (9)"),
        ),
        (
            "message",
            json!({ "text": "x", "to": "al", "tos": ["al"] }),
            (414, "Both to and tos array provided"),
        ),
        (
            "kick",
            json!({ "username": "cy" }),
            (423, "No such user cy in room 1234"),
        ),
        ("dance", json!({}), (415, "Unsupported request dance")),
    ] {
        let (answer, _) = bo.ask(&world, request, members.clone()).await;
        let (code, text) = expected;
        let refused = json!({ "textroom": "error", "error_code": code, "error": text,
                              "transaction": request });
        assert_eq!(answer, refused, "{request} {members}");
    }
    let again = al.join(&world, json!({ "username": "al" })).await;
    assert_eq!(
        (code(&again), &again["error"]),
        (421, &json!("Already in room 1234"))
    );
    al.expect_silence(&world).await;
}
