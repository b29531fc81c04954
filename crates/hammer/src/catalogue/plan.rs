//! What is measured: the loads of the wanted figures, each once for each of their servers.

use std::path::Path;

use super::figure::{Figure, Load, Ramp, Size};
use super::peers::Peer;

/// The extent of all measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    /// Few and short steps.
    pub(super) quick: bool,
    /// A factor of all numbers of participants.
    pub(super) scale: f64,
}

/// One load against one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) load: &'static Load,
    pub(super) peer: Peer,
}

/// The options of `hammer lab` that are not those of a load.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) server_cores: &'a [usize],
    pub(super) load_cores: &'a [usize],
    /// A folder for recordings.
    pub(super) disk: &'a Path,
    /// The program of the second Portunus.
    pub(super) mixer: &'a str,
}

/// Returns the jobs of the figures, in their order, each once.
pub(super) fn jobs(figures: &[&'static Figure], peers: &[Peer]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for figure in figures {
        for load in figure.loads.iter().copied() {
            for peer in figure
                .peers
                .iter()
                .copied()
                .filter(|peer| peers.contains(peer))
            {
                let is_new = |job: &Job| job.load.name != load.name || job.peer != peer;
                if jobs.iter().all(is_new) {
                    jobs.push(Job { load, peer });
                }
            }
        }
    }
    jobs
}

impl Extent {
    /// Returns a number of participants, at least two: one alone hears and sees nobody.
    fn of(self, count: u32) -> u32 {
        (f64::from(count) * self.scale).round().max(2.0) as u32
    }

    /// Returns the ramp of a size, for a server that carries so many times less.
    fn ramp(self, ramp: Ramp, smaller_by: u32) -> Ramp {
        Ramp {
            step: self.of(ramp.step / smaller_by.max(1)),
            // A smaller start comes to the same end with as many steps more.
            factor: ramp.factor,
            most: self.of(ramp.most),
            bisect: match ramp.bisect {
                0 => 0,
                bisect => self.of(bisect / smaller_by.max(1)),
            },
        }
    }

    fn duration(self, load: &Load) -> f64 {
        match self.quick {
            true => 1.0,
            false => load.duration,
        }
    }

    fn settle(self) -> f64 {
        match self.quick {
            true => 0.3,
            false => 1.5,
        }
    }
}

