//! The connection itself: connects, makes what has to be there, and connects again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::select_all;
use futures_util::{Stream, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::tcp::{AsyncTcpStream, RustlsConnector};
use lapin::types::ShortString;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{
    BasicProperties, Channel, Confirmation, ConnectionProperties, ErrorKind, Event,
    PublisherConfirm, runtime,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::rustls::ClientConfig;

use super::{Outgoing, RabbitServer, Topology};
use crate::backoff::Backoff;
use crate::connection::Ends;
use crate::reports::{Reports, until_stopped};
use crate::{Incoming, Reply};

/// The timeout for a connection, and for the confirmations of the last messages.
const PATIENCE: Duration = Duration::from_secs(10);

/// The timeout for the last messages at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The limit of messages without a confirmation by the broker.
const UNCONFIRMED: usize = 64;

/// The limit of broken connections for a message under way. The message may be the reason that they
/// break.
const TRIES: u8 = 5;

/// The broker, and what the connection is for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) server: RabbitServer,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) topology: Topology,
}

/// A message, and the number of connections that broke while it was under way.
#[derive(Debug)]
struct Tried {
    message: Outgoing,
    tries: u8,
}

/// Deliveries of the broker, with the index of their queue among those that are read.
type Deliveries = Pin<Box<dyn Stream<Item = (usize, lapin::Result<Delivery>)> + Send>>;

/// A connection that is there.
struct Link {
    connection: lapin::Connection,
    /// The channel for publishing. Reading has its own, which outlives this one.
    channel: Channel,
    deliveries: Deliveries,
    events: Pin<Box<dyn Stream<Item = Event> + Send>>,
}

/// The end of a connection.
enum Ending {
    Lost(String),
    /// It was stopped.
    Stopped,
}

/// Keeps a connection to the broker until it is stopped.
pub(super) async fn run(plan: Plan, mut ends: Ends<Outgoing>) {
    let (arrivals, counters) = (ends.arrivals.clone(), ends.counters.clone());
    let mut reports = Reports::new("rabbitmq", plan.server.address(), arrivals, counters);
    let mut unconfirmed = VecDeque::new();
    let mut backoff = Backoff::default();
    loop {
        let Some(opened) = until_stopped(open(&plan), &mut ends, &mut reports).await else {
            break;
        };
        match opened {
            Ok(link) => {
                let begun = Instant::now();
                reports.connected();
                match serve(link, &mut unconfirmed, &mut ends, &mut reports).await {
                    Ending::Stopped => break,
                    Ending::Lost(reason) => reports.lost(&reason),
                }
                backoff.lasted(begun.elapsed());
                let before = unconfirmed.len();
                unconfirmed.retain_mut(|tried: &mut Tried| {
                    tried.tries = tried.tries.saturating_add(1);
                    tried.tries < TRIES
                });
                let given_up = before.saturating_sub(unconfirmed.len());
                reports.dropped(
                    given_up,
                    "the connection broke each time that they were sent",
                );
            }
            Err(reason) => reports.failed(None, reason),
        }
        let wait = sleep(backoff.next());
        if until_stopped(wait, &mut ends, &mut reports).await.is_none() {
            break;
        }
        reports.retrying();
    }
    ends.outgoing.close();
    let left = unconfirmed.len().saturating_add(ends.outgoing.len());
    reports.dropped(left, "the server ends and the broker is away");
}

async fn open(plan: &Plan) -> Result<Link, String> {
    let opening = async {
        let connection = connect(plan).await?;
        let events = Box::pin(connection.events_listener());
        let reading = connection.create_channel().await?;
        let consumers = plan.topology.make(&reading).await?;
        let channel = open_channel(&connection).await?;
        let numbered = consumers.into_iter().enumerate();
        let streams: Vec<_> = numbered
            .map(|(queue, consumer)| consumer.map(move |delivery| (queue, delivery)))
            .collect();
        let deliveries: Deliveries = match streams.is_empty() {
            true => Box::pin(futures_util::stream::pending()),
            false => Box::pin(select_all(streams)),
        };
        Ok::<_, lapin::Error>(Link {
            connection,
            channel,
            deliveries,
            events,
        })
    };
    match timeout(PATIENCE, opening).await {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// Opens a channel for publishing.
async fn open_channel(connection: &lapin::Connection) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    Ok(channel)
}

async fn connect(plan: &Plan) -> lapin::Result<lapin::Connection> {
    let server = &plan.server;
    let seconds = u16::try_from(server.heartbeat.as_secs()).unwrap_or(u16::MAX);
    let uri = AMQPUri {
        scheme: match plan.tls {
            Some(_) => AMQPScheme::AMQPS,
            None => AMQPScheme::AMQP,
        },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: server.username.clone(),
                password: server.password.clone().into_inner(),
            },
            host: server.host.clone(),
            port: server.port,
        },
        vhost: server.vhost.clone(),
        query: AMQPQueryString {
            heartbeat: (seconds > 0).then_some(seconds),
            ..AMQPQueryString::default()
        },
    };
    let tls = plan.tls.clone().map(RustlsConnector::from);
    let properties = ConnectionProperties::default().with_connection_name("portunus".into());
    let runtime = runtime::default_runtime()?;
    lapin::Connection::connector(
        uri,
        runtime,
        async move |uri, runtime| {
            let AMQPAuthority { host, port, .. } = uri.authority;
            let address = runtime.to_socket_addrs((host.clone(), port));
            let stream = AsyncTcpStream::connect(&runtime, address).await?;
            match &tls {
                Some(tls) => Ok(stream.into_rustls(tls, &host).await?),
                None => Ok(stream),
            }
        },
        properties,
    )
    .await
}

