//! Agents: programs that register as workers, and join rooms as participants when they get jobs.

mod job_token;
mod pool;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use livekit_protocol as lk;
use livekit_protocol::JobType;
use livekit_protocol::participant_info::Kind;
use tokio::sync::mpsc;

use crate::ids::IdKind;
use crate::token::Keys;
pub(crate) use pool::WorkerKey;
use pool::{Action, Pool, identity_of, room_of};

/// The most messages that wait for a worker. One with more is disconnected.
const MAX_WAITING: usize = 256;

/// The most dispatches of a room, and jobs that a dispatch remembers.
const MAX_DISPATCHES: usize = 256;
const MAX_JOBS: usize = 1_024;

/// A dispatch that was ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) dispatch: lk::AgentDispatch,
    /// The identities of the participants whose jobs were running.
    pub(crate) agents: Vec<String>,
}

/// The workers and what they have to do; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Agents(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    pool: Pool,
    workers: HashMap<WorkerKey, mpsc::Sender<lk::ServerMessage>>,
    /// The dispatches of rooms by their names.
    dispatches: HashMap<String, Vec<lk::AgentDispatch>>,
}

/// The connection of a worker.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) key: WorkerKey,
    /// The messages for it. Once they end, it has to be closed.
    pub(crate) messages: mpsc::Receiver<lk::ServerMessage>,
}

impl Agents {
    /// Returns the workers, none yet, with the description of this server.
    pub(crate) fn new(keys: Keys, server: lk::ServerInfo) -> Self {
        Agents(Arc::new(Mutex::new(State {
            pool: Pool::new(keys, server),
            ..State::default()
        })))
    }

    /// Adds a worker whose token is of this API key. Returns `None` if there are too many.
    pub(crate) fn connect(&self, key: &str) -> Option<Connection> {
        let mut state = self.state();
        let key = state.pool.connect(key, Instant::now())?;
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        state.workers.insert(key, sender);
        Some(Connection { key, messages })
    }

    /// Forgets a worker.
    pub(crate) fn disconnect(&self, worker: WorkerKey) {
        let mut state = self.state();
        state.workers.remove(&worker);
        let actions = state.pool.disconnect(worker, Instant::now());
        state.carry_out(actions);
    }

    /// Takes a message of a worker.
    pub(crate) fn message(&self, worker: WorkerKey, message: lk::WorkerMessage) {
        let mut state = self.state();
        let actions = state
            .pool
            .message(worker, message, Instant::now(), seconds());
        state.carry_out(actions);
    }

    /// Returns whether there are workers.
    pub(crate) fn is_used(&self) -> bool {
        !self.state().workers.is_empty()
    }

