//! The setup of media over UDP and TCP.

use std::sync::Arc;

use portunus_rtsp::{Allowed, Config, MediumKind, RtspError, Session, Transport};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::server::{SDP, config, good, reply, server};
use crate::support::{PATIENCE, Pull, Told, refusal};

#[tokio::test]
async fn udp_that_brings_nothing_is_followed_by_tcp() {
    // It agrees to UDP, and sends nothing by it.
    let url = server(|method, number, text| match method {
        "SETUP" if !text.contains("/TCP") => {
            let transport = "Transport: RTP/AVP;unicast;server_port=9-10\r\n";
            reply(number, "200 OK", transport, "")
        }
        "PLAY" if number < 3 => reply(number, "200 OK", "", ""),
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(config(url));
    let is_packet = |told: &Told| *told == Told::Packet(0, 96);
    pulled.until("a packet over TCP", is_packet).await;
    pulled.stop().await;
}

#[tokio::test]
async fn packets_over_udp_come_from_the_server_only() {
    let udp = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let stranger = Arc::new(std::net::UdpSocket::bind("127.0.0.2:0").unwrap());
    let sender = udp.clone();
    let url = server(move |method, number, text| {
        if method != "SETUP" {
            let runs = method == "DESCRIBE";
            return if runs {
                good(method, number, text)
            } else {
                reply(number, "200 OK", "", "")
            };
        }
        let port = text.split("client_port=").nth(1).unwrap();
        let port: u16 = port.split('-').next().unwrap().parse().unwrap();
        assert_eq!(port % 2, 0);
        // First a stranger's packet, then garbage, then a good packet.
        stranger
            .send_to(
                &[0x80, 33, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9],
                ("127.0.0.1", port),
            )
            .unwrap();
        for bytes in [&[1, 2, 3][..], &[0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9]] {
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            sender.try_send_to(bytes, to).unwrap();
        }
        let own = sender.local_addr().unwrap().port();
        let transport = format!(
            "Transport: RTP/AVP;unicast;server_port={own}-{}\r\n",
            own.wrapping_add(1)
        );
        reply(number, "200 OK", &transport, "")
    })
    .await;
    let mut pulled = Pull::start(config(url));
    let told = pulled.until("a packet", |told| matches!(told, Told::Packet(..)));
    assert_eq!(told.await, Told::Packet(0, 96));
    // A way was opened for what comes.
    let mut bytes = [0; 64];
    let opened = timeout(PATIENCE, udp.recv_from(&mut bytes)).await.unwrap();
    assert_eq!(opened.unwrap().0, 12);
    pulled.stop().await;
}

/// A server of a camera with a microphone, which refuses SETUP of some media.
async fn refusing(refused: &[(&'static str, &'static str)], accepts_udp: bool) -> String {
    let refused = refused.to_vec();
    server(move |method, number, text| {
        let url = text.split(' ').nth(1).unwrap_or_default();
        let refusal = refused.iter().find(|(control, _)| url.ends_with(control));
        match (method, refusal) {
            ("DESCRIBE", _) => {
                let audio = |control| format!("m=audio 0 RTP/AVP 8\r\na=control:{control}\r\n");
                let sdp = format!("{SDP}{}{}", audio("/speaker"), audio("/microphone"));
                reply(number, "200 OK", "", &sdp)
            }
            ("SETUP", Some((_, status))) => reply(number, status, "", ""),
            ("SETUP", None) if accepts_udp && !text.contains("/TCP") => {
                let transport = "Transport: RTP/AVP;unicast;server_port=9-10\r\n";
                reply(number, "200 OK", transport, "")
            }
            ("SETUP", None) if text.contains("/TCP") => {
                let channels = text.split("interleaved=").nth(1).unwrap_or_default();
                let channels = channels.split("\r\n").next().unwrap_or_default();
                let transport = format!("Transport: RTP/AVP/TCP;interleaved={channels}\r\n");
                reply(number, "200 OK", &transport, "")
            }
            _ => good(method, number, text),
        }
    })
    .await
}

/// The kinds of the media that come, by what they are set up, and whether over TCP.
async fn opened(config: &Config) -> (Vec<(MediumKind, String)>, bool) {
    let session = timeout(PATIENCE, Session::open(config))
        .await
        .unwrap()
        .unwrap();
    let media = session.media().iter();
    let name = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
    let media = media.map(|medium| (medium.kind, name(&medium.control)));
    (media.collect(), session.is_tcp())
}

#[tokio::test]
async fn a_medium_that_cannot_be_set_up_costs_the_others_nothing() {
    let video = (MediumKind::Video, "v".to_owned());
    let microphone = (MediumKind::Audio, "microphone".to_owned());
    for is_tcp in [false, true] {
        let url = refusing(&[("/speaker", "403 Forbidden")], !is_tcp).await;
        let (media, over_tcp) = opened(&config(url)).await;
        assert_eq!(
            (media, over_tcp),
            (vec![microphone.clone(), video.clone()], is_tcp)
        );

        let audio = [
            ("/speaker", "403 Forbidden"),
            ("/microphone", "404 Not Found"),
        ];
        let url = refusing(&audio, !is_tcp).await;
        let (media, over_tcp) = opened(&config(url)).await;
        assert_eq!((media, over_tcp), (vec![video.clone()], is_tcp));

        let all = "404 Not Found";
        let all = [
            ("/speaker", "403 Forbidden"),
            ("/microphone", all),
            ("/v", all),
        ];
        let url = refusing(&all, !is_tcp).await;
        let error = refusal(&config(url)).await.to_string();
        assert!(error.contains("403 Forbidden to SETUP"), "{error}");
    }
}

#[tokio::test]
async fn tcp_is_tried_however_udp_is_refused() {
    for status in [
        "400 Bad Request",
        "403 Forbidden",
        "500 Internal Server Error",
    ] {
        let url = server(move |method, number, text| match method {
            "SETUP" if !text.contains("/TCP") => reply(number, status, "", ""),
            _ => good(method, number, text),
        })
        .await;
        let (media, is_tcp) = opened(&config(url)).await;
        assert_eq!((media.len(), is_tcp), (1, true), "{status}");
    }
}

/// Starts a server behind a port forward: it names its address in its own network.
async fn behind_a_port_forward(source: &'static str) -> String {
    let udp = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    server(move |method, number, text| match method {
        "SETUP" if !text.contains("/TCP") => {
            let port = text.split("client_port=").nth(1).unwrap_or_default();
            let port: u16 = port.split('-').next().unwrap_or_default().parse().unwrap();
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            let packet = [0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9];
            udp.try_send_to(&packet, to).unwrap();
            let transport =
                format!("Transport: RTP/AVP;unicast;source={source};server_port=9-10\r\n");
            reply(number, "200 OK", &transport, "")
        }
        _ if text.contains("/TCP") => good(method, number, text),
        "PLAY" => reply(number, "200 OK", "", ""),
        _ => good(method, number, text),
    })
    .await
}

#[tokio::test]
async fn a_camera_behind_a_port_forward_comes_over_tcp() {
    let loopback = Allowed::by(|address| address.is_loopback());
    let url = behind_a_port_forward("192.168.9.9").await;
    let auto = Config {
        allowed: Some(loopback),
        ..config(url)
    };
    let (_, is_tcp) = opened(&auto).await;
    assert!(is_tcp);
    let udp = Config {
        transport: Transport::Udp,
        ..auto
    };
    let error = refusal(&udp).await;
    assert!(matches!(error, RtspError::ForbiddenSource(_)), "{error}");
}

#[tokio::test]
async fn packets_over_udp_may_come_from_the_address_that_the_server_is_known_by() {
    // 127.0.0.9 stands for an address of the camera's own network.
    let url = behind_a_port_forward("127.0.0.9").await;
    let mut pulled = Pull::start(Config {
        transport: Transport::Udp,
        ..config(url)
    });
    let is_packet = |told: &Told| *told == Told::Packet(0, 96);
    pulled.until("a packet", is_packet).await;
    pulled.stop().await;
}
