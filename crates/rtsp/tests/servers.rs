//! Servers that lie, hang and send garbage, made here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portunus_rtsp::{Allowed, Config, Login, MediumKind, RtspError, Session, Transport};
use support::{PATIENCE, Pull, Told, refusal};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

fn config(url: String) -> Config {
    Config {
        connect_timeout: Duration::from_millis(500),
        request_timeout: Duration::from_millis(500),
        reconnect_delay: Duration::from_millis(300),
        ..Config::new(url)
    }
}
/// Reads a request; its method, URL, number, and all of it.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String, u32, String)> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        text.push_str(&line);
    }
    let mut words = text.split_whitespace();
    let (method, url) = (words.next()?.to_owned(), words.next()?.to_owned());
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("CSeq: ")?.parse().ok())?;
    Some((method, url, number, text))
}

const SDP: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
    a=rtpmap:96 VP8/90000\r\na=control:v\r\n";

/// Answers every request of every connection by `answer`, which gets method, number and request.
async fn server<F>(answer: F) -> String
where
    F: Fn(&str, u32, &str) -> Vec<u8> + Clone + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some((method, _, number, text)) = request(&mut stream).await {
                    let bytes = answer(&method, number, &text);
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn reply(number: u32, status: &str, more: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n{more}Content-Length: {len}\r\n\r\n{body}")
        .into_bytes()
}

/// What a good server over TCP says.
fn good(method: &str, number: u32, text: &str) -> Vec<u8> {
    match method {
        "DESCRIBE" => reply(number, "200 OK", "Content-Type: application/sdp\r\n", SDP),
        "SETUP" if text.contains("/TCP") => reply(
            number,
            "200 OK",
            "Session: abc;timeout=2\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
            "",
        ),
        "SETUP" => reply(number, "461 Unsupported Transport", "", ""),
        "PLAY" => {
            let mut bytes = reply(number, "200 OK", "Session: abc\r\n", "");
            bytes.extend_from_slice(&packet());
            bytes
        }
        _ => reply(number, "200 OK", "", ""),
    }
}

/// An interleaved packet of RTP.
fn packet() -> Vec<u8> {
    let mut bytes = vec![b'$', 0, 0, 14, 0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9];
    bytes.extend_from_slice(&[1, 2]);
    bytes
}

#[tokio::test]
async fn udp_is_refused_then_tcp_and_keep_alives_hold_the_session() {
    let asked = Arc::new(AtomicUsize::new(0));
    let torn_down = Arc::new(AtomicUsize::new(0));
    let (counts, ends) = (asked.clone(), torn_down.clone());
    let url = server(move |method, number, text| {
        match method {
            "OPTIONS" => {
                assert!(text.contains("Session: abc\r\n"));
                counts.fetch_add(1, Ordering::SeqCst);
                // A sign of life in the stream too.
                return [reply(number, "200 OK", "", ""), packet()].concat();
            }
            "TEARDOWN" => drop(ends.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        good(method, number, text)
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(5),
        ..config(url)
    });
    let connected =
        |told: &Told| matches!(told, Told::Connected(kinds) if kinds == &[MediumKind::Video]);
    pulled.until("a session", connected).await;
    for _ in 0..3 {
        // One with the answer to PLAY, one with each answer to a keep-alive.
        let is_packet = |told: &Told| *told == Told::Packet(0, 96);
        pulled.until("a packet", is_packet).await;
    }
    assert!(asked.load(Ordering::SeqCst) >= 2);
    pulled.stop().await;
    assert_eq!(torn_down.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn keep_alives_without_answer_end_nothing_that_plays() {
    let asked = Arc::new(AtomicUsize::new(0));
    let described = Arc::new(AtomicUsize::new(0));
    let (counts, descriptions) = (asked.clone(), described.clone());
    let url = server(move |method, number, text| {
        match method {
            // It goes on playing without a word, and then no more.
            "OPTIONS" | "GET_PARAMETER" => match counts.fetch_add(1, Ordering::SeqCst) {
                0..3 => return packet(),
                _ => return Vec::new(),
            },
            "DESCRIBE" => drop(descriptions.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        good(method, number, text)
    })
    .await;
    let mut pulled = Pull::start(Config {
        transport: Transport::Tcp,
        reconnect_delay: Duration::from_secs(3),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..4 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    assert_eq!(described.load(Ordering::SeqCst), 1);
    let lost = Told::Lost("no packet for 3s".to_owned());
    assert_eq!(pulled.until("news", is_news).await, lost);
    pulled.stop().await;
}

#[tokio::test]
async fn keep_alives_that_want_a_login_end_nothing_that_plays() {
    let url = server(|method, number, text| match method {
        "OPTIONS" | "GET_PARAMETER" => {
            let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
            let refusal = reply(number, "401 Unauthorized", challenge, "");
            [refusal, packet()].concat()
        }
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(5),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..3 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn a_server_that_knows_but_the_other_keep_alive_gets_that() {
    // It plays on for who keeps the session alive.
    let url = server(|method, number, text| match method {
        "OPTIONS" => reply(number, "501 Not Implemented", "", ""),
        "GET_PARAMETER" => [reply(number, "200 OK", "", ""), packet()].concat(),
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(4),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..4 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn keep_alives_with_a_stale_nonce_are_sent_again_at_once() {
    // Each nonce is good for one keep-alive, and only those that are accepted bring packets.
    let nonces = Arc::new(AtomicUsize::new(0));
    let url = server(move |method, number, text| match method {
        "SETUP" => {
            let lines =
                "Session: abc;timeout=4\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
            reply(number, "200 OK", lines, "")
        }
        "OPTIONS" => {
            let nonce = nonces.load(Ordering::SeqCst);
            if nonce > 0 && text.contains(&format!("nonce=\"n{nonce}\"")) {
                nonces.fetch_add(1, Ordering::SeqCst);
                return [reply(number, "200 OK", "", ""), packet()].concat();
            }
            let nonce = nonce.max(1);
            nonces.store(nonce, Ordering::SeqCst);
            let challenge = format!("WWW-Authenticate: Digest realm=\"x\", nonce=\"n{nonce}\"\r\n");
            reply(number, "401 Unauthorized", &challenge, "")
        }
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        transport: Transport::Tcp,
        login: Some(Login {
            user: "me".to_owned(),
            password: "secret".to_owned(),
        }),
        // Keep-alives are due every 2 s.
        reconnect_delay: Duration::from_secs(3),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..5 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn silence_and_breaks_lead_to_new_sessions() {
    let url = server(good).await;
    let mut pulled = Pull::start(config(url));
    for _ in 0..3 {
        pulled
            .until("a session", |told| matches!(told, Told::Connected(_)))
            .await;
        let lost = pulled.until("its end", |told| matches!(told, Told::Lost(_)));
        assert_eq!(lost.await, Told::Lost("no packet for 300ms".to_owned()));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn udp_that_brings_nothing_is_followed_by_tcp() {
    // It agrees to UDP, and sends nothing that way.
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
        // First a stranger's, then garbage, then one that counts.
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

/// A server behind a port forward: it names the address that it has in its own network.
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

#[tokio::test]
async fn hanging_servers_run_into_limits() {
    // Nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
    let error = refusal(&config(url)).await;
    assert!(
        matches!(
            error,
            RtspError::Timeout {
                what: "DESCRIBE",
                ..
            }
        ),
        "{error}"
    );

    // Nobody is there.
    drop(listener);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = refusal(&config(format!("rtsp://{address}/s"))).await;
    assert!(matches!(error, RtspError::Connect(..)), "{error}");

    // It stops in the middle.
    for hangs in ["SETUP", "PLAY"] {
        let url = server(move |method, number, text| match method == hangs {
            true => b"RTSP/1.0 200 OK\r\nCSeq:".to_vec(),
            false => good(method, number, text),
        })
        .await;
        let tcp = Config {
            transport: Transport::Tcp,
            ..config(url)
        };
        let error = refusal(&tcp).await;
        assert!(
            matches!(error, RtspError::Timeout { what, .. } if what == hangs),
            "{error}"
        );
    }
}

#[tokio::test]
async fn lying_servers_are_found_out() {
    type Lie = fn(&str, u32, &str) -> Option<Vec<u8>>;
    let lies: [(&str, Lie); 10] = [
        ("sends something that is not RTSP", |_, _, _| {
            Some(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())
        }),
        ("is longer than", |_, _, _| {
            Some([b"RTSP/1.0 200 OK\r\nX: ", vec![b'a'; 1 << 20].as_slice()].concat())
        }),
        ("is longer than", |_, number, _| {
            let head =
                format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\nContent-Length: 4000000000\r\n\r\n");
            Some([head.as_bytes(), &vec![b'v'; 1 << 20]].concat())
        }),
        ("description", |_, number, _| {
            Some(reply(number, "200 OK", "", "v=garbage"))
        }),
        ("no audio or video", |method, number, _| {
            let sdp = SDP.replace("video", "text");
            (method == "DESCRIBE").then(|| reply(number, "200 OK", "", &sdp))
        }),
        ("404 Not Found to DESCRIBE", |_, number, _| {
            Some(reply(number, "404 Not Found", "", ""))
        }),
        ("redirects too often", |_, number, text| {
            let url = text.split(' ').nth(1).unwrap();
            let location = format!("Location: {url}\r\n");
            Some(reply(number, "302 Found", &location, ""))
        }),
        ("redirects to something", |_, number, _| {
            Some(reply(number, "302 Found", "Location: http://x/\r\n", ""))
        }),
        ("wants a user", |_, number, _| {
            let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
            Some(reply(number, "401 Unauthorized", challenge, ""))
        }),
        ("multicast", |method, number, _| {
            let transport = "Transport: RTP/AVP;multicast;port=1-2\r\n";
            (method == "SETUP").then(|| reply(number, "200 OK", transport, ""))
        }),
    ];
    for (said, lie) in lies {
        let url = server(move |method, number, text| {
            lie(method, number, text).unwrap_or_else(|| good(method, number, text))
        })
        .await;
        let error = refusal(&config(url)).await.to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_and_a_right_one_taken() {
    for digest in [false, true] {
        let url = server(move |method, number, text| {
            let header = text
                .lines()
                .find(|line| line.starts_with("Authorization: "));
            let right = match header {
                None => false,
                // user:secret
                Some(header) if !digest => header.ends_with("Basic dXNlcjpzZWNyZXQ="),
                Some(header) => {
                    header.contains("username=\"user\"") && header.contains("nonce=\"n1\"")
                }
            };
            if right {
                return good(method, number, text);
            }
            let challenge = match digest {
                true => "WWW-Authenticate: Digest realm=\"x\", nonce=\"n1\"\r\n",
                false => "WWW-Authenticate: Basic realm=\"x\"\r\n",
            };
            reply(number, "401 Unauthorized", challenge, "")
        })
        .await;
        let with = |user: &str, password: &str| Config {
            login: Some(Login {
                user: user.to_owned(),
                password: password.to_owned(),
            }),
            ..config(url.clone())
        };
        let session = Session::open(&with("user", "secret")).await.unwrap();
        assert!(session.is_tcp());
        let error = refusal(&with("nobody", "wrong")).await;
        assert!(matches!(error, RtspError::Unauthorized(_)), "{error}");
        // The URL may have them too.
        let in_url = url.replace("rtsp://", "rtsp://user:secret@");
        assert!(Session::open(&config(in_url)).await.is_ok());
    }
}

#[tokio::test]
async fn redirects_are_followed_and_do_not_carry_passwords_to_other_hosts() {
    let target = server(|method, number, text| {
        assert!(!text.contains("Authorization"), "{text}");
        good(method, number, text)
    })
    .await;
    let target = target.replace("127.0.0.1", "localhost");
    let url = server(move |_, number, _| {
        reply(number, "301 Moved", &format!("Location: {target}\r\n"), "")
    })
    .await;
    let url = url.replace("rtsp://", "rtsp://user:secret@");
    assert!(Session::open(&config(url)).await.is_ok());
}

#[tokio::test]
async fn a_path_is_asked_for_after_a_404_if_so_configured() {
    let url = server(|method, number, text| {
        let path_only = text
            .split(' ')
            .nth(1)
            .is_some_and(|url| url.starts_with('/'));
        match path_only {
            true => good(method, number, text),
            false => reply(number, "404 Not Found", "", ""),
        }
    })
    .await;
    let quirk = Config {
        path_only: true,
        ..config(url.clone())
    };
    assert!(Session::open(&quirk).await.is_ok());
    assert!(Session::open(&config(url)).await.is_err());
}

/// Whatever comes after a good start, memory and time stay bounded.
#[tokio::test]
async fn garbage_in_the_stream_ends_the_session() {
    let url = server(|method, number, text| {
        let mut bytes = good(method, number, text);
        if method == "PLAY" {
            bytes.extend_from_slice(&[b'$', 77, 0, 2, 1, 2, b'$', 0, 0, 1, 0xff]);
            bytes.extend_from_slice(b"ANNOUNCE * RTSP/1.0\r\nCSeq: 5\r\n\r\n");
            bytes.extend_from_slice(&vec![0xee; 200_000]);
        }
        bytes
    })
    .await;
    let mut pulled = Pull::start(config(url));
    let lost = pulled.until("its end", |told| matches!(told, Told::Lost(_)));
    let Told::Lost(error) = lost.await else {
        unreachable!()
    };
    assert!(
        error.contains("not RTSP") || error.contains("longer"),
        "{error}"
    );
    pulled.stop().await;
}
