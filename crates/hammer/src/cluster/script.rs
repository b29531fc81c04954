//! The script of events: `--at 10 kill B --at 20 cut A-B --at 30 loss A-C 5%`.

use std::fmt;
use std::time::Duration;

use crate::machine::{PartsPerMillion, Station};
use crate::scenario::load;

/// The latest moment of an event, in seconds.
const LATEST_S: f64 = 86_400.0;

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cue {
    /// When it happens, since the start of the script.
    pub(super) at: Duration,
    pub(super) event: Event,
}

/// Something that happens to a node, a link or the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The node's process is killed.
    Kill(usize),
    /// The node is started again.
    Start(usize),
    /// The node's process stands still.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    /// The node takes no new clients, and hands its homes over.
    Drain(usize),
    /// It does so no longer.
    Undrain(usize),
    /// The link loses all packets.
    Cut(LinkPath),
    /// The link carries again.
    Heal(LinkPath),
    /// The link loses UDP, and so all media.
    CutMedia(LinkPath),
    /// It carries UDP again.
    HealMedia(LinkPath),
    /// The link has this delay from now on.
    Delay(LinkPath, Duration),
    /// The delay varies by so much.
    Jitter(LinkPath, Duration),
    /// The link loses this share of packets.
    Loss(LinkPath, PartsPerMillion),
    /// The bus is killed.
    StopBus,
    /// The bus is started again.
    StartBus,
}

impl Event {
    /// Returns whether it takes links that can delay and lose packets.
    pub(super) fn impairs(self) -> bool {
        matches!(self, Self::Delay(..) | Self::Jitter(..) | Self::Loss(..))
    }
}

/// A link, in both directions (`A-B`) or in one (`A>B`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkPath {
    from: Station,
    to: Station,
    is_one_way: bool,
}

impl LinkPath {
    /// Returns its directions, from one end to the other.
    pub(super) fn ways(self) -> impl Iterator<Item = (Station, Station)> {
        let back = (!self.is_one_way).then_some((self.to, self.from));
        std::iter::once((self.from, self.to)).chain(back)
    }
}

/// The script is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It does not begin with a time.
    #[error(
        "--at {0}: a time in seconds is expected first, 0 to 86,400, such as in --at 10 kill B"
    )]
    Time(String),
    /// There is no such event.
    #[error(
        "--at {0}: one of kill, start, pause, resume, drain and undrain with a node, cut, heal, cut-media and heal-media with two, delay, jitter and loss with two and a value, stop-bus and start-bus is expected"
    )]
    Event(String),
    /// The value of an event is none.
    #[error("--at {0}: milliseconds from 0 to 10,000 are expected, or percent from 0 to 100")]
    Value(String),
    /// There is no such node.
    #[error("--at {0}: there is no node {1}; nodes are A, B and so on, and the bus is bus")]
    Node(String, String),
    /// An event does not fit what happened before.
    #[error("--at {0}: {1}")]
    Order(String, &'static str),
}

/// Returns the name of a node.
pub(super) fn name(node: usize) -> String {
    let letter = u8::try_from(node)
        .ok()
        .and_then(|node| b'A'.checked_add(node));
    letter.map_or_else(String::new, |letter| char::from(letter).to_string())
}

impl fmt::Display for LinkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |station: Station| match station {
            Station::Node(node) => name(node),
            Station::Bus => "bus".to_owned(),
        };
        let between = if self.is_one_way { '>' } else { '-' };
        write!(f, "{}{between}{}", end(self.from), end(self.to))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        match self {
            Self::Kill(node) => write!(f, "kill {}", name(*node)),
            Self::Start(node) => write!(f, "start {}", name(*node)),
            Self::Pause(node) => write!(f, "pause {}", name(*node)),
            Self::Resume(node) => write!(f, "resume {}", name(*node)),
            Self::Drain(node) => write!(f, "drain {}", name(*node)),
            Self::Undrain(node) => write!(f, "undrain {}", name(*node)),
            Self::Cut(path) => write!(f, "cut {path}"),
            Self::Heal(path) => write!(f, "heal {path}"),
            Self::CutMedia(path) => write!(f, "cut-media {path}"),
            Self::HealMedia(path) => write!(f, "heal-media {path}"),
            Self::Delay(path, time) => write!(f, "delay {path} {}ms", ms(time)),
            Self::Jitter(path, time) => write!(f, "jitter {path} {}ms", ms(time)),
            Self::Loss(path, share) => write!(f, "loss {path} {share}"),
            Self::StopBus => f.write_str("stop-bus"),
            Self::StartBus => f.write_str("start-bus"),
        }
    }
}

