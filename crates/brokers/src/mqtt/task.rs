//! The connection: connects, serves, and reconnects.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_rustls::rustls::ClientConfig;
use tokio_util::codec::Framed;

use super::codec::Codec;
use super::config::Address;
use super::frame::{Connect, Connected, Frame};
use super::session::Session;
use super::{MqttServer, Outgoing, Presence, Topic};
use crate::BrokerCounters;
use crate::backoff::Backoff;
use crate::connection::Ends;
use crate::reports::{Reports, until_stopped};
use crate::stream::{self, Stream};

/// The timeout for the broker's answers and reads.
const PATIENCE: Duration = Duration::from_secs(10);

/// The limit of messages of QoS 0 in the queue. The broker holds back others until they are
/// confirmed.
const UNCONFIRMED: usize = 1_024;

/// The ping interval where none is wanted: never.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// The broker, and what the connection is for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) server: MqttServer,
    pub(super) address: Address,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) topics: Vec<Topic>,
    pub(super) presence: Presence,
}

type Link = Framed<Box<dyn Stream>, Codec>;

/// The reason why a connection failed.
#[derive(Debug)]
struct Failure {
    code: Option<u8>,
    reason: String,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure {
            code: None,
            reason: error.to_string(),
        }
    }
}

/// The end of a connection.
enum Ending {
    Lost(String),
    /// It was stopped.
    Stopped,
}

/// Keeps a connection to the broker until it is stopped.
pub(super) async fn run(plan: Plan, mut ends: Ends<Outgoing>) {
    let max_inflight = plan.server.max_inflight;
    let mut session = Session::new(plan.topics.clone(), plan.presence.clone(), max_inflight);
    let (arrivals, counters) = (ends.arrivals.clone(), ends.counters.clone());
    let mut reports = Reports::new("mqtt", plan.server.url.clone(), arrivals, counters);
    let mut backoff = Backoff::default();
    loop {
        let Some(opened) = until_stopped(open(&plan), &mut ends, &mut reports).await else {
            break;
        };
        match opened {
            Ok((link, connected)) => {
                let begun = Instant::now();
                reports.connected();
                reports.forget_tags();
                session.begin(&connected);
                match serve(&plan, link, &mut session, &mut ends, &mut reports).await {
                    Ending::Stopped => break,
                    Ending::Lost(reason) => reports.lost(&reason),
                }
                backoff.lasted(begun.elapsed());
            }
            Err(Failure { code, reason }) => reports.failed(code, reason),
        }
        let wait = sleep(backoff.next());
        if until_stopped(wait, &mut ends, &mut reports).await.is_none() {
            break;
        }
        reports.retrying();
    }
    leave(&session, &mut ends, &mut reports);
}

/// Counts the messages that cannot be published any more.
fn leave(session: &Session, ends: &mut Ends<Outgoing>, reports: &mut Reports) {
    ends.outgoing.close();
    let left = session.under_way().saturating_add(ends.outgoing.len());
    reports.dropped(left, "the server ends and the broker is away");
}

async fn open(plan: &Plan) -> Result<(Link, Connected), Failure> {
    let Address { host, port, .. } = &plan.address;
    let opening = async {
        let stream = stream::connect(host, *port, plan.tls.as_ref()).await?;
        let mut link = Framed::new(stream, Codec::new(plan.server.mqtt_version));
        let connect = Connect::new(&plan.server, &plan.presence);
        link.send(Frame::Connect(Box::new(connect))).await?;
        match link.next().await.transpose()? {
            Some(Frame::Connected(connected)) => Ok((link, connected)),
            Some(Frame::Refused { code, reason }) => Err(Failure {
                code: Some(code),
                reason,
            }),
            Some(_) => Err(io::Error::other("the broker speaks no MQTT").into()),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    };
    let opened = timeout(PATIENCE, opening).await;
    opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

/// Sends and receives messages.
async fn serve(
    plan: &Plan,
    mut link: Link,
    session: &mut Session,
    ends: &mut Ends<Outgoing>,
    reports: &mut Reports,
) -> Ending {
    let period = match plan.server.keep_alive_interval {
        Duration::ZERO => NEVER,
        interval => interval,
    };
    let mut pings = interval_at(Instant::now() + period, period);
    let last_words = sleep(NEVER);
    let mut last_words = std::pin::pin!(last_words);
    let (mut is_stopping, mut is_drained) = (false, false);
    loop {
        if let Err(error) = flush(&mut link, session).await {
            return Ending::Lost(error.to_string());
        }
        count(session, &ends.counters, reports);
        if is_drained && session.is_idle() {
            session.end();
            // Whether it hears that makes no difference.
            let _ = flush(&mut link, session).await;
            let _ = link.close().await;
            return Ending::Stopped;
        }
        let failed = tokio::select! {
            // Confirmations have to be read in any case, to avoid a deadlock.
            frame = link.next() => match frame {
                Some(Ok(frame)) => match session.take(frame) {
                    Ok(Some((message, tag))) => {
                        if tag.is_some() || reports.waiting() < UNCONFIRMED {
                            reports.add_message(message, tag);
                        } else {
                            reports.dropped(1, "requests come faster than they are taken");
                        }
                        None
                    }
                    Ok(None) => None,
                    Err(error) => Some(error.to_string()),
                },
                Some(Err(error)) => Some(error.to_string()),
                None => Some("the broker has closed the connection".to_owned()),
            },
            tag = reports.pass_on() => {
                if let Some(tag) = tag {
                    session.confirm(tag);
                }
                None
            }
            message = ends.outgoing.recv(), if session.has_room() && !is_drained => {
                match message {
                    Some(message) => session.publish(message),
                    None => is_drained = true,
                }
                None
            }
            () = ends.stop.wanted(), if !is_stopping => {
                is_stopping = true;
                ends.outgoing.close();
                let limit = Duration::from_millis(plan.server.disconnect_timeout).max(Duration::from_millis(1));
                last_words.as_mut().reset(Instant::now() + limit);
                None
            }
            () = &mut last_words, if is_stopping => return Ending::Stopped,
            _ = pings.tick() => session.ping().err().map(|error| error.to_string()),
        };
        if let Some(reason) = failed {
            return Ending::Lost(reason);
        }
    }
}

/// Sends what is to be sent.
async fn flush(link: &mut Link, session: &mut Session) -> io::Result<()> {
    let sending = async {
        let mut any = false;
        while let Some(frame) = session.next_frame() {
            link.feed(frame).await?;
            any = true;
        }
        match any {
            true => link.flush().await,
            false => Ok(()),
        }
    };
    let sent = timeout(PATIENCE, sending).await;
    sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn count(session: &mut Session, counters: &BrokerCounters, reports: &mut Reports) {
    for _ in 0..session.take_published() {
        counters.has_published();
    }
    for reason in session.take_lost() {
        reports.dropped(1, &reason);
    }
}
