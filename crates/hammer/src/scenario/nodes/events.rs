//! Publishers and viewers at all nodes while nodes and links fail by script.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::feeds::Feeds;
use super::seat::Seat;
use super::{Demand, Place};
use crate::client::plugin_data;
use crate::record::{Act as ActRecord, Losses, News, Notice};
use crate::scenario::ScenarioError;
use crate::scenario::crowd::{Act, Audience, Feed, Form, Member};
use crate::scenario::plugins::videoroom::{self, VIDEOROOM};
use crate::viewer::{PeerId, Standing};

/// How often viewers are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A viewer without a packet for this long is affected.
const GAP: Duration = Duration::from_millis(500);
/// The longest time until a node knows the publishers of the others.
const KNOWN: Duration = Duration::from_secs(30);
/// How often a viewer tries to join.
const TRY: Duration = Duration::from_millis(200);

/// An event of the script.
#[derive(Debug, Clone)]
pub(crate) struct Cue {
    /// When it is due, since the start.
    pub(crate) at: Duration,
    /// The event, as reports call it.
    pub(crate) event: String,
}

/// Plays a script, and watches until `end`. `act` does the event with this index.
pub(crate) async fn play(
    places: &[Place],
    demand: &Demand,
    (cues, end): (&[Cue], Duration),
    act: &mut dyn FnMut(usize) -> Result<(), String>,
) -> Result<Vec<ActRecord>, ScenarioError> {
    let mut scene = Scene::set(places, demand).await?;
    sleep(demand.settle).await;
    let start = Instant::now();
    // What was there before counts for nobody.
    scene.look(start).await;
    let mut spans = vec![Span::new("start", Duration::ZERO, &scene)];
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut left = cues.iter().enumerate().peekable();
    loop {
        ticks.tick().await;
        let seen = scene.look(Instant::now()).await;
        if let Some(span) = spans.last_mut() {
            span.add(&seen);
        }
        let now = start.elapsed();
        while let Some((index, cue)) = left.next_if(|(_, cue)| cue.at <= now) {
            let at = start.elapsed();
            let failure = act(index).err();
            let mut span = Span::new(&cue.event, at, &scene);
            span.failure = failure;
            spans.push(span);
        }
        if now >= end {
            break;
        }
    }
    let ends = spans.iter().skip(1).map(|span| span.at);
    let ends: Vec<Duration> = ends.chain([start.elapsed()]).collect();
    let told = scene.told(start);
    let spans = spans.into_iter().zip(ends);
    let acts = spans.map(|(span, end)| span.into_record(end, &scene, &told));
    Ok(acts.collect())
}

/// All who publish and watch.
struct Scene {
    seats: Vec<Seat>,
    groups: Vec<Group>,
    viewers: Vec<Viewer>,
    /// The nodes of publishers, by the ids of these.
    publishers: HashMap<String, usize>,
    news: UnboundedReceiver<Heard>,
    feeds: Feeds,
    /// Who publishes, until the end.
    _members: Vec<Member>,
}

/// The viewers of one source at one node.
struct Group {
    seat: usize,
    watched: String,
}

struct Viewer {
    group: usize,
    id: PeerId,
    lost: i64,
    /// When its last packet arrived.
    last: Instant,
}

/// Something that somebody in the room was told.
#[derive(Debug, Clone)]
struct Heard {
    at: Instant,
    seat: usize,
    publisher: Value,
    news: News,
}

/// The same, since the start and of the publisher of a node.
struct Told {
    at: Duration,
    seat: usize,
    of: usize,
    news: News,
}

/// What was seen of a viewer.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Packets that it newly misses.
    lost: i64,
    /// The longest wait for a packet that has come.
    longest: Duration,
    /// The time since its last packet.
    silent: Duration,
}

/// The time from one event to the next.
struct Span {
    event: String,
    at: Duration,
    failure: Option<String>,
    /// By viewer.
    seen: Vec<Seen>,
}

