//! Subscriptions and publications, at a notifier played by hand.

use portunus_sip::agent::{Command, Publish, Subscribe, SubscriptionId};
use portunus_sip::dialog::Dialog;
use portunus_sip::message::{Method, Request};

use crate::races::{answer, within};
use crate::world::*;

const ID: SubscriptionId = SubscriptionId::new(5);

fn subscribe(event: &str) -> Command {
    Command::Subscribe {
        account: ACCOUNT,
        subscription: ID,
        subscribe: Box::new(Subscribe {
            uri: uri("sip:bob@192.0.2.2"),
            event: event.into(),
            accept: Some("text/plain".into()),
            expires: SECOND * 600,
            call_id: Some("mine".into()),
            headers: Vec::new(),
            body: None,
        }),
    }
}

fn publish(state: &str) -> Command {
    Command::Publish {
        account: ACCOUNT,
        publication: ID,
        publish: Box::new(Publish {
            uri: uri("sip:alice@192.0.2.2"),
            event: "presence".into(),
            expires: SECOND * 600,
            headers: Vec::new(),
            body: sdp(state),
        }),
    }
}

/// The notifier's answer.
fn take(world: &mut World, hand: usize, request: &Request, expires: u32) {
    let mut response = answer(request, 200, "notifier", hand);
    response.headers.push("Expires", expires);
    world.send(hand, 0, response);
}

fn notify(world: &mut World, hand: usize, dialog: &mut Dialog, state: &str, branch: &str) {
    let mut request = within(dialog, Method::Notify, hand, branch);
    request.headers.push("Event", "presence");
    request.headers.push("Subscription-State", state);
    request.set_body("text/plain", "news");
    world.send(hand, 0, request);
}

fn world() -> (World, usize) {
    let mut world = World::new(Weather::FAIR, 1);
    world.agent("alice", passive);
    let hand = world.hand();
    (world, hand)
}

#[test]
fn a_subscription_is_kept_and_ended() {
    let (mut world, hand) = world();
    world.command(0, subscribe("presence"));
    let first = world.next_request(hand, SECOND / 10);
    assert_eq!(
        (first.headers.get("Event"), first.headers.get("Expires")),
        (Some("presence"), Some("600"))
    );
    assert_eq!(
        (first.headers.get("Accept"), first.headers.call_id()),
        (Some("text/plain"), Some("mine"))
    );
    let mut dialog = Dialog::of_request(&first, "notifier").unwrap();
    take(&mut world, hand, &first, 300);
    notify(&mut world, hand, &mut dialog, "active;expires=300", "1");
    assert!(
        world
            .responses(hand, SECOND)
            .iter()
            .all(|response| response.status.code() == 200)
    );
    assert_eq!(world.told(0), ["subscribed 300", "notify news"]);
    // It is refreshed, in its dialog.
    let refresh = world.next_request(hand, SECOND * 230);
    assert_eq!(
        refresh.headers.to().unwrap().unwrap().tag(),
        Some("notifier")
    );
    assert_eq!(refresh.headers.cseq().unwrap().unwrap().number, 2);
    take(&mut world, hand, &refresh, 600);
    world.pass(SECOND);
    assert_eq!(world.told(0), ["subscribed 600"]);
    // Once more, by command.
    world.command(0, subscribe("presence"));
    let again = world.next_request(hand, SECOND / 10);
    take(&mut world, hand, &again, 600);
    world.command(0, Command::Unsubscribe { subscription: ID });
    let last = world.next_request(hand, SECOND / 10);
    assert_eq!(last.headers.get("Expires"), Some("0"));
    take(&mut world, hand, &last, 0);
    notify(
        &mut world,
        hand,
        &mut dialog,
        "terminated;reason=timeout",
        "2",
    );
    world.pass(MINUTE);
    assert_eq!(
        world.told(0),
        [
            "subscribed 600",
            "subscribed 0",
            "notify news",
            "subscription ended timeout"
        ]
    );
    world.assert_idle(0);
}

