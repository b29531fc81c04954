//! The RTSP connection: requests and answers, and interleaved packets (RFC 2326 section 10.12).

use std::net::SocketAddr;
use std::time::Duration;

use rtsp_types::{HeaderName, Message, ParseError, Response, headers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::request::{Credentials, Request};
use crate::{Config, Login, RtspError};

/// The limit of a message, with room for one packet behind it.
const MAX_MESSAGE: usize = 64 << 10;
const BUFFER: usize = 2 * MAX_MESSAGE;
const DEFAULT_PORT: u16 = 554;

/// The limit of shares of the connection timeout, one for each address.
const MAX_SHARES: u32 = 4;

/// The messages of a connection.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// An answer, to the request with this number.
    Response(Option<u32>, Response<Vec<u8>>),
    /// A packet of this channel lies in [`Connection::packet`].
    Packet(u8),
    /// A request of the server with this method. It has been answered.
    Request(String),
}

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The bytes of `buffer` before the next message, including the last packet.
    consumed: usize,
    packet: std::ops::Range<usize>,
    credentials: Credentials,
    sequence: u32,
    request_timeout: Duration,
    /// The id of the session, as the server wrote it.
    pub session: Option<String>,
}

impl Connection {
    /// Connects to the server of `url`.
    pub async fn open(url: &Url, login: Option<Login>, config: &Config) -> Result<Self, RtspError> {
        let host = url
            .host_str()
            .ok_or_else(|| RtspError::Url("there is no host in it".to_owned()))?;
        let host = host.trim_matches(['[', ']']);
        let port = url.port().unwrap_or(DEFAULT_PORT);
        let connecting = timeout(config.connect_timeout, connect(host, port, config));
        let stream = connecting.await.map_err(|_| RtspError::Timeout {
            what: "connecting",
            after: config.connect_timeout,
        })??;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            consumed: 0,
            packet: 0..0,
            credentials: Credentials::new(login),
            sequence: 0,
            request_timeout: config.request_timeout,
            session: None,
        })
    }

    pub fn peer(&self) -> Result<std::net::SocketAddr, RtspError> {
        Ok(self.stream.peer_addr()?)
    }

    pub fn local(&self) -> Result<std::net::SocketAddr, RtspError> {
        Ok(self.stream.local_addr()?)
    }

    /// Sends a request and waits for its answer, of any status but 401. Drops packets meanwhile.
    pub async fn ask(&mut self, request: &Request) -> Result<Response<Vec<u8>>, RtspError> {
        let deadline = Instant::now() + self.request_timeout;
        let late = RtspError::Timeout {
            what: request.method,
            after: self.request_timeout,
        };
        timeout_at(deadline, async {
            // Without credentials, with them, and once more if they were stale.
            for _ in 0..3 {
                let sequence = self.send(request).await?;
                let response = self.answer_to(sequence).await?;
                if u16::from(response.status()) != 401 {
                    return Ok(response);
                }
                self.credentials.challenge(&response)?;
            }
            Err(RtspError::Unauthorized("another user or password"))
        })
        .await
        .unwrap_or(Err(late))
    }

    /// Sends a request and waits for its answer, which has to be a success.
    pub async fn ask_ok(&mut self, request: &Request) -> Result<Response<Vec<u8>>, RtspError> {
        let response = self.ask(request).await?;
        match u16::from(response.status()) {
            200..=299 => Ok(response),
            status => Err(refused(request, status, &response)),
        }
    }

    /// Sends a request whose answer comes by [`Self::next`]. Returns its number.
    pub async fn send(&mut self, request: &Request) -> Result<u32, RtspError> {
        self.sequence = self.sequence.wrapping_add(1);
        let authorization = self.credentials.authorization(request);
        let text = request.write(
            self.sequence,
            self.session.as_deref(),
            authorization.as_deref(),
        );
        self.stream.write_all(text.as_bytes()).await?;
        Ok(self.sequence)
    }

    /// Sends a packet on a channel (RFC 2326 section 10.12).
    pub async fn send_packet(&mut self, channel: u8, packet: &[u8]) -> Result<(), RtspError> {
        let len = u16::try_from(packet.len()).map_err(|_| RtspError::TooLong(packet.len()))?;
        let [high, low] = len.to_be_bytes();
        let mut framed = vec![b'$', channel, high, low];
        framed.extend_from_slice(packet);
        Ok(self.stream.write_all(&framed).await?)
    }

    /// Takes the new challenge after stale credentials.
    pub fn challenge(&mut self, response: &Response<Vec<u8>>) -> Result<(), RtspError> {
        self.credentials.challenge(response)
    }

    async fn answer_to(&mut self, sequence: u32) -> Result<Response<Vec<u8>>, RtspError> {
        loop {
            // An answer without a number can only be to this request.
            if let Incoming::Response(number, response) = self.next().await?
                && number.is_none_or(|number| number == sequence)
            {
                return Ok(response);
            }
        }
    }

    /// Returns the next message. Cancel safe.
    pub async fn next(&mut self) -> Result<Incoming, RtspError> {
        loop {
            if let Some(incoming) = self.take()? {
                if let Incoming::Request(answer) = &incoming {
                    self.stream.write_all(answer.as_bytes()).await?;
                }
                return Ok(incoming);
            }
            if self.buffer.len() >= BUFFER {
                return Err(RtspError::TooLong(BUFFER));
            }
            self.buffer.reserve(4_096);
            let mut room = (&mut self.stream).take((BUFFER - self.buffer.len()) as u64);
            if room.read_buf(&mut self.buffer).await? == 0 {
                return Err(RtspError::Closed);
            }
        }
    }

    /// Returns the packet after [`Incoming::Packet`].
    pub fn packet(&self) -> &[u8] {
        self.buffer.get(self.packet.clone()).unwrap_or_default()
    }

    /// Takes a whole message or packet out of the buffer.
    fn take(&mut self) -> Result<Option<Incoming>, RtspError> {
        let waiting = self.buffer.get(self.consumed..).unwrap_or_default();
        // Empty lines between messages are ignored.
        let blank = waiting.iter().take_while(|byte| b"\r\n".contains(byte));
        let start = self.consumed + blank.count();
        let waiting = self.buffer.get(start..).unwrap_or_default();
        if let [b'$', channel, high, low, rest @ ..] = waiting {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            if rest.len() >= len {
                self.packet = start + 4..start + 4 + len;
                self.consumed = self.packet.end;
                return Ok(Some(Incoming::Packet(*channel)));
            }
        } else if !waiting.is_empty() && waiting.first() != Some(&b'$') {
            match Message::<Vec<u8>>::parse(waiting) {
                Ok((message, len)) => {
                    self.consumed = start + len;
                    return Ok(Some(sort(message)));
                }
                Err(ParseError::Incomplete(_)) if waiting.len() < MAX_MESSAGE => {}
                Err(ParseError::Incomplete(_)) => return Err(RtspError::TooLong(MAX_MESSAGE)),
                Err(ParseError::Error) => return Err(RtspError::Garbage),
            }
        }
        self.buffer.drain(..start);
        self.consumed = 0;
        self.packet = 0..0;
        Ok(None)
    }
}

