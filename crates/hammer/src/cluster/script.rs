//! The script of events: `--at 10 kill B --at 20 cut A-B`.

use std::fmt;
use std::time::Duration;

use crate::machine::Station;

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
    /// The link loses all packets, in both directions.
    Cut(Station, Station),
    /// The link carries again.
    Heal(Station, Station),
    /// The link loses UDP, and so all media, in both directions.
    CutMedia(Station, Station),
    /// It carries UDP again.
    HealMedia(Station, Station),
    /// The bus is killed.
    StopBus,
    /// The bus is started again.
    StartBus,
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
        "--at {0}: one of kill, start, pause and resume with a node, cut, heal, cut-media and heal-media with two, stop-bus and start-bus is expected"
    )]
    Event(String),
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |station: &Station| match station {
            Station::Node(node) => name(*node),
            Station::Bus => "bus".to_owned(),
        };
        match self {
            Self::Kill(node) => write!(f, "kill {}", name(*node)),
            Self::Start(node) => write!(f, "start {}", name(*node)),
            Self::Pause(node) => write!(f, "pause {}", name(*node)),
            Self::Resume(node) => write!(f, "resume {}", name(*node)),
            Self::Cut(a, b) => write!(f, "cut {}-{}", end(a), end(b)),
            Self::Heal(a, b) => write!(f, "heal {}-{}", end(a), end(b)),
            Self::CutMedia(a, b) => write!(f, "cut-media {}-{}", end(a), end(b)),
            Self::HealMedia(a, b) => write!(f, "heal-media {}-{}", end(a), end(b)),
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
    let unknown = |what: &str| ScriptError::Node(text(), what.to_owned());
    let node = |what: &str| (0..nodes).find(|node| name(*node).eq_ignore_ascii_case(what));
    let end = |what: &str| match what {
        "bus" => Ok(Station::Bus),
        what => node(what).map(Station::Node).ok_or_else(|| unknown(what)),
    };
    let node = || node(subject).ok_or_else(|| unknown(subject));
    let link = || {
        let (a, b) = subject.split_once('-').ok_or_else(|| unknown(subject))?;
        let (a, b) = (end(a)?, end(b)?);
        match a == b {
            true => Err(unknown(subject)),
            false => Ok((a, b)),
        }
    };
    match verb {
        "kill" => node().map(Event::Kill),
        "start" => node().map(Event::Start),
        "pause" => node().map(Event::Pause),
        "resume" => node().map(Event::Resume),
        "cut" => link().map(|(a, b)| Event::Cut(a, b)),
        "heal" => link().map(|(a, b)| Event::Heal(a, b)),
        "cut-media" => link().map(|(a, b)| Event::CutMedia(a, b)),
        "heal-media" => link().map(|(a, b)| Event::HealMedia(a, b)),
        _ => Err(ScriptError::Event(text())),
    }
}

/// Checks that each event fits what happened before.
fn check(cues: &[Cue]) -> Result<(), ScriptError> {
    let (mut dead, mut paused) = (Vec::new(), Vec::new());
    let (mut cut, mut silent, mut has_bus) = (Vec::new(), Vec::new(), true);
    for Cue { event, .. } in cues {
        let wrong = |why| Err(ScriptError::Order(event.to_string(), why));
        match *event {
            Event::Kill(node) | Event::Pause(node) if dead.contains(&node) => {
                return wrong("it is dead");
            }
            Event::Start(node) if !dead.contains(&node) => return wrong("it runs"),
            Event::Resume(node) if !paused.contains(&node) => return wrong("it is not paused"),
            Event::Heal(a, b) if !cut.contains(&(a, b)) => return wrong("it is not cut"),
            Event::CutMedia(a, b) if silent.contains(&(a, b)) => return wrong("it is cut"),
            Event::HealMedia(a, b) if !silent.contains(&(a, b)) => return wrong("it is not cut"),
            Event::StopBus if !has_bus => return wrong("the bus is stopped"),
            Event::StartBus if has_bus => return wrong("the bus runs"),
            Event::Kill(node) => {
                dead.push(node);
                paused.retain(|it| *it != node);
            }
            Event::Start(node) => dead.retain(|it| *it != node),
            Event::Pause(node) => paused.push(node),
            Event::Resume(node) => paused.retain(|it| *it != node),
            Event::Cut(a, b) => cut.extend([(a, b), (b, a)]),
            Event::Heal(a, b) => cut.retain(|it| *it != (a, b) && *it != (b, a)),
            Event::CutMedia(a, b) => silent.extend([(a, b), (b, a)]),
            Event::HealMedia(a, b) => silent.retain(|it| *it != (a, b) && *it != (b, a)),
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
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        parse(&words, 4)
    }

    #[test]
    fn a_script_is_read_and_sorted_by_time() {
        let text = "20 cut A-B 10 kill d 25.5 heal b-A 30 stop-bus 40 start-bus 50 cut A-bus";
        let cues = of_text(text).unwrap();
        let events: Vec<String> = cues.iter().map(|cue| cue.event.to_string()).collect();
        let expected = [
            "kill D",
            "cut A-B",
            "heal B-A",
            "stop-bus",
            "start-bus",
            "cut A-bus",
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
            ("1 kill B 2 pause B", "it is dead"),
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
