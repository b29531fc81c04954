//! The viewers at one node.

use std::time::Duration;

use tokio::time::sleep;

use super::{Demand, Place};
use crate::client::Connection;
use crate::machine::Addresses;
use crate::machine::usage::{self, Sampler};
use crate::scenario::ScenarioError;
use crate::scenario::crowd::{Act, Crowd, Manners, Pace};
use crate::scenario::target::{Target, Way};
use crate::viewer::{Factory, Findings, LoadThreads};

/// The connections that the viewers of a node share.
const CONNECTIONS: u32 = 4;

/// The viewers at one node, and the watcher of its process.
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) crowd: Crowd,
    pub(super) connections: Vec<Connection>,
    pub(super) way: Way,
    sampler: Sampler,
}

/// What a node did in a time, and what its viewers got.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) length_s: f64,
    /// CPU time of its process, if that runs.
    pub(super) cpu_cores: Option<f64>,
    pub(super) viewers: u32,
    pub(super) expected: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// What the viewers that decrypt found.
    pub(super) findings: Findings,
}

impl Seat {
    /// Connects to a node. Nobody watches yet. `check_share` of the viewers will decrypt.
    pub(super) async fn open(
        place: &Place,
        demand: &Demand,
        check_share: f64,
    ) -> Result<Self, ScenarioError> {
        let target = Target {
            janus: place.url.clone(),
            api_secret: Some(demand.api_secret.clone()),
            token: None,
            insecure: false,
            name: Some(place.name.clone()),
            local: None,
            connections: CONNECTIONS,
            profile: None,
        };
        let connections = target.connect().await?;
        let way = target.way_to(&place.url)?;
        let sampler = Sampler::new(usage::Options {
            server_pid: Some(place.pid),
            ..usage::Options::default()
        })?;
        let factory = Factory::new(way.local, target.profiles(), false)?;
        // The ports of threads differ, so crowds may use the same addresses.
        let addresses = (!demand.own_sockets).then_some(Addresses::LAB);
        let threads = LoadThreads::start(1, addresses, false);
        let (threads, events) = threads.map_err(ScenarioError::Load)?;
        let manners = Manners {
            trust: target.trust(),
            check_share,
            reports: true,
            limit: None,
        };
        let crowd = Crowd::new(threads, events, factory, connections.clone(), manners);
        Ok(Self {
            name: place.name.clone(),
            crowd,
            connections,
            way,
            sampler,
        })
    }

    /// Returns one of the connections.
    pub(super) fn connection(&self) -> Result<&Connection, ScenarioError> {
        let none = || ScenarioError::Nobody("there is no connection to the server".to_owned());
        self.connections.first().ok_or_else(none)
    }

    /// Lets viewers join, which take turns at `acts`. Returns the times until their first packets,
    /// in µs.
    pub(super) async fn join(
        &self,
        acts: Vec<Act>,
        count: u32,
        at_a_time: usize,
    ) -> Result<Vec<f64>, ScenarioError> {
        let pace = Pace {
            per_s: 0.0,
            at_a_time,
            at_most: None,
        };
        self.crowd.join(&acts.into(), count as usize, pace).await;
        let joins = self.crowd.take_joins();
        match joins.failed {
            0 => Ok(joins.delays_us),
            failed => Err(ScenarioError::Joins {
                node: self.name.clone(),
                failed,
                reason: self.crowd.last_failure().unwrap_or_default(),
            }),
        }
    }

    async fn begin(&mut self) -> Result<(), ScenarioError> {
        self.crowd.load().window().await;
        self.sampler.sample()?;
        Ok(())
    }

    async fn end(&mut self) -> Result<Measured, ScenarioError> {
        let window = self.crowd.load().window().await;
        let usage = self.sampler.sample()?;
        Ok(Measured {
            length_s: usage.length_s,
            cpu_cores: usage.server.map(|server| server.cpu_cores),
            viewers: window.participants,
            expected: window.expected,
            packets: window.packets,
            bytes: window.bytes,
            findings: window.findings,
        })
    }
}

/// Waits, and measures all nodes at the same time.
pub(super) async fn measure(
    seats: &mut [Seat],
    demand: &Demand,
) -> Result<Vec<Measured>, ScenarioError> {
    sleep(demand.settle).await;
    for seat in &mut *seats {
        seat.begin().await?;
    }
    sleep(demand.duration.max(Duration::from_millis(100))).await;
    let mut all = Vec::new();
    for seat in seats {
        all.push(seat.end().await?);
    }
    Ok(all)
}

impl Measured {
    /// Returns the packets that arrived, of those that were due.
    pub(super) fn delivered_share(&self) -> f64 {
        match self.expected {
            0 => 0.0,
            expected => (self.packets as f64 / expected as f64).min(1.0),
        }
    }

    /// Returns the packets whose numbers are missing, of all for the viewers that decrypt.
    pub(super) fn lost_share(&self) -> f64 {
        let lost = u64::try_from(self.findings.lost).unwrap_or(0);
        match self.findings.packets.saturating_add(lost) {
            0 => 0.0,
            all => lost as f64 / all as f64,
        }
    }

    /// Returns the UDP payload that arrived, in bit/s.
    pub(super) fn received_bps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.length_s.max(1e-9)
    }
}
