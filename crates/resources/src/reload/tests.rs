#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::json;

use super::*;
use crate::{Ids, Limits, Maker, ResourceKeys};

/// A room of the configuration.
#[derive(Debug, Clone, PartialEq)]
struct WrittenRoom {
    id: Id,
    pin: &'static str,
    codec: &'static str,
}

fn room(id: u64, pin: &'static str, codec: &'static str) -> WrittenRoom {
    let id = Id::Number(id);
    WrittenRoom { id, pin, codec }
}

impl Written for WrittenRoom {
    const ONE: &'static str = "room";
    const MANY: &'static str = "rooms";

    fn key(&self) -> Id {
        self.id.clone()
    }

    fn id(&self) -> Option<&Id> {
        Some(&self.id)
    }

    fn read(members: &Map<String, Value>, _: Ids) -> Result<Self, String> {
        let id = members.get("room").and_then(Id::from_json);
        Ok(WrittenRoom {
            id: id.ok_or("room is missing")?,
            pin: "saved",
            codec: "saved",
        })
    }

    fn to_members(&self) -> Map<String, Value> {
        let members = json!({ "room": self.id.to_json(), "pin": self.pin, "codec": self.codec });
        members.as_object().unwrap().clone()
    }
}

#[derive(Debug)]
struct Room {
    written: Mutex<WrittenRoom>,
    id: Id,
    is_used: AtomicBool,
}

impl Resource for Room {
    type Written = WrittenRoom;

    const MEMBER: &'static str = "room";

    fn is_editable(key: &str) -> bool {
        key == "pin"
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn apply(&self, written: &WrittenRoom) {
        self.written.lock().unwrap().pin = written.pin;
    }

    fn is_private(&self) -> bool {
        false
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        !self.is_used()
    }
}

struct Plugin {
    rooms: Resources<Room>,
}

impl Reloadable for Plugin {
    type Resource = Room;

    fn resources(&self) -> &Resources<Room> {
        &self.rooms
    }

    async fn make_configured(self: Arc<Self>, written: WrittenRoom) -> Result<(), String> {
        let reserved = self
            .rooms
            .reserve(Some(written.id.clone()), Maker::Operator);
        let reserved = reserved.map_err(|refusal| format!("{refusal:?}"))?;
        reserved.keep(Arc::new(Room {
            id: written.id.clone(),
            written: Mutex::new(written),
            is_used: AtomicBool::new(false),
        }));
        Ok(())
    }
}

impl Plugin {
    async fn start(save: Option<PathBuf>, configured: &[WrittenRoom]) -> Arc<Self> {
        let keys = ResourceKeys {
            admin_key: None,
            ids: Ids::Numbers,
            save,
            limits: Limits::default(),
            max_wrong: 0,
        };
        let (rooms, first) = Resources::start(keys, configured.to_vec()).unwrap();
        let plugin = Arc::new(Plugin { rooms });
        for room in first {
            plugin.clone().make_configured(room).await.unwrap();
        }
        plugin
    }

    fn room(&self, id: u64) -> Option<Arc<Room>> {
        self.rooms.get(&Id::Number(id)).ok()
    }

