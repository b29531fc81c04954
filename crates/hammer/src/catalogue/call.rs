//! One call: its jobs are worked off in turn, and each outcome is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::error::FiguresError;
use super::figure::Figure;
use super::measured::Measured;
use super::options::Options;
use super::peers::{Found, Peer};
use super::plan::{Extent, Job, Place, jobs};
use super::state::{Outcome, State};
use crate::cluster::{self, ClusterError};
use crate::lab::{self, LabError, Site};
use crate::record::{Report, RunRecord};

/// A call with all it has measured so far.
pub(super) struct Call<'a> {
    pub(super) options: &'a Options,
    pub(super) figures: Vec<&'static Figure>,
    pub(super) extent: Extent,
    /// The servers that can be started.
    pub(super) found: Vec<(Peer, Found)>,
    /// The servers that cannot be started, with the reasons.
    pub(super) not_found: Vec<(Peer, String)>,
    pub(super) jobs: Vec<Job>,
    pub(super) state: State,
    pub(super) measured: Measured,
}

impl<'a> Call<'a> {
    /// Finds the servers, and reads what an earlier call measured.
    pub(super) fn new(
        options: &'a Options,
        figures: Vec<&'static Figure>,
    ) -> Result<Self, FiguresError> {
        let write = |error| FiguresError::Write(format!("{}: {error}", options.out.display()));
        if options.fresh && options.out.join("state.json").exists() {
            fs::remove_file(options.out.join("state.json")).map_err(write)?;
        }
        for folder in ["runs", "logs", "disk"] {
            fs::create_dir_all(options.out.join(folder)).map_err(write)?;
        }
        let extent = Extent {
            quick: options.quick,
            scale: options.scale,
        };
        let setting = format!(
            "{}, scale {}, server on {:?}, load on {:?}, hammer {}",
            if extent.quick { "quick" } else { "full" },
            extent.scale,
            options.server_cores,
            options.load_cores,
            env!("CARGO_PKG_VERSION"),
        );
        let state = State::read(&options.out, setting).map_err(FiguresError::State)?;
        let mut call = Self {
            options,
            extent,
            found: Vec::new(),
            not_found: Vec::new(),
            jobs: jobs(&figures, &options.peers),
            figures,
            state,
            measured: Measured::default(),
        };
        call.find()?;
        Ok(call)
    }

    /// Finds or installs the servers that the figures are about.
    fn find(&mut self) -> Result<(), FiguresError> {
        let is_known = |name: &str| Peer::ALL.iter().any(|peer| peer.name() == name);
        for given in &self.options.commands {
            if !is_known(given.name()) {
                return Err(FiguresError::UnknownPeer(given.name().to_owned()));
            }
        }
        for peer in Peer::ALL {
            let asked = self.options.peers.contains(&peer)
                && self
                    .figures
                    .iter()
                    .any(|figure| figure.peers.contains(&peer));
            if !asked {
                continue;
            }
            let given = self
                .options
                .commands
                .iter()
                .find(|given| given.name() == peer.name());
            let found = match given {
                Some(given) => Ok(Found {
                    command: given.value().to_owned(),
                    version: format!("as started by {}", given.value()),
                }),
                None => peer.find(!self.options.no_install),
            };
            match found {
                Ok(found) => {
                    eprintln!("{}: {}", peer.title(), found.version);
                    let version = found.version.clone();
                    self.state.versions.insert(peer.title().to_owned(), version);
                    self.found.push((peer, found));
                }
                Err(reason) => {
                    eprintln!("{}: {reason}", peer.title());
                    self.not_found.push((peer, reason));
                }
            }
        }
        Ok(())
    }

    /// Returns why a job is not done, or its server.
    pub(super) fn server_of(&self, job: &Job) -> Result<&Found, String> {
        let reason = self.not_found.iter().find(|(peer, _)| *peer == job.peer);
        if let Some((_, reason)) = reason {
            return Err(reason.clone());
        }
        if let Some(reason) = job.does_not_fit(self.options.server_cores.len()) {
            return Err(reason);
        }
        if job.load.needs.browser && crate::browsers::Kind::Chromium.find().is_none() {
            return Err("there is no chromium in PATH".to_owned());
        }
        if job.load.needs.cluster {
            cluster::nats_server(None)?;
        }
        let found = self.found.iter().find(|(peer, _)| *peer == job.peer);
        found
            .map(|(_, found)| found)
            .ok_or_else(|| "it was not asked for".to_owned())
    }