/// Reads the words of all `--at` in their order, for so many nodes. Sorts the events by time.
pub(super) fn parse(words: &[String], nodes: usize) -> Result<Vec<Cue>, ScriptError> {
    // The words of an event may come as one.
    let words: Vec<&str> = words.iter().flat_map(|it| it.split_whitespace()).collect();
    let mut words = words.into_iter();
    let mut cues = Vec::new();
    while let Some(time) = words.next() {
        let at = time
            .parse::<f64>()
            .ok()
            .filter(|at| (0.0..=LATEST_S).contains(at));
        let at = at.ok_or_else(|| ScriptError::Time(time.to_owned()))?;
        let verb = words.next().unwrap_or_default();
        let event = match verb {
            "stop-bus" => Event::StopBus,
            "start-bus" => Event::StartBus,
            verb @ ("delay" | "jitter" | "loss") => {
                let (subject, value) = (words.next(), words.next());
                quality(verb, [subject, value].map(Option::unwrap_or_default), nodes)?
            }
            verb => of(verb, words.next().unwrap_or_default(), nodes)?,
        };
        let at = Duration::from_secs_f64(at);
        cues.push(Cue { at, event });
    }
    cues.sort_by_key(|cue| cue.at);
    check(&cues)?;
    Ok(cues)
}

/// Reads an event with its node or link.
fn of(verb: &str, subject: &str, nodes: usize) -> Result<Event, ScriptError> {
    let text = || format!("{verb} {subject}").trim_end().to_owned();
    let unknown = || ScriptError::Node(text(), subject.to_owned());
    let node = || node(subject, nodes).ok_or_else(unknown);
    let link = || path(subject, nodes).ok_or_else(unknown);
    match verb {
        "kill" => node().map(Event::Kill),
        "start" => node().map(Event::Start),
        "pause" => node().map(Event::Pause),
        "resume" => node().map(Event::Resume),
        "drain" => node().map(Event::Drain),
        "undrain" => node().map(Event::Undrain),
        "cut" => link().map(Event::Cut),
        "heal" => link().map(Event::Heal),
        "cut-media" => link().map(Event::CutMedia),
        "heal-media" => link().map(Event::HealMedia),
        _ => Err(ScriptError::Event(text())),
    }
}

/// Reads an event that changes what a link does to packets.
fn quality(verb: &str, [subject, value]: [&str; 2], nodes: usize) -> Result<Event, ScriptError> {
    let text = || format!("{verb} {subject} {value}").trim_end().to_owned();
    let path = path(subject, nodes);
    let path = path.ok_or_else(|| ScriptError::Node(text(), subject.to_owned()))?;
    let wrong = |_| ScriptError::Value(text());
    match verb {
        "delay" => Ok(Event::Delay(path, time(value).map_err(wrong)?)),
        "jitter" => Ok(Event::Jitter(path, time(value).map_err(wrong)?)),
        _ => {
            let percent = percent(value).map_err(wrong)?;
            Ok(Event::Loss(path, PartsPerMillion::of_percent(percent)))
        }
    }
}

/// Reads milliseconds, with their unit or without.
pub(super) fn milliseconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("ms").unwrap_or(text);
    let expected = "milliseconds from 0 to 10000 are expected";
    load::number(number, 0.0..=10_000.0, expected)
}

fn time(text: &str) -> Result<Duration, String> {
    milliseconds(text).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// Reads percent, with their sign or without.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    load::number(number, 0.0..=100.0, "percent from 0 to 100 are expected")
}

/// Returns the node with this name.
fn node(text: &str, nodes: usize) -> Option<usize> {
    (0..nodes).find(|node| name(*node).eq_ignore_ascii_case(text))
}

/// Reads a link, such as `A-B` or `A>bus`.
fn path(text: &str, nodes: usize) -> Option<LinkPath> {
    let end = |text: &str| match text {
        "bus" => Some(Station::Bus),
        text => node(text, nodes).map(Station::Node),
    };
    let (from, to) = text.split_once(['-', '>'])?;
    let path = LinkPath {
        from: end(from)?,
        to: end(to)?,
        is_one_way: text.contains('>'),
    };
    (path.from != path.to).then_some(path)
}