    fn written(&self, id: u64) -> Option<WrittenRoom> {
        let room = self.room(id)?;
        Some(room.written.lock().unwrap().clone())
    }
}

#[tokio::test(start_paused = true)]
async fn new_rooms_are_made_changed_ones_change_and_others_end() {
    let before = [
        room(1, "a", "vp8"),
        room(2, "a", "vp8"),
        room(3, "a", "vp8"),
    ];
    let plugin = Plugin::start(None, &before).await;
    let same = plugin.room(1).unwrap();
    let after = [
        room(1, "b", "vp8"),
        room(2, "a", "vp9"),
        room(4, "a", "vp8"),
    ];
    let reloaded = reload(&plugin, &before, &after).await;
    let changed = [
        "room 3 removed",
        "room 1 changed",
        "room 2 changed",
        "room 4 created",
    ];
    assert_eq!(reloaded.changed, changed);
    assert_eq!(reloaded.warnings, [""; 0]);
    // Editable keys change in the present room.
    assert!(Arc::ptr_eq(&same, &plugin.room(1).unwrap()));
    for (id, expected) in [1, 2, 4].into_iter().zip(&after) {
        assert_eq!(plugin.written(id).as_ref(), Some(expected));
    }
    assert!(plugin.room(3).is_none());
    let again = reload(&plugin, &after, &after).await;
    assert_eq!(again, PluginReloaded::default());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_put_out_of_a_room() {
    let before = [room(1, "a", "vp8"), room(2, "a", "vp8")];
    let plugin = Plugin::start(None, &before).await;
    let used = [plugin.room(1).unwrap(), plugin.room(2).unwrap()];
    used.iter()
        .for_each(|room| room.is_used.store(true, Relaxed));
    let after = [room(1, "b", "vp9")];
    let reloaded = reload(&plugin, &before, &after).await;
    assert_eq!(reloaded.changed, [""; 0]);
    assert_eq!(reloaded.warnings.len(), 2, "{reloaded:?}");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(plugin.written(1), Some(room(1, "a", "vp8")));
    assert!(plugin.room(2).is_some());
    used.iter()
        .for_each(|room| room.is_used.store(false, Relaxed));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(plugin.written(1), Some(room(1, "b", "vp9")));
    assert!(plugin.room(2).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_to_end_stays_if_the_configuration_has_it_again() {
    let before = [room(1, "a", "vp8")];
    let plugin = Plugin::start(None, &before).await;
    plugin.room(1).unwrap().is_used.store(true, Relaxed);
    let gone = reload(&plugin, &before, &[]).await;
    assert_eq!(
        gone.warnings,
        ["room 1 is in use: it ends once nobody uses it"]
    );
    let back = reload(&plugin, &[], &before).await;
    assert_eq!(
        back.warnings,
        ["room 1 is in use: it changes once nobody uses it"]
    );
    plugin.room(1).unwrap().is_used.store(false, Relaxed);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(plugin.written(1), Some(room(1, "a", "vp8")));
}

#[tokio::test(start_paused = true)]
async fn a_room_of_a_client_is_in_the_way_and_stays() {
    let plugin = Plugin::start(None, &[]).await;
    let client = Maker::Client(std::net::IpAddr::from([192, 0, 2, 1]).into());
    let reserved = plugin.rooms.reserve(Some(Id::Number(1)), client).unwrap();
    let theirs = Arc::new(Room {
        id: Id::Number(1),
        written: Mutex::new(room(1, "theirs", "vp8")),
        is_used: AtomicBool::new(false),
    });
    reserved.keep(theirs);
    let reloaded = reload(&plugin, &[], &[room(1, "ours", "vp8")]).await;
    assert_eq!(reloaded.changed, [""; 0]);
    assert!(
        reloaded
            .warnings
            .iter()
            .any(|it| it.contains("cannot be made"))
    );
    assert_eq!(plugin.written(1).unwrap().pin, "theirs");
    let gone = reload(&plugin, &[room(1, "ours", "vp8")], &[]).await;
    assert_eq!(gone, PluginReloaded::default());
    assert!(plugin.room(1).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_file_of_permanent_rooms_goes_before_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rooms.toml");
    std::fs::write(&file, "removed = [2]\n[[room]]\nroom = 1\n").unwrap();
    let before = [room(1, "a", "vp8"), room(2, "a", "vp8")];
    let plugin = Plugin::start(Some(file), &before).await;
    let after = [
        room(1, "b", "vp8"),
        room(2, "b", "vp8"),
        room(3, "a", "vp8"),
    ];
    let reloaded = reload(&plugin, &before, &after).await;
    assert_eq!(reloaded.changed, ["room 3 created"]);
    assert_eq!(reloaded.warnings.len(), 2, "{reloaded:?}");
    assert_eq!(plugin.written(1).unwrap().pin, "saved");
    assert!(plugin.room(2).is_none());
}
