//! The connection. The library reconnects by itself, and reports it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, Message, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::config::addresses;
use super::{NatsServer, Outgoing};
use crate::backoff::Backoff;
use crate::connection::Ends;
use crate::reports::{Reports, until_stopped};
use crate::{Incoming, Reply};

/// The limit of received messages in the queue. Beyond that, the library drops them and reports it.
const WAITING: usize = 4_096;

/// The timeout for the last messages at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The server, and what the connection is for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) server: NatsServer,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) subjects: Vec<String>,
}

type Numbered = futures_util::stream::BoxStream<'static, (usize, Message)>;

/// Keeps a connection to the server until it is stopped.
pub(super) async fn run(plan: Plan, mut ends: Ends<Outgoing>) {
    let (arrivals, counters) = (ends.arrivals.clone(), ends.counters.clone());
    let mut reports = Reports::new("nats", plan.server.address.url.clone(), arrivals, counters);
    let (told, mut events) = mpsc::unbounded_channel();
    let opened = until_stopped(open(&plan, told), &mut ends, &mut reports).await;
    match opened {
        Some(Ok((client, messages))) => {
            serve(&client, messages, &mut events, &mut ends, &mut reports).await;
        }
        Some(Err(reason)) => {
            reports.failed(None, reason);
            // A wrong configuration is not retried. Published messages are lost.
            while ends.outgoing.recv().await.is_some() {
                reports.dropped(1, "there is no connection");
            }
        }
        None => {}
    }
    ends.outgoing.close();
    let left = ends.outgoing.len();
    reports.dropped(left, "the server ends and the broker is away");
}

/// Returns a client that connects in the background, and the messages of its subscriptions.
async fn open(
    plan: &Plan,
    told: mpsc::UnboundedSender<Event>,
) -> Result<(Client, SelectAll<Numbered>), String> {
    let server = &plan.server;
    let mut options = ConnectOptions::new()
        .name("portunus")
        .retry_on_initial_connect()
        .subscription_capacity(WAITING)
        .reconnect_delay_callback(Backoff::after)
        .event_callback(move |event| {
            // The receiver is gone only at the end.
            let _ = told.send(event);
            std::future::ready(())
        });
    options = server
        .login
        .apply(options)
        .map_err(|error| error.to_string())?;
    if let Some(tls) = &plan.tls {
        options = options
            .require_tls(true)
            .tls_client_config(tls.as_ref().clone());
    }
    let addresses = addresses(&server.address.url)?;
    let client = options
        .connect(addresses)
        .await
        .map_err(|error| error.to_string())?;
    let mut messages = Vec::new();
    for (number, subject) in plan.subjects.iter().enumerate() {
        let subscriber: Subscriber = client
            .subscribe(subject.clone())
            .await
            .map_err(|error| error.to_string())?;
        messages.push(subscriber.map(move |message| (number, message)).boxed());
    }
    Ok((client, select_all(messages)))
}

/// Sends and receives messages.
async fn serve(
    client: &Client,
    mut messages: SelectAll<Numbered>,
    events: &mut mpsc::UnboundedReceiver<Event>,
    ends: &mut Ends<Outgoing>,
    reports: &mut Reports,
) {
    let mut is_connected = false;
    let mut is_stopping = false;
    loop {
        tokio::select! {
            Some((number, message)) = messages.next(), if reports.waiting() == 0 => {
                let incoming = Incoming {
                    subscription: number,
                    payload: message.payload,
                    reply: Reply {
                        to: message.reply.map(|subject| subject.to_string()),
                        correlation: None,
                    },
                };
                reports.add_message(incoming, None);
            }
            _ = reports.pass_on() => {}
            message = ends.outgoing.recv(), if is_connected => match message {
                Some(message) => match client.publish(message.subject, message.payload).await {
                    // The broker confirms nothing, so a sent message counts.
                    Ok(()) => ends.counters.has_published(),
                    Err(error) => reports.dropped(1, &error.to_string()),
                },
                None => {
                    // Whether the last ones arrive is not waited for longer.
                    let _ = timeout(LAST_WORDS, client.flush()).await;
                    let _ = client.drain().await;
                    return;
                }
            },
            Some(event) = events.recv() => match event {
                Event::Connected => {
                    is_connected = true;
                    reports.connected();
                }
                Event::Disconnected => {
                    is_connected = false;
                    reports.lost("the broker has closed the connection, or does not answer");
                    reports.retrying();
                }
                Event::ServerError(error) => refused(&error.to_string(), reports),
                Event::ClientError(error) => reports.failed(None, error.to_string()),
                Event::SlowConsumer(_) => {
                    reports.dropped(1, "requests come faster than they are taken");
                }
                Event::Closed => is_connected = false,
                Event::LameDuckMode | Event::Draining => {}
            },
            () = ends.stop.wanted(), if !is_stopping => {
                is_stopping = true;
                ends.outgoing.close();
                if !is_connected {
                    return;
                }
            }
        }
    }
}

/// Logs an error of the server. A missing permission does not end the connection.
fn refused(error: &str, reports: &mut Reports) {
    let lower = error.to_lowercase();
    if lower.contains("permissions violation for publish") {
        reports.dropped(1, error);
    } else if lower.contains("permissions violation") {
        tracing::warn!(error, "NATS refuses a subscription: no requests come by it");
    } else {
        reports.failed(None, error.to_owned());
    }
}
