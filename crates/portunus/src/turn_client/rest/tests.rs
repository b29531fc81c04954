#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::sync::Mutex as StdMutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// An API that gives these answers one after the other, the last again and again. Returns its URL
/// and the requests.
async fn api(answers: &'static [&'static str]) -> (Url, Arc<StdMutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/turn?tenant=7", listener.local_addr().unwrap());
    let requests = Arc::<StdMutex<Vec<String>>>::default();
    let asked = requests.clone();
    tokio::spawn(async move {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            let request = String::from_utf8(request).unwrap();
            let line = request.lines().next().unwrap().to_owned();
            asked.lock().unwrap().push(line);
            let body = answers[answers.len().min(n + 1) - 1];
            let (status, body) = body.split_once(' ').unwrap();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + body).as_bytes()).await.unwrap();
        }
    });
    (url.parse().unwrap(), requests)
}

fn rest(url: Url, method: RestMethod) -> Rest {
    let config = TurnClientConfig {
        turn_rest_api: Some(HttpUrl(url)),
        turn_rest_api_key: "k&y".into(),
        turn_rest_api_method: method,
        ..TurnClientConfig::default()
    };
    let tls = Arc::new(portunus_events::tls_client(None).unwrap());
    Rest::new(&config, &tls).unwrap()
}

const GOOD: &str = r#"200 {"username": "1700000000:portunus", "password": "secret", "ttl": 300,
    "uris": ["stun:turn.example", "turn:turn.example:3479?transport=tcp", "turns:turn.example"]}"#;

#[tokio::test]
async fn servers_and_credentials_are_taken_and_kept_for_their_time() {
    let (url, requests) = api(&[GOOD]).await;
    for (method, name) in [(RestMethod::Get, "GET"), (RestMethod::Post, "POST")] {
        requests.lock().unwrap().clear();
        let rest = rest(url.clone(), method);
        let access = rest.access().await.unwrap();
        assert_eq!(access.login.username, "1700000000:portunus");
        assert_eq!(access.login.password, "secret");
        let servers: Vec<String> = access.servers.iter().map(ToString::to_string).collect();
        assert_eq!(
            servers,
            ["turn:turn.example:3479?transport=tcp", "turns:turn.example"]
        );
        rest.access().await.unwrap();
        let expected = format!(
            "{name} /turn?tenant=7&service=turn&api=k%26y&key=k%26y&username=portunus HTTP/1.1"
        );
        assert_eq!(*requests.lock().unwrap(), [expected]);
        rest.forget().await;
        rest.access().await.unwrap();
        assert_eq!(requests.lock().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn credentials_are_renewed_when_their_time_is_over() {
    let (url, requests) = api(&[GOOD]).await;
    let rest = rest(url, RestMethod::Get);
    rest.access().await.unwrap();
    {
        let mut last = rest.last.lock().await;
        let (_, until) = last.as_mut().unwrap();
        let left = *until - Instant::now();
        assert!(left <= Duration::from_secs(270) && left > Duration::from_secs(240));
        *until = Instant::now();
    }
    rest.access().await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_wrong_with_an_answer_is_told_without_the_key() {
    let answers = &[
        "403 no",
        "200 nonsense",
        r#"200 {"username": "u", "uris": []}"#,
    ];
    let (url, _) = api(answers).await;
    let rest_api = rest(url, RestMethod::Get);
    for expected in ["403", "not understood", "missing field `password`"] {
        let text = rest_api.access().await.unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
    let nobody = rest("http://127.0.0.1:1/".parse().unwrap(), RestMethod::Get);
    let text = nobody.access().await.unwrap_err().to_string();
    assert!(
        text.contains("refused") && !text.contains("k%26y"),
        "{text}"
    );
}
