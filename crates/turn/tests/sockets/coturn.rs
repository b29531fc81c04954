//! The client of coturn, where it is installed.

use std::process::{Command, Stdio};

use portunus_turn::TurnConfig;

use super::{Bench, config};

const SECRET: &str = "north-by-northwest";
/// Datagrams that the client sends, and their length: one that is padded on streams.
const DATAGRAMS: &str = "20";
const LENGTH: &str = "101";

/// Echoes by the media socket what the client sends through the relay, with these flags. Returns what the client says.
async fn run(bench: &Bench, port: u16, flags: &[&str]) -> Option<String> {
    let client = Command::new("turnutils_uclient")
        .args([
            "-c",
            "-W",
            SECRET,
            "-u",
            "test",
            "-e",
            "203.0.113.7",
            "-r",
            "20000",
        ])
        .args([
            "-n",
            DATAGRAMS,
            "-l",
            LENGTH,
            "-z",
            "5",
            "-p",
            &port.to_string(),
        ])
        .args(flags)
        .arg("127.0.0.1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(client) = client else {
        println!("skipped: there is no turnutils_uclient");
        return None;
    };
    let ended = tokio::task::spawn_blocking(|| client.wait_with_output());
    let echo = async {
        let mut buffer = [0; 2_000];
        loop {
            let (len, from) = bench.media.recv_from(&mut buffer).await.unwrap();
            bench.media.send_to(&buffer[..len], from).await.unwrap();
        }
    };
    let output = tokio::select! {
        output = ended => output.unwrap().unwrap(),
        () = echo => unreachable!(),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(text(output.stdout) + &text(output.stderr))
}

#[tokio::test]
async fn coturns_client_loses_nothing_by_any_transport() {
    let bench = Bench::start(TurnConfig {
        secret: SECRET.into(),
        ..config()
    })
    .await;
    let (plain, tls) = (bench.udp().port(), bench.tls().port());
    for (port, flags) in [
        (plain, &[][..]),
        (plain, &["-s"]),
        (plain, &["-t"]),
        (plain, &["-t", "-s"]),
        (tls, &["-t", "-S"]),
    ] {
        let Some(said) = run(&bench, port, flags).await else {
            return;
        };
        let received = format!("tot_recv_msgs={DATAGRAMS}");
        assert!(said.contains(&received), "{flags:?}: {said}");
        assert!(said.contains("Total lost packets 0 "), "{flags:?}: {said}");
    }
    bench.until(|it| it.connections == 0).await;
}
