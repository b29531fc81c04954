//! Servers that hang, lie, redirect or require a login.

use portunus_rtsp::{Config, Login, RtspError, Session, Transport};
use tokio::net::TcpListener;

use crate::server::{SDP, config, good, reply, server};
use crate::support::{Pull, Told, refusal};

#[tokio::test]
async fn hanging_servers_run_into_limits() {
    // The server accepts and does not answer.
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

    // No server listens.
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

/// Whatever follows a good start, memory and time stay bounded.
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
