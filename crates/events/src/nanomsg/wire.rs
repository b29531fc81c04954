//! The wire format of the scalability protocols ("SP"), after nanomsg's documents of its TCP and
//! IPC mappings.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::stream::Stream;

/// The timeout of a greeting, and of a message.
const LIMIT: Duration = Duration::from_secs(10);

/// The numbers of publisher and subscriber.
const PUB: u16 = 32;
const SUB: u16 = 33;

/// The first byte of a message over IPC, before its length.
const IN_BAND: u8 = 1;

/// The framing of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Tcp,
    Ipc,
}

/// Why a connection is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the other side does not speak nanomsg's protocol")]
    NotSp,
    #[error("the other side has a socket of type {0} where NN_SUB ({SUB}) is expected")]
    NoSubscriber(u16),
    #[error("the other side does not take what is sent")]
    Hanging,
}

/// Exchanges greetings, and checks that the peer subscribes.
pub(super) async fn greet(stream: &mut dyn Stream) -> Result<(), WireError> {
    let greeting = async {
        stream.write_all(&greeting(PUB)).await?;
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs).await?;
        check(theirs)
    };
    timeout(LIMIT, greeting)
        .await
        .map_err(|_| WireError::Hanging)?
}

/// Sends a message.
pub(super) async fn send(
    stream: &mut dyn Stream,
    framing: Framing,
    body: &Bytes,
) -> Result<(), WireError> {
    let length = (body.len() as u64).to_be_bytes();
    let head = match framing {
        Framing::Tcp => length.to_vec(),
        Framing::Ipc => [&[IN_BAND], &length[..]].concat(),
    };
    let message = [&head[..], body].concat();
    let sent = timeout(LIMIT, stream.write_all(&message)).await;
    Ok(sent.map_err(|_| WireError::Hanging)??)
}

/// Waits for the end of the connection, and ignores all received bytes. Cancel safe.
pub(super) async fn gone(stream: &mut dyn Stream) -> WireError {
    let mut ignored = [0; 256];
    loop {
        match stream.read(&mut ignored).await {
            Ok(0) => return io::Error::from(io::ErrorKind::UnexpectedEof).into(),
            Ok(_) => {}
            Err(error) => return error.into(),
        }
    }
}

const fn greeting(socket: u16) -> [u8; 8] {
    let [high, low] = socket.to_be_bytes();
    [0, b'S', b'P', 0, high, low, 0, 0]
}

/// Checks that the greeting is that of a subscriber.
pub(crate) fn check(theirs: [u8; 8]) -> Result<(), WireError> {
    match theirs {
        [0, b'S', b'P', 0, high, low, 0, 0] => match u16::from_be_bytes([high, low]) {
            SUB => Ok(()),
            other => Err(WireError::NoSubscriber(other)),
        },
        _ => Err(WireError::NotSp),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[tokio::test]
    async fn a_subscriber_is_greeted_and_others_are_told_apart() {
        for (theirs, expected) in [
            (greeting(SUB), None),
            (greeting(PUB), Some("type 32")),
            (*b"HTTP/1.1", Some("does not speak")),
        ] {
            let (mut ours, mut other) = tokio::io::duplex(64);
            other.write_all(&theirs).await.unwrap();
            let greeted = greet(&mut ours).await.map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(greeted, Ok(())),
                Some(text) => assert!(greeted.unwrap_err().contains(text)),
            }
            let mut heard = [0; 8];
            other.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, [0, b'S', b'P', 0, 0, 32, 0, 0]);
        }
    }

    #[tokio::test]
    async fn messages_have_their_length_before_them() {
        let (mut ours, mut other) = tokio::io::duplex(64);
        let body = Bytes::from_static(b"abc");
        send(&mut ours, Framing::Tcp, &body).await.unwrap();
        send(&mut ours, Framing::Ipc, &body).await.unwrap();
        drop(ours);
        let mut sent = Vec::new();
        other.read_to_end(&mut sent).await.unwrap();
        assert_eq!(sent, b"\0\0\0\0\0\0\0\x03abc\x01\0\0\0\0\0\0\0\x03abc");
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_or_takes_nothing_is_given_up() {
        let (mut ours, _other) = tokio::io::duplex(16);
        let error = greet(&mut ours).await.unwrap_err();
        assert!(matches!(error, WireError::Hanging), "{error}");
        let error = send(&mut ours, Framing::Tcp, &Bytes::from(vec![0; 100])).await;
        assert!(matches!(error, Err(WireError::Hanging)), "{error:?}");
    }
}