    /// Looks for workers that are silent.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        let actions = state.pool.tick(Instant::now());
        state.carry_out(actions);
    }

    /// Dispatches the agents of a room that begins. Without any, those that name no agent.
    pub(crate) fn room_started(&self, room: &lk::Room, agents: &[lk::RoomAgentDispatch]) {
        let nameless = [lk::RoomAgentDispatch::default()];
        let agents = if agents.is_empty() { &nameless } else { agents };
        let mut state = self.state();
        for agent in agents.iter().take(MAX_DISPATCHES) {
            let dispatch = lk::AgentDispatch {
                agent_name: agent.agent_name.clone(),
                metadata: agent.metadata.clone(),
                restart_policy: agent.restart_policy,
                deployment: agent.deployment.clone(),
                attributes: agent.attributes.clone(),
                ..new_dispatch(&room.name)
            };
            state.add(dispatch.clone());
            state.launch(JobType::JtRoom, &dispatch, room, None);
        }
    }

    /// Dispatches agents for a participant that has joined, or that publishes.
    pub(crate) fn participant(&self, kind: JobType, room: &lk::Room, of: &lk::ParticipantInfo) {
        if of.kind() == Kind::Agent {
            return;
        }
        let mut state = self.state();
        let dispatches = state.dispatches.get(&room.name).cloned();
        for dispatch in dispatches.unwrap_or_default() {
            state.launch(kind, &dispatch, room, Some(of));
        }
    }

    /// Ends the jobs of a room.
    pub(crate) fn room_finished(&self, name: &str) {
        let mut state = self.state();
        for dispatch in state.dispatches.remove(name).unwrap_or_default() {
            let actions = state.pool.terminate(&dispatch.id);
            state.carry_out(actions);
        }
    }

    /// Adds a dispatch to a room with these participants. Returns `None` if there are too many.
    pub(crate) fn dispatch(
        &self,
        request: lk::CreateAgentDispatchRequest,
        room: &lk::Room,
        people: &[lk::ParticipantInfo],
    ) -> Option<lk::AgentDispatch> {
        let dispatch = lk::AgentDispatch {
            agent_name: request.agent_name,
            metadata: request.metadata,
            restart_policy: request.restart_policy,
            deployment: request.deployment,
            attributes: request.attributes,
            ..new_dispatch(&room.name)
        };
        let mut state = self.state();
        if !state.add(dispatch.clone()) {
            return None;
        }
        state.launch(JobType::JtRoom, &dispatch, room, None);
        for person in people.iter().filter(|it| it.kind() != Kind::Agent) {
            if person.is_publisher {
                state.launch(JobType::JtPublisher, &dispatch, room, Some(person));
            }
            state.launch(JobType::JtParticipant, &dispatch, room, Some(person));
        }
        Some(dispatch)
    }

    /// Ends the jobs of an agent that has left a room.
    pub(crate) fn participant_left(&self, room: &str, identity: &str) {
        let mut state = self.state();
        let actions = state.pool.left(room, identity);
        state.carry_out(actions);
    }

    /// Ends a dispatch with its jobs. Returns `None` if there is no such dispatch.
    pub(crate) fn end_dispatch(&self, room: &str, id: &str) -> Option<Ended> {
        let mut state = self.state();
        let known = state.dispatches.get(room)?;
        known.iter().find(|it| it.id == id)?;
        let actions = state.pool.terminate(id);
        let identity = |action: &Action| match action {
            Action::Changed(job) => identity_of(job).map(str::to_owned),
            Action::Send(..) | Action::Close(_) => None,
        };
        let agents = actions.iter().filter_map(identity).collect();
        state.carry_out(actions);
        let dispatches = state.dispatches.get_mut(room)?;
        let index = dispatches.iter().position(|it| it.id == id)?;
        let dispatch = dispatches.remove(index);
        Some(Ended { dispatch, agents })
    }

    /// Returns the dispatches of a room, or the one with this id.
    pub(crate) fn dispatches(&self, room: &str, id: &str) -> Vec<lk::AgentDispatch> {
        let state = self.state();
        let all = state.dispatches.get(room).into_iter().flatten();
        all.filter(|it| id.is_empty() || it.id == id)
            .cloned()
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a dispatch. Returns `false` if its room has too many.
    fn add(&mut self, dispatch: lk::AgentDispatch) -> bool {
        let of_room = self.dispatches.entry(dispatch.room.clone()).or_default();
        let fits = of_room.len() < MAX_DISPATCHES;
        if fits {
            of_room.push(dispatch);
        }
        fits
    }

    /// Offers a job of a dispatch to the workers of its agent, once for each of their namespaces.
    fn launch(
        &mut self,
        kind: JobType,
        dispatch: &lk::AgentDispatch,
        room: &lk::Room,
        participant: Option<&lk::ParticipantInfo>,
    ) {
        for namespace in self.pool.namespaces(kind, &dispatch.agent_name) {
            #[expect(deprecated, reason = "workers of former versions have namespaces")]
            let job = lk::Job {
                id: IdKind::Job.random(),
                dispatch_id: dispatch.id.clone(),
                r#type: kind.into(),
                room: Some(room.clone()),
                participant: participant.cloned(),
                namespace,
                metadata: dispatch.metadata.clone(),
                agent_name: dispatch.agent_name.clone(),
                deployment: dispatch.deployment.clone(),
                attributes: dispatch.attributes.clone(),
                ..lk::Job::default()
            };
            let actions = self.pool.launch(job, Instant::now());
            self.carry_out(actions);
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(worker, message) => {
                    let sender = self.workers.get(&worker);
                    if sender.is_some_and(|it| it.try_send(message).is_err()) {
                        tracing::debug!(worker, "a worker does not read its messages");
                        self.workers.remove(&worker);
                    }
                }
                Action::Close(worker) => drop(self.workers.remove(&worker)),
                Action::Changed(job) => self.note(job),
            }
        }
    }

    /// Notes the state of a job in its dispatch.
    fn note(&mut self, job: lk::Job) {
        let dispatches = self.dispatches.get_mut(room_of(&job)).into_iter().flatten();
        for dispatch in dispatches.filter(|it| it.id == job.dispatch_id) {
            let jobs = &mut dispatch.state.get_or_insert_default().jobs;
            jobs.retain(|known| known.id != job.id);
            if jobs.len() < MAX_JOBS {
                jobs.push(job.clone());
            }
        }
    }
}

fn new_dispatch(room: &str) -> lk::AgentDispatch {
    lk::AgentDispatch {
        id: IdKind::Dispatch.random(),
        room: room.to_owned(),
        state: Some(lk::AgentDispatchState {
            created_at: nanos(),
            ..lk::AgentDispatchState::default()
        }),
        ..lk::AgentDispatch::default()
    }
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns the time in nanoseconds since 1970.
fn nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
