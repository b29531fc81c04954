//! Drains, and the end of all sessions.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Gateway, Inner};
use crate::drain::Draining;
use crate::events::lifecycle::SessionEnd;
use crate::handle::Command;
use crate::request::Request;
use crate::session::{Attached, Session};
use crate::{ApiError, Fields, HandleId, Object, OtherNode};

/// How long the end of all sessions waits for slow handles.
const HANDLES_LIMIT: Duration = Duration::from_secs(5);
/// How long it waits for clients of HTTP to fetch their events.
const FETCH_LIMIT: Duration = Duration::from_secs(1);
/// How often a drain checks for remaining calls.
const LOOK: Duration = Duration::from_millis(200);

/// Reasons of hangups, for clients.
const SHUTDOWN: &str = "Server shutdown";
const DRAINED: &str = "Server drained";

/// A drain in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainStatus {
    /// How long it has lasted.
    pub lasted: Duration,
    /// The time until remaining calls are ended, or `None` for never.
    pub left: Option<Duration>,
    /// The present sessions.
    pub sessions: usize,
    /// The present calls, see [`Gateway::calls`].
    pub calls: usize,
    /// Whether the server ends after it.
    pub is_final: bool,
}

impl Gateway {
    /// Refuses new clients from now on. Present calls go on until `limit` has passed, if there is
    /// one. During a drain this only changes the deadline. Returns whether one was in progress.
    pub fn drain(&self, limit: Option<Duration>) -> bool {
        let was_on = self.context().drain.start(limit);
        self.notify_plugins_of_drain(true);
        if !was_on || limit.is_some() {
            self.tell_clients_of_drain();
        }
        if !was_on {
            tracing::info!(
                calls = self.calls(),
                ?limit,
                "draining: nobody new is taken"
            );
        }
        was_on
    }

    /// Ends the drain. Returns whether there was one, or an error if the server is ending.
    pub fn undrain(&self) -> Result<bool, ApiError> {
        let stopped = self.context().drain.stop();
        let was_on = stopped.map_err(|_| {
            ApiError::Unknown("The server is ending: this drain cannot be undone".to_owned())
        })?;
        if was_on {
            self.notify_plugins_of_drain(false);
            self.tell_clients_of_drain();
            tracing::info!("the drain is undone: new sessions are taken");
        }
        Ok(was_on)
    }

    /// Drains the server before its end. Returns once no call is left, or at the deadline.
    /// [`Gateway::shutdown`] ends remaining calls.
    pub async fn drain_before_end(&self, limit: Duration) {
        let drain = &self.context().drain;
        drain.start_final(limit);
        self.notify_plugins_of_drain(true);
        self.tell_clients_of_drain();
        let mut changes = drain.watch();
        while self.calls() > 0 {
            let deadline = changes.borrow_and_update().and_then(|it| it.deadline());
            let Some(deadline) = deadline.filter(|it| *it > Instant::now()) else {
                return;
            };
            let next = deadline.min(Instant::now() + LOOK);
            tokio::select! {
                () = sleep_until(next) => {}
                // The gateway holds the sender.
                _ = changes.changed() => {}
            }
        }
    }

    /// Returns the drain in progress.
    pub fn draining(&self) -> Option<DrainStatus> {
        let draining = self.context().drain.current()?;
        Some(DrainStatus {
            lasted: draining.lasted(),
            left: draining.left(),
            sessions: self.inner.sessions().len(),
            calls: self.calls(),
            is_final: draining.is_final(),
        })
    }

    /// Returns the number of calls: PeerConnections, connected or on their way, and calls of
    /// plugins without one.
    pub fn calls(&self) -> usize {
        let plugins = self.inner.plugins.iter();
        let others: usize = plugins.map(|plugin| plugin.calls_without_peers()).sum();
        self.context().peers.count().saturating_add(others)
    }

    /// Fails during a drain, so that new clients go elsewhere.
    pub fn check_drain(&self) -> Result<(), ApiError> {
        match self.context().drain.is_on() {
            true => Err(ApiError::Draining(self.elsewhere().map(Box::new))),
            false => Ok(()),
        }
    }

    /// As [`Gateway::check_drain`], for a client with a session. A client in a call is not new.
    pub(super) fn check_drain_of(&self, session: &Session) -> Result<(), ApiError> {
        self.check_drain()
            .or_else(|error| match self.is_in_call(session) {
                true => Ok(()),
                false => Err(error),
            })
    }

