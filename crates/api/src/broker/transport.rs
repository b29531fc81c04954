//! The transport, for any kind of broker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portunus_admin::Administration;
use portunus_brokers::{Arrival, Connection, Incoming, Publisher, Reply};
use portunus_core::{Client, Object, Outbox, Requester};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::Broker;
use super::lane::Lane;
use crate::listener::stopped;
use crate::pace::{Api, Requests};
use crate::{Counters, reply};

/// The most waiting requests of the Admin API. Further ones are refused, so that they do not hold
/// up the Janus API.
const ADMIN_WAITING: usize = 64;

/// The most bytes of messages that wait for the broker, in addition to the memory of other clients.
const PREPAID: usize = 1 << 20;

/// How long the last messages may take at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The state that all transports share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) administration: Administration,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The connection to one broker.
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
    let (publisher, arrivals) = connection.split();
    let link = Link {
        broker,
        publisher,
        shared,
    };
    let (janus, for_janus) = mpsc::channel(1);
    let (admin, for_admin) = mpsc::channel(ADMIN_WAITING);
    tokio::join!(
        link.sort(arrivals, janus, admin),
        link.serve(Api::Janus, for_janus),
        link.serve(Api::Admin, for_admin),
    );
    let _ = timeout(LAST_WORDS, link.publisher.finish()).await;
}

impl<B: Broker> Link<B> {
    /// Passes each API its messages: the requests, and to the Janus API the states of the
    /// connection as well.
    async fn sort(
        &self,
        mut arrivals: mpsc::Receiver<Arrival>,
        janus: mpsc::Sender<Arrival>,
        admin: mpsc::Sender<Arrival>,
    ) {
        let mut stop = self.shared.stop.clone();
        loop {
            let arrival = tokio::select! {
                arrival = arrivals.recv() => arrival,
                () = stopped(&mut stop) => None,
            };
            let Some(arrival) = arrival else { return };
            let api = match &arrival {
                Arrival::Message(message) => {
                    self.shared.counters.broker_messages.add(1);
                    self.broker.common().api(message.subscription)
                }
                _ => Api::Janus,
            };
            if api == Api::Janus {
                if janus.send(arrival).await.is_err() {
                    return;
                }
            } else if let Err(TrySendError::Full(Arrival::Message(message))) =
                admin.try_send(arrival)
            {
                let refusal = reply::refused(&Value::Null, "Too many requests at once");
                self.refuse(api, message.reply, &refusal).await;
            }
        }
    }

    /// Serves one API until the server stops. Replaces a client that was disconnected.
    async fn serve(&self, api: Api, mut arrivals: mpsc::Receiver<Arrival>) {
        let mut stop = self.shared.stop.clone();
        loop {
            let (lane, mut outbox) = self.lane(api);
            let is_cut_off = tokio::select! {
                () = self.read(api, &lane, &mut arrivals) => false,
                () = self.write(api, &lane, &mut outbox) => true,
                () = stopped(&mut stop) => false,
            };
            if !is_cut_off {
                // The last events report the ends of calls.
                let last = self.drain(api, &lane, &mut outbox);
                let _ = timeout(LAST_WORDS, last).await;
            }
            self.shared
                .administration
                .gateway()
                .client_gone(&lane.client);
            if !is_cut_off {
                return;
            }
            self.shared.counters.slow_clients.add(1);
            tracing::warn!(
                broker = B::NAME,
                ?api,
                "too much waits for the broker: its sessions are left to be claimed, the rest is lost"
            );
        }
    }

    fn lane(&self, api: Api) -> (Lane, Outbox) {
        let requester = Requester::by_broker(B::NAME);
        let purse = api
            .memory(self.shared.administration.gateway())
            .purse(requester.address());
        // The prepaid amount stays available even if strangers hold the rest of the budget.
        let purse = purse.open(PREPAID, PREPAID).unwrap_or(purse);
        let (client, outbox) = Client::pushed(B::PACKAGE, requester, purse);
        let client = match self.broker.common().trusted {
            true => client.trusted(),
            false => client,
        };
        (Lane::new(api, client), outbox)
    }

    /// Passes requests to the gateway.
    async fn read(&self, api: Api, lane: &Lane, arrivals: &mut mpsc::Receiver<Arrival>) {
        let administration = &self.shared.administration;
        let max = self.broker.common().max_message;
        let mut requests = Requests::new(api, administration, &lane.client, &lane.pace);
        while let Some(arrival) = requests.meanwhile(arrivals.recv()).await {
            let Incoming { payload, reply, .. } = match arrival {
                Arrival::Message(message) => message,
                state => {
                    self.publish_state(&lane.client, &state);
                    continue;
                }
            };
            if payload.len() > max {
                let refusal = reply::too_large(max);
                requests.meanwhile(self.refuse(api, reply, &refusal)).await;
                continue;
            }
            let client = lane.asking(reply);
            requests.take_from(&client, &payload).await;
        }
    }

    /// Sends replies and events in order. Returns when the gateway has disconnected the client.
    async fn write(&self, api: Api, lane: &Lane, outbox: &mut Outbox) {
        while let Some(posted) = outbox.recv_posted().await {
            let reply = lane.reply_of(&posted);
            let (text, _paid) = posted.into_text();
            self.say(api, reply, text).await;
            lane.pace.wrote();
        }
    }

    async fn drain(&self, api: Api, lane: &Lane, outbox: &mut Outbox) {
        while let Some(posted) = outbox.try_recv_posted() {
            let reply = lane.reply_of(&posted);
            let (text, _paid) = posted.into_text();
            self.say(api, reply, text).await;
        }
    }

    async fn refuse(&self, api: Api, reply: Reply, refusal: &Value) {
        self.shared.counters.refused.add(1);
        self.say(api, Some(reply), refusal.to_string()).await;
    }

    async fn say(&self, api: Api, reply: Option<Reply>, message: String) {
        let payload = Bytes::from(message);
        let outgoing = self.broker.outgoing(api, reply, payload);
        self.publisher.publish(outgoing).await;
    }

    /// Publishes the state of the connection as an event.
    fn publish_state(&self, client: &Client, state: &Arrival) {
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
        let events = self.shared.administration.gateway().events();
        events.transport(B::PACKAGE, client.event_id(), || match state {
            Arrival::Failed { code, reason } => Object::new()
                .with("event", name)
                .with("code", code.map_or(-1, i64::from))
                .with("reason", reason.as_str())
                .into(),
            _ => json!({ "event": name }),
        });
    }
}
