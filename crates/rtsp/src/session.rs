//! A session with a server.

use std::future::poll_fn;
use std::time::Duration;

use portunus_rtp::Header;
use portunus_rtp::rtcp::{Compound, Packet, is_rtcp};
use rtsp_types::headers;
use tokio::io::ReadBuf;
use tokio::time::{Instant, sleep_until, timeout};
use url::Url;

use crate::channels::{Receiving, poll_any};
use crate::connection::{Connection, Incoming, header, refused};
use crate::description::{Choice, Medium, WantedMedia, parse_description};
use crate::keep_alive::KeepAlive;
use crate::request::Request;
use crate::setup::{SetUp, set_up};
use crate::{Config, Login, RtspError, Sink, Transport};

const MAX_REDIRECTS: u32 = 5;
/// The session timeout of a server that names none (RFC 2326 section 12.37).
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of TEARDOWN.
const GOODBYE: Duration = Duration::from_secs(1);
const MAX_DATAGRAM: usize = 65_536;

/// A session that plays.
pub struct Session {
    connection: Connection,
    media: Vec<Medium>,
    /// The URL of PLAY.
    whole: String,
    receiving: Receiving,
    request_timeout: Duration,
    keep_alive: Duration,
    silence: Duration,
    heard: bool,
    ssrc: u32,
}

impl Session {
    /// Connects, describes, sets up the wanted media and plays them.
    pub async fn open(config: &Config) -> Result<Self, RtspError> {
        match config.transport {
            Transport::Udp => Self::open_over(config, false).await,
            Transport::Tcp => Self::open_over(config, true).await,
            Transport::UdpThenTcp => match Self::open_over(config, false).await {
                // Servers refuse a transport with several statuses.
                Err(error) if error.refuses_transport() || error.refuses_medium() => {
                    tracing::debug!(url = shown_url(&config.url), %error, "TCP instead of UDP");
                    Self::open_over(config, true).await
                }
                result => result,
            },
        }
    }

    /// Returns the playing media, at most one of each kind. [`Sink`] counts them in this order.
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// Returns whether packets come over the RTSP connection.
    pub fn is_tcp(&self) -> bool {
        matches!(self.receiving, Receiving::Tcp(_))
    }

    /// Returns whether any packet came.
    pub fn was_heard(&self) -> bool {
        self.heard
    }

    async fn open_over(config: &Config, tcp: bool) -> Result<Self, RtspError> {
        let Described {
            mut connection,
            choices,
            whole,
        } = describe(config).await?;
        let SetUp {
            media,
            receiving,
            timeout,
        } = set_up(&mut connection, config, choices, tcp).await?;
        let ssrc = rand::random();
        receiving.open_way(ssrc);
        let play = Request::new("PLAY", &whole).with("Range", "npt=0.000-");
        connection.ask_ok(&play).await?;
        let timeout = timeout.unwrap_or(DEFAULT_SESSION_TIMEOUT);
        let keep_alive = config
            .keep_alive
            .map_or(timeout / 2, |own| own.min(timeout / 2));
        Ok(Self {
            connection,
            media,
            whole,
            receiving,
            request_timeout: config.request_timeout,
            keep_alive: keep_alive.max(Duration::from_secs(1)),
            silence: config.reconnect_delay.max(Duration::from_millis(100)),
            heard: false,
            ssrc,
        })
    }