    /// As [`Gateway::check_drain`], for a message to a plugin. Only requests that begin something
    /// new are refused.
    pub(super) fn check_drain_for(
        &self,
        session: &Session,
        handle: HandleId,
        request: &Request,
    ) -> Result<(), ApiError> {
        if !self.context().drain.is_on() {
            return Ok(());
        }
        let handle = self.handle(session, handle).ok();
        let plugin = handle.and_then(|handle| self.plugin(handle.package()));
        let body = request.members.get("body").and_then(Value::as_object);
        let name = body.and_then(|body| Fields(body).string("request").ok().flatten());
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let begins = request.members.contains_key("jsep")
            || plugin.is_some_and(|plugin| plugin.begins(&name));
        match begins {
            true => self.check_drain_of(session),
            false => Ok(()),
        }
    }

    /// Returns the node of the cluster to which a client should go from here, if there is one.
    pub fn elsewhere(&self) -> Option<OtherNode> {
        self.cluster()?.others().into_iter().next()
    }

    /// Tells all clients whether the server is being drained, if it is a node of a cluster. Each is
    /// told a node to go to.
    fn tell_clients_of_drain(&self) {
        if self.cluster().is_none() {
            return;
        }
        let draining = self.context().drain.current();
        let left = draining.and_then(|it| it.left());
        let sessions: Vec<Arc<Session>> = self.inner.sessions().values().cloned().collect();
        for session in sessions.iter().filter(|session| !session.is_internal()) {
            let id = session.id.to_json(self.context().config().string_ids);
            let event = Object::new()
                .with("janus", "drain")
                .with("session_id", id)
                .with("draining", draining.is_some())
                .with_some(
                    "deadline",
                    left.map(|left| left.as_millis() as f64 / 1_000.0),
                );
            let elsewhere = draining.and_then(|_| self.elsewhere());
            let event = match elsewhere {
                Some(node) => event.with_all(node.to_object()),
                None => event,
            };
            session.emit(Value::from(event));
        }
    }

    fn notify_plugins_of_drain(&self, is_on: bool) {
        for plugin in &self.inner.plugins {
            plugin.set_draining(is_on);
        }
    }

    /// Ends all sessions, and accepts no new ones. Clients get `hangup` and `detached` for each
    /// handle, then `timeout`. Waits for the ends of handles, for 5 s at most.
    pub async fn shutdown(&self) {
        self.context().drain.start_final(Duration::ZERO);
        self.inner.end_all(SHUTDOWN).await;
    }
}

impl Inner {
    /// Ends all present sessions.
    async fn end_all(&self, reason: &'static str) {
        // Sessions remain findable until their clients have fetched the last events.
        let sessions: Vec<Arc<Session>> = self.sessions().values().cloned().collect();
        let tasks: Vec<_> = sessions
            .iter()
            .flat_map(|session| session.take_handles())
            .map(|Attached { inbox, task, .. }| {
                let reason = reason.to_owned();
                inbox.deliver(Command::Hangup {
                    reason,
                    responder: None,
                });
                inbox.deliver(Command::Detach { responder: None });
                task
            })
            .collect();
        let all = async {
            for task in tasks {
                // The task may have panicked, which ends it as well.
                let _ = task.await;
            }
        };
        if timeout(HANDLES_LIMIT, all).await.is_err() {
            tracing::warn!("some handles did not end within {HANDLES_LIMIT:?}");
        }
        for session in sessions.iter().filter(|session| !session.is_internal()) {
            let id = session.id.to_json(self.context.config().string_ids);
            session.emit(json!({ "janus": "timeout", "session_id": id }));
        }
        let fetched = async {
            for session in &sessions {
                session.fetched().await;
            }
        };
        if timeout(FETCH_LIMIT, fetched).await.is_err() {
            tracing::debug!("some clients did not fetch their last events");
        }
        for session in sessions {
            self.remove(&session, SessionEnd::Destroyed);
        }
    }
}

/// Ends all sessions at the deadline of an operator's drain.
pub(super) async fn enforce(gateway: Weak<Inner>, mut changes: watch::Receiver<Option<Draining>>) {
    loop {
        let draining = *changes.borrow_and_update();
        let deadline = draining.filter(|it| !it.is_final());
        let due = async {
            match deadline.and_then(|it| it.deadline()) {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {
                let Some(gateway) = gateway.upgrade() else { return };
                let sessions = gateway.sessions().len();
                if sessions > 0 {
                    tracing::info!(sessions, "the deadline of the drain has passed: all sessions end");
                    gateway.end_all(DRAINED).await;
                }
                drop(gateway);
                // A request in progress may have created another session.
                sleep(Duration::from_secs(1)).await;
            }
            changed = changes.changed() => if changed.is_err() {
                return;
            }
        }
    }
}
