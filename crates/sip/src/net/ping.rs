//! A check whether a SIP server responds, without an endpoint.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::flow::{Target, Transport};
use crate::framing::{Frame, Role, Stream, StreamError};
use crate::locate::{Destination, LocateError, Reach};
use crate::message::{MAX_MESSAGE, Message, Method, Request, SipUri, Uri};

use super::config::TlsFiles;
use super::error::StartError;
use super::resolver::Resolver;
use super::tls::{Tls, server_name};

/// The interval to the second datagram, doubled with each (T1 of RFC 3261).
const RETRY: Duration = Duration::from_millis(500);
/// The size of a read from a stream.
const READ: usize = 4 << 10;

/// The reason why a SIP server does not respond.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// The URI names an unknown transport.
    #[error("its transport is unknown")]
    Transport,
    /// DNS has no address.
    #[error("its name leads nowhere: {0}")]
    Locate(#[from] LocateError),
    /// The certificates for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] StartError),
    /// The network reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other side does not speak SIP.
    #[error("what answers is no SIP server: {0}")]
    Stream(#[from] StreamError),
    /// It has no address.
    #[error("it has no address")]
    Nowhere,
}

/// Asks the SIP server at `uri` by OPTIONS (RFC 3261 section 11), from a socket of its own, and
/// waits for any response, without a time limit. For WebSockets it only connects.
///
/// Tries one address of the server after the other, and returns the error of the last one.
pub async fn ping(uri: &SipUri, tls: &TlsFiles) -> Result<(), PingError> {
    let destination = Destination::of(uri, None).ok_or(PingError::Transport)?;
    let reach = Reach {
        transports: vec![Transport::Udp, Transport::Tcp, Transport::Tls],
        v4: true,
        v6: true,
    };
    let targets = Resolver::new(&[]).locate(destination, reach).await?;
    let mut last = PingError::Nowhere;
    for target in targets {
        match ask(uri, &target, tls).await {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn ask(uri: &SipUri, target: &Target, tls: &TlsFiles) -> Result<(), PingError> {
    if target.transport == Transport::Udp {
        return Ok(by_udp(uri, target.remote).await?);
    }
    let stream = TcpStream::connect(target.remote).await?;
    let local = stream.local_addr()?;
    if !target.transport.is_secure() {
        return by_stream(uri, target.transport, local, stream).await;
    }
    let name = server_name(&target.host).ok_or(PingError::Nowhere)?;
    let connector = Tls::new(tls, false)?.connector();
    let stream = connector.connect(name, stream).await?;
    by_stream(uri, target.transport, local, stream).await
}

async fn by_udp(uri: &SipUri, remote: SocketAddr) -> io::Result<()> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(remote).await?;
    let call: u64 = rand::random();
    let request = options(uri, Transport::Udp, socket.local_addr()?, call);
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut wait = RETRY;
    loop {
        socket.send(&request).await?;
        let answered = async {
            loop {
                let length = socket.recv(&mut buffer).await?;
                if answers(buffer.get(..length).unwrap_or_default(), call) {
                    return io::Result::Ok(());
                }
            }
        };
        if let Ok(answered) = timeout(wait, answered).await {
            return answered;
        }
        wait = wait.saturating_mul(2);
    }
}

async fn by_stream(
    uri: &SipUri,
    transport: Transport,
    local: SocketAddr,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<(), PingError> {
    if matches!(transport, Transport::Ws | Transport::Wss) {
        return Ok(());
    }
    let call: u64 = rand::random();
    stream
        .write_all(&options(uri, transport, local, call))
        .await?;
    let mut frames = Stream::new(Role::Connected);
    let mut buffer = vec![0; READ];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        frames.push(buffer.get(..length).unwrap_or_default());
        while let Some(frame) = frames.next()? {
            if let Frame::Message(message) = frame
                && answers(&message, call)
            {
                return Ok(());
            }
        }
    }
}

/// Writes the request. `call` identifies its response.
fn options(uri: &SipUri, transport: Transport, local: SocketAddr, call: u64) -> Vec<u8> {
    let uri = Uri::from(uri.clone());
    let mut request = Request::new(Method::Options, uri.clone());
    for (name, value) in [
        (
            "Via",
            format!("SIP/2.0/{transport} {local};branch=z9hG4bK{call:016x};rport"),
        ),
        ("Max-Forwards", "70".to_owned()),
        ("From", format!("<sip:ping@{local}>;tag={call:016x}")),
        ("To", format!("<{uri}>")),
        ("Call-ID", format!("{call:016x}")),
        ("CSeq", "1 OPTIONS".to_owned()),
        ("Accept", "application/sdp".to_owned()),
    ] {
        request.headers.push(name, value);
    }
    request.to_bytes()
}

/// Whether a message is the response to that request.
fn answers(message: &[u8], call: u64) -> bool {
    match Message::parse(message) {
        Ok(Message::Response(response)) => {
            response.headers.call_id() == Some(format!("{call:016x}").as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use tokio::net::TcpListener;

    use super::*;
    use crate::message::{Response, StatusCode};

    /// Returns the response of a server to a request.
    fn answer(request: &[u8]) -> Vec<u8> {
        let Ok(Message::Request(request)) = Message::parse(request) else {
            panic!("{:?}", String::from_utf8_lossy(request));
        };
        assert_eq!(request.method, Method::Options);
        Response::to(&request, StatusCode::new(405).unwrap()).to_bytes()
    }

    fn server(uri: &str) -> SipUri {
        uri.parse::<Uri>().unwrap().as_sip().cloned().unwrap()
    }

    #[tokio::test]
    async fn any_response_by_udp_is_a_sign_of_life() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let uri = server(&format!("sip:{}", socket.local_addr().unwrap()));
        tokio::spawn(async move {
            let mut buffer = [0; 1_500];
            // The first request is lost, and messages of others do not count.
            socket.recv_from(&mut buffer).await.unwrap();
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let right = answer(buffer.get(..length).unwrap());
            let other = String::from_utf8_lossy(&right).replace("Call-ID: ", "Call-ID: x");
            for message in [&b"nonsense"[..], other.as_bytes(), &right] {
                socket.send_to(message, from).await.unwrap();
            }
        });
        ping(&uri, &TlsFiles::default()).await.unwrap();
    }

    #[tokio::test]
    async fn streams_are_asked_too_and_errors_say_what_is_wrong() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let uri = server(&format!("sip:{address};transport=tcp"));
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1_500];
            let (mut stream, _) = listener.accept().await.unwrap();
            let length = stream.read(&mut buffer).await.unwrap();
            let answer = answer(buffer.get(..length).unwrap());
            stream.write_all(&answer).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            drop(stream);
        });
        ping(&uri, &TlsFiles::default()).await.unwrap();
        let closed = ping(&uri, &TlsFiles::default()).await.unwrap_err();
        assert!(matches!(closed, PingError::Io(_)), "{closed}");
        task.await.unwrap();
        let refused = ping(&uri, &TlsFiles::default()).await.unwrap_err();
        assert!(refused.to_string().contains("refused"), "{refused}");
        let nonsense = server("sip:127.0.0.1;transport=pigeon");
        let error = ping(&nonsense, &TlsFiles::default()).await.unwrap_err();
        assert!(matches!(error, PingError::Transport), "{error}");
    }
}
