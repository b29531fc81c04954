#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]
use std::net::Ipv4Addr;

use portunus_media::MediaConfig;
use portunus_turn::{MediaAddress, MediaAddresses, Turn, TurnConfig};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// The TURN server of this project, which relays to nobody here, at any port.
fn turn_server() -> (Turn, String) {
    let config = TurnConfig {
        enabled: true,
        host: "127.0.0.1".to_owned(),
        bind: vec![Ipv4Addr::LOCALHOST.into()],
        port: 0,
        ..TurnConfig::default()
    };
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let peers = MediaAddresses::new([MediaAddress {
        announced: nobody,
        bound: nobody,
    }]);
    let turn = Turn::start(&config, peers).unwrap();
    let server = turn.ice_server();
    (turn, server.urls[0].clone())
}

fn media(workers: usize) -> MediaPlane {
    let config = MediaConfig {
        workers,
        port: 0,
        pin: false,
        bind: vec![Ipv4Addr::LOCALHOST.into()],
        ..MediaConfig::default()
    };
    MediaPlane::start(config).unwrap().0
}

fn config(turn: &Turn, uri: &str) -> TurnClientConfig {
    let login = turn.ice_server();
    TurnClientConfig {
        turn_server: Some(uri.parse().unwrap()),
        turn_user: login.username,
        turn_password: login.credential.into(),
        ..TurnClientConfig::default()
    }
}

/// Why the only worker has no address.
fn unavailable(media: &MediaPlane) -> String {
    match media.turn_states().remove(0) {
        TurnState::Unavailable(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_worker_has_an_address_which_its_peers_are_told() {
    for query in ["udp", "tcp"] {
        let (turn, url) = turn_server();
        let url = url.replace("transport=udp", &format!("transport={query}"));
        let media = media(2);
        TurnClients::start(&config(&turn, &url), &media)
            .await
            .unwrap();
        let states = media.turn_states();
        for state in &states {
            assert!(
                matches!(state, TurnState::Allocated(_)),
                "{query}: {state:?}"
            );
        }
        assert_ne!(states[0], states[1]);
        assert_eq!(media.totals().relayed.allocations, 2);
        assert_eq!(turn.totals().allocations, 2);
        media.shutdown();
        media.ended().await;
        // Both were given back.
        let patience = Instant::now() + PATIENCE;
        while turn.totals().allocations > 0 {
            assert!(Instant::now() < patience, "{query}");
            sleep(Duration::from_millis(10)).await;
        }
        turn.stop();
    }
}

#[tokio::test]
async fn a_wrong_password_and_a_server_that_is_not_there_are_told() {
    let (turn, url) = turn_server();
    let media = media(1);
    let wrong = TurnClientConfig {
        turn_password: "guess".into(),
        ..config(&turn, &url)
    };
    TurnClients::start(&wrong, &media).await.unwrap();
    let text = unavailable(&media);
    assert!(text.contains("user name or the password"), "{text}");
    assert!(text.contains("media.turn_password"), "{text}");
    media.shutdown();

    let media = self::media(1);
    let nobody = TurnClientConfig {
        turn_server: Some("turn:127.0.0.1:9?transport=tcp".parse().unwrap()),
        ..config(&turn, &url)
    };
    let began = Instant::now();
    TurnClients::start(&nobody, &media).await.unwrap();
    assert!(began.elapsed() < START, "refused at once");
    let text = unavailable(&media);
    assert!(
        text.contains("cannot reach the TURN server turn:127.0.0.1:9"),
        "{text}"
    );
    media.shutdown();
}