impl Job {
    /// Returns the name of its files.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.load.name, self.peer.name())
    }

    /// Returns the scenarios with all options.
    pub(super) fn scenario(&self, extent: Extent) -> Vec<String> {
        let smaller_by = match self.load.size {
            Size::Search { .. } => self.peer.smaller_by(),
            _ => 1,
        };
        let (duration, settle) = (extent.duration(self.load), extent.settle());
        let base = format!(
            "{} --duration {duration} --settle {settle}",
            self.load.scenario
        );
        let line = match self.load.size {
            Size::Search { full, quick } | Size::Steps { full, quick } => {
                let chosen = if extent.quick { quick } else { full };
                let Ramp {
                    step,
                    factor,
                    most,
                    bisect,
                } = extent.ramp(chosen, smaller_by);
                let bisect = match bisect {
                    0 => String::new(),
                    bisect => format!(" --bisect {bisect}"),
                };
                format!("{base} --viewers {most} --ramp {step} --ramp-factor {factor}{bisect}")
            }
            Size::Each { full, quick } => {
                let chosen = if extent.quick { quick } else { full };
                let each = chosen.iter().map(|count| {
                    let count = extent.of(*count);
                    format!("{base} --viewers {count}")
                });
                each.collect::<Vec<_>>().join(" and ")
            }
        };
        line.split(' ').map(str::to_owned).collect()
    }

    /// Returns the name of the command of hammer that measures it.
    pub(super) fn command_name(&self) -> &'static str {
        match self.load.needs.cluster {
            true => "cluster",
            false => "lab",
        }
    }

    /// Returns the words that follow `hammer cluster`.
    fn cluster_words(
        &self,
        extent: Extent,
        place: &Place<'_>,
        command: &str,
        out: &Path,
    ) -> Vec<String> {
        let list = |cores: &[usize]| {
            let cores = cores.iter().map(usize::to_string);
            cores.collect::<Vec<_>>().join(",")
        };
        // The command of a node is a program without arguments.
        let program = shlex::split(command).and_then(|words| words.into_iter().next());
        let mut words = Vec::new();
        for (option, value) in [
            ("--server", program.unwrap_or_default()),
            ("--server-cores", list(place.server_cores)),
            ("--load-cores", list(place.load_cores)),
            ("--out", out.display().to_string()),
        ] {
            words.extend([option.to_owned(), value]);
        }
        // The scenario begins with the name of the command.
        words.extend(self.scenario(extent).into_iter().skip(1));
        words
    }

    /// Returns the words that follow the command of hammer.
    pub(super) fn words(
        &self,
        extent: Extent,
        place: &Place<'_>,
        command: &str,
        out: &Path,
    ) -> Vec<String> {
        let needs = self.load.needs;
        if needs.cluster {
            return self.cluster_words(extent, place, command, out);
        }
        let list = |cores: &[usize]| {
            let cores = cores.iter().take(needs.cores).map(usize::to_string);
            cores.collect::<Vec<_>>().join(",")
        };
        let all = |cores: &[usize]| {
            let cores = cores.iter().map(usize::to_string);
            cores.collect::<Vec<_>>().join(",")
        };
        let (name, out) = (self.peer.name(), out.display().to_string());
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("--server", format!("{name}={}", self.command(command)));
        if needs.livekit || self.peer == Peer::LiveKit {
            add("--livekit", format!("{name}=ws://{{ip}}:7880"));
        }
        add("--server-cores", list(place.server_cores));
        add("--load-cores", all(place.load_cores));
        // The bare loop is the same for all servers.
        let ceiling = match (needs.ceiling && self.peer == Peer::Portunus, extent.quick) {
            (false, _) => 0.0,
            (true, true) => 0.5,
            (true, false) => 3.0,
        };
        add("--ceiling", ceiling.to_string());
        add("--efficiency", "0".to_owned());
        add("--out", out);
        if needs.mixer {
            add(
                "--beside",
                format!("{} --config {{dir}}/portunus-mixer.toml", place.mixer),
            );
        }
        words.push("--".to_owned());
        let disk = place.disk.display().to_string();
        let scenario = self.scenario(extent).into_iter();
        words.extend(scenario.map(|word| word.replace("{disk}", &disk)));
        words
    }

    /// Returns the command of the lab's server.
    fn command(&self, command: &str) -> String {
        match (self.peer, self.load.needs.livekit) {
            (Peer::Portunus, false) => format!("{command} --config {{dir}}/portunus.toml"),
            (Peer::Portunus, true) => format!("{command} --config {{dir}}/portunus-livekit.toml"),
            _ => command.to_owned(),
        }
    }

    /// Returns about how long it takes, in seconds, if all its steps are carried.
    pub(super) fn seconds(&self, extent: Extent) -> f64 {
        let step = extent.duration(self.load) + extent.settle() + 1.0;
        if self.load.needs.cluster {
            // Six measurements, two starts, and the script.
            return 6.0 * step + 25.0;
        }
        let ceiling = match (
            self.load.needs.ceiling && self.peer == Peer::Portunus,
            extent.quick,
        ) {
            (false, _) => 0.0,
            (true, true) => 6.0,
            (true, false) => 25.0,
        };
        let steps = match self.load.size {
            Size::Each { full, quick } => {
                let count = if extent.quick { quick } else { full }.len();
                // A server is started for each.
                return count as f64 * (step + 2.0)
                    + if self.load.needs.browser { 40.0 } else { 0.0 };
            }
            Size::Steps { full, quick } => {
                let ramp = if extent.quick { quick } else { full };
                f64::from(ramp.most.div_ceil(ramp.step.max(1)))
            }
            Size::Search { full, quick } => {
                let ramp = if extent.quick { quick } else { full };
                let growth = f64::from(ramp.most) / f64::from(ramp.step.max(1));
                let climbing = (growth * (ramp.factor - 1.0) + 1.0).ln() / ramp.factor.ln();
                climbing.ceil() + if ramp.bisect > 0 { 4.0 } else { 0.0 }
            }
        };
        ceiling + 3.0 + steps * step
    }

    /// Returns why it does not fit, or `None` if it does.
    pub(super) fn does_not_fit(&self, cores: usize) -> Option<String> {
        let needs = self.load.needs;
        if needs.cores > cores {
            return Some(format!(
                "it takes {} cores for the server, and as many for the load: --server-cores has {cores}",
                needs.cores
            ));
        }
        let scenario = self.load.scenario.split(' ').next().unwrap_or_default();
        let rooms = matches!(scenario, "room" | "rooms" | "star");
        let speaks = match self.peer {
            Peer::Portunus => true,
            Peer::Janus => !needs.livekit,
            Peer::Mediasoup => rooms && !needs.livekit,
            Peer::LiveKit => rooms,
            Peer::Jvb => false,
        };
        (!speaks).then(|| format!("{} does not have what {scenario} needs", self.peer.title()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::catalogue::entries;
    use crate::{cluster, lab};

    const QUICK: Extent = Extent {
        quick: true,
        scale: 1.0,
    };

    #[test]
    fn each_job_is_a_lab_that_can_be_parsed() {
        let figures: Vec<_> = entries::all().collect();
        let place = Place {
            server_cores: &[0, 2],
            load_cores: &[1, 3],
            disk: Path::new("/tmp"),
            mixer: "portunus",
        };
        let jobs = jobs(&figures, &Peer::ALL);
        assert!(jobs.len() > 30, "{}", jobs.len());
        for extent in [
            QUICK,
            Extent {
                quick: false,
                scale: 0.01,
            },
        ] {
            for job in &jobs {
                let words = job.words(extent, &place, "server", Path::new("out"));
                match job.load.needs.cluster {
                    true => cluster::check(&cluster::Options::of(&words).unwrap()).unwrap(),
                    false => lab::check(&lab::Options::of(&words).unwrap()).unwrap(),
                }
                assert!(job.seconds(extent) > 0.0);
            }
        }
    }

    #[test]
    fn all_figures_in_quick_take_ten_minutes() {
        let figures: Vec<_> = entries::all().collect();
        let peers = [Peer::Portunus, Peer::Janus];
        let fitting = jobs(&figures, &peers).into_iter();
        let fitting = fitting.filter(|job| job.does_not_fit(1).is_none());
        let seconds: f64 = fitting.map(|job| job.seconds(QUICK)).sum();
        assert!(seconds < 600.0, "{seconds}");
    }

    #[test]
    fn figures_that_share_a_load_share_its_runs() {
        let of = |names: &[&str]| -> Vec<&'static Figure> {
            entries::all()
                .filter(|figure| names.contains(&figure.name))
                .collect()
        };
        let one = jobs(&of(&["janus-3"]), &[Peer::Portunus]).len();
        let two = jobs(&of(&["janus-3", "janus-4"]), &[Peer::Portunus]).len();
        assert_eq!(one, two);
    }
}
