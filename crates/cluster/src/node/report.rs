//! Reports the state of the node.

use std::time::Instant;

use super::Node;
use super::settling::BUSY;
use crate::links::Wire;
use crate::members::Life;
use crate::places::{Entry, Role};
use crate::record::{NodeRecord, NodeState};
use crate::status::{HomeStatus, LinkStatus, NodeStatus, OtherNode, Status};
use crate::{HomeKey, HomeRecord, NodeId, Revision, Urls};

/// The most homes in a report.
const LISTED: usize = 1_000;

impl Node {
    /// Returns its state, and what it knows of the others.
    pub fn status(&self, now: Instant) -> Status {
        let homes = self.homes.iter();
        let listed =
            homes.map(|(key, revision, record)| self.home_status(key, Some((revision, record))));
        let unlisted = self.places.iter().filter(|(key, _)| {
            let home = self.homes.get(key);
            home.is_none_or(|home| home.record.is_none())
        });
        let unlisted = unlisted.map(|(key, _)| self.home_status(key, None));
        Status {
            node: self.settings.id.clone(),
            cluster: self.settings.cluster.clone(),
            bus_connected: self.bus_connected,
            confirmed: self.is_confirmed(),
            outside: self.is_outside,
            // Its edge knows.
            certificate_days: 0,
            nodes: self.node_statuses(now),
            links: self.link_statuses(),
            homes: listed.chain(unlisted).take(LISTED).collect(),
            home_count: self.homes.iter().count(),
            disagreements: self.disagreements(now),
        }
    }

    /// Returns whether something has a home.
    pub fn has_home(&self, key: &HomeKey) -> bool {
        let home = self.homes.get(key);
        home.is_some_and(|home| home.record.is_some())
    }

    /// Returns the home of something, if it is this node or one that there is a link to.
    pub fn home_of(&self, key: &HomeKey) -> Option<NodeId> {
        let record = self.homes.get(key)?.record.as_ref()?;
        self.is_reachable(record).then(|| record.node.clone())
    }

    /// Returns the names of all things of a kind with such homes.
    pub fn names_of(&self, kind: &str) -> Vec<String> {
        let homes = self.homes.iter().filter(|(key, ..)| key.kind() == kind);
        let homes = homes.filter(|(.., record)| self.is_reachable(record));
        homes.map(|(key, ..)| key.name()).collect()
    }

    fn is_reachable(&self, home: &HomeRecord) -> bool {
        let is_own = home.is(&self.settings.id, self.settings.epoch);
        is_own || self.hears_up(&home.node, home.epoch)
    }

    /// Returns the URL of the serving node with the least loaded worker: this one, unless another
    /// one has a tenth less at least. `None` if no such node has a URL.
    pub fn least_loaded(&self) -> Option<String> {
        let others = self.members.iter().filter_map(|(id, member)| {
            let record = &member.record;
            let url = record.url.as_ref().filter(|_| record.is_serving())?;
            self.links.up(id)?;
            Some((record.load.worker, url))
        });
        let own = self
            .settings
            .urls
            .http
            .as_ref()
            .filter(|_| !self.is_draining);
        let own = own.map(|url| (self.load.worker - 0.1, url));
        let least = others.chain(own).min_by(|(a, _), (b, _)| a.total_cmp(b));
        least.map(|(_, url)| url.clone())
    }

    /// Returns the other nodes that serve and that this one has a link to, the least loaded first.
    pub fn others(&self) -> Vec<OtherNode> {
        let serving = self
            .members
            .iter()
            .filter(|(id, member)| member.record.is_serving() && self.links.up(id).is_some());
        let mut others: Vec<_> = serving
            .map(|(id, member)| OtherNode {
                node: id.clone(),
                region: member.record.region.clone(),
                load: member.record.load.worker,
                urls: Urls {
                    http: member.record.url.clone(),
                    websocket: member.record.websocket_url.clone(),
                    livekit: member.record.livekit_url.clone(),
                },
            })
            .collect();
        others.sort_by(|a, b| a.load.total_cmp(&b.load));
        others
    }

    /// Returns the node to which new clients should go from here, because this one is busy and that
    /// one is clearly less so. Never two nodes that name each other.
    pub fn relief(&self) -> Option<OtherNode> {
        if self.load.worker <= BUSY {
            return None;
        }
        let others = self.others().into_iter();
        let mut reachable = others.filter(|other| other.urls.http.is_some());
        reachable.next().filter(|other| other.load < BUSY - 0.1)
    }

    /// Returns the number of homes that this node has, and of nodes to which it has a link.
    pub fn sizes(&self) -> Sizes {
        let own = self
            .places
            .iter()
            .filter(|(_, it)| matches!(it.role, Role::Here(_)));
        Sizes {
            nodes: self.members.iter().count() + 1,
            links: self.links.iter().filter(|(_, link)| link.is_up()).count(),
            detours: self
                .links
                .iter()
                .filter(|(_, link)| link.middle().is_some())
                .count(),
            homes: own.count(),
            open: self.places.iter().filter(|(_, it)| it.is_open).count(),
        }
    }