/// Sends and receives messages. Sends `unconfirmed` first.
async fn serve(
    mut link: Link,
    unconfirmed: &mut VecDeque<Tried>,
    ends: &mut Ends<Outgoing>,
    reports: &mut Reports,
) -> Ending {
    let mut confirms = VecDeque::new();
    // The last error of the channel, if it closed it.
    let mut closed = None;
    for tried in unconfirmed.iter() {
        match publish(&link.channel, &tried.message).await {
            Ok(confirm) => confirms.push_back(confirm),
            Err(error) => {
                closed = Some(error);
                break;
            }
        }
    }
    let mut last_words = std::pin::pin!(sleep(PATIENCE));
    let (mut is_stopping, mut is_drained) = (false, false);
    loop {
        if let Some(error) = closed.take() {
            if !link.connection.status().connected() {
                return Ending::Lost(error.to_string());
            }
            confirms.clear();
            let again = send_again(&link.connection, unconfirmed, ends, reports);
            match timeout(PATIENCE, again).await {
                Ok(Ok(channel)) => link.channel = channel,
                Ok(Err(error)) => return Ending::Lost(error.to_string()),
                Err(_) => return Ending::Lost("no answer".to_owned()),
            }
        }
        if is_drained && confirms.is_empty() {
            let closing = link.connection.close(200, "OK".into());
            // Whether it hears that makes no difference.
            let _ = timeout(LAST_WORDS, closing).await;
            return Ending::Stopped;
        }
        let failed = tokio::select! {
            delivery = link.deliveries.next(), if reports.waiting() == 0 => match delivery {
                Some((queue, Ok(delivery))) => take(queue, delivery, reports).await.err(),
                Some((_, Err(error))) => Some(error),
                None => return Ending::Lost("the queues are not read any more".to_owned()),
            },
            _ = reports.pass_on() => None,
            confirmed = first(&mut confirms) => {
                match confirmed {
                    Ok(confirmation) => {
                        confirms.pop_front();
                        unconfirmed.pop_front();
                        settle(&confirmation, ends, reports);
                    }
                    Err(error) if is_refusal(&error) => closed = Some(error),
                    // It is sent again by the next connection.
                    Err(error) => return Ending::Lost(error.to_string()),
                }
                None
            }
            message = ends.outgoing.recv(), if unconfirmed.len() < UNCONFIRMED && !is_drained => {
                match message {
                    Some(message) => {
                        let published = publish(&link.channel, &message).await;
                        unconfirmed.push_back(Tried { message, tries: 0 });
                        match published {
                            Ok(confirm) => confirms.push_back(confirm),
                            Err(error) => closed = Some(error),
                        }
                        None
                    }
                    None => {
                        is_drained = true;
                        None
                    }
                }
            }
            event = link.events.next() => match event {
                // Errors of a channel are seen at its users.
                Some(Event::Error(error)) if error.is_amqp_soft_error() => None,
                Some(Event::Error(error)) => Some(error),
                Some(Event::ConnectionBlocked(reason)) => {
                    tracing::warn!(reason, "RabbitMQ takes no messages for now");
                    None
                }
                Some(_) => None,
                None => return Ending::Lost("the connection is closed".to_owned()),
            },
            () = ends.stop.wanted(), if !is_stopping => {
                is_stopping = true;
                ends.outgoing.close();
                last_words.as_mut().reset(Instant::now() + LAST_WORDS);
                None
            }
            () = &mut last_words, if is_stopping => return Ending::Stopped,
        };
        if let Some(error) = failed {
            return Ending::Lost(error.to_string());
        }
    }
}

