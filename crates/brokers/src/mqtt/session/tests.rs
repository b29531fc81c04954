#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use bytes::Bytes;

use super::*;

fn message(text: &'static str, qos: QoS) -> Outgoing {
    Outgoing {
        topic: "events/core".to_owned(),
        payload: Bytes::from_static(text.as_bytes()),
        qos,
        retain: false,
        correlation: None,
        user_properties: Vec::new(),
    }
}

fn session() -> Session {
    let topic = Topic {
        filter: "to/#".to_owned(),
        qos: QoS::AtLeastOnce,
    };
    Session::new(vec![topic], Presence::default(), 2)
}

fn connected(session_present: bool) -> Connected {
    Connected {
        session_present,
        receive_maximum: u16::MAX,
        max_packet: None,
    }
}

fn sent(session: &mut Session) -> Vec<Frame> {
    std::iter::from_fn(|| session.next_frame()).collect()
}

fn acknowledged(id: u16) -> Frame {
    Frame::Acknowledged { id, refusal: None }
}

fn published(frame: &Frame) -> (u16, bool, &[u8]) {
    match frame {
        Frame::Publish(publish) => (publish.id, publish.is_again, &publish.message.payload),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_confirmed_is_sent_again_by_the_next_connection() {
    let mut session = session();
    session.begin(&connected(false));
    session.publish(message("a", QoS::AtLeastOnce));
    session.publish(message("b", QoS::AtLeastOnce));
    assert!(!session.has_room());
    let frames = sent(&mut session);
    let [Frame::Subscribe { .. }, a, b] = frames.as_slice() else {
        panic!("{frames:?}");
    };
    let (id, _, payload) = published(a);
    assert_eq!(payload, b"a");
    assert_eq!(session.take(acknowledged(id)), Ok(None));
    assert_eq!(session.take_published(), 1);
    let (id, _, _) = published(b);
    session.begin(&connected(true));
    let frames = sent(&mut session);
    assert_eq!(published(frames.last().unwrap()), (id, true, &b"b"[..]));
    assert_eq!(session.take(acknowledged(id)), Ok(None));
    assert!(session.is_idle());
    // A repetition is accepted.
    assert_eq!(session.take(acknowledged(id)), Ok(None));
    assert_eq!(session.take_published(), 1);
}

#[test]
fn a_message_that_breaks_connections_is_given_up() {
    let mut session = session();
    session.begin(&connected(false));
    session.publish(message("poison", QoS::AtLeastOnce));
    for _ in 1..TRIES {
        session.begin(&connected(false));
        assert_eq!(session.under_way(), 1);
    }
    session.begin(&connected(false));
    assert_eq!(session.under_way(), 0);
    assert_eq!(session.take_lost().len(), 1);
}

#[test]
fn quality_2_comes_once_and_goes_once() {
    let mut session = session();
    session.begin(&connected(false));
    let publish = Frame::Publish(Publish {
        id: 7,
        is_again: false,
        message: Outgoing {
            topic: "to/us".to_owned(),
            ..message("x", QoS::ExactlyOnce)
        },
        reply: crate::Reply::default(),
    });
    assert!(session.take(publish.clone()).unwrap().is_some());
    assert!(session.take(publish.clone()).unwrap().is_none());
    assert_eq!(session.take(Frame::Released(7)), Ok(None));
    assert!(session.take(publish).unwrap().is_some());
    sent(&mut session);
    session.publish(message("y", QoS::ExactlyOnce));
    let (id, _, _) = published(sent(&mut session).first().unwrap());
    assert_eq!(session.take(Frame::Received(id)), Ok(None));
    assert_eq!(sent(&mut session), [Frame::Released(id)]);
    session.begin(&connected(true));
    assert_eq!(sent(&mut session).last(), Some(&Frame::Released(id)));
    assert_eq!(session.take(Frame::Completed(id)), Ok(None));
    assert_eq!((session.take_published(), session.is_idle()), (1, true));
}

#[test]
fn the_receipt_of_a_message_is_confirmed_when_somebody_has_it() {
    let mut session = session();
    session.begin(&connected(false));
    sent(&mut session);
    for (qos, confirmation) in [
        (QoS::AtMostOnce, None),
        (QoS::AtLeastOnce, Some(acknowledged(9))),
        (QoS::ExactlyOnce, Some(Frame::Received(9))),
    ] {
        let publish = Frame::Publish(Publish {
            id: 9,
            is_again: false,
            message: Outgoing {
                topic: "to/us".to_owned(),
                ..message("x", qos)
            },
            reply: crate::Reply::default(),
        });
        let (incoming, tag) = session.take(publish).unwrap().unwrap();
        assert_eq!((incoming.subscription, &*incoming.payload), (0, &b"x"[..]));
        assert!(sent(&mut session).is_empty());
        if let Some(tag) = tag {
            session.confirm(tag);
        }
        assert_eq!(sent(&mut session).pop(), confirmation);
    }
}

#[test]
fn what_the_broker_keeps_is_no_request() {
    let mut session = session();
    session.begin(&connected(false));
    sent(&mut session);
    let publish = |topic: &str, retain| {
        Frame::Publish(Publish {
            id: 3,
            is_again: false,
            message: Outgoing {
                topic: topic.to_owned(),
                retain,
                ..message("x", QoS::AtLeastOnce)
            },
            reply: crate::Reply::default(),
        })
    };
    for (topic, retain) in [("to/us", true), ("of/others", false)] {
        assert_eq!(session.take(publish(topic, retain)), Ok(None));
        assert_eq!(sent(&mut session), [acknowledged(3)]);
    }
    assert!(session.take(publish("to/us", false)).unwrap().is_some());
}

#[test]
fn a_broker_that_is_silent_or_rude_ends_the_connection() {
    let mut session = session();
    session.begin(&connected(false));
    assert_eq!(session.ping(), Ok(()));
    assert_eq!(session.ping(), Err(SessionError::Silent));
    session.begin(&connected(false));
    assert_eq!(session.ping(), Ok(()));
    assert_eq!(session.take(Frame::Pong), Ok(None));
    assert_eq!(session.ping(), Ok(()));
    let refused = Frame::Subscribed { refused: true };
    assert_eq!(session.take(refused), Err(SessionError::NotSubscribed));
    assert_eq!(session.take(Frame::Ping), Err(SessionError::Unexpected));
}

#[test]
fn limits_of_the_broker_are_kept() {
    let mut session = session();
    session.begin(&Connected {
        session_present: false,
        receive_maximum: 1,
        max_packet: Some(1_100),
    });
    session.publish(message("short", QoS::AtLeastOnce));
    assert!(!session.has_room());
    let long = Outgoing {
        payload: Bytes::from(vec![0; 1_000]),
        ..message("", QoS::AtMostOnce)
    };
    session.publish(long);
    let lost = session.take_lost();
    assert!(lost.first().unwrap().contains("too long"), "{lost:?}");
}

#[test]
fn refused_messages_are_lost() {
    let mut session = session();
    session.begin(&connected(false));
    session.publish(message("a", QoS::AtLeastOnce));
    let (id, _, _) = published(sent(&mut session).last().unwrap());
    let refusal = Some("NotAuthorized".to_owned());
    assert_eq!(session.take(Frame::Acknowledged { id, refusal }), Ok(None));
    assert_eq!(
        (session.take_published(), session.take_lost().len()),
        (0, 1)
    );
}