/// Connects to the first address of a host that can be connected to, and may be.
async fn connect(host: &str, port: u16, config: &Config) -> Result<TcpStream, RtspError> {
    let failed = |error| RtspError::Connect(format!("{host}:{port}"), error);
    let found = lookup_host((host, port)).await.map_err(failed)?;
    let mut addresses = Vec::new();
    let mut forbidden = None;
    for address in found {
        match config.check(address.ip()) {
            Ok(()) => addresses.push(address),
            Err(error) => forbidden = forbidden.or(Some(error)),
        }
    }
    let connected = first(
        &addresses,
        config.connect_timeout,
        TcpStream::connect,
        failed,
    );
    if let Some(outcome) = connected.await {
        return outcome;
    }
    let nothing = || failed(std::io::Error::other("the name has no address"));
    Err(forbidden.unwrap_or_else(nothing))
}

/// Connects to the first of several addresses that accepts within `time`. Each gets a share of the
/// time. Returns the last error, or `None` without addresses.
async fn first<T, C>(
    addresses: &[SocketAddr],
    time: Duration,
    connect: impl Fn(SocketAddr) -> C,
    failed: impl Fn(std::io::Error) -> RtspError,
) -> Option<Result<T, RtspError>>
where
    C: Future<Output = std::io::Result<T>>,
{
    let shares = u32::try_from(addresses.len()).unwrap_or(MAX_SHARES);
    let share = time.checked_div(shares.min(MAX_SHARES)).unwrap_or(time);
    let mut outcome = None;
    for address in addresses {
        let connected = match timeout(share, connect(*address)).await {
            Ok(connected) => connected.map_err(&failed),
            Err(_) => Err(RtspError::Timeout {
                what: "connecting",
                after: share,
            }),
        };
        let is_over = connected.is_ok();
        outcome = Some(connected);
        if is_over {
            break;
        }
    }
    outcome
}

