//! Listening sockets that systemd keeps while the program is restarted (sd_listen_fds(3)).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portunus_tests::free_port;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg, sockopt,
};
use server::{PATIENCE, Process, run_by, signal};

/// Starts the program as systemd does, with a socket that it kept.
fn start(config: &Path, notify: &Path, kept: Option<OwnedFd>) -> (Process, String) {
    let mut program = Command::new("sh");
    let passed = "exec 3<&0; exec 0</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; ";
    let script = match kept {
        Some(_) => passed,
        None => "",
    };
    let script = format!("{script}exec \"$0\" \"$@\"");
    program.args(["-c", &script, env!("CARGO_BIN_EXE_portunus")]);
    program.env("NOTIFY_SOCKET", notify);
    if let Some(kept) = kept {
        program.stdin(Stdio::from(kept));
    }
    run_by(program, config)
}

/// Waits for a message to systemd that has this line, and returns the descriptors that came with it.
fn descriptors_with(notify: &UnixDatagram, line: &str) -> Vec<OwnedFd> {
    loop {
        let mut text = [0; 4_096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let message = recvmsg(
            notify,
            &mut [IoSliceMut::new(&mut text)],
            &mut ancillary,
            RecvFlags::empty(),
        );
        let message = message.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!message.flags.contains(ReturnFlags::CTRUNC));
        let mut descriptors = Vec::new();
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        let text = String::from_utf8(text[..message.bytes].to_vec()).unwrap();
        if text.lines().any(|it| it == line) {
            return descriptors;
        }
    }
}

/// Asks whether the server lives; an error of the kind `ConnectionRefused` if nobody listens.
fn ask(server: SocketAddr) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(server)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

fn configure(folder: &Path, port: u16) -> std::path::PathBuf {
    let path = folder.join("portunus.toml");
    let config = format!(
        "[http]\nbind = [\"127.0.0.1\"]\nport = {port}\n[websocket]\nenabled = false\n[admin]\nenabled = false\n\
         [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n[recording]\ndir = {folder:?}\nkeep_free_mb = 0\n"
    );
    std::fs::write(&path, config).unwrap();
    path
}

fn notify_socket(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[test]
fn nobody_is_refused_while_the_server_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let notify = notify_socket(&path);
    let at = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let config = configure(folder.path(), at.port());
    let (mut old, _) = start(&config, &path, None);
    let name = format!("FDNAME=tcp-127.0.0.1_{}", at.port());
    let kept = descriptors_with(&notify, &name).pop().expect("a socket");
    assert!(sockopt::socket_acceptconn(&kept).unwrap());
    let has_new = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let mut answered = 0;
            while !has_new.load(Ordering::Relaxed) || answered == 0 {
                match ask(at) {
                    Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => answered += 1,
                    // The process that has taken the connection ends.
                    Ok(answer) => assert_eq!(answer, ""),
                    Err(error) => assert_ne!(error.kind(), ErrorKind::ConnectionRefused),
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            answered
        });
        signal(&old, "-TERM");
        assert!(old.0.wait().unwrap().success());
        // Somebody who comes when there is no server at all.
        let early = scope.spawn(|| ask(at));
        let (new, _) = start(&config, &path, Some(kept));
        assert!(early.join().unwrap().unwrap().starts_with("HTTP/1.1 200 "));
        has_new.store(true, Ordering::Relaxed);
        assert!(clients.join().unwrap() > 0);
        drop(new);
    });
}

#[test]
fn a_kept_socket_that_the_configuration_no_longer_has_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let notify = notify_socket(&path);
    let kept = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = kept.local_addr().unwrap();
    let config = configure(folder.path(), free_port());
    let (_server, api) = start(&config, &path, Some(kept.into()));
    descriptors_with(&notify, "FDSTOREREMOVE=1");
    assert_eq!(
        ask(before).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert!(!api.contains(&before.to_string()));
}
