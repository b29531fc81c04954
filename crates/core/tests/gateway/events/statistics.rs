//! Events with statistics.

use super::*;

/// Figures that are all different.
pub(super) fn figures() -> PeerStats {
    let ms = Duration::from_millis;
    let received = |n: u64| StreamStats {
        packets: 100 + n,
        bytes: 200 + n,
        bytes_last_second: 300 + n,
        lost: 400 + n,
        jitter: ms(5 + n),
        nacks: 600 + n,
        retransmissions: 700 + n,
        link_quality: 80 + n as u8,
        media_link_quality: 90 + n as u8,
        ..StreamStats::default()
    };
    let sent = StreamStats {
        packets: 110,
        bytes: 210,
        bytes_last_second: 310,
        lost: 410,
        jitter: ms(15),
        nacks: 610,
        rtt: Some(ms(25)),
        rtt_times: Some(ReportTimes {
            ntp: 1,
            last_sr: 2,
            delay: 3,
        }),
        link_quality: 50,
        media_link_quality: 60,
        ..StreamStats::default()
    };
    let line = |mid: &str, index, kind, codec, clock_rate| MediaStats {
        mid: Mid::new(mid).unwrap(),
        index,
        kind,
        send: true,
        receive: true,
        payloads: vec![PayloadStats {
            pt: Pt(96),
            codec,
            clock_rate,
            rtx: None,
        }],
        nacks: true,
        nack_queue: Duration::ZERO,
        rids: Vec::new(),
        received: Vec::new(),
        sent: StreamStats::default(),
        layers: None,
        messages: None,
    };
    let traffic = |packets, bytes| Traffic { packets, bytes };
    PeerStats {
        media: vec![
            MediaStats {
                received: vec![received(0), received(1), received(2)],
                sent,
                ..line("v", 0, Kind::Video, Codec::Vp8, 90_000)
            },
            line("a", 1, Kind::Audio, Codec::Opus, 48_000),
            MediaStats {
                payloads: Vec::new(),
                messages: Some(MessageStats {
                    received: traffic(1, 2),
                    sent: traffic(3, 4),
                    channels: 1,
                }),
                ..line("d", 2, Kind::Data, Codec::Opus, 0)
            },
        ],
        remb: Some(512_000),
        ..PeerStats::default()
    }
}

/// The events with these statistics.
fn figures_told() -> [Value; 5] {
    let with_received = |mut event: Value, n: u64| {
        for (name, value) in [
            ("lost", 400 + n),
            ("jitter-local", 5 + n),
            ("in-link-quality", 80 + n),
            ("in-media-link-quality", 90 + n),
            ("packets-received", 100 + n),
            ("bytes-received", 200 + n),
            ("bytes-received-lastsec", 300 + n),
            ("nacks-sent", 600 + n),
            ("retransmissions-received", 700 + n),
        ] {
            event[name] = value.into();
        }
        event
    };
    let main = json!({
        "mid": "v", "mindex": 0, "media": "video", "codec": "vp8", "base": 90_000, "rtt": 25,
        "rtt-values": { "ntp": 1, "lsr": 2, "dlsr": 3 },
        "lost-by-remote": 410, "jitter-remote": 15,
        "out-link-quality": 50, "out-media-link-quality": 60,
        "packets-sent": 110, "bytes-sent": 210, "bytes-sent-lastsec": 310, "nacks-received": 610,
        "remb-bitrate": 512_000,
    });
    let further = |name: &str| {
        json!({
            "mid": "v", "mindex": 0, "media": name, "base": 90_000,
            "lost-by-remote": 0, "jitter-remote": 0,
            "out-link-quality": 100, "out-media-link-quality": 100,
            "packets-sent": 0, "bytes-sent": 0, "bytes-sent-lastsec": 0, "nacks-received": 0,
        })
    };
    let silent = json!({
        "mid": "a", "mindex": 1, "media": "audio", "codec": "opus", "base": 48_000, "rtt": 0,
        "lost": 0, "lost-by-remote": 0, "jitter-local": 0, "jitter-remote": 0,
        "in-link-quality": 100, "in-media-link-quality": 100,
        "out-link-quality": 100, "out-media-link-quality": 100,
        "packets-received": 0, "packets-sent": 0, "bytes-received": 0, "bytes-sent": 0,
        "bytes-received-lastsec": 0, "bytes-sent-lastsec": 0,
        "nacks-received": 0, "nacks-sent": 0, "retransmissions-received": 0,
    });
    let data = json!({
        "mid": "d", "mindex": 2, "media": "data",
        "packets-received": 1, "packets-sent": 3, "bytes-received": 2, "bytes-sent": 4,
    });
    [
        with_received(main, 0),
        with_received(further("video-sim1"), 1),
        with_received(further("video-sim2"), 2),
        silent,
        data,
    ]
}

#[tokio::test(start_paused = true)]
async fn statistics_come_every_period_and_a_last_time_at_the_end() {
    let world = World::new();
    let events = watch(&world, EventKind::Media.into());
    let (mut client, peer) = connected(&world).await;
    world.server.pretend_stats(peer, figures());
    let expected = figures_told().map(|event| of_handle(&client, EventKind::Media, Some(3), event));
    sleep(Duration::from_millis(1_950)).await;
    assert_eq!(told(&events), expected);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(told(&events), expected);
    client.on_handle("hangup", json!({})).await;
    assert_eq!(told(&events), expected);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(told(&events), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn last_figures_of_a_peer_that_went_by_itself_come_with_its_end() {
    let world = World::new();
    let (mut client, peer) = connected(&world).await;
    let kinds = EventMask::from(EventKind::WebRtc).and(EventKind::Media.into());
    let events = watch(&world, kinds);
    world
        .server
        .end(peer, CloseReason::DtlsAlert, figures())
        .await;
    while client.next().await["janus"] != "hangup" {}
    let told = told(&events);
    let last = figures_told().map(|event| of_handle(&client, EventKind::Media, Some(3), event));
    assert_eq!(told[..5], last);
    assert_eq!(told[5]["event"]["reason"], "DTLS alert");
    assert_eq!(told.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn statistics_of_all_lines_are_one_event_if_so_configured() {
    let world = World::knowing(ServerFacts {
        statistics: EventsConfig {
            combine_media_stats: true,
            stats_period: 3,
            ..EventsConfig::default()
        },
        ..ServerFacts::default()
    });
    let events = watch(&world, EventKind::Media.into());
    let (client, peer) = connected(&world).await;
    world.server.pretend_stats(peer, figures());
    sleep(Duration::from_secs(12)).await;
    let all = Value::from(figures_told().to_vec());
    let expected = of_handle(&client, EventKind::Media, Some(3), all);
    let told = told(&events);
    assert!((3..=4).contains(&told.len()), "{told:?}");
    assert!(told.iter().all(|event| *event == expected), "{told:?}");
}
