//! The task that owns an agent, its sockets and its clock.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::agent::{
    Agent, AgentEvent, Command, Counters, Load, Local, Output, ResolveError, ResolveId,
};
use crate::flow::Target;
use crate::locate::{Destination, LocateError, Reach};
use crate::message::Host;

use super::config::{Config, Listen, TlsFiles};
use super::error::StartError;
use super::locals::locals;
use super::resolver::Resolver;
use super::sockets::{Sockets, Told};
use super::tls::Tls;

/// The maximum number of events that wait for the owner. Beyond that, sockets are not read.
const EVENTS: usize = 4096;
/// The maximum number of names that are resolved at once. Beyond that, requests to names fail.
const RESOLUTIONS: usize = 1024;
/// The interval of updates of [`Endpoint::status`].
const STATUS: Duration = Duration::from_secs(1);

/// The status of an endpoint, at most a second old.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The counters of the agent.
    pub counters: Counters,
    /// The load of the agent.
    pub load: Load,
    /// Connections of TCP, TLS and WebSockets.
    pub connections: usize,
    /// Connections refused or closed for lack of room.
    pub refused_connections: u64,
}

/// A handle of an endpoint. When the last one is dropped, the endpoint ends, and all its sockets
/// are closed.
#[derive(Debug, Clone)]
pub struct Endpoint {
    commands: mpsc::UnboundedSender<Command>,
    shared: Arc<Shared>,
    tls: Tls,
}

#[derive(Debug, Default)]
struct Shared {
    open: OnceLock<Open>,
    status: Mutex<Status>,
}

/// The state of open sockets.
#[derive(Debug)]
struct Open {
    listening: Vec<Listen>,
    locals: Vec<Local>,
}

impl Endpoint {
    /// Binds all sockets, now or [when they are needed](Config::when_needed), and starts the task.
    /// The receiver gets all events. The endpoint stops if nobody reads them.
    ///
    /// # Errors
    /// A socket cannot be bound, or certificates cannot be used.
    pub fn start(config: Config) -> Result<(Self, mpsc::Receiver<AgentEvent>), StartError> {
        let sockets = Sockets::new(&config)?;
        let tls = sockets.tls();
        let (commands, asked) = mpsc::unbounded_channel();
        let (events, told) = mpsc::channel(EVENTS);
        let shared = Arc::new(Shared::default());
        let mut task = Task {
            is_mute: false,
            own_locals: config.agent.locals.clone(),
            public: config.public,
            agent: Agent::new(config.agent, Instant::now().into_std()),
            reach: sockets.reach(),
            sockets,
            resolver: Resolver::new(&config.name_servers),
            resolving: JoinSet::new(),
            events,
            shared: Arc::clone(&shared),
        };
        if !config.when_needed {
            task.open()?;
        }
        tokio::spawn(task.run(asked));
        let endpoint = Self {
            commands,
            shared,
            tls,
        };
        Ok((endpoint, told))
    }

    /// Reads certificates, keys and authorities for TLS again, for new connections. Returns whether
    /// the certificate has changed. Blocks.
    ///
    /// # Errors
    /// The files cannot be used. Nothing changes then.
    pub fn reload_tls(&self, files: &TlsFiles) -> Result<bool, StartError> {
        self.tls.reload(files)
    }

    /// Passes a command to the agent. All results are events.
    pub fn command(&self, command: Command) {
        // It fails only if the task is gone, whose events end then.
        let _ = self.commands.send(command);
    }

    /// Returns the listeners with their actual ports. Empty before sockets are needed.
    #[must_use]
    pub fn listening(&self) -> &[Listen] {
        let open = self.shared.open.get();
        open.map(|open| open.listening.as_slice())
            .unwrap_or_default()
    }

