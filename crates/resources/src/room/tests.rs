#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use portunus_core::events::EventBus;
use serde_json::Map;

use super::*;
use crate::{Ids, Limits, Maker, Options, ResourceKeys, RoomProblem, SavedError, place};

#[derive(Debug, Clone, Default)]
struct BoardOptions {
    description: String,
    access: Access,
}

type Opt = crate::Opt<BoardOptions>;

const OPTIONS: Options<BoardOptions> = Options(&[
    Opt::new("description", place!(description))
        .edited_as("new_description")
        .listed(),
    Opt::new("is_private", place!(access.is_private)).edited_as("new_is_private"),
    Opt::new("secret", place!(access.secret)).edited_as("new_secret"),
]);

impl ConfiguredOptions for BoardOptions {
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem> {
        OPTIONS.check_keys(members)
    }

    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem> {
        let wrong = |refusal| RoomProblem::new("room", format!("{refusal:?}"));
        OPTIONS.read(fields).map_err(wrong)
    }

    fn to_section(&self) -> Map<String, Value> {
        OPTIONS.to_members(self)
    }
}

#[derive(Debug)]
struct Board {
    id: Id,
    options: BoardOptions,
    allowed: AllowedTokens,
    has_ended: bool,
    events: PluginEvents,
}

impl RoomContent for Board {
    type Options = BoardOptions;

    const PLUGIN: &'static str = "board";

    fn id(&self) -> &Id {
        &self.id
    }

    fn access(&self) -> &Access {
        &self.options.access
    }

    fn allowed(&mut self) -> &mut AllowedTokens {
        &mut self.allowed
    }

    fn options(&self) -> BoardOptions {
        self.options.clone()
    }

    fn is_editable(key: &str) -> bool {
        OPTIONS.is_editable(key)
    }

    fn apply(&mut self, options: BoardOptions) {
        self.options = options;
    }

    fn is_used(&self) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn end(&mut self, _: Option<&Handle>) {
        self.has_ended = true;
    }

    fn events(&self) -> &PluginEvents {
        &self.events
    }
}

/// A plugin with the common requests only.
struct Boards(Resources<Room<Board>>);

type Started = (Boards, Vec<ConfiguredRoom<BoardOptions>>);

impl Boards {
    fn start(folder: &tempfile::TempDir) -> Result<Started, SavedError> {
        let keys = ResourceKeys {
            admin_key: Some("key".to_owned()),
            ids: Ids::Numbers,
            save: Some(folder.path().join("boards.toml")),
            limits: Limits::default(),
            max_wrong: 0,
        };
        let (boards, first) = Resources::start(keys, Vec::new())?;
        Ok((Boards(boards), first))
    }

    fn create(&self, members: Value) -> Result<Answer, Refusal> {
        let fields = Fields(members.as_object().unwrap());
        let asker = Asker::administrator();
        let saved = self.0.permanent(fields)?;
        let wanted = self.0.ids().wanted(fields, "room")?;
        let reservation = self.0.reserve(wanted, Maker::Operator)?;
        let room = Arc::new(Room::new(Board {
            id: reservation.id().clone(),
            options: OPTIONS.read(fields)?,
            allowed: AllowedTokens::read(fields)?,
            has_ended: false,
            events: EventBus::default().of_plugin("board"),
        }));
        reservation.keep(room.clone());
        Ok(self.0.created(&room, saved, &asker, |_| None))
    }

    fn request(&self, name: &str, members: Value) -> Result<Answer, Refusal> {
        let fields = Fields(members.as_object().unwrap());
        let asker = Asker::administrator();
        match name {
            "create" => self.create(members),
            "edit" => self.0.edit(fields, &asker, |board| {
                board.options = OPTIONS.edited(&board.options, fields)?;
                Ok(None)
            }),
            "destroy" => self.0.destroy(fields, &asker),
            "exists" => self.0.find(fields).map(Answer::from),
            "allowed" => {
                let allowed = |_: &Arc<_>, board: &mut Board| board.allow(fields);
                self.0.managed(fields, allowed).map(Answer::from)
            }
            _ => {
                let key = fields.string("admin_key")?;
                let listed = |board: &Board| OPTIONS.listed(&board.options);
                self.0.list(key, &asker, listed).map(Answer::from)
            }
        }
    }

