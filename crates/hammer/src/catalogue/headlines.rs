//! The figures that are quoted: published, of a peer here, and ours here.

use super::entries;
use super::figure::{Figure, Load, Y};
use super::measured::{self, Measured, of_step};
use super::peers::Peer;
use crate::figures::{count, digits};
use crate::record::{Criterion, best};

/// One row.
#[derive(Debug)]
pub(super) struct Headline {
    claim: &'static str,
    published: &'static str,
    /// The figure that shows it.
    pub(super) figure: &'static str,
    load: &'static str,
    value: Value,
}

/// What is quoted of a run.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// The one figure of a run, with a unit.
    One(Y, &'static str),
    /// A figure with its participants, at the most that was in time.
    AtMost(Y, &'static str),
}

/// A row as it was measured.
#[derive(Debug, serde::Serialize)]
pub(super) struct Row {
    pub(super) claim: &'static str,
    pub(super) figure: &'static str,
    pub(super) published: &'static str,
    /// The peers' names with their figures.
    pub(super) peer: Option<String>,
    pub(super) ours: Option<String>,
}

const fn line(
    claim: &'static str,
    published: &'static str,
    place: [&'static str; 2],
    value: Value,
) -> Headline {
    let [figure, load] = place;
    Headline {
        claim,
        published,
        figure,
        load,
        value,
    }
}

const HEADLINES: [Headline; 14] = [
    line(
        "viewers of one source of 2 Mbit/s",
        "Janus Streamer: 3.1 to 5.7 times Janus, by bit rate",
        ["viewers", "stream-2M"],
        Value::One(Y::Carried(1), ""),
    ),
    line(
        "CPU time of 2 Mbit/s to equally many viewers",
        "Janus Streamer: 37 % less than Janus",
        ["streamer-cpu", "stream-equal"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "10 publish, 140 watch: CPU time",
        "Janus, 2015: drawn only",
        ["janus-3", "videoroom-subscribers"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "audio bridge of 200: CPU time",
        "Janus, 2015: 11.7 of 16 cores",
        ["janus-5", "audiobridge"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "330 calls by SIP: CPU time",
        "Janus, 2015: 3.5 of 16 cores",
        ["janus-7", "sip-calls"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "audio conference of 20, mixed: CPU time",
        "Janus, 2015: mixing wins from 8 on",
        ["janus-10", "conference-mcu"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "33 who see each other, 1,056 streams: CPU time",
        "Jitsi Videobridge: 0.81 of 4 cores",
        ["jvb", "star"],
        Value::AtMost(Y::Cpu, "cores"),
    ),
    line(
        "participants in rooms of 8",
        "OpenVidu: mediasoup nearly twice Pion",
        ["openvidu-rooms", "rooms"],
        Value::One(Y::Carried(8), ""),
    ),
    line(
        "the same by LiveKit's protocol",
        "",
        ["livekit-door", "livekit-rooms"],
        Value::One(Y::Carried(8), ""),
    ),
    line(
        "joins for each second of CPU time",
        "",
        ["joins", "idle-viewers"],
        Value::One(Y::Joins, ""),
    ),
    line(
        "memory for one more viewer",
        "",
        ["memory", "idle-viewers"],
        Value::One(Y::MemoryEach, "KiB"),
    ),
    line(
        "delay of 99 of 100 packets, 100 sources",
        "",
        ["delay", "delay"],
        Value::AtMost(Y::Delay99, "ms"),
    ),
    line(
        "calls by SIP",
        "",
        ["telephony", "most-calls"],
        Value::One(Y::Carried(1), ""),
    ),
    line(
        "viewers on 4 nodes, times those of one server, by CPU time",
        "",
        ["cluster", "cluster-4"],
        Value::One(Y::TimesOne, ""),
    ),
];

/// Returns the rows for which something was measured.
pub(super) fn rows(measured: &Measured) -> Vec<Row> {
    let rows = HEADLINES.iter().filter_map(|headline| {
        let (figure, load) = (figure(headline)?, load(headline)?);
        let of = |peer| headline.value.of(load, measured, peer);
        let ours = of(Peer::Portunus);
        let others = figure.peers.iter().filter(|peer| **peer != Peer::Portunus);
        let others = others.filter_map(|peer| Some(format!("{}: {}", peer.title(), of(*peer)?)));
        let others: Vec<String> = others.collect();
        (ours.is_some() || !others.is_empty()).then(|| Row {
            claim: headline.claim,
            figure: headline.figure,
            published: headline.published,
            peer: (!others.is_empty()).then(|| others.join("; ")),
            ours,
        })
    });
    rows.collect()
}

fn figure(headline: &Headline) -> Option<&'static Figure> {
    entries::all().find(|figure| figure.name == headline.figure)
}

fn load(headline: &Headline) -> Option<&'static Load> {
    let mut loads = figure(headline)?.loads.iter().copied();
    loads.find(|load| load.name == headline.load)
}

impl Value {
    fn of(self, load: &'static Load, measured: &Measured, peer: Peer) -> Option<String> {
        let runs = measured.of(load, peer);
        match self {
            Self::One(y, unit) => {
                let value = measured::at(runs, y)?;
                let value = match y {
                    Y::Carried(_) | Y::Joins => count(value),
                    _ => digits(value),
                };
                Some(format!("{value} {unit}").trim_end().to_owned())
            }
            Self::AtMost(y, unit) => {
                let found = runs
                    .iter()
                    .rev()
                    .find_map(|run| Some((run, best(&run.steps, Criterion::InTime)?)));
                let Some((run, step)) = found else {
                    let some = runs.iter().any(|run| !run.steps.is_empty());
                    return some.then(|| "none in time".to_owned());
                };
                let value = digits(of_step(run, step, y)?);
                let with = count(f64::from(step.participants + load.besides));
                Some(format!("{value} {unit} with {with}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_headline_has_its_figure_and_load() {
        for headline in &HEADLINES {
            assert!(load(headline).is_some(), "{headline:?}");
        }
    }
}
