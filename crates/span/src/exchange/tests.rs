//! Two exchanges, whose messages arrive or get lost.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::VecDeque;

use portunus_relay::SourceId;
use proptest::prelude::*;

use super::*;

/// A node: its exchange, and the link that it has.
struct Side {
    exchange: Exchange,
    /// The keys for sending and receiving.
    link: Option<(NodeLinkKey, NodeLinkKey)>,
    /// Keys of links that were removed.
    spent: Vec<NodeLinkKey>,
    /// Messages on their way to the other side.
    sent: VecDeque<LinkMessage>,
    resumed: usize,
    relayed: usize,
}

impl Side {
    fn new(is_opener: bool) -> Self {
        let port = 7_900 + u16::from(is_opener);
        let ours = vec![SocketAddr::from(([192, 0, 2, 1], port))];
        Side {
            exchange: Exchange::new(is_opener, ours, format!("r{port}")),
            link: None,
            spent: Vec::new(),
            sent: VecDeque::new(),
            resumed: 0,
            relayed: 0,
        }
    }

    fn act(&mut self) {
        for action in self.exchange.take_actions() {
            match action {
                Action::Send(message) => self.sent.push_back(message),
                Action::Connect {
                    addresses,
                    region,
                    send,
                    receive,
                } => {
                    assert_eq!(addresses.len(), 1);
                    let port = addresses.first().unwrap().port();
                    assert_eq!(region, Some(format!("r{port}")));
                    assert!(self.link.is_none(), "the one before is removed first");
                    assert!(!self.spent.contains(&send), "a key for sending is new");
                    self.link = Some((send, receive));
                }
                Action::Resume => {
                    assert!(self.link.is_some());
                    self.resumed += 1;
                }
                Action::Disconnect => self.spent.push(self.link.take().unwrap().0),
                Action::SetKey(_, key) => self.link.as_mut().unwrap().1 = key,
                Action::UseKey(_, key) => {
                    let before = std::mem::replace(&mut self.link.as_mut().unwrap().0, key);
                    self.spent.push(before);
                }
                Action::Relay(_) => self.relayed += 1,
            }
        }
    }
}

struct Pair {
    sides: [Side; 2],
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        Pair {
            sides: [true, false].map(Side::new),
            now: Instant::now(),
        }
    }

    fn call(&mut self, side: usize, call: impl FnOnce(&mut Exchange, Instant)) {
        let side = self.sides.get_mut(side).unwrap();
        call(&mut side.exchange, self.now);
        side.act();
    }

    /// Delivers a message. Returns whether there was one.
    fn deliver(&mut self, from: usize) -> bool {
        let Some(message) = self.sides.get_mut(from).unwrap().sent.pop_front() else {
            return false;
        };
        let message = LinkMessage::parse(&message.to_bytes()).unwrap();
        self.call(1 - from, |exchange, now| exchange.take(message, now));
        true
    }

    fn deliver_all(&mut self) {
        while self.deliver(0) || self.deliver(1) {}
    }

    fn reconnect(&mut self, lost: [bool; 2]) {
        for side in &mut self.sides {
            side.sent.clear();
        }
        for (side, lost) in lost.into_iter().enumerate() {
            self.call(side, |exchange, now| match lost {
                true => exchange.node_up(now),
                false => exchange.node_resumed(now),
            });
        }
    }

    fn check(&self) {
        let [one, other] = self.sides.each_ref().map(|side| side.link.clone().unwrap());
        assert_eq!(one.0, other.1);
        assert_eq!(one.1, other.0);
        let [one, other] = self.sides.each_ref().map(|side| side.exchange.session());
        assert_eq!(one, other);
    }
}

#[test]
fn a_link_goes_on_when_the_connection_was_replaced() {
    let mut pair = Pair::new();
    pair.reconnect([true, true]);
    pair.deliver_all();
    pair.check();
    let before = pair.sides[0].link.clone();
    pair.reconnect([false, false]);
    pair.deliver_all();
    pair.check();
    assert!(pair.sides.iter().all(|side| side.resumed == 1));
    assert_eq!(pair.sides[0].link, before);
    let session = pair.sides[0].exchange.session().unwrap();
    let about = Message::Ended {
        source: SourceId(1),
    };
    let message = LinkMessage::Relay { session, about };
    pair.call(1, |exchange, now| exchange.take(message.clone(), now));
    pair.reconnect([true, true]);
    pair.call(1, |exchange, now| exchange.take(message, now));
    assert_eq!(
        pair.sides[1].relayed, 1,
        "messages of an old link are dropped"
    );
}

#[test]
fn keys_are_renewed_once_a_day() {
    let mut pair = Pair::new();
    pair.reconnect([true, true]);
    pair.deliver_all();
    for day in 1..4 {
        let before = pair.sides[0].link.clone();
        pair.now += KEYS_LAST;
        pair.call(0, Exchange::tick);
        // The message gets lost the first time.
        if day == 2 {
            pair.reconnect([false, false]);
        }
        pair.deliver_all();
        pair.check();
        assert_ne!(pair.sides[0].link, before);
    }
}

proptest! {
    /// Connections break at any moment, and either side may count the other one as lost.
    #[test]
    fn both_have_the_same_keys_in_the_end(
        steps in proptest::collection::vec((0..5_u8, any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut pair = Pair::new();
        pair.reconnect([true, true]);
        for (step, one, other) in steps {
            match step {
                0 => pair.reconnect([one, other]),
                1 => pair.call(usize::from(one), |exchange, _| exchange.node_lost()),
                2 => {
                    pair.now += KEYS_LAST;
                    pair.call(0, Exchange::tick);
                }
                _ => {
                    pair.deliver(usize::from(one));
                }
            }
        }
        let lost = pair.sides.each_ref().map(|side| side.link.is_none());
        pair.reconnect(lost);
        pair.deliver_all();
        pair.check();
    }
}
