#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::path::Path;

use super::*;

/// A resource whose key is its name.
#[derive(Debug, Clone, PartialEq)]
struct Thing {
    name: &'static str,
    id: Option<u64>,
    says: &'static str,
    as_id: Option<Id>,
}

const WORDS: [&str; 8] = ["one", "two", "hall", "old", "new", "other", "edited", "?"];

fn word(text: &str) -> &'static str {
    let known = WORDS.into_iter().find(|word| *word == text);
    known.unwrap_or("?")
}

fn thing(name: &str, id: impl Into<Option<u64>>, says: &str) -> Thing {
    let id = id.into();
    Thing {
        name: word(name),
        id,
        says: word(says),
        as_id: id.map(Id::Number),
    }
}

impl Written for Thing {
    const ONE: &'static str = "thing";
    const MANY: &'static str = "things";

    fn key(&self) -> Id {
        Id::Text(self.name.to_owned())
    }

    fn id(&self) -> Option<&Id> {
        self.as_id.as_ref()
    }

    fn read(members: &Map<String, Value>, _: Ids) -> Result<Self, String> {
        let text = |name| members.get(name).and_then(Value::as_str);
        let name = text("name").ok_or("name is missing")?;
        let id = members.get("id").and_then(Value::as_u64);
        Ok(thing(name, id, text("says").unwrap_or("?")))
    }

    fn to_members(&self) -> Map<String, Value> {
        let members = json!({ "name": self.name, "id": self.id, "says": self.says });
        members.as_object().unwrap().clone()
    }
}

fn open(folder: &Path, configured: &[Thing]) -> (Arc<Saved<Thing>>, Vec<Thing>) {
    let path = folder.join("things.toml");
    let (saved, first) = Saved::open(path, Ids::Numbers, configured.to_vec()).unwrap();
    (Arc::new(saved), first)
}

/// Returns the resources at a start.
fn first(folder: &Path, configured: &[Thing]) -> Vec<Thing> {
    open(folder, configured).1
}

fn keep(saved: &Saved<Thing>, thing: &Thing) -> Result<(), SavedError> {
    saved.keep(|| Some(thing.clone()), || ())
}

fn remove(saved: &Saved<Thing>, thing: &Thing) -> Result<(), SavedError> {
    saved.remove(thing.key(), thing.as_id.clone().unwrap(), || ())
}

#[test]
fn what_is_kept_replaces_what_is_configured_and_what_is_removed_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let configured = [thing("one", 1, "old"), thing("two", 2, "old")];
    let (saved, at_first) = open(folder.path(), &configured);
    assert_eq!(at_first, configured);
    let new = thing("one", 1, "new");
    keep(&saved, &new).unwrap();
    remove(&saved, &configured[1]).unwrap();
    assert_eq!(
        first(folder.path(), &configured),
        std::slice::from_ref(&new)
    );
    // A removed one may be made again.
    let again = thing("two", 2, "edited");
    keep(&saved, &again).unwrap();
    assert_eq!(first(folder.path(), &configured), [new, again]);
    assert_eq!(first(folder.path(), &[]).len(), 2);
}

#[test]
fn another_of_the_same_key_is_refused_and_removed_apart() {
    let folder = tempfile::tempdir().unwrap();
    let hall = thing("hall", None, "old");
    let (saved, _) = open(folder.path(), std::slice::from_ref(&hall));
    saved.learn(&hall.key(), &Id::Number(1));
    let twin = thing("hall", 8, "new");
    assert!(matches!(keep(&saved, &twin), Err(SavedError::Taken { .. })));
    remove(&saved, &twin).unwrap();
    let configured = [hall];
    assert_eq!(first(folder.path(), &configured), configured);
    // The name of a removed configured one is free, and it does not come back with another one.
    remove(&saved, &thing("hall", 1, "old")).unwrap();
    keep(&saved, &twin).unwrap();
    assert_eq!(
        first(folder.path(), &configured),
        std::slice::from_ref(&twin)
    );
    remove(&saved, &twin).unwrap();
    assert!(first(folder.path(), &configured).is_empty());
}

#[test]
fn what_cannot_be_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let (saved, _) = open(&kept, &[]);
    keep(&saved, &thing("one", 1, "old")).unwrap();
    let moved = folder.path().join("moved");
    std::fs::rename(&kept, &moved).unwrap();
    let edited = thing("one", 1, "edited");
    let mut is_applied = false;
    let kept_edit = saved.keep(|| Some(edited), || is_applied = true);
    assert!(matches!(kept_edit, Err(SavedError::Write { .. })));
    assert!(!is_applied);
    std::fs::rename(&moved, &kept).unwrap();
    keep(&saved, &thing("two", 2, "new")).unwrap();
    let expected = [thing("one", 1, "old"), thing("two", 2, "new")];
    assert_eq!(first(&kept, &[]), expected);
}

#[tokio::test]
async fn what_is_written_late_is_not_older() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, _) = open(folder.path(), &[]);
    // Nothing is written before all is noted.
    let content = saved.content();
    let writings = [
        saved.keep_soon(thing("one", 1, "old")),
        saved.keep_soon(thing("one", 1, "new")),
        saved.keep_soon(thing("two", 2, "old")),
        saved.remove_soon(Id::Text("two".to_owned()), Id::Number(2)),
    ];
    drop(content);
    for writing in writings {
        writing.done().await.unwrap();
    }
    assert_eq!(first(folder.path(), &[]), [thing("one", 1, "new")]);
    assert!(saved.noted().is_empty());
}

#[tokio::test]
async fn a_change_that_could_not_be_written_is_told_to_each_who_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, _) = open(&folder.path().join("none"), &[]);
    for says in ["old", "new"] {
        let writing = saved.keep_soon(thing("one", 1, says));
        assert!(matches!(
            writing.done().await,
            Err(SavedError::Write { .. })
        ));
    }
    std::fs::create_dir(folder.path().join("none")).unwrap();
    let edited = saved.keep_soon(thing("one", 1, "edited"));
    edited.done().await.unwrap();
    assert_eq!(
        first(&folder.path().join("none"), &[]),
        [thing("one", 1, "edited")]
    );
}

#[test]
fn a_file_that_is_none_of_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("things.toml");
    for text in ["removed = [", "thing = [1]", "[[thing]]\nid = 1"] {
        std::fs::write(&path, text).unwrap();
        let opened = Saved::<Thing>::open(path.clone(), Ids::Numbers, Vec::new());
        assert!(matches!(opened, Err(SavedError::Content { .. })), "{text}");
    }
}