#[test]
fn news_may_come_before_the_answer() {
    let (mut world, hand) = world();
    world.command(0, subscribe("presence"));
    let first = world.next_request(hand, SECOND / 10);
    let mut dialog = Dialog::of_request(&first, "notifier").unwrap();
    notify(&mut world, hand, &mut dialog, "pending", "1");
    world.pass(SECOND / 10);
    take(&mut world, hand, &first, 600);
    world.pass(SECOND / 10);
    assert_eq!(world.told(0), ["notify news", "subscribed 600"]);
    // Another fork is not wanted.
    let mut other = Dialog::of_request(&first, "other").unwrap();
    world.inbox(hand);
    notify(&mut world, hand, &mut other, "active", "2");
    assert_eq!(world.responses(hand, SECOND / 10)[0].status.code(), 481);
    // Nor are news of another kind, or out of order.
    let mut request = within(&mut dialog, Method::Notify, hand, "3");
    request.headers.push("Event", "dialog");
    world.send(hand, 0, request.clone());
    assert_eq!(world.responses(hand, SECOND / 10)[0].status.code(), 489);
    request.headers.set("CSeq", "0 NOTIFY");
    request
        .headers
        .set_first_via("SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK9");
    world.send(hand, 0, request);
    assert_eq!(world.responses(hand, SECOND / 10)[0].status.code(), 500);
    // The notifier ends it.
    notify(
        &mut world,
        hand,
        &mut dialog,
        "terminated;reason=rejected",
        "4",
    );
    world.pass(MINUTE);
    assert_eq!(
        world.told(0),
        ["notify news", "subscription ended rejected"]
    );
    world.assert_idle(0);
}

#[test]
fn a_subscription_that_is_refused_is_gone() {
    let (mut world, hand) = world();
    world.command(0, subscribe("presence"));
    let first = world.next_request(hand, SECOND / 10);
    world.send(hand, 0, answer(&first, 489, "x", hand));
    world.pass(MINUTE);
    assert_eq!(world.told(0), ["subscription failed 489 Bad Event"]);
    world.assert_idle(0);
    // And one that nobody answers.
    world.command(0, subscribe("presence"));
    world.pass(MINUTE);
    assert_eq!(world.told(0), ["subscription failed 408 Request Timeout"]);
    world.assert_idle(0);
}

#[test]
fn a_subscription_may_have_to_be_longer() {
    let (mut world, hand) = world();
    world.command(0, subscribe("presence"));
    let first = world.next_request(hand, SECOND / 10);
    let mut response = answer(&first, 423, "x", hand);
    response.headers.push("Min-Expires", 900);
    world.send(hand, 0, response);
    let second = world.next_request(hand, SECOND / 10);
    assert_eq!(second.headers.get("Expires"), Some("900"));
    assert_eq!(second.headers.cseq().unwrap().unwrap().number, 2);
}

#[test]
fn who_unsubscribes_without_a_last_word_from_the_notifier_is_done_all_the_same() {
    let (mut world, hand) = world();
    world.command(0, subscribe("presence"));
    world.command(0, Command::Unsubscribe { subscription: ID });
    let first = world.next_request(hand, SECOND / 10);
    take(&mut world, hand, &first, 600);
    let last = world.next_request(hand, SECOND / 10);
    assert_eq!(last.headers.get("Expires"), Some("0"));
    take(&mut world, hand, &last, 0);
    world.pass(MINUTE);
    assert_eq!(
        world.told(0),
        ["subscribed 600", "subscribed 0", "subscription ended"]
    );
    world.assert_idle(0);
}

#[test]
fn a_state_is_published_kept_changed_and_taken_back() {
    let (mut world, hand) = world();
    let publishes = |world: &mut World, time, etag: &str| {
        let request = world.next_request(hand, time);
        let mut response = answer(&request, 200, "x", hand);
        response.headers.push("SIP-ETag", etag);
        response
            .headers
            .push("Expires", request.headers.get("Expires").unwrap());
        world.send(hand, 0, response);
        world.pass(SECOND / 10);
        let etag = request.headers.get("SIP-If-Match").unwrap_or("").to_owned();
        (
            etag,
            String::from_utf8(request.body).unwrap(),
            request.headers.expires().unwrap().unwrap().as_secs(),
        )
    };
    world.command(0, publish("open"));
    assert_eq!(
        publishes(&mut world, SECOND / 10, "e1"),
        (String::new(), "open".into(), 600)
    );
    assert_eq!(
        publishes(&mut world, SECOND * 460, "e2"),
        ("e1".into(), String::new(), 600)
    );
    world.command(0, publish("closed"));
    assert_eq!(
        publishes(&mut world, SECOND / 10, "e3"),
        ("e2".into(), "closed".into(), 600)
    );
    // The server forgets it.
    let refresh = world.next_request(hand, SECOND * 460);
    world.send(hand, 0, answer(&refresh, 412, "x", hand));
    assert_eq!(
        publishes(&mut world, SECOND / 10, "e4"),
        (String::new(), "closed".into(), 600)
    );
    world.told(0);
    world.command(0, Command::Unpublish { publication: ID });
    assert_eq!(
        publishes(&mut world, SECOND / 10, "e5"),
        ("e4".into(), String::new(), 0)
    );
    world.pass(MINUTE);
    assert_eq!(world.told(0), ["subscription ended"]);
    world.assert_idle(0);
}
