//! The event bus, from the sources of events to their subscribers. It never waits, and makes no
//! event without a subscriber.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::event::Emitter;
use super::subscription::Queue;
use super::{
    EventAddress, EventFilter, EventHandler, EventHandlerInfo, EventKind, EventMask, ServerEvent,
    Subscription, TweakError,
};
use crate::{Fields, PluginCounter};

/// How long the end of the server waits for handlers to process their events.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Publishes events; cheap to clone.
#[derive(Debug, Clone)]
pub struct EventBus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    emitter: Emitter,
    /// The kinds with subscribers.
    wanted: AtomicU16,
    published: AtomicU64,
    queues: RwLock<Vec<Arc<Queue>>>,
    handlers: Mutex<Vec<Running>>,
    /// The packages whose own events are disabled.
    muted: RwLock<Vec<&'static str>>,
}

/// A running handler.
struct Running {
    handler: Arc<dyn EventHandler>,
    queue: Arc<Queue>,
    /// False once it has ended or panicked.
    is_running: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Running {
    fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }
}

/// Notes the end of a handler, and logs it if it is a panic.
async fn watch(package: &'static str, task: JoinHandle<()>, is_running: Arc<AtomicBool>) {
    let ended = task.await;
    is_running.store(false, Ordering::Relaxed);
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!(
            handler = package,
            "an event handler has panicked, and gets no more events: restart the server, and please report it"
        );
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Running").field(&self.queue.name()).finish()
    }
}

/// The bus of a server without a name.
impl Default for EventBus {
    fn default() -> Self {
        EventBus::new("Portunus", false)
    }
}

impl EventBus {
    /// The bus of the server with this name. `string_ids`: ids are strings in JSON.
    pub fn new(emitter: &str, string_ids: bool) -> Self {
        let inner = Inner {
            emitter: Emitter {
                name: emitter.into(),
                string_ids,
            },
            wanted: AtomicU16::new(0),
            published: AtomicU64::new(0),
            queues: RwLock::default(),
            handlers: Mutex::default(),
            muted: RwLock::default(),
        };
        EventBus {
            inner: Arc::new(inner),
        }
    }