impl Scene {
    async fn set(places: &[Place], demand: &Demand) -> Result<Self, ScenarioError> {
        let mut seats = Vec::new();
        for place in places {
            seats.push(Seat::open(place, demand, 1.0).await?);
        }
        let none = || ScenarioError::Nobody("there is no node".to_owned());
        let feeds = Feeds::start(seats.first().ok_or_else(none)?, demand, 1).await?;
        let room = json!(demand.room);
        let config = demand.media.source();
        let (mut members, mut published) = (Vec::new(), Vec::new());
        for seat in &seats {
            let (member, feed) = seat.crowd.publish_in(&room, &config).await?;
            members.push(member);
            published.push(feed);
        }
        let ids = published.iter().enumerate();
        let publishers = ids.map(|(node, feed)| (feed.id().to_string(), node));
        let publishers = publishers.collect();
        let (to, news) = unbounded_channel();
        for (index, seat) in seats.iter().enumerate() {
            listen(index, seat, &room, to.clone()).await?;
        }
        let mut scene = Self {
            seats,
            groups: Vec::new(),
            viewers: Vec::new(),
            publishers,
            news,
            feeds,
            _members: members,
        };
        scene.seat_all(&room, &published, demand.guests).await?;
        Ok(scene)
    }

    /// Seats the viewers of the mountpoint and of all publishers at each node.
    async fn seat_all(
        &mut self,
        room: &Value,
        published: &[Feed],
        guests: u32,
    ) -> Result<(), ScenarioError> {
        let first = self.seats.first().map(|seat| seat.name.clone());
        let mountpoint = format!("mountpoint of {}", first.unwrap_or_default());
        for (index, seat) in self.seats.iter().enumerate() {
            self.feeds.known_at(seat).await?;
            let mut watched = vec![(mountpoint.clone(), self.feeds.acts(seat))];
            for (from, feed) in self.seats.iter().zip(published) {
                let feed = match from.name == seat.name {
                    true => feed.clone(),
                    false => seat.crowd.adopt(feed),
                };
                let audience = Audience {
                    room: room.clone(),
                    feeds: vec![feed],
                    form: Form::PerFeed,
                };
                let acts = vec![Act::Subscribe(Arc::new(audience))];
                watched.push((format!("{}'s publisher", from.name), acts));
            }
            for (name, acts) in watched {
                let before = seat.crowd.peers();
                for _ in 0..guests {
                    join_patiently(seat, &acts).await?;
                }
                let new: BTreeSet<PeerId> = seat.crowd.peers();
                let group = self.groups.len();
                let new = new.difference(&before).map(|id| Viewer {
                    group,
                    id: *id,
                    lost: 0,
                    last: Instant::now(),
                });
                self.viewers.extend(new);
                self.groups.push(Group {
                    seat: index,
                    watched: name,
                });
            }
        }
        Ok(())
    }

    /// Looks at all viewers. Returns what is new of each.
    async fn look(&mut self, now: Instant) -> Vec<Seen> {
        let mut standings: Vec<HashMap<PeerId, Standing>> = Vec::new();
        for seat in &self.seats {
            let of_seat = seat.crowd.load().standings().await;
            standings.push(of_seat.into_iter().map(|it| (it.id, it)).collect());
        }
        let groups = &self.groups;
        let looks = self.viewers.iter_mut().map(|viewer| {
            let seat = groups.get(viewer.group).map(|group| group.seat);
            let of_seat = seat.and_then(|seat| standings.get(seat));
            // A viewer that was ended gets nothing any more.
            let Some(standing) = of_seat.and_then(|all| all.get(&viewer.id)) else {
                return Seen {
                    silent: now.saturating_duration_since(viewer.last),
                    ..Seen::default()
                };
            };
            let silent = standing.silent.unwrap_or_default();
            viewer.last = now.checked_sub(silent).unwrap_or(now);
            let lost = standing.lost.unwrap_or(0);
            Seen {
                lost: lost - std::mem::replace(&mut viewer.lost, lost),
                longest: standing.longest_wait.unwrap_or_default(),
                silent,
            }
        });
        looks.collect()
    }

    /// Returns what people in the room were told of publishers since `start`.
    fn told(&mut self, start: Instant) -> Vec<Told> {
        let mut all = Vec::new();
        while let Ok(heard) = self.news.try_recv() {
            let at = heard.at.checked_duration_since(start);
            let of = self.publishers.get(&heard.publisher.to_string());
            all.extend(at.zip(of).map(|(at, of)| Told {
                at,
                seat: heard.seat,
                of: *of,
                news: heard.news,
            }));
        }
        all.sort_by_key(|told| told.at);
        all
    }

    fn name(&self, seat: usize) -> String {
        self.seats
            .get(seat)
            .map_or_else(String::new, |seat| seat.name.clone())
    }
}

/// Lets one viewer join as soon as its node knows what it watches.
async fn join_patiently(seat: &Seat, acts: &[Act]) -> Result<(), ScenarioError> {
    let begin = Instant::now();
    loop {
        match seat.join(acts.to_vec(), 1, 1).await {
            Ok(_) => return Ok(()),
            Err(error) if begin.elapsed() > KNOWN => return Err(error),
            Err(_) => sleep(TRY).await,
        }
    }
}