/// Sends unconfirmed messages by a new channel, one at a time, to find out which one makes the
/// broker close a channel. That one is lost. Returns a channel for the next messages.
async fn send_again(
    connection: &lapin::Connection,
    unconfirmed: &mut VecDeque<Tried>,
    ends: &Ends<Outgoing>,
    reports: &mut Reports,
) -> lapin::Result<Channel> {
    let mut channel = open_channel(connection).await?;
    while let Some(tried) = unconfirmed.front() {
        let confirmed = match publish(&channel, &tried.message).await {
            Ok(confirm) => confirm.await,
            Err(error) => Err(error),
        };
        match confirmed {
            Ok(confirmation) => settle(&confirmation, ends, reports),
            Err(error) if is_refusal(&error) => {
                reports.dropped(1, &error.to_string());
                channel = open_channel(connection).await?;
            }
            Err(error) => return Err(error),
        }
        unconfirmed.pop_front();
    }
    Ok(channel)
}

/// Counts a message by the broker's confirmation or refusal.
fn settle(confirmation: &Confirmation, ends: &Ends<Outgoing>, reports: &mut Reports) {
    match confirmation {
        Confirmation::Nack(_) => reports.dropped(1, "the broker refuses it"),
        Confirmation::Ack(_) | Confirmation::NotRequested => ends.counters.has_published(),
    }
}

/// Returns whether the broker has closed a channel because we may not write to a message's
/// destination.
fn is_refusal(error: &lapin::Error) -> bool {
    let refused = AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED);
    matches!(error.kind(), ErrorKind::ProtocolError(error) if *error.kind() == refused)
}

/// Waits for the oldest confirmation. Never returns without one to wait for. Cancel safe.
async fn first(confirms: &mut VecDeque<PublisherConfirm>) -> lapin::Result<Confirmation> {
    match confirms.front_mut() {
        Some(confirm) => confirm.await,
        None => std::future::pending().await,
    }
}

async fn publish(channel: &Channel, message: &Outgoing) -> lapin::Result<PublisherConfirm> {
    let correlation = message.correlation.as_ref();
    let correlation = correlation.map(|id| String::from_utf8_lossy(id).into_owned());
    let mut properties = BasicProperties::default().with_content_type("application/json".into());
    if let Some(correlation) = correlation {
        properties = properties.with_correlation_id(ShortString::from(correlation));
    }
    channel
        .basic_publish(
            message.exchange.as_str().into(),
            message.routing_key.as_str().into(),
            BasicPublishOptions::default(),
            &message.payload,
            properties,
        )
        .await
}

/// Takes a message out of its queue.
async fn take(queue: usize, delivery: Delivery, reports: &mut Reports) -> lapin::Result<()> {
    delivery.ack(BasicAckOptions::default()).await?;
    let properties = &delivery.properties;
    let reply = Reply {
        to: properties.reply_to().as_ref().map(ToString::to_string),
        correlation: properties
            .correlation_id()
            .as_ref()
            .map(|id| Bytes::copy_from_slice(id.as_str().as_bytes())),
    };
    let message = Incoming {
        subscription: queue,
        payload: delivery.data.into(),
        reply,
    };
    reports.add_message(message, None);
    Ok(())
}
