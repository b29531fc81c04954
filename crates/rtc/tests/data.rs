//! Data channels between two transports.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_rtc::data::{
    DataConfig, DataError, DataMessage, DataOptions, DataPayload, MAX_BUFFERED, MAX_CHANNELS,
    MAX_LABEL, MAX_MESSAGE, Reliability,
};
use portunus_rtc::testing::{Link, Pair, Side};
use portunus_rtc::{TransportError, TransportEvent};
use portunus_sdp::negotiated::DtlsRole;

const CONFIG: DataConfig = DataConfig {
    remote_port: 5_000,
    max_message_size: 262_144,
};

fn connected(seed: u64, link: Link) -> Pair {
    let mut pair = Pair::new(seed, link);
    connect(&mut pair);
    pair
}

fn connect(pair: &mut Pair) {
    pair.left.transport.negotiate_data(CONFIG, pair.now);
    pair.right.transport.negotiate_data(CONFIG, pair.now);
    assert!(pair.connect(), "{pair:#?}");
}

fn send(pair: &mut Pair, label: &str, payload: DataPayload<'_>) -> Result<(), TransportError> {
    let options = DataOptions::default();
    pair.left
        .transport
        .send_data(label, "", payload, options, pair.now)
}

fn messages<'a>(side: &'a Side, of: &'a str) -> Vec<&'a DataMessage> {
    let message = |event: &'a TransportEvent| match event {
        TransportEvent::Data { label, message, .. } if label == of => Some(message),
        _ => None,
    };
    side.events.iter().filter_map(message).collect()
}

#[test]
fn either_side_opens_in_either_role() {
    for (left_role, right_role) in [
        (DtlsRole::Server, DtlsRole::Client),
        (DtlsRole::Client, DtlsRole::Server),
    ] {
        let left = Side::new("left", ([10, 0, 0, 1], 1_001).into(), true, left_role);
        let right = Side::new("right", ([10, 0, 0, 2], 1_002).into(), false, right_role);
        let mut pair = Pair::of(7, Link::GOOD, left, right);
        connect(&mut pair);
        let now = pair.now;
        let options = DataOptions::default();
        let text = DataPayload::Text("hello");
        pair.left
            .transport
            .send_data("from-left", "json", text, options, now)
            .unwrap();
        let bytes = DataPayload::Binary(&[1, 2, 3]);
        pair.right
            .transport
            .send_data("from-right", "", bytes, options, now)
            .unwrap();
        pair.run(Duration::from_secs(5));
        for side in [&pair.left, &pair.right] {
            for (label, protocol) in [("from-left", "json"), ("from-right", "")] {
                let open = TransportEvent::DataChannelOpen {
                    label: label.into(),
                    protocol: protocol.into(),
                };
                assert!(
                    side.saw(|event| *event == open),
                    "{label}: {:#?}",
                    side.events
                );
            }
        }
        let hello = DataMessage::Text("hello".into());
        assert_eq!(messages(&pair.right, "from-left"), [&hello]);
        assert_eq!(
            messages(&pair.left, "from-right"),
            [&DataMessage::Binary(vec![1, 2, 3])]
        );

        // The answer uses the channel that the other side opened.
        pair.right
            .transport
            .send_data("from-left", "", text, options, pair.now)
            .unwrap();
        pair.run(Duration::from_secs(1));
        assert_eq!(messages(&pair.left, "from-left"), [&hello]);
    }
}

