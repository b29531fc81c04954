//! The state that all handles of the plugin share.

use std::sync::Arc;

use portunus_core::{Asked, Fields, Object};
use portunus_resources::{Id, Resources};
use serde_json::Value;

use crate::config::Intake;
use crate::contact::NodeName;
use crate::other_nodes::OtherNodes;
use crate::post::BackEnds;
use crate::requests::{Management, Membership};
use crate::room::{Room, Surroundings};

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rooms: Resources<Room>,
    pub(crate) intake: Intake,
    pub(crate) back_ends: BackEnds,
    pub(crate) surroundings: Surroundings,
    /// The other nodes of the cluster, if there is one.
    pub(crate) cluster: Arc<dyn OtherNodes>,
}

impl Shared {
    /// Returns the node that has to answer the request `name`, if that is another one.
    pub(crate) fn home(&self, name: &str, fields: Fields<'_>) -> Option<NodeName> {
        let is_of_room = match Asked::<Management>::named(name) {
            Some(asked) => ![Management::List, Management::Exists, Management::Create]
                .map(Asked::unnamed)
                .contains(&asked),
            None => Asked::<Membership>::named(name).is_some(),
        };
        let id = self.rooms.ids().read(fields, "room").ok().flatten();
        self.cluster.home(&id.filter(|_| is_of_room)?)
    }

    /// Returns the event of the end of a room, as a text.
    pub(crate) fn destroyed(&self, id: &Id) -> String {
        let event = Object::new()
            .with("textroom", "destroyed")
            .with("room", id.to_json());
        self.surroundings.json.text(&Value::from(event))
    }
}