    async fn answer(&self, name: &str, members: Value) -> Result<Value, Refusal> {
        Ok(self.request(name, members)?.complete().await.into())
    }
}

#[tokio::test]
async fn a_room_for_good_is_saved_changed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (boards, first) = Boards::start(&folder).unwrap();
    assert!(first.is_empty());
    let create = json!({ "room": 1, "description": "Hall", "secret": "s", "permanent": true });
    let created = boards.answer("create", create).await;
    let expected = json!({ "board": "created", "room": 1, "permanent": true });
    assert_eq!(created, Ok(expected));
    let edit = json!({ "room": 1, "secret": "s", "new_description": "Old hall" });
    let edited = boards.answer("edit", edit.clone()).await;
    let expected = json!({ "board": "edited", "room": 1, "permanent": false });
    assert_eq!(edited, Ok(expected));
    let saved = |folder| {
        let (_, first) = Boards::start(folder).unwrap();
        let names = first.into_iter().map(|room| room.options.description);
        names.collect::<Vec<_>>()
    };
    assert_eq!(saved(&folder), ["Hall"]);
    let mut for_good = edit;
    for_good["permanent"] = true.into();
    boards.answer("edit", for_good).await.unwrap();
    assert_eq!(saved(&folder), ["Old hall"]);

    let destroy = json!({ "room": 1, "secret": "s", "permanent": true });
    let destroyed = boards.answer("destroy", destroy.clone()).await;
    let expected = json!({ "board": "destroyed", "room": 1, "permanent": true });
    assert_eq!(destroyed, Ok(expected));
    assert!(saved(&folder).is_empty());
    let again = boards.answer("destroy", destroy).await;
    assert_eq!(again, Err(Refusal::NoSuch(Id::Number(1))));
}

#[tokio::test]
async fn nobody_changes_a_room_without_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (boards, _) = Boards::start(&folder).unwrap();
    let create = json!({ "room": 1, "secret": "s" });
    boards.answer("create", create).await.unwrap();
    for request in ["edit", "destroy", "allowed"] {
        let shown = json!({ "room": 1, "secret": "t", "action": "enable" });
        let wrong = boards.answer(request, shown).await;
        assert_eq!(wrong, Err(Refusal::Wrong("secret")), "{request}");
        let none = boards.answer(request, json!({ "room": 2 })).await;
        assert_eq!(none, Err(Refusal::NoSuch(Id::Number(2))), "{request}");
    }
    let allow = json!({ "room": 1, "secret": "s", "action": "add", "allowed": ["a"] });
    let allowed = boards.answer("allowed", allow).await;
    let expected = json!({ "board": "success", "room": 1, "allowed": ["a"] });
    assert_eq!(allowed, Ok(expected));
}

#[tokio::test]
async fn a_list_has_what_the_plugin_says_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let (boards, _) = Boards::start(&folder).unwrap();
    for (id, is_private) in [(1, false), (2, true)] {
        let create = json!({ "room": id, "description": "Hall", "is_private": is_private });
        boards.answer("create", create).await.unwrap();
    }
    let list = boards.answer("list", json!({})).await;
    let entry = |id: u64| json!({ "room": id, "description": "Hall" });
    let expected = json!({ "board": "success", "list": [entry(1), entry(2)] });
    assert_eq!(list, Ok(expected));
    let wrong = boards.answer("list", json!({ "admin_key": "no" })).await;
    assert_eq!(wrong, Err(Refusal::Wrong("admin_key")));
    let shown = boards.0.listed_with(None, false).unwrap();
    assert_eq!(shown.len(), 1);
    let exists = boards.answer("exists", json!({ "room": 3 })).await;
    let expected = json!({ "board": "success", "room": 3, "exists": false });
    assert_eq!(exists, Ok(expected));
}
