#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_rtsp::{Config, Medium, RtspError, Session, Sink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

struct Nowhere;

impl Sink for Nowhere {
    fn connected(&mut self, _media: &[Medium]) {}
    fn lost(&mut self, _error: &RtspError) {}
    fn packet(&mut self, medium: usize, _packet: &[u8]) {
        assert!(medium < 2);
    }
    fn report(&mut self, _medium: usize, _ntp: u64, _timestamp: u32) {}
}

// A server's answers to consecutive requests, separated by `=====`. Whatever they are, there is a
// session or an error, and an end.
fuzz_target!(|script: &[u8]| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let script = script.to_vec();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = async {
            let Ok((mut stream, _)) = listener.accept().await else {
                return;
            };
            let mut request = [0; 4_096];
            let mut rest = script.as_slice();
            loop {
                let Ok(1..) = stream.read(&mut request).await else {
                    return;
                };
                let end = rest.windows(5).position(|bytes| bytes == b"=====");
                let (answer, more) = rest.split_at(end.unwrap_or(rest.len()));
                if stream.write_all(answer).await.is_err() || answer.is_empty() {
                    return;
                }
                rest = more.get(5..).unwrap_or_default();
            }
        };
        let client = async {
            let config = Config {
                connect_timeout: Duration::from_millis(200),
                request_timeout: Duration::from_millis(20),
                reconnect_delay: Duration::from_millis(10),
                ports: 40_000..=60_000,
                local: Some([127, 0, 0, 1].into()),
                ..Config::new(format!("rtsp://user:secret@{address}/s"))
            };
            if let Ok(mut session) = Session::open(&config).await {
                assert!((1..=2).contains(&session.media().len()));
                let _ = session.receive(&mut Nowhere).await;
            }
        };
        // The server ends when the client does.
        tokio::select! {
            () = async { server.await; std::future::pending().await } => {}
            () = client => {}
        }
    });
});