/// Checks that each event fits what happened before.
fn check(cues: &[Cue]) -> Result<(), ScriptError> {
    let (mut dead, mut paused) = (Vec::new(), Vec::new());
    let (mut cut, mut silent, mut has_bus) = (Vec::new(), Vec::new(), true);
    for Cue { event, .. } in cues {
        let wrong = |why| Err(ScriptError::Order(event.to_string(), why));
        match *event {
            Event::Kill(node) | Event::Pause(node) | Event::Drain(node) | Event::Undrain(node)
                if dead.contains(&node) =>
            {
                return wrong("it is dead");
            }
            Event::Start(node) if !dead.contains(&node) => return wrong("it runs"),
            Event::Resume(node) if !paused.contains(&node) => return wrong("it is not paused"),
            Event::Heal(path) if !path.ways().all(|way| cut.contains(&way)) => {
                return wrong("it is not cut");
            }
            Event::CutMedia(path) if path.ways().any(|way| silent.contains(&way)) => {
                return wrong("it is cut");
            }
            Event::HealMedia(path) if !path.ways().all(|way| silent.contains(&way)) => {
                return wrong("it is not cut");
            }
            Event::StopBus if !has_bus => return wrong("the bus is stopped"),
            Event::StartBus if has_bus => return wrong("the bus runs"),
            Event::Kill(node) => {
                dead.push(node);
                paused.retain(|it| *it != node);
            }
            Event::Start(node) => dead.retain(|it| *it != node),
            Event::Pause(node) => paused.push(node),
            Event::Resume(node) => paused.retain(|it| *it != node),
            Event::Cut(path) => cut.extend(path.ways()),
            Event::Heal(path) => cut.retain(|it| path.ways().all(|way| *it != way)),
            Event::CutMedia(path) => silent.extend(path.ways()),
            Event::HealMedia(path) => silent.retain(|it| path.ways().all(|way| *it != way)),
            // A drained node can be drained again.
            Event::Drain(_) | Event::Undrain(_) => {}
            Event::Delay(..) | Event::Jitter(..) | Event::Loss(..) => {}
            Event::StopBus => has_bus = false,
            Event::StartBus => has_bus = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn of_text(text: &str) -> Result<Vec<Cue>, ScriptError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse(&words, 4)
    }

    #[test]
    fn a_script_is_read_and_sorted_by_time() {
        let text = "20 cut A-B 10 kill d 25.5 heal b-A 30 stop-bus 40 start-bus 50 cut A-bus \
            60 delay A-B 50ms 61 loss A>c 2.5% 62 jitter B>bus 5 63 cut B>A 64 heal B>A \
            70 drain A 71 undrain a";
        let cues = of_text(text).unwrap();
        let events: Vec<String> = cues.iter().map(|cue| cue.event.to_string()).collect();
        let expected = [
            "kill D",
            "cut A-B",
            "heal B-A",
            "stop-bus",
            "start-bus",
            "cut A-bus",
            "delay A-B 50ms",
            "loss A>C 2.5%",
            "jitter B>bus 5ms",
            "cut B>A",
            "heal B>A",
            "drain A",
            "undrain A",
        ];
        assert_eq!(events, expected);
        assert_eq!(cues.get(2).unwrap().at, Duration::from_millis(25_500));
        // One word for each event is the same.
        let words = ["10 kill D".to_owned(), "20 cut A-B".to_owned()];
        assert_eq!(parse(&words, 4).unwrap().as_slice(), cues.get(..2).unwrap());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("soon kill B", "a time in seconds"),
            ("-1 kill B", "a time in seconds"),
            ("1 hug B", "one of kill"),
            ("1 kill E", "no node E"),
            ("1 kill", "no node"),
            ("1 cut A", "no node A"),
            ("1 cut A-A", "no node A-A"),
            ("1 heal A-B", "not cut"),
            ("1 heal-media A-B", "not cut"),
            ("1 cut-media A-B 2 cut-media B-A", "it is cut"),
            ("1 cut A>B 2 heal A-B", "not cut"),
            ("1 loss A-B", "percent"),
            ("1 loss A-B 101%", "percent"),
            ("1 delay A-B long", "milliseconds"),
            ("1 jitter A-E 5ms", "no node A-E"),
            ("1 kill B 2 pause B", "it is dead"),
            ("1 kill B 2 drain B", "it is dead"),
            ("1 start B", "it runs"),
            ("1 resume B", "not paused"),
            ("1 start-bus", "the bus runs"),
            ("1 stop-bus 2 stop-bus", "the bus is stopped"),
        ] {
            let error = of_text(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