    fn node_statuses(&self, now: Instant) -> Vec<NodeStatus> {
        let own = self.own_record();
        let age = self.beat.renewed().map_or(0, |at| millis(now, at));
        let mut nodes = vec![node_status(&self.settings.id, &own, age)];
        nodes.extend(self.members.iter().map(|(id, member)| {
            let age = millis(now, member.seen);
            node_status(id, &member.record, age)
        }));
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        nodes
    }

    fn link_statuses(&self) -> Vec<LinkStatus> {
        let links = self.links.iter();
        let link = |(node, link): (&NodeId, &crate::links::Link)| {
            let state = match link.wire {
                _ if link.is_up() && link.is_suspect => "suspect",
                _ if link.is_up() => "up",
                Wire::Greeting(_) | Wire::Dialling => "connecting",
                Wire::Down(_) | Wire::Up(..) => "down",
            };
            let unsent = link.unsent.values().map(|it| it.items.len());
            let round_trip = link.round_trip.map(|it| it.as_micros());
            LinkStatus {
                node: node.clone(),
                state: state.to_owned(),
                through: link.middle().cloned(),
                version: link.version(),
                round_trip_us: round_trip.map(|it| u64::try_from(it).unwrap_or(u64::MAX)),
                queued: link.outbox.len() + link.registers.len() + unsent.sum::<usize>(),
            }
        };
        links.map(link).collect()
    }

    fn home_status(&self, key: &HomeKey, home: Option<(Revision, &HomeRecord)>) -> HomeStatus {
        let entry = self.places.get(key);
        let others = |entry: &Entry| entry.others.values().map(|it| it.0.len()).sum::<usize>();
        HomeStatus {
            what: key.to_string(),
            key: key.clone(),
            node: home.map(|(_, record)| record.node.clone()),
            revision: home.map_or(0, |(revision, _)| revision.sequence),
            open: entry.is_some_and(|it| it.is_open),
            registered: entry.is_some_and(
                |entry| matches!(&entry.role, Role::There(there) if there.is_registered),
            ),
            members: entry.map_or(Vec::new(), |it| it.registered.iter().cloned().collect()),
            items: entry.map_or(0, |it| it.own.len() + others(it)),
        }
    }

    fn disagreements(&self, now: Instant) -> Vec<String> {
        let mut found = Vec::new();
        if self.is_outside {
            found.push(format!(
                "another process has the name {}: this one is outside the cluster",
                self.settings.id
            ));
        }
        for (id, _) in self.members.iter() {
            match self.links.up(id).map(|link| link.middle()) {
                None => found.push(format!("{id} is on the bus, and there is no link to it")),
                Some(Some(middle)) => found.push(format!(
                    "the link to {id} leads through {middle}, since they cannot be connected directly"
                )),
                Some(None) => {}
            }
        }
        for (id, _) in self.links.iter().filter(|(_, link)| link.is_up()) {
            if self.members.is_current() && self.members.get(id).is_none() {
                found.push(format!("there is a link to {id}, which is not on the bus"));
            }
        }
        for (key, revision, record) in self.homes.iter() {
            let is_own = record.is(&self.settings.id, self.settings.epoch);
            if !is_own && self.life(&record.node, record.epoch, now) == Life::Dead {
                let (node, epoch) = (&record.node, record.epoch);
                found.push(format!(
                    "{key} is at home on {node} (run {epoch}) by revision {revision}, which is gone"
                ));
            }
        }
        for (key, entry) in self.places.iter().filter(|(_, entry)| entry.is_open) {
            match &entry.role {
                Role::There(there) if !there.is_registered => found.push(format!(
                    "{key} is open here, and its home {} has not registered this node",
                    there.node
                )),
                Role::Here(revision) if *revision == Revision::LOCAL => found.push(format!(
                    "{key} is open on this node only, since the bus is away"
                )),
                Role::Seeking => found.push(format!("{key} is open here, and has no home")),
                Role::There(_) | Role::Here(_) => {}
            }
        }
        found.truncate(LISTED);
        found
    }
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Nodes on the bus, this one among them.
    pub nodes: usize,
    /// Links that are up.
    pub links: usize,
    /// Links that lead through a third node.
    pub detours: usize,
    /// Homes of this node.
    pub homes: usize,
    /// The number of rooms and streams that are open on this node.
    pub open: usize,
}

fn node_status(id: &NodeId, record: &NodeRecord, age_ms: u64) -> NodeStatus {
    NodeStatus {
        node: id.clone(),
        epoch: record.epoch,
        state: match record.state {
            NodeState::Serving => NodeState::Serving,
            NodeState::Draining | NodeState::Other => NodeState::Draining,
        },
        region: record.region.clone(),
        control: record.control.clone(),
        fingerprint: record.fingerprint.clone(),
        load: record.load,
        age_ms,
    }
}

fn millis(now: Instant, at: Instant) -> u64 {
    let age = now.saturating_duration_since(at).as_millis();
    u64::try_from(age).unwrap_or(u64::MAX)
}