    /// Works off all jobs that are not done.
    pub(super) fn work(&mut self) -> Result<(), FiguresError> {
        let jobs = self.jobs.clone();
        let fitting: Vec<(Job, Found)> = jobs
            .into_iter()
            .filter_map(|job| Some((job, self.server_of(&job).ok()?.clone())))
            .collect();
        let mut left: Vec<&(Job, Found)> = Vec::new();
        for pair in &fitting {
            match self.read(&pair.0) {
                true => {}
                false => left.push(pair),
            }
        }
        if left.len() < fitting.len() {
            eprintln!(
                "{} of {} are measured already",
                fitting.len() - left.len(),
                fitting.len()
            );
        }
        if left.is_empty() {
            return Ok(());
        }
        let site = Site::new()?;
        let mut expected: f64 = left.iter().map(|(job, _)| job.seconds(self.extent)).sum();
        let (mut spent, mut foreseen) = (0.0, 0.0);
        let count = left.len();
        for (number, (job, found)) in left.into_iter().enumerate() {
            // The pace so far says how right the estimate is.
            let pace: f64 = if foreseen > 20.0 {
                spent / foreseen
            } else {
                1.0
            };
            eprintln!(
                "[{} of {count}] {}, {}: about {} left",
                number + 1,
                job.load.name,
                job.peer.title(),
                duration(expected * pace)
            );
            let seconds = job.seconds(self.extent);
            let start = Instant::now();
            self.measure(job, found, &site)?;
            spent += start.elapsed().as_secs_f64();
            foreseen += seconds;
            expected -= seconds;
        }
        Ok(())
    }

    /// Measures one job, and notes the outcome. Only an interruption, or a state that cannot be
    /// written, is an error.
    fn measure(&mut self, job: &Job, found: &Found, site: &Site) -> Result<(), FiguresError> {
        let start = Instant::now();
        let folder = self.options.out.join("logs").join(job.name());
        let out = &self.options.out;
        let portunus = self.found.iter().find(|(peer, _)| *peer == Peer::Portunus);
        let place = Place {
            server_cores: &self.options.server_cores,
            load_cores: &self.options.load_cores,
            disk: &absolute(&out.join("disk")),
            mixer: portunus.map_or("portunus", |(_, found)| &found.command),
        };
        let words = job.words(self.extent, &place, &found.command, &folder);
        let command = shlex::try_join(words.iter().map(String::as_str));
        let measured = match job.load.needs.cluster {
            true => of_cluster(&words, site)?,
            false => of_lab(&words, site)?,
        };
        let failure = match measured {
            Ok(runs) => {
                let report = Report::new(job.name(), runs);
                let path = self.path(job);
                let written = report.write(&path);
                written
                    .map_err(|error| FiguresError::Write(format!("{}: {error}", path.display())))?;
                self.measured.add(job, report.runs);
                None
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = &failure {
            eprintln!("{}: {reason}", job.name());
        }
        let outcome = Outcome {
            command: format!(
                "portunus-hammer {} {}",
                job.command_name(),
                command.unwrap_or_default()
            ),
            seconds: start.elapsed().as_secs_f64(),
            failure,
        };
        self.state.done.insert(job.name(), outcome);
        self.state.write(out).map_err(FiguresError::State)
    }

    /// Reads the runs of a job that is done. A failed one is measured again.
    fn read(&mut self, job: &Job) -> bool {
        let done = self.state.done.get(&job.name());
        if done.is_none_or(|outcome| outcome.failure.is_some()) {
            return false;
        }
        let Ok(report) = Report::read(&self.path(job)) else {
            return false;
        };
        self.measured.add(job, report.runs);
        true
    }

    fn path(&self, job: &Job) -> PathBuf {
        let file = format!("{}.json", job.name());
        self.options.out.join("runs").join(file)
    }
}

/// The runs of a job, or why there are none.
type Runs = Result<Vec<RunRecord>, String>;

/// Runs what follows `hammer lab`. Only an interruption is an error.
fn of_lab(words: &[String], site: &Site) -> Result<Runs, FiguresError> {
    let options = match lab::Options::of(words) {
        Ok(options) => options,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match lab::runs(&options, site) {
        Err(error @ LabError::Interrupted) => Err(error.into()),
        outcome => Ok(outcome.map_err(|error| error.to_string())),
    }
}

/// Runs what follows `hammer cluster`. Only an interruption is an error.
fn of_cluster(words: &[String], site: &Site) -> Result<Runs, FiguresError> {
    let options = match cluster::Options::of(words) {
        Ok(options) => options,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match cluster::measure(&options, site.interrupted()) {
        Ok(run) => Ok(Ok(vec![run])),
        Err(ClusterError::Interrupted) => Err(LabError::Interrupted.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Formats a time that is left.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} s", s.max(0.0)),
        s => format!("{:.0} min", s / 60.0),
    }
}