#[test]
fn messages_of_all_kinds_and_sizes_arrive_over_a_lossy_network() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.1)] {
        let mut pair = connected(seed, Link::lossy(loss));
        let big: Vec<u8> = (0..MAX_MESSAGE).map(|i| (i % 251) as u8).collect();
        let payloads = [
            DataPayload::Text("hé"),
            DataPayload::Text(""),
            DataPayload::Binary(&[]),
            DataPayload::Binary(&big),
            DataPayload::Binary(&big[..70_000]),
            DataPayload::Text("end"),
        ];
        for payload in payloads {
            send(&mut pair, "all", payload).unwrap();
        }
        let all = |pair: &Pair| messages(&pair.right, "all").len() == payloads.len();
        assert!(pair.run_until(Duration::from_secs(300), all), "loss {loss}");
        for (sent, got) in payloads.iter().zip(messages(&pair.right, "all")) {
            match (sent, got) {
                (DataPayload::Text(sent), DataMessage::Text(got)) => assert_eq!(sent, got),
                (DataPayload::Binary(sent), DataMessage::Binary(got)) => assert!(sent == got),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn unreliable_unordered_messages_may_get_lost_but_do_not_stop_the_rest() {
    let mut pair = connected(5, Link::lossy(0.2));
    let options = DataOptions {
        ordered: false,
        reliability: Reliability::MaxRetransmits(0),
    };
    pair.left
        .transport
        .open_data("fast", "", options, pair.now)
        .unwrap();
    let open = |event: &TransportEvent| matches!(event, TransportEvent::DataChannelOpen { label, .. } if label == "fast");
    assert!(pair.run_until(Duration::from_secs(20), |pair| pair.left.saw(open)));
    for n in 0..200_u32 {
        let payload = n.to_be_bytes();
        let payload = DataPayload::Binary(&payload);
        pair.left
            .transport
            .send_data("fast", "", payload, options, pair.now)
            .unwrap();
        pair.run(Duration::from_millis(20));
    }
    pair.run(Duration::from_secs(30));
    let arrived = messages(&pair.right, "fast").len();
    assert!((80..200).contains(&arrived), "{arrived} of 200 arrived");
}

#[test]
fn what_waits_is_bounded_and_room_is_announced() {
    let mut pair = connected(1, Link::GOOD);
    let chunk = vec![7; 64 * 1024];
    let mut sent = 0;
    let error = loop {
        match send(&mut pair, "bulk", DataPayload::Binary(&chunk)) {
            Ok(()) => sent += chunk.len(),
            Err(error) => break error,
        }
        assert!(sent <= MAX_BUFFERED);
    };
    assert!(
        matches!(error, TransportError::Data(DataError::Full { .. })),
        "{error:?}"
    );
    let writable = |pair: &Pair| {
        pair.left
            .saw(|event| *event == TransportEvent::DataWritable)
    };
    assert!(pair.run_until(Duration::from_secs(60), writable));
    assert!(send(&mut pair, "bulk", DataPayload::Binary(&chunk)).is_ok());
}

#[test]
fn misuse_is_told_apart() {
    let mut pair = Pair::new(1, Link::GOOD);
    let text = DataPayload::Text("x");
    let refused = |result: Result<(), TransportError>| match result {
        Err(TransportError::Data(error)) => Some(error),
        _ => None,
    };
    assert_eq!(
        refused(send(&mut pair, "a", text)),
        Some(DataError::NotNegotiated)
    );
    pair.left.transport.negotiate_data(CONFIG, pair.now);
    assert_eq!(
        refused(send(&mut pair, "a", text)),
        Some(DataError::NotConnected)
    );
    connect(&mut pair);
    let long = "l".repeat(MAX_LABEL + 1);
    assert_eq!(refused(send(&mut pair, &long, text)), Some(DataError::Name));
    let len = MAX_MESSAGE + 1;
    let result = send(&mut pair, "a", DataPayload::Binary(&vec![0; len]));
    assert_eq!(
        refused(result),
        Some(DataError::TooLong {
            len,
            limit: MAX_MESSAGE
        })
    );
    for n in 1..MAX_CHANNELS {
        send(&mut pair, &format!("channel {n}"), text).unwrap();
    }
    assert_eq!(
        refused(send(&mut pair, "more", text)),
        Some(DataError::TooManyChannels)
    );
    pair.run(Duration::from_secs(20));
    let received = |event: &&TransportEvent| matches!(event, TransportEvent::Data { .. });
    assert_eq!(
        pair.right.events.iter().filter(received).count(),
        MAX_CHANNELS - 1
    );
}

#[test]
fn a_closed_channel_is_closed_on_both_sides_and_can_be_opened_again() {
    let mut pair = connected(1, Link::GOOD);
    send(&mut pair, "chat", DataPayload::Text("one")).unwrap();
    pair.run(Duration::from_secs(1));
    pair.left.transport.close_data("chat", pair.now).unwrap();
    pair.run(Duration::from_secs(5));
    let closed = TransportEvent::DataChannelClosed {
        label: "chat".into(),
    };
    assert!(
        pair.right.saw(|event| *event == closed),
        "{:#?}",
        pair.right.events
    );
    send(&mut pair, "chat", DataPayload::Text("two")).unwrap();
    pair.run(Duration::from_secs(5));
    assert_eq!(messages(&pair.right, "chat").len(), 2);
}
