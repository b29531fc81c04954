//! The transport, whatever the broker is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use portunus_brokers::{Arrival, Connection, Incoming, Publisher, Reply};
use portunus_core::{Client, Gateway, Object, Outbox, Requester};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::Broker;
use super::lane::Lane;
use crate::listen::stopped;
use crate::pace::{Api, Requests};
use crate::{Counters, reply};

/// Requests of the Admin API that may be under way.
const ADMIN_REQUESTS: usize = 64;

/// How long the last messages may take at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What all transports share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) gateway: Gateway,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The way to one broker.
struct Link<B: Broker> {
    broker: B,
    publisher: Publisher<B::Outgoing>,
    shared: Shared,
}

/// Serves both APIs by `connection` until the server stops.
pub(crate) async fn serve<B: Broker>(
    broker: B,
    connection: Connection<B::Outgoing>,
    shared: Shared,
) {
    let (publisher, mut arrivals) = connection.split();
    let link = Link {
        broker,
        publisher,
        shared,
    };
    let mut stop = link.shared.stop.clone();
    loop {
        let (janus, mut events) = link.lane();
        let (admin, mut watched) = link.lane();
        let is_cut_off = tokio::select! {
            () = link.read(&mut arrivals, &janus, &admin) => false,
            () = link.write(Api::Janus, &janus, &mut events) => true,
            () = link.write(Api::Admin, &admin, &mut watched) => true,
            () = stopped(&mut stop) => false,
        };
        if !is_cut_off {
            // The last events say that calls have ended.
            let last = link.drain(&janus, &mut events);
            let _ = timeout(LAST_WORDS, last).await;
        }
        link.shared.gateway.client_gone(&janus.client);
        link.shared.gateway.client_gone(&admin.client);
        if !is_cut_off {
            break;
        }
        link.shared.counters.slow_clients.add(1);
        tracing::warn!(
            broker = B::NAME,
            "too much waits for the broker: its sessions are left to be claimed, the rest is lost"
        );
    }
    let _ = timeout(LAST_WORDS, link.publisher.finish()).await;
}

impl<B: Broker> Link<B> {
    fn lane(&self) -> (Lane, Outbox) {
        let (client, outbox) = Client::pushed(B::PACKAGE, Requester::by_broker(B::NAME));
        let client = match self.broker.common().trusted {
            true => client.trusted(),
            false => client,
        };
        (Lane::new(client), outbox)
    }

    /// Hands what comes to the gateway.
    async fn read(&self, arrivals: &mut mpsc::Receiver<Arrival>, janus: &Lane, admin: &Lane) {
        let gateway = &self.shared.gateway;
        let mut requests = Requests::new(Api::Janus, gateway, &janus.client, &janus.pace);
        let mut asked = FuturesUnordered::new();
        loop {
            let arrival = tokio::select! {
                arrival = requests.meanwhile(arrivals.recv()) => arrival,
                Some(()) = asked.next() => continue,
            };
            let Some(arrival) = arrival else { return };
            let Incoming {
                subscription,
                payload,
                reply,
            } = match arrival {
                Arrival::Message(message) => message,
                state => {
                    self.tell(&janus.client, &state);
                    continue;
                }
            };
            self.shared.counters.broker_messages.add(1);
            let api = self.broker.common().api(subscription);
            let max = self.broker.common().max_message;
            if payload.len() > max {
                let refusal = reply::too_large(max);
                requests.meanwhile(self.refuse(api, reply, &refusal)).await;
                continue;
            }
            match api {
                Api::Janus => {
                    let client = janus.asking(reply);
                    requests.take_from(&client, &payload).await;
                }
                Api::Admin if asked.len() < ADMIN_REQUESTS => {
                    let client = admin.asking(reply);
                    asked.push(async move { gateway.submit_admin(&client, &payload).await });
                }
                Api::Admin => {
                    let refusal = reply::refused(&Value::Null, "Too many requests at once");
                    requests.meanwhile(self.refuse(api, reply, &refusal)).await;
                }
            }
        }
    }

    /// Sends replies and events in their order; ends when the gateway has cut the client off.
    async fn write(&self, api: Api, lane: &Lane, outbox: &mut Outbox) {
        while let Some(posted) = outbox.recv_posted().await {
            let reply = lane.reply_of(&posted);
            self.say(api, reply, &posted.message).await;
            lane.pace.wrote();
        }
    }

    async fn drain(&self, lane: &Lane, outbox: &mut Outbox) {
        while let Some(posted) = outbox.try_recv_posted() {
            let reply = lane.reply_of(&posted);
            self.say(Api::Janus, reply, &posted.message).await;
        }
    }

    async fn refuse(&self, api: Api, reply: Reply, refusal: &Value) {
        self.shared.counters.refused.add(1);
        self.say(api, Some(reply), refusal).await;
    }

    async fn say(&self, api: Api, reply: Option<Reply>, message: &Value) {
        let payload = Bytes::from(message.to_string());
        let outgoing = self.broker.outgoing(api, reply, payload);
        self.publisher.publish(outgoing).await;
    }

    /// Tells whoever watches the server what became of the connection.
    fn tell(&self, client: &Client, state: &Arrival) {
        let name = match state {
            Arrival::Connected => {
                self.shared.counters.broker_connections.add(1);
                "connected"
            }
            Arrival::Lost => "disconnected",
            Arrival::Retrying => "reconnecting",
            Arrival::Failed { .. } => "failed",
            Arrival::Message(_) => return,
        };
        let events = self.shared.gateway.events();
        events.transport(B::PACKAGE, client.told_id(), || match state {
            Arrival::Failed { code, reason } => Object::new()
                .with("event", name)
                .with("code", code.map_or(-1, i64::from))
                .with("reason", reason.as_str())
                .into(),
            _ => json!({ "event": name }),
        });
    }
}
