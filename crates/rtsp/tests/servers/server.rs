//! A scripted server.

use std::time::Duration;

use portunus_rtsp::Config;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub fn config(url: String) -> Config {
    Config {
        connect_timeout: Duration::from_millis(500),
        request_timeout: Duration::from_millis(500),
        reconnect_delay: Duration::from_millis(300),
        ..Config::new(url)
    }
}

/// Reads a request. Returns its method, URL, number, and text.
pub async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String, u32, String)> {
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

pub const SDP: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
    a=rtpmap:96 VP8/90000\r\na=control:v\r\n";

/// Answers every request of every connection by `answer`, which gets method, number and request.
pub async fn server<F>(answer: F) -> String
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

pub fn reply(number: u32, status: &str, more: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n{more}Content-Length: {len}\r\n\r\n{body}")
        .into_bytes()
}

/// Returns the answer of a good server over TCP.
pub fn good(method: &str, number: u32, text: &str) -> Vec<u8> {
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
pub fn packet() -> Vec<u8> {
    let mut bytes = vec![b'$', 0, 0, 14, 0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9];
    bytes.extend_from_slice(&[1, 2]);
    bytes
}