    /// Passes packets to `sink` until the session ends. Returns the reason.
    pub async fn receive<S: Sink + ?Sized>(&mut self, sink: &mut S) -> RtspError {
        match self.receive_until_error(sink).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn receive_until_error<S: Sink + ?Sized>(
        &mut self,
        sink: &mut S,
    ) -> Result<std::convert::Infallible, RtspError> {
        let mut memory = vec![0; MAX_DATAGRAM];
        let mut buffer = ReadBuf::new(&mut memory);
        let mut last = Instant::now();
        let mut alive = KeepAlive::new(self.keep_alive, last);
        let mut turn = 0;
        loop {
            let pairs = self.receiving.pairs();
            let wake = alive.next().min(last + self.silence);
            tokio::select! {
                biased;
                (medium, packet) = poll_fn(|context| sink.poll_rtcp(context)) => {
                    match &self.receiving {
                        Receiving::Udp(pairs) => {
                            if let Some(pair) = pairs.get(medium) {
                                pair.send_rtcp(&packet);
                            }
                        }
                        Receiving::Tcp(channels) => {
                            if let Some((_, rtcp)) = channels.get(medium) {
                                let sending = self.connection.send_packet(*rtcp, &packet);
                                let sent = timeout(self.request_timeout, sending).await;
                                sent.map_err(|_| RtspError::Timeout {
                                    what: "RTCP",
                                    after: self.request_timeout,
                                })??;
                            }
                        }
                    }
                }
                received = poll_fn(|context| poll_any(pairs, turn, context, &mut buffer)) => {
                    let (medium, is_control) = received?;
                    turn = medium;
                    if hand_over(sink, medium, is_control, buffer.filled()) {
                        (self.heard, last) = (true, Instant::now());
                    }
                }
                incoming = self.connection.next() => match incoming? {
                    Incoming::Packet(channel) => {
                        let Receiving::Tcp(channels) = &self.receiving else {
                            continue;
                        };
                        let of = |(rtp, rtcp): &(u8, u8)| channel == *rtp || channel == *rtcp;
                        let Some(medium) = channels.iter().position(of) else {
                            continue;
                        };
                        let is_control = channels.get(medium).is_some_and(|it| it.0 != channel);
                        if hand_over(sink, medium, is_control, self.connection.packet()) {
                            (self.heard, last) = (true, Instant::now());
                        }
                    }
                    Incoming::Response(number, response) => {
                        if alive.is_answered_by(number) {
                            match u16::from(response.status()) {
                                200..300 => alive.accepted(),
                                401 if self.connection.challenge(&response).is_ok() => {
                                    alive.repeat(Instant::now());
                                }
                                454 => return Err(RtspError::Ended),
                                // A refusal does not matter while the server plays.
                                status => tracing::debug!(status, "keep-alive refused"),
                            }
                        }
                    }
                    Incoming::Request(_) => {}
                },
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= last + self.silence {
                        return Err(RtspError::Silence(self.silence));
                    }
                    if now >= alive.next() {
                        self.receiving.open_way(self.ssrc);
                        let request = Request::new(alive.method(), &self.whole);
                        let sending = self.connection.send(&request);
                        let number = timeout(self.request_timeout, sending).await;
                        let number = number.map_err(|_| RtspError::Timeout {
                            what: "a keep-alive",
                            after: self.request_timeout,
                        })??;
                        alive.sent(number, now);
                    }
                }
            }
        }
    }

    /// Closes the session at the server. Takes at most a second.
    pub async fn close(mut self) {
        let request = Request::new("TEARDOWN", &self.whole);
        // A server that does not answer finds out by itself.
        let _ = timeout(GOODBYE, self.connection.ask(&request)).await;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("whole", &self.whole)
            .field("media", &self.media)
            .field("tcp", &self.is_tcp())
            .finish_non_exhaustive()
    }
}

/// Passes on a packet. Returns whether it is RTP.
fn hand_over<S: Sink + ?Sized>(
    sink: &mut S,
    medium: usize,
    is_control: bool,
    packet: &[u8],
) -> bool {
    if !is_control && !is_rtcp(packet) {
        let is_rtp = Header::parse(packet).is_ok();
        if is_rtp {
            sink.packet(medium, packet);
        }
        return is_rtp;
    }
    for part in Compound::new(packet) {
        if let Ok(Packet::SenderReport(report)) = part {
            sink.report(medium, report.info.ntp, report.info.rtp);
        }
    }
    false
}

/// A connection to a server that has described its media.
struct Described {
    connection: Connection,
    choices: Vec<Choice>,
    whole: String,
}