    /// Whether anyone subscribed to events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        let wanted = self.inner.wanted.load(Ordering::Relaxed);
        EventMask::from_bits(wanted).has(kind)
    }

    /// Publishes an event. `body` is called only if anyone subscribed, and serialized as JSON.
    pub fn publish<B: Serialize>(
        &self,
        kind: EventKind,
        subtype: Option<u8>,
        address: impl FnOnce() -> EventAddress,
        body: impl FnOnce() -> B,
    ) {
        if self.wants(kind) {
            let emitter = &self.inner.emitter;
            self.offer(emitter.event(kind, subtype, address(), &body()));
        }
    }

    fn offer(&self, event: ServerEvent) {
        let event = Arc::new(event);
        self.inner.published.fetch_add(1, Ordering::Relaxed);
        let mut late = Vec::new();
        for queue in self.inner.queues().iter() {
            if queue.offer(&event) {
                late.push(queue.clone());
            }
        }
        // Not under the lock, since logging can be slow.
        for queue in late {
            queue.log_loss();
        }
    }

    /// Subscribes from now on. At most `capacity` events wait. `name` appears in logs and metrics.
    pub fn subscribe(&self, name: &str, filter: EventFilter, capacity: usize) -> Subscription {
        let (queue, subscription) = self.queue(name, filter, capacity);
        self.inner.add(queue);
        subscription
    }

    /// Runs `handler` with the events of `filter`, on the running tokio runtime.
    pub fn start(&self, handler: Arc<dyn EventHandler>, filter: EventFilter, capacity: usize) {
        let package = handler.info().package;
        let (queue, subscription) = self.queue(package, filter, capacity);
        self.inner.add(queue.clone());
        let is_running = Arc::new(AtomicBool::new(true));
        let task = tokio::spawn(handler.clone().run(subscription));
        let task = tokio::spawn(watch(package, task, is_running.clone()));
        self.inner.handlers().push(Running {
            handler,
            queue,
            is_running,
            task: Some(task),
        });
    }

    fn queue(
        &self,
        name: &str,
        filter: EventFilter,
        capacity: usize,
    ) -> (Arc<Queue>, Subscription) {
        let queue = Arc::new(Queue::new(name, filter, capacity));
        let bus = Arc::downgrade(&self.inner);
        let emitter = self.inner.emitter.clone();
        let subscription = Subscription::new(queue.clone(), bus, emitter);
        (queue, subscription)
    }

    /// Returns the descriptions of all handlers.
    pub fn handlers(&self) -> Vec<EventHandlerInfo> {
        let handlers = self.inner.handlers();
        handlers.iter().map(|it| it.handler.info()).collect()
    }

    /// Answers an operator's request to the handler `package`. Returns `None` if there is no such
    /// handler.
    pub fn query(
        &self,
        package: &str,
        request: &Map<String, Value>,
    ) -> Option<Result<Value, TweakError>> {
        let found = {
            let handlers = self.inner.handlers();
            let is_meant = |running: &&Running| running.handler.info().package == package;
            let found = handlers.iter().find(is_meant);
            found.map(|it| (it.handler.clone(), it.queue.clone(), it.is_running()))
        };
        let (handler, queue, is_running) = found?;
        let members = Fields(request);
        Some(match members.required_string("request") {
            Ok("tweak") if !is_running => {
                let text = "The handler has ended: only a restart of the server helps";
                Err(TweakError::Other(text.to_owned()))
            }
            Ok("tweak") => self.tweak(&*handler, &queue, members),
            Ok(name) => handler.query(name, members).map(Value::from),
            Err(error) => Err(error.into()),
        })
    }

    fn tweak(
        &self,
        handler: &dyn EventHandler,
        queue: &Queue,
        members: Fields<'_>,
    ) -> Result<Value, TweakError> {
        let kinds = members.string("events")?.map(EventMask::lenient);
        handler.tweak(members)?;
        if let Some(kinds) = kinds {
            queue.set_kinds(kinds);
            self.inner.renew_wanted();
        }
        Ok(json!({ "result": 200 }))
    }

    /// Returns the counters of the bus and of all handlers.
    pub fn counters(&self) -> EventCounters {
        let handlers = self.inner.handlers();
        let of_handler = |running: &Running| HandlerCounters {
            package: running.handler.info().package,
            is_running: running.is_running(),
            dropped: running.queue.dropped(),
            waiting: running.queue.waiting(),
            own: running.handler.counters(),
        };
        EventCounters {
            published: self.inner.published.load(Ordering::Relaxed),
            handlers: handlers.iter().map(of_handler).collect(),
        }
    }

    /// Returns the interface by which the plugin `package` publishes events without a handle.
    pub fn of_plugin(&self, package: &'static str) -> PluginEvents {
        PluginEvents {
            bus: self.clone(),
            package,
        }
    }

    /// Disables or enables the own events of a plugin or transport.
    pub fn mute(&self, package: &'static str, muted: bool) {
        let all = self.inner.muted.write();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| *known != package);
        if muted {
            all.push(package);
        }
    }

    /// Whether the own events of a plugin or transport are disabled.
    pub fn is_muted(&self, package: &str) -> bool {
        let all = self.inner.muted.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.contains(&package)
    }

    /// Ends all subscriptions, and waits for a moment until the handlers have processed their
    /// events.
    pub async fn end(&self) {
        for queue in self.inner.queues().iter() {
            queue.end();
        }
        let tasks: Vec<_> = {
            let mut handlers = self.inner.handlers();
            handlers
                .iter_mut()
                .filter_map(|it| it.task.take())
                .collect()
        };
        let all = async {
            for task in tasks {
                // It only waits for the handler, and does not panic.
                let _ = task.await;
            }
        };
        if timeout(END_LIMIT, all).await.is_err() {
            tracing::warn!("some event handlers did not end within {END_LIMIT:?}");
        }
    }
}

/// The counters of the bus.
#[derive(Debug, Clone)]
pub struct EventCounters {
    /// Events with a subscriber.
    pub published: u64,
    /// The counters of each handler.
    pub handlers: Vec<HandlerCounters>,
}

/// The counters of a handler.
#[derive(Debug, Clone)]
pub struct HandlerCounters {
    /// Its package name.
    pub package: &'static str,
    /// Whether it takes events. False after a panic.
    pub is_running: bool,
    /// Events that it did not take in time.
    pub dropped: u64,
    /// Events that wait for it.
    pub waiting: usize,
    /// The handler's own counters.
    pub own: Vec<PluginCounter>,
}

