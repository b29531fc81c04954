//! The parsers of what other nodes send, for the fuzz targets.

use portunus_resources::Id;

use crate::definition::Definition;
use crate::question::{HomeAnswer, Question};

/// Reads the definition of a room.
pub fn read_definition(text: &str) {
    for id in [Id::Number(7), Id::Text("7".to_owned())] {
        if let Ok(definition) = Definition::read(&id, text) {
            // Nobody knows a token that is sealed.
            let open = !definition.allowed.is_checked();
            assert_eq!(definition.allowed.check(Some("\u{0}")).is_ok(), open);
        }
    }
}

/// Reads a question to a home, and an answer. What can be read is the same when it is written and
/// read again.
pub fn read_question(text: &str) {
    if let Ok(question) = serde_json::from_str::<Question>(text) {
        let again = serde_json::from_str(&question.to_text());
        assert_eq!(again.ok(), Some(question));
    }
    if let Some(answer) = HomeAnswer::parse(text) {
        assert_eq!(HomeAnswer::parse(&answer.to_text()), Some(answer));
    }
}