pub(crate) fn refused(request: &Request, status: u16, response: &Response<Vec<u8>>) -> RtspError {
    RtspError::Status {
        method: request.method,
        status,
        reason: response.reason_phrase().chars().take(100).collect(),
    }
}

/// Returns a header's value.
pub(crate) fn header<'a>(response: &'a Response<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    response.header(name).map(|value| value.as_str())
}

fn sort(message: Message<Vec<u8>>) -> Incoming {
    match message {
        Message::Response(response) => {
            let number = header(&response, &headers::CSEQ).and_then(|it| it.trim().parse().ok());
            Incoming::Response(number, response)
        }
        Message::Request(request) => {
            // The only requests that a server may make are checks of the connection.
            let method: &str = request.method().into();
            let status = match method {
                "OPTIONS" | "GET_PARAMETER" => "200 OK",
                _ => "501 Not Implemented",
            };
            let number = request.header(&headers::CSEQ);
            let number: u32 = number
                .and_then(|it| it.as_str().trim().parse().ok())
                .unwrap_or(0);
            Incoming::Request(format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n\r\n"))
        }
        // It begins with a dollar sign, which is looked at before.
        Message::Data(data) => Incoming::Packet(data.channel_id()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        let address = |last| SocketAddr::from(([192, 0, 2, last], 554));
        (1..=count).map(address).collect()
    }

    async fn try_all(addresses: &[SocketAddr], good: Option<SocketAddr>) -> String {
        let connect = async |address| match Some(address) == good {
            true => Ok(address),
            false => std::future::pending().await,
        };
        let failed = |error| RtspError::Connect(String::new(), error);
        match first(addresses, Duration::from_secs(6), connect, failed).await {
            Some(Ok(address)) => address.to_string(),
            Some(Err(error)) => error.to_string(),
            None => "nothing".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_leaves_the_others_time() {
        for (count, waited) in [(2, 3_000), (4, 4_500)] {
            let addresses = addresses(count);
            let good = addresses.last().copied();
            let before = Instant::now();
            let connected = try_all(&addresses, good).await;
            assert_eq!(connected, format!("192.0.2.{count}:554"));
            assert_eq!(before.elapsed().as_millis(), waited);
        }
        let error = try_all(&addresses(3), None).await;
        assert_eq!(error, "no answer to connecting within 2s");
        assert_eq!(try_all(&[], None).await, "nothing");
    }

    #[tokio::test]
    async fn the_last_error_is_told() {
        let connect = async |address: SocketAddr| -> std::io::Result<()> {
            Err(std::io::Error::other(address.to_string()))
        };
        let failed = |error| RtspError::Connect("cam:554".to_owned(), error);
        let outcome = first(&addresses(3), Duration::from_secs(1), connect, failed).await;
        let error = outcome.and_then(Result::err).map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("cam:554: 192.0.2.3:554"));
    }
}
