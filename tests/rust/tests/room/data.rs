//! Messages between participants.

use portunus_rtc::data::DataMessage;
use portunus_tests::Peer;
use serde_json::json;

use crate::world::{Member, publisher, server, viewer};

/// Lets both run until the viewer has received something.
async fn both(from: &mut Member, viewer: &mut Member, mut done: impl FnMut(&Peer) -> bool) {
    tokio::select! {
        () = viewer.peer.run_until(|peer| done(peer)) => {}
        () = from.peer.run_until(|_| false) => {}
    }
}

#[tokio::test]
async fn data_goes_to_all_who_subscribed() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let all = json!([{ "feed": 1, "mid": "2" }, { "feed": 2, "mid": "2" }]);
    let mut viewers = [
        viewer(&server, all.clone()).await,
        viewer(&server, all).await,
    ];
    al.peer.send_text("chat", "from al");
    bo.peer.send_text("chat", "from bo");
    al.turn().await;
    bo.turn().await;
    for viewer in &mut viewers {
        for (from, text) in [(&mut al, ("1", "from al")), (&mut bo, ("2", "from bo"))] {
            for _ in 0..200 {
                viewer.turn().await;
                from.turn().await;
                if !viewer.peer.texts(text.0).is_empty() {
                    break;
                }
            }
            assert_eq!(viewer.peer.texts(text.0), [text.1]);
        }
    }
}

#[tokio::test]
async fn messages_keep_their_order_and_kind_over_a_lossy_link() {
    const MESSAGES: usize = 300;
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let want = json!([{ "feed": 1, "mid": "2" }]);
    let mut near = viewer(&server, want.clone()).await;
    let mut far = viewer(&server, want).await;
    far.peer.lose(0.05, 7);
    for n in 0..MESSAGES {
        let text = format!("{n}");
        match n % 3 {
            0 => al.peer.send_bytes("chat", text.as_bytes()),
            1 => al.peer.send_text("chat", &text),
            // Of several packets.
            _ => al.peer.send_text("chat", &format!("{n:>5000}")),
        }
        if n % 20 == 0 {
            al.turn().await;
        }
    }
    for viewer in [&mut near, &mut far] {
        both(&mut al, viewer, |peer| peer.messages("1").len() >= MESSAGES).await;
        for (n, message) in viewer.peer.messages("1").into_iter().enumerate() {
            let is = match message {
                DataMessage::Text(text) => (true, text.trim().to_owned()),
                DataMessage::Binary(bytes) => (false, String::from_utf8(bytes.clone()).unwrap()),
            };
            assert_eq!(is, (n % 3 > 0, n.to_string()));
        }
    }
    assert!(far.peer.lost() > 0);
    assert_eq!(server.gateway.media_totals().messages_dropped, 0);
}

#[tokio::test]
async fn who_does_not_keep_up_misses_messages_and_holds_nobody_up() {
    const MESSAGES: usize = 96;
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let want = json!([{ "feed": 1, "mid": "2" }]);
    let mut slow = viewer(&server, want.clone()).await;
    let mut quick = viewer(&server, want).await;
    al.peer.send_text("chat", "first");
    for viewer in [&mut slow, &mut quick] {
        both(&mut al, viewer, |peer| !peer.texts("1").is_empty()).await;
    }
    for n in 0..MESSAGES {
        let text = format!("{n:>32000}");
        al.peer.send_text("chat", &text);
        both(&mut al, &mut quick, |peer| peer.texts("1").len() > n + 1).await;
    }
    let dropped = server.gateway.media_totals().messages_dropped;
    assert!(
        dropped > 0,
        "all of {MESSAGES} wait for a viewer that is asleep"
    );
    let expected = MESSAGES + 1 - usize::try_from(dropped).unwrap();
    both(&mut al, &mut slow, |peer| peer.texts("1").len() >= expected).await;
    let got = slow.peer.texts("1").into_iter();
    let got: Vec<u32> = got.filter_map(|text| text.trim().parse().ok()).collect();
    assert_eq!(got.len() + 1, expected);
    assert!(got.is_sorted());
}

#[tokio::test]
async fn channels_follow_mutes_and_end_with_their_publishers() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let all = json!([{ "feed": 1, "mid": "2" }, { "feed": 2, "mid": "2" }]);
    let mut viewer = viewer(&server, all).await;
    let heard = |label: &'static str, text: &'static str| {
        move |peer: &Peer| peer.texts(label).last() == Some(&text)
    };
    al.peer.send_text("chat", "one");
    both(&mut al, &mut viewer, heard("1", "one")).await;
    let send = |send: bool| json!({ "request": "configure", "data": send });
    al.ask(send(false), "configured").await;
    al.peer.send_text("chat", "unheard");
    bo.peer.send_text("chat", "two");
    both(&mut bo, &mut viewer, heard("2", "two")).await;
    for _ in 0..10 {
        al.turn().await;
        viewer.turn().await;
    }
    al.ask(send(true), "configured").await;
    al.peer.send_text("chat", "three");
    both(&mut al, &mut viewer, heard("1", "three")).await;
    assert_eq!(viewer.peer.texts("1"), ["one", "three"]);
    al.ask(json!({ "request": "unpublish" }), "unpublished")
        .await;
    both(&mut bo, &mut viewer, |peer| peer.has_lost_channel("1")).await;
    bo.peer.send_text("chat", "four");
    both(&mut bo, &mut viewer, heard("2", "four")).await;
}