    /// Returns the hosts for Via and Contact.
    #[must_use]
    pub fn locals(&self) -> &[Local] {
        let open = self.shared.open.get();
        open.map(|open| open.locals.as_slice()).unwrap_or_default()
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct Task {
    /// The failure to open the sockets was logged.
    is_mute: bool,
    /// The hosts for Via and Contact beside those of listeners.
    own_locals: Vec<Local>,
    public: Option<Host>,
    agent: Agent,
    sockets: Sockets,
    reach: Reach,
    resolver: Resolver,
    resolving: JoinSet<(ResolveId, Result<Vec<Target>, ResolveError>)>,
    events: mpsc::Sender<AgentEvent>,
    shared: Arc<Shared>,
}

impl Task {
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<Command>) {
        let mut next_status = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_status {
                self.publish_status();
                next_status = now.checked_add(STATUS).unwrap_or(now);
            }
            let deadline = self
                .agent
                .deadline()
                .map_or(next_status, |at| next_status.min(at.into()));
            tokio::select! {
                command = asked.recv() => match command {
                    Some(command) => {
                        self.open_when_needed();
                        self.agent.command(time(), command);
                    }
                    None => return,
                },
                told = self.sockets.next() => match told {
                    Told::Message(flow, bytes) => self.agent.receive(time(), &flow, &bytes),
                    Told::Unreachable(transport, remote) => self.agent.unreachable(time(), transport, remote),
                    Told::Closed(flow) => self.agent.closed(time(), &flow),
                },
                Some(resolved) = self.resolving.join_next() => if let Ok((id, targets)) = resolved {
                    self.agent.resolved(time(), id, targets);
                },
                () = sleep_until(deadline) => {}
            }
            self.agent.timeout(time());
            if self.follow().await.is_err() {
                return;
            }
        }
    }

    /// Binds the sockets, and passes their addresses to the agent.
    fn open(&mut self) -> Result<(), StartError> {
        self.sockets.open()?;
        let listening = self.sockets.listening().to_vec();
        for listen in &listening {
            let (address, transport) = (listen.address, listen.transport.param());
            tracing::info!("SIP at {address}/{transport}");
        }
        let mut all = self.own_locals.clone();
        all.extend(locals(&listening, self.public.as_ref()));
        self.agent.set_locals(all.clone());
        self.reach = self.sockets.reach();
        let open = Open {
            listening,
            locals: all,
        };
        // It is opened once.
        let _ = self.shared.open.set(open);
        Ok(())
    }

    fn open_when_needed(&mut self) {
        if self.shared.open.get().is_none()
            && let Err(error) = self.open()
            && !std::mem::replace(&mut self.is_mute, true)
        {
            // Requests end with 503 until a later one finds the ports free.
            tracing::warn!(%error, "SIP cannot be spoken");
        }
    }

    /// Handles the outputs of the agent.
    async fn follow(&mut self) -> Result<(), mpsc::error::SendError<AgentEvent>> {
        while let Some(output) = self.agent.poll() {
            match output {
                Output::Transmit { route, bytes } => self.sockets.send(&route, bytes),
                Output::Resolve { id, destination } => self.resolve(id, destination),
                Output::Event(event) => self.events.send(event).await?,
            }
        }
        Ok(())
    }

    fn resolve(&mut self, id: ResolveId, destination: Destination) {
        if self.resolving.len() >= RESOLUTIONS && matches!(destination.host, Host::Name(_)) {
            self.agent.resolved(time(), id, Err(ResolveError::Dns));
            return;
        }
        let (resolver, reach) = (self.resolver.clone(), self.reach.clone());
        self.resolving.spawn(async move {
            let found = resolver.locate(destination, reach).await;
            let error = |error| match error {
                LocateError::Dns => ResolveError::Dns,
                LocateError::NoTransport => ResolveError::NoTransport,
            };
            (id, found.map_err(error))
        });
    }

    fn publish_status(&self) {
        let status = Status {
            counters: self.agent.counters(),
            load: self.agent.load(),
            connections: self.sockets.connections(),
            refused_connections: self.sockets.refused,
        };
        *self
            .shared
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = status;
    }
}

fn time() -> std::time::Instant {
    Instant::now().into_std()
}

#[cfg(test)]
mod tests;
