//! Messages over TCP and TLS, with keep-alives of line ends (RFC 5626 section 4.4.1).

use std::io::{self, ErrorKind};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use crate::flow::Flow;
use crate::framing::{Frame, PING, PONG, Role, Stream};

use super::connection::{Connection, Wire};
use super::sockets::Arrival;

/// The size of a read.
const READ: usize = 16 << 10;

pub(super) async fn serve(
    connection: &mut Connection,
    wire: Box<dyn Wire>,
    flow: Flow,
    role: Role,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(wire);
    let mut frames = Stream::new(role);
    let mut buffer = vec![0; READ];
    let quiet = match role {
        Role::Connected => connection.limits.keep_alive,
        Role::Accepted => connection.limits.idle,
    };
    let mut deadline = later(quiet);
    loop {
        let mut answer = None;
        tokio::select! {
            sent = connection.queue.recv() => match sent {
                Some(bytes) => answer = Some(bytes),
                None => return Ok(()),
            },
            read = reader.read(&mut buffer) => {
                let length = read?;
                if length == 0 {
                    return Ok(());
                }
                frames.push(buffer.get(..length).unwrap_or_default());
                while let Some(frame) = frames.next().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))? {
                    deadline = later(quiet);
                    match frame {
                        Frame::Message(message) => {
                            if connection.up.send(Arrival::Message(flow, message)).await.is_err() {
                                return Ok(());
                            }
                        }
                        Frame::Ping => answer = Some(PONG.into()),
                        Frame::Pong => {}
                    }
                }
            },
            () = sleep_until(deadline) => match role {
                Role::Connected => {
                    deadline = later(quiet);
                    answer = Some(PING.into());
                }
                Role::Accepted => return Err(ErrorKind::TimedOut.into()),
            },
        }
        if let Some(bytes) = answer {
            // Nothing waits for a peer that does not read.
            let written = async {
                writer.write_all(&bytes).await?;
                writer.flush().await
            };
            timeout(connection.limits.connect, written)
                .await
                .map_err(|_| ErrorKind::TimedOut)??;
        }
    }
}

/// Returns the time after that interval.
pub(super) fn later(wait: std::time::Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now)
}
