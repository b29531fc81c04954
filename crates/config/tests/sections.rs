//! Sections as their owners read them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_config::{Configuration, Mistake, Printed, Section, keys_of, read};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Lamp {
    name: String,
    #[serde(with = "portunus_config::optional")]
    colour: Option<String>,
    #[serde(with = "portunus_config::seconds")]
    after: Duration,
    dimmed: bool,
    level: u32,
    rooms: Vec<String>,
}

impl Configuration for Lamp {
    fn read(section: &mut Section<'_>) -> Self {
        let lamp: Self = section.keys();
        section.range("level", lamp.level, 0..=100);
        let dimmed = lamp.dimmed || lamp.level == 0;
        section.require(&["level", "dimmed"], dimmed, "needs lamp.dimmed = true");
        lamp
    }
}

fn lamp(text: &str) -> Result<Lamp, Vec<Mistake>> {
    read(text, |file| file.section("lamp", Lamp::read))
}

fn mistakes<T: std::fmt::Debug>(outcome: Result<T, Vec<Mistake>>) -> Vec<String> {
    let mistakes = outcome.unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(lamp("").unwrap(), Lamp::default());
    let text = "[lamp]\nname = \"a\"\ncolour = \"\"\nafter = 3\n";
    let expected = Lamp {
        name: "a".to_owned(),
        after: Duration::from_secs(3),
        ..Lamp::default()
    };
    assert_eq!(lamp(text).unwrap(), expected);
}

#[test]
fn a_rule_for_two_keys_is_not_told_where_one_of_them_is_wrong_by_itself() {
    assert_eq!(
        mistakes(lamp("[lamp]\nlevel = 3\n")),
        ["line 2: lamp.level: needs lamp.dimmed = true"]
    );
    assert_eq!(
        mistakes(lamp("[lamp]\ndimmed = 1\nlevel = 3\n")),
        ["line 2: lamp.dimmed: expected true or false, got 1"]
    );
    assert_eq!(
        mistakes(lamp("[lamp]\nlevel = 101\n")),
        ["line 2: lamp.level: expected 0 to 100, got 101"]
    );
}

#[test]
fn a_mistake_in_a_list_has_the_line_of_its_element() {
    assert_eq!(
        mistakes(lamp("[lamp]\nrooms = [\n  \"a\",\n  7,\n]\n")),
        ["line 4: lamp.rooms: expected text in quotes, got 7"]
    );
}

#[test]
fn sections_of_a_list_are_read_whatever_is_wrong_with_others() {
    let text = "[[lamp]]\nlevel = 1\n[[lamp]]\nlevel = \"x\"\n[[lamp]]\nlevel = [{}, { deep = 1 }]\nlow = 2\n";
    let outcome = read(text, |file| {
        let entries = file.list("lamp");
        let levels: Vec<Option<toml::Table>> = entries.iter().map(|it| file.entry(it)).collect();
        assert_eq!(levels.iter().flatten().count(), 3);
        file.entry_mistake(&entries[1], None, "level", "no number");
        file.entry_mistake(&entries[2], Some(("level", 1)), "deep", "too deep");
        file.entry_mistake(&entries[2], None, "high", "is missing");
    });
    assert_eq!(
        mistakes(outcome),
        [
            "line 4: lamp.level: no number",
            "line 5: lamp.high: is missing",
            "line 6: lamp.level[1].deep: too deep",
        ]
    );
    let outcome = read("lamp = [1, {}]\n", |file| file.list("lamp").len());
    assert_eq!(
        mistakes(outcome),
        ["line 1: lamp: expected a section, written [[lamp]], got 1"]
    );
}

#[test]
fn a_number_that_could_not_be_printed_is_refused() {
    let text = "[lamp]\nlevel = 0x7fffffffffffffff\nrooms = [{ deep = 9223372036854775808 }]\n";
    assert_eq!(
        mistakes(lamp(text)),
        [
            "line 2: lamp.level: expected a whole number from 0 to 4294967295, got 9223372036854775807",
            "line 3: 9223372036854775808 is no number of 64 bits",
            "line 3: lamp.rooms: expected text in quotes, got a section",
        ]
    );
}

#[test]
fn one_key_can_be_read_apart_from_the_others() {
    let text = "[lamp]\nextra = 5\nlevel = 0\n";
    let outcome = read(text, |file| {
        file.section("lamp", |section| {
            let extra: Option<u8> = section.key("extra");
            (extra, Lamp::read(section).level)
        })
    });
    assert_eq!(outcome, Ok((Some(5), 0)));
}

#[test]
fn a_section_within_a_section_is_printed_and_read() {
    let mut printed = Printed::default();
    printed.section("house.kitchen", keys_of(&Lamp::default()).unwrap());
    printed.section("empty", keys_of(&()).unwrap_or_default());
    let text = printed.into_text().unwrap();
    assert!(text.starts_with("[house.kitchen]\nname = \"\"\n"), "{text}");
    let again = read(&text, |file| {
        file.section("house", |house| house.section("kitchen", Lamp::read))
    });
    assert_eq!(again, Ok(Lamp::default()));
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_to_the_same(
        name in ".*",
        colour in proptest::option::of(".+"),
        after in 0..=366 * 86_400_u64,
        level in 0..=100_u32,
        rooms in proptest::collection::vec(".*", 0..3),
    ) {
        let after = Duration::from_secs(after);
        let written = Lamp { name, colour, after, dimmed: true, level, rooms };
        let mut printed = Printed::default();
        printed.section("lamp", keys_of(&written).unwrap());
        prop_assert_eq!(lamp(&printed.into_text().unwrap()).unwrap(), written);
    }

    #[test]
    fn every_file_is_read_or_refused_with_lines(text in "(\\[lamp\\]\n)?([a-z]{1,6} ?= ?[0-9\"\\[\\]a-z]{0,5}\n){0,5}") {
        let lines = text.lines().count().max(1);
        for mistake in lamp(&text).err().unwrap_or_default() {
            prop_assert!((1..=lines + 1).contains(&mistake.line), "{mistake} in {text:?}");
        }
    }
}