async fn describe(config: &Config) -> Result<Described, RtspError> {
    let (mut url, in_url) = parse_url(&config.url)?;
    let mut login = config.login.clone().or(in_url);
    for _ in 0..=MAX_REDIRECTS {
        let mut connection = Connection::open(&url, login.clone(), config).await?;
        let mut base = url.to_string();
        let mut request = Request::new("DESCRIBE", &base).with("Accept", "application/sdp");
        let mut response = connection.ask(&request).await?;
        let mut by_path = false;
        if u16::from(response.status()) == 404 && config.path_only {
            by_path = true;
            base = path_of(&url);
            request.uri.clone_from(&base);
            response = connection.ask(&request).await?;
        }
        match u16::from(response.status()) {
            200..=299 => {
                let named = [&headers::CONTENT_BASE, &headers::CONTENT_LOCATION];
                let named = named.into_iter().find_map(|name| header(&response, name));
                if let Some(named) = named.filter(|it| !it.is_empty() && !by_path) {
                    named.trim().clone_into(&mut base);
                }
                let wanted = WantedMedia {
                    audio: config.audio,
                    video: config.video,
                };
                let (mut choices, whole) = parse_description(response.body(), &base, wanted)?;
                if let Some(usable) = &config.usable {
                    choices.iter_mut().for_each(|choice| choice.prefer(usable));
                }
                return Ok(Described {
                    connection,
                    choices,
                    whole,
                });
            }
            301..=303 | 305 | 307 | 308 => {
                let location = header(&response, &headers::LOCATION);
                let location = location.ok_or(RtspError::Redirect("to nowhere"))?;
                let (next, _) = parse_url(location)
                    .map_err(|_| RtspError::Redirect("to something that is not RTSP"))?;
                // A password is for its host only.
                if next.host_str() != url.host_str() {
                    login = None;
                }
                url = next;
            }
            status => return Err(refused(&request, status, &response)),
        }
    }
    Err(RtspError::Redirect("too often"))
}

/// Returns a URL without its user and password, and these.
fn parse_url(text: &str) -> Result<(Url, Option<Login>), RtspError> {
    let mut url = Url::parse(text.trim()).map_err(|error| RtspError::Url(error.to_string()))?;
    if url.scheme() != "rtsp" {
        return Err(RtspError::Url(format!("its scheme is {}", url.scheme())));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(RtspError::Url("there is no host in it".to_owned()));
    }
    // The parser makes no difference between an empty password, the factory setting of cameras, and
    // none.
    let is_named = !url.username().is_empty() || url.password().is_some();
    let login = is_named.then(|| Login {
        user: decoded(url.username()),
        password: decoded(url.password().unwrap_or_default()),
    });
    // These fail for URLs without host only.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    Ok((url, login))
}

/// Returns a URL for logs: without user and password.
pub fn shown_url(url: &str) -> String {
    match parse_url(url) {
        Ok((url, _)) => url.into(),
        Err(_) => "(not a URL of RTSP)".to_owned(),
    }
}

/// Undoes percent encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn path_of(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn urls() {
        let (url, login) = parse_url("rtsp://us%40er:p%3Aw@cam:8554/a?b=c").unwrap();
        assert_eq!(url.as_str(), "rtsp://cam:8554/a?b=c");
        let login = login.unwrap();
        assert_eq!(
            (login.user.as_str(), login.password.as_str()),
            ("us@er", "p:w")
        );
        assert_eq!(path_of(&url), "/a?b=c");
        assert!(parse_url("rtsp://cam/").unwrap().1.is_none());
        for text in ["rtsp://admin:@cam/", "rtsp://admin@cam/"] {
            let login = parse_url(text).unwrap().1.unwrap();
            assert_eq!(
                (login.user.as_str(), login.password.as_str()),
                ("admin", "")
            );
        }
        assert_eq!(shown_url("rtsp://us:pw@cam:8554/a"), "rtsp://cam:8554/a");
        assert!(!shown_url("rtps://us:pw@cam").contains("pw"));
        for wrong in ["", "cam", "http://cam/", "rtsp://", "rtsp:///a"] {
            assert!(
                matches!(parse_url(wrong), Err(RtspError::Url(_))),
                "{wrong}"
            );
        }
    }
}
