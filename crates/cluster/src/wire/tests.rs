#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use super::*;

fn room() -> About {
    About {
        key: HomeKey::new("room.videoroom", "1234").unwrap(),
        revision: Revision {
            generation: 1_700_000_000_000,
            sequence: 42,
        },
    }
}

fn all() -> Vec<Frame> {
    let node = NodeId::new("a-1").unwrap();
    vec![
        Frame::Hello {
            node: node.clone(),
            epoch: Epoch(9),
            cluster: "c".to_owned(),
            versions: VersionRange { min: 1, max: 3 },
        },
        Frame::Ping { clock: 5 },
        Frame::Pong { clock: 5 },
        Frame::Register(room()),
        Frame::Registered(room()),
        Frame::Refused {
            about: room(),
            home: None,
        },
        Frame::Refused {
            about: room(),
            home: Some(KnownHome {
                revision: room().revision,
                node: node.clone(),
                epoch: Epoch(1),
            }),
        },
        Frame::Unregister(room()),
        Frame::Item {
            about: room(),
            owner: node.clone(),
            name: "member 7".to_owned(),
            value: Some(Bytes::from_static(b"x")),
        },
        Frame::Hears {
            is_all: true,
            nodes: vec![
                Hearing {
                    node: node.clone(),
                    epoch: Some(Epoch(7)),
                },
                Hearing {
                    node: NodeId::new("b").unwrap(),
                    epoch: None,
                },
            ],
        },
        Frame::Via(Via {
            from: node.clone(),
            to: NodeId::new("c").unwrap(),
            path: 3,
            number: 1,
            received: 2,
            is_closed: false,
            frame: Frame::Ping { clock: 5 }.encode(),
        }),
        Frame::Item {
            about: room(),
            owner: node,
            name: String::new(),
            value: None,
        },
        Frame::Synced(room()),
        Frame::Ended(room()),
        Frame::Message {
            about: room(),
            payload: Bytes::from_static(b"hello"),
        },
        Frame::Direct {
            channel: 1,
            payload: Bytes::new(),
        },
    ]
}

#[test]
fn each_frame_is_the_same_when_it_is_read_again() {
    for frame in all() {
        let again = Frame::decode(frame.clone().encode()).unwrap();
        assert_eq!(again, Some(frame));
    }
}

#[test]
fn frames_of_a_later_version_are_skipped_and_malformed_ones_refused() {
    // Field 99 of an unknown type.
    let later = Bytes::from_static(&[0x9a, 0x06, 0x01, 0x00]);
    assert_eq!(Frame::decode(later), Ok(None));
    for cut in all().into_iter().map(Frame::encode) {
        let cut = cut.slice(..cut.len() - 1);
        // A frame without its last byte is malformed, or another one.
        let _ = Frame::decode(cut);
    }
    assert!(Frame::decode(Bytes::from_static(&[0x0a, 0xff])).is_err());
    let long = Bytes::from(vec![0; MAX_FRAME + 1]);
    assert_eq!(Frame::decode(long), Err(FrameError::Long(MAX_FRAME + 1)));
}

#[test]
fn the_highest_common_version_is_spoken() {
    let range = |min, max| VersionRange { min, max };
    assert_eq!(range(1, 3).common(range(2, 5)), Some(3));
    assert_eq!(range(2, 2).common(range(1, 2)), Some(2));
    assert_eq!(range(1, 1).common(range(2, 3)), None);
    // An impossible range of a stranger.
    assert_eq!(range(1, 1).common(range(9, 0)), None);
}

#[test]
fn the_largest_frame_can_be_carried() {
    let node = NodeId::new(&"n".repeat(63)).unwrap();
    let name = "x".repeat(368);
    let revision = Revision {
        generation: u64::MAX,
        sequence: u64::MAX,
    };
    let about = About {
        key: HomeKey::new("room.videoroom", &name).unwrap(),
        revision,
    };
    let item = Frame::Item {
        about,
        owner: node.clone(),
        name: "i".repeat(MAX_ITEM),
        value: Some(Bytes::from(vec![0; MAX_PAYLOAD])),
    };
    let via = Frame::Via(Via {
        from: node.clone(),
        to: node,
        path: u64::MAX,
        number: u64::MAX,
        received: u64::MAX,
        is_closed: false,
        frame: item.encode(),
    });
    let len = via.encode().len();
    assert!(len <= MAX_FRAME, "{len}");
}

#[test]
fn too_many_nodes_are_refused() {
    let hearing = Hearing {
        node: NodeId::new("b").unwrap(),
        epoch: Some(Epoch(1)),
    };
    let hears = |count| Frame::Hears {
        is_all: true,
        nodes: vec![hearing.clone(); count],
    };
    assert!(Frame::decode(hears(MAX_HEARD).encode()).is_ok());
    let many = hears(MAX_HEARD + 1).encode();
    assert_eq!(Frame::decode(many), Err(FrameError::Part));
}
