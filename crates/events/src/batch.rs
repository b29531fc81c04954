//! Batches of events in the bodies of messages.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use portunus_core::events::Subscription;
use tokio::time::{Instant, sleep_until};

use portunus_core::JsonForm;

/// The limit of events in a batch.
pub(crate) const MAX_EVENTS: u64 = 100;

/// The size from which on a batch takes no further event. A body exceeds it by less than one event.
const MAX_BYTES: usize = 1 << 20;

/// The format of the events in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A single event.
    Single,
    /// A JSON array, even for one event.
    Array,
    /// Each on a line of its own, which ends with a line feed.
    Lines,
}

impl Layout {
    /// Returns the format of a handler with this `grouping`.
    pub(crate) const fn grouping(grouping: bool) -> Self {
        match grouping {
            true => Layout::Array,
            false => Layout::Single,
        }
    }

    /// Returns the bytes before the first event, between two, and after the last one.
    const fn marks(self) -> [&'static [u8]; 3] {
        match self {
            Layout::Single => [b"", b"", b""],
            Layout::Array => [b"[", b",", b"]"],
            Layout::Lines => [b"", b"\n", b"\n"],
        }
    }
}

/// A batch to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The events as JSON.
    pub(crate) body: Bytes,
    /// The number of events.
    pub(crate) events: u64,
}

/// Takes events from a subscription in batches, in their order.
#[derive(Debug)]
pub(crate) struct Batches {
    pause: Duration,
    next: Instant,
    /// The buffer of bodies. The next body reuses it once the last one is sent.
    body: BytesMut,
    /// The length of the last body, which is probably that of the next one.
    length: usize,
}

impl Batches {
    /// Returns an empty batch. `pause` is the least time between two batches, so that events in
    /// quick succession are sent together. It delays no full batch.
    pub(crate) fn new(pause: Duration) -> Self {
        Batches {
            pause,
            next: Instant::now(),
            body: BytesMut::new(),
            length: 0,
        }
    }

    /// Waits for an event and returns the next batch, or `None` after the last one. Cancel safe.
    pub(crate) async fn next(
        &mut self,
        events: &Subscription,
        layout: Layout,
        json: JsonForm,
    ) -> Option<Batch> {
        tokio::select! {
            () = sleep_until(self.next) => {}
            () = events.over() => {}
        }
        let first = events.recv().await?;
        let [before, between, after] = layout.marks();
        let body = &mut self.body;
        body.reserve(self.length);
        body.extend_from_slice(before);
        first.write(json, body.writer());
        let mut count: u64 = 1;
        let mut left = layout != Layout::Single;
        while left && count < MAX_EVENTS && body.len() < MAX_BYTES {
            match events.try_recv() {
                Some(event) => {
                    body.extend_from_slice(between);
                    event.write(json, body.writer());
                    count = count.saturating_add(1);
                }
                None => left = false,
            }
        }
        body.extend_from_slice(after);
        self.length = body.len();
        if layout != Layout::Single && !left {
            self.next = Instant::now().checked_add(self.pause).unwrap_or(self.next);
        }
        Some(Batch {
            body: body.split().freeze(),
            events: count,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_core::events::{EventAddress, EventBus, EventFilter, EventKind};
    use serde_json::{Value, json};

    use super::*;

    fn publish(bus: &EventBus, body: Value) {
        bus.publish(EventKind::Core, None, EventAddress::default, || body);
    }

    fn bus() -> (EventBus, Subscription) {
        let bus = EventBus::new("here", false);
        let subscription = bus.subscribe("test", EventFilter::ALL, 1_000);
        (bus, subscription)
    }

    fn numbers(batch: &Batch) -> Vec<u64> {
        let events: Vec<Value> = serde_json::from_slice(&batch.body).unwrap();
        assert_eq!(batch.events, events.len() as u64);
        let number = |event: &Value| event["event"]["n"].as_u64().unwrap();
        events.iter().map(number).collect()
    }

    const ARRAY: (Layout, JsonForm) = (Layout::Array, JsonForm::Compact);

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_one_array_of_at_most_a_hundred() {
        let (bus, events) = bus();
        let mut batches = Batches::new(Duration::from_millis(50));
        let begun = Instant::now();
        (0..230).for_each(|n| publish(&bus, json!({ "n": n })));
        let mut taken = Vec::new();
        for length in [100, 100, 30] {
            let batch = batches.next(&events, ARRAY.0, ARRAY.1).await.unwrap();
            let numbers = numbers(&batch);
            assert_eq!(numbers.len(), length);
            taken.extend(numbers);
        }
        assert!(taken.is_sorted());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        publish(&bus, json!({ "n": 230 }));
        let last = batches.next(&events, ARRAY.0, ARRAY.1).await.unwrap();
        assert_eq!(numbers(&last), [230]);
        assert!(begun.elapsed() >= Duration::from_millis(50));
        publish(&bus, json!({ "n": 231 }));
        bus.end().await;
        let ended = Instant::now();
        let last = batches.next(&events, ARRAY.0, ARRAY.1).await.unwrap();
        assert_eq!(numbers(&last), [231]);
        assert_eq!(ended.elapsed(), Duration::ZERO);
        assert_eq!(batches.next(&events, ARRAY.0, ARRAY.1).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_by_itself_is_an_object_and_waits_for_no_other() {
        let (bus, events) = bus();
        let mut batches = Batches::new(Duration::from_secs(1));
        let begun = Instant::now();
        (0..2).for_each(|n| publish(&bus, json!({ "n": n })));
        for n in 0..2 {
            let batch = batches.next(&events, Layout::Single, JsonForm::Plain).await;
            let event: Value = serde_json::from_slice(&batch.unwrap().body).unwrap();
            assert_eq!(event["event"]["n"], n);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_end_with_a_line_feed() {
        let (bus, events) = bus();
        let mut batches = Batches::new(Duration::ZERO);
        (0..3).for_each(|n| publish(&bus, json!({ "n": n, "text": "two\nlines" })));
        let batch = batches
            .next(&events, Layout::Lines, JsonForm::Compact)
            .await;
        let body = String::from_utf8(batch.unwrap().body.to_vec()).unwrap();
        assert!(body.ends_with('\n'));
        assert_eq!(body.lines().count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_bounded() {
        let (bus, events) = bus();
        let mut batches = Batches::new(Duration::ZERO);
        let large = "x".repeat(MAX_BYTES / 3);
        (0..10).for_each(|n| publish(&bus, json!({ "n": n, "large": large })));
        let batch = batches.next(&events, ARRAY.0, ARRAY.1).await.unwrap();
        assert_eq!(numbers(&batch), [0, 1, 2]);
    }
}