/// Joins the room without publishing, and tells what it hears of publishers.
async fn listen(
    index: usize,
    seat: &Seat,
    room: &Value,
    to: UnboundedSender<Heard>,
) -> Result<(), ScenarioError> {
    let session = seat.connection()?.create().await?;
    let mut handle = session.attach(VIDEOROOM).await?;
    videoroom::join(&handle, room).await?;
    tokio::spawn(async move {
        while let Some(event) = handle.events.recv().await {
            let at = Instant::now();
            let data = plugin_data(&event);
            let left = data.get("leaving").map(|id| (News::Left, id.clone()));
            let all = data.get("publishers").and_then(Value::as_array);
            let new = all.into_iter().flatten();
            let new = new.filter_map(|it| Some((News::Announced, it.get("id")?.clone())));
            for (news, publisher) in left.into_iter().chain(new) {
                let heard = Heard {
                    at,
                    seat: index,
                    publisher,
                    news,
                };
                // The script may have ended.
                let _ = to.send(heard);
            }
        }
    });
    Ok(())
}

impl Span {
    fn new(event: &str, at: Duration, scene: &Scene) -> Self {
        Self {
            event: event.to_owned(),
            at,
            failure: None,
            seen: vec![Seen::default(); scene.viewers.len()],
        }
    }

    fn add(&mut self, seen: &[Seen]) {
        for (all, new) in self.seen.iter_mut().zip(seen) {
            all.lost += new.lost;
            all.longest = all.longest.max(new.longest);
            // A source that pauses makes silence, too: only what lasts until the end counts.
            all.silent = new.silent;
        }
    }

    fn into_record(self, end: Duration, scene: &Scene, told: &[Told]) -> ActRecord {
        let groups = scene.groups.iter().enumerate();
        let losses = groups.filter_map(|(index, group)| {
            let all = scene.viewers.iter().zip(&self.seen);
            let of_group = all.filter(|(viewer, _)| viewer.group == index);
            let of_group: Vec<Seen> = of_group.map(|(_, seen)| *seen).collect();
            let watched = (scene.name(group.seat), group.watched.clone());
            losses(watched, &of_group)
        });
        let within = told
            .iter()
            .filter(|told| told.at >= self.at && told.at < end);
        let notices = within.map(|told| Notice {
            node: scene.name(told.seat),
            of: scene.name(told.of),
            news: told.news,
            after_s: told.at.saturating_sub(self.at).as_secs_f64(),
        });
        ActRecord {
            at_s: self.at.as_secs_f64(),
            until_s: end.as_secs_f64(),
            viewers: scene.viewers.len() as u32,
            losses: losses.collect(),
            notices: notices.collect(),
            event: self.event,
            failure: self.failure,
        }
    }
}

/// Returns what viewers of one source lost. `None` if it is nothing.
fn losses((node, watched): (String, String), seen: &[Seen]) -> Option<Losses> {
    let waited = |seen: &Seen| seen.longest.max(seen.silent);
    let affected = |seen: &&Seen| seen.lost > 0 || waited(seen) >= GAP;
    let affected = seen.iter().filter(affected).count();
    let lost = seen.iter().filter_map(|seen| u64::try_from(seen.lost).ok());
    let longest = seen.iter().map(waited).max();
    (affected > 0).then(|| Losses {
        node,
        watched,
        viewers: seen.len() as u32,
        affected: affected as u32,
        lost_packets: lost.sum(),
        longest_gap_ms: longest.unwrap_or_default().as_secs_f64() * 1e3,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn who_lost_packets_or_waited_long_is_named() {
        let ms = Duration::from_millis;
        let seen = |lost, longest, silent| Seen {
            lost,
            longest: ms(longest),
            silent: ms(silent),
        };
        let of = |seen: &[Seen]| losses(("B".to_owned(), "x".to_owned()), seen);
        assert_eq!(of(&[seen(0, 120, 20), seen(-1, 0, 499)]), None);
        let found = [
            seen(0, 100, 0),
            seen(3, 60, 0),
            seen(0, 900, 0),
            seen(0, 0, 800),
        ];
        let found = of(&found).unwrap();
        assert_eq!(
            (found.viewers, found.affected, found.lost_packets),
            (4, 3, 3)
        );
        assert!((found.longest_gap_ms - 900.0).abs() < 1e-9);
    }
}
