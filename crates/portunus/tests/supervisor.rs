//! Notifications to systemd (sd_notify(3)).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod calls;
mod server;

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use calls::call_many;
use server::{PATIENCE, signal, start_by};

/// The notifications to a supervisor.
struct Told(UnixDatagram);

impl Told {
    /// Waits for a message with this line; returns it.
    fn until(&self, line: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let mut buffer = [0; 4_096];
            let len = self.0.recv(&mut buffer);
            let len = len.unwrap_or_else(|error| panic!("{line}: {error}; told were {seen:?}"));
            let message = String::from_utf8(buffer[..len].to_vec()).unwrap();
            if message.lines().any(|it| it == line) {
                return message;
            }
            seen.push(message);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_of_the_start_life_reloads_drains_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let told = Told(UnixDatagram::bind(&socket).unwrap());
    told.0.set_read_timeout(Some(PATIENCE)).unwrap();
    // systemd names the process that it watches.
    let mut program = Command::new("sh");
    let script = "export WATCHDOG_PID=$$; exec \"$0\" \"$@\"";
    program.args(["-c", script, env!("CARGO_BIN_EXE_portunus")]);
    program.env("NOTIFY_SOCKET", &socket);
    program.env("WATCHDOG_USEC", "400000");
    let (mut server, api) = start_by(program, folder.path(), "[server]\ndrain_timeout = 600\n");
    told.until("READY=1");
    for _ in 0..3 {
        told.until("WATCHDOG=1");
    }
    signal(&server, "-HUP");
    let reloading = told.until("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    told.until("READY=1");
    let calls = call_many(&api, 1).await;
    told.until("STATUS=sessions: 1, PeerConnections: 1");
    signal(&server, "-TERM");
    let draining = told.until("STOPPING=1");
    assert!(
        draining.contains("STATUS=draining: calls: 1, "),
        "{draining}"
    );
    for _ in 0..2 {
        told.until("EXTEND_TIMEOUT_USEC=15000000");
        told.until("WATCHDOG=1");
    }
    calls[0].hang_up();
    told.until("STATUS=ending calls");
    assert!(server.0.wait().unwrap().success());
}
