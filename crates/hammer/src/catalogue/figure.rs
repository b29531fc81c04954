//! The types of the catalogue: a figure, its loads, its plots, and what was published.

use super::peers::Peer;

/// A named figure.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The heading.
    pub(crate) title: &'static str,
    /// The evaluation that it is from.
    pub(crate) work: &'static Work,
    /// The load of the original.
    pub(crate) original: &'static str,
    /// How the load here differs.
    pub(crate) here: &'static str,
    /// The servers that it is about.
    pub(crate) peers: &'static [Peer],
    pub(crate) loads: &'static [&'static Load],
    pub(crate) plots: &'static [Plot],
    /// Why it cannot be measured yet, if so.
    pub(crate) missing: Option<&'static str>,
}

/// A published evaluation.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) title: &'static str,
    /// Where and when it was published.
    pub(crate) published: &'static str,
    /// The server and machine that it measured.
    pub(crate) machine: &'static str,
}

/// A scenario with its sizes. Figures that name the same load share its runs.
#[derive(Debug)]
pub(crate) struct Load {
    /// The name of its runs' files.
    pub(crate) name: &'static str,
    /// What tells it from other loads of a figure, in legends. Empty if there are none.
    pub(crate) label: &'static str,
    /// The scenario with its options, but without those of its size.
    pub(crate) scenario: &'static str,
    pub(crate) size: Size,
    /// Seconds that each number of participants is measured.
    pub(crate) duration: f64,
    /// The place on the horizontal axis of plots over another quantity than participants.
    pub(crate) at: f64,
    /// Participants that are there besides those that the scenario counts, such as publishers.
    pub(crate) besides: u32,
    pub(crate) needs: Needs,
}

/// The numbers of participants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    /// More and more, until they are not carried in time: to find the maximum.
    Search { full: Ramp, quick: Ramp },
    /// Equal steps up to a number, as far as they are carried in time.
    Steps { full: Ramp, quick: Ramp },
    /// These numbers, each by itself.
    Each {
        full: &'static [u32],
        quick: &'static [u32],
    },
}

/// The participants of a ramp. Peers that carry a tenth start with a tenth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ramp {
    pub(crate) step: u32,
    pub(crate) factor: f64,
    pub(crate) most: u32,
    /// 0 means not at all.
    pub(crate) bisect: u32,
}

/// What a load needs besides two cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Cores of the server.
    pub(crate) cores: usize,
    /// LiveKit's protocol, by which both servers are loaded.
    pub(crate) livekit: bool,
    /// A second Portunus that mixes.
    pub(crate) mixer: bool,
    /// A browser.
    pub(crate) browser: bool,
    /// The ceilings are measured as well.
    pub(crate) ceiling: bool,
    /// Several nodes and a bus: the load is one of `hammer cluster`.
    pub(crate) cluster: bool,
}

/// One plot of a figure.
#[derive(Debug)]
pub(crate) struct Plot {
    /// Its name in files.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) x: X,
    pub(crate) y: Y,
    pub(crate) shape: Shape,
    /// The loads that it shows, by their labels. Empty means all.
    pub(crate) of: &'static [&'static str],
    pub(crate) published: &'static [Published],
}

/// The horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum X {
    Participants,
    /// Streams of a star: K (K - 1).
    Streams,
    Seconds,
    /// [`Load::at`], with this meaning.
    At(&'static str),
    /// A bar for each server and load.
    Servers,
    /// A bar over time for each participant.
    Progression,
}

/// The vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Y {
    /// CPU cores of the server.
    Cpu,
    /// Its resident memory.
    Memory,
    /// The bandwidth of the link to the server.
    In,
    /// The same from the server.
    Out,
    /// Both together.
    Both,
    /// The delay of half of the packets.
    DelayHalf,
    /// The delay of 99 of 100 packets.
    Delay99,
    /// The longest gap of a participant.
    Gap,
    /// UDP payload that arrived, of the most that was carried in time.
    Throughput,
    /// The most participants in time, each counted so many times.
    Carried(u32),
    /// CPU time for each packet that arrived.
    CpuPerPacket,
    /// Joins for each second of CPU time.
    Joins,
    /// Memory for one more participant.
    MemoryEach,
    /// The viewers that all nodes of a cluster carry, of those of one server, by CPU time.
    TimesOne,
    /// What the way over another node adds to the delay of 99 of 100 packets.
    Hop,
    /// CPU time of a relayed source at its node, of that of a viewer.
    RelayCost,
    /// The time until people of a dead node are gone at the others.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Lines,
    Areas,
}

/// Published numbers.
#[derive(Debug)]
pub(crate) struct Published {
    /// What and where, as in a legend.
    pub(crate) label: &'static str,
    pub(crate) points: &'static [(f64, f64)],
}

impl Ramp {
    /// Equal steps.
    pub(crate) const fn by(step: u32, most: u32) -> Self {
        Self {
            step,
            factor: 1.0,
            most,
            bisect: 0,
        }
    }
}

impl Needs {
    pub(crate) const ONE_CORE: Self = Self {
        cores: 1,
        livekit: false,
        mixer: false,
        browser: false,
        ceiling: false,
        cluster: false,
    };
}

impl Y {
    /// Returns the name of the quantity with its unit.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU cores",
            Self::Memory => "resident memory, MiB",
            Self::In => "to the server, Mbit/s",
            Self::Out => "from the server, Mbit/s",
            Self::Both => "to and from the server, Mbit/s",
            Self::DelayHalf => "delay of half of the packets, ms",
            Self::Delay99 => "delay of 99 of 100 packets, ms",
            Self::Gap => "longest gap, ms",
            Self::Throughput => "carried in time, Gbit/s",
            Self::Carried(_) => "carried in time",
            Self::CpuPerPacket => "CPU time for each packet, us",
            Self::Joins => "joins for each second of CPU time",
            Self::MemoryEach => "memory for one more, KiB",
            Self::TimesOne => "times the viewers of one server",
            Self::Hop => "added to the delay of 99 of 100 packets, ms",
            Self::RelayCost => "CPU time of a relayed source, in viewers",
            Self::Gone => "gone at the other nodes after, s",
        }
    }
}

impl X {
    /// Returns the name of the quantity.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Participants => "participants",
            Self::Streams => "streams",
            Self::Seconds | Self::Progression => "seconds",
            Self::At(name) => name,
            Self::Servers => "server",
        }
    }
}