impl Inner {
    fn add(&self, queue: Arc<Queue>) {
        self.change(|queues| queues.push(queue));
    }

    pub(super) fn remove(&self, queue: &Arc<Queue>) {
        self.change(|queues| queues.retain(|known| !Arc::ptr_eq(known, queue)));
    }

    /// Updates the bus after the filter of a queue has changed.
    pub(super) fn renew_wanted(&self) {
        self.change(|_| ());
    }

    /// Changes the queues and updates the wanted kinds under one lock, so that concurrent changes
    /// see each other.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Queue>>)) {
        let queues = self.queues.write();
        let mut queues = queues.unwrap_or_else(PoisonError::into_inner);
        change(&mut queues);
        let kinds = queues.iter().map(|queue| queue.filter().kinds);
        let wanted = kinds.fold(EventMask::NONE, EventMask::and);
        self.wanted.store(wanted.bits(), Ordering::Relaxed);
    }

    fn queues(&self) -> RwLockReadGuard<'_, Vec<Arc<Queue>>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn handlers(&self) -> MutexGuard<'_, Vec<Running>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes events of a plugin without a handle, such as a room created by an operator.
#[derive(Debug, Clone)]
pub struct PluginEvents {
    bus: EventBus,
    package: &'static str,
}

impl PluginEvents {
    /// Whether anyone subscribed to events of plugins.
    pub fn is_watched(&self) -> bool {
        self.bus.wants(EventKind::Plugins)
    }

    /// Publishes an event. `data` is called only if anyone subscribed.
    pub fn notify(&self, data: impl FnOnce() -> Value) {
        self.notify_at(
            || EventAddress {
                plugin: Some(self.package),
                ..EventAddress::default()
            },
            data,
        );
    }

    pub(crate) fn notify_at(
        &self,
        address: impl FnOnce() -> EventAddress,
        data: impl FnOnce() -> Value,
    ) {
        if self.bus.is_muted(self.package) {
            return;
        }
        let body = || OfPlugin {
            plugin: self.package,
            data: data(),
        };
        self.bus.publish(EventKind::Plugins, None, address, body);
    }
}

/// The body of a plugin's event.
#[derive(Serialize)]
struct OfPlugin {
    plugin: &'static str,
    data: Value,
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "a test fails by a panic"
    )]
    use super::*;

    fn publish(bus: &EventBus, kind: EventKind, n: u64) {
        bus.publish(kind, None, EventAddress::default, || json!({ "n": n }));
    }

    #[tokio::test]
    async fn a_subscriber_gets_the_kinds_that_it_wants_in_order() {
        let bus = EventBus::new("here", false);
        assert!(!bus.wants(EventKind::Sessions));
        let filter = EventFilter {
            kinds: "sessions,core".parse().unwrap(),
            plugins: Vec::new(),
        };
        let subscription = bus.subscribe("test", filter, 10);
        assert!(bus.wants(EventKind::Sessions) && !bus.wants(EventKind::Media));
        publish(&bus, EventKind::Sessions, 1);
        publish(&bus, EventKind::Media, 2);
        publish(&bus, EventKind::Core, 3);
        let first = subscription.recv().await.unwrap();
        let json = subscription.to_json(&first);
        assert_eq!(json["emitter"], "here");
        assert_eq!(json["type"], 1);
        assert_eq!(json["event"], json!({ "n": 1 }));
        assert_eq!(subscription.recv().await.unwrap().body(), json!({ "n": 3 }));
        drop(subscription);
        assert!(!bus.wants(EventKind::Sessions));
    }

    #[tokio::test]
    async fn who_is_late_loses_the_oldest_and_is_told_how_many() {
        let bus = EventBus::default();
        let subscription = bus.subscribe("late", EventFilter::ALL, 2);
        for n in 0..5 {
            publish(&bus, EventKind::Core, n);
        }
        let told = subscription.recv().await.unwrap();
        assert_eq!(told.body(), json!({ "status": "missed", "count": 3 }));
        assert_eq!(subscription.recv().await.unwrap().body(), json!({ "n": 3 }));
        assert_eq!(subscription.recv().await.unwrap().body(), json!({ "n": 4 }));
        assert_eq!(subscription.dropped(), 3);
        (0..2).for_each(|n| publish(&bus, EventKind::Core, n));
        subscription.keep(1);
        let told = subscription.recv().await.unwrap();
        assert_eq!(told.body(), json!({ "status": "missed", "count": 1 }));
        assert_eq!(subscription.recv().await.unwrap().body(), json!({ "n": 1 }));
        bus.end().await;
        subscription.over().await;
        assert_eq!(subscription.recv().await, None);
    }

    struct Idle;

    impl EventHandler for Idle {
        fn info(&self) -> EventHandlerInfo {
            EventHandlerInfo {
                package: "test.idle",
                name: "Idle",
                description: "Takes nothing.",
                version: 1,
                version_string: "1",
            }
        }

        fn run(self: Arc<Self>, events: Subscription) -> crate::events::Handling {
            Box::pin(async move {
                while !events.filter().kinds.has(EventKind::Core) {
                    tokio::task::yield_now().await;
                }
            })
        }

        fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
            Ok(members.boolean("grouping").map(drop)?)
        }
    }

    #[tokio::test]
    async fn a_tweak_changes_the_kinds_only_if_all_of_it_is_right() {
        let bus = EventBus::default();
        let filter = EventFilter {
            kinds: EventMask::NONE,
            plugins: Vec::new(),
        };
        bus.start(Arc::new(Idle), filter, 10);
        let ask = |request: Value| {
            let answer = bus.query("test.idle", request.as_object().unwrap());
            answer.unwrap().map_err(|error| error.code())
        };
        assert_eq!(ask(json!({})), Err(412));
        assert_eq!(ask(json!({ "request": 1 })), Err(413));
        assert_eq!(ask(json!({ "request": "status" })), Err(411));
        let wrong_kinds = json!({ "request": "tweak", "events": 7 });
        assert_eq!(ask(wrong_kinds), Err(413));
        let wrong_own = json!({ "request": "tweak", "events": "all", "grouping": "yes" });
        assert_eq!(ask(wrong_own), Err(413));
        assert!(!bus.wants(EventKind::Core));
        let right = json!({ "request": "tweak", "events": "core,unknown", "grouping": true });
        assert_eq!(ask(right), Ok(json!({ "result": 200 })));
        assert!(bus.wants(EventKind::Core) && !bus.wants(EventKind::Media));
        assert!(bus.query("test.none", &Map::new()).is_none());
    }

    /// Panics at the first event.
    struct Broken;

    impl EventHandler for Broken {
        fn info(&self) -> EventHandlerInfo {
            EventHandlerInfo {
                package: "test.broken",
                ..Idle.info()
            }
        }

        fn run(self: Arc<Self>, events: Subscription) -> crate::events::Handling {
            Box::pin(async move {
                events.recv().await;
                panic!("as told");
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_panics_is_told_and_cannot_be_changed() {
        let bus = EventBus::default();
        bus.start(Arc::new(Broken), EventFilter::ALL, 10);
        let is_running = || bus.counters().handlers[0].is_running;
        assert!(is_running());
        publish(&bus, EventKind::Core, 1);
        while is_running() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!bus.wants(EventKind::Core));
        let tweak = json!({ "request": "tweak", "events": "all" });
        let answer = bus.query("test.broken", tweak.as_object().unwrap());
        let code = answer.unwrap().map_err(|error| error.code());
        assert_eq!(code, Err(499));
        bus.end().await;
    }

    #[tokio::test]
    async fn events_of_other_plugins_are_left_out_and_those_of_none_are_not() {
        let bus = EventBus::default();
        let filter = EventFilter {
            kinds: EventMask::ALL,
            plugins: vec!["one".to_owned()],
        };
        let subscription = bus.subscribe("test", filter, 10);
        bus.of_plugin("two").notify(|| json!(2));
        bus.of_plugin("one").notify(|| json!(1));
        publish(&bus, EventKind::Core, 3);
        let next = subscription.recv().await.unwrap();
        assert_eq!(next.body(), json!({ "plugin": "one", "data": 1 }));
        assert_eq!(subscription.recv().await.unwrap().kind, EventKind::Core);
        bus.mute("one", true);
        bus.of_plugin("one").notify(|| json!(1));
        assert_eq!(subscription.try_recv(), None);
    }
}
