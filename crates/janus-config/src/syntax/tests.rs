//! libconfig and INI, well-formed and malformed.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::collections::HashMap;
use std::io;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn jcfg(text: &str) -> Result<Group, String> {
    let parsed = parse_jcfg(Path::new("a.jcfg"), text, &mut Sources::none());
    parsed.map_err(|error| error.to_string())
}

fn value(text: &str) -> Value {
    let group = jcfg(&format!("a = {text};")).unwrap();
    group.get("a").unwrap().value.clone()
}

/// Parses `a.jcfg` from files in memory.
fn with_files(files: &[(&str, &str)]) -> Result<Group, String> {
    let files: HashMap<_, _> = files.iter().copied().collect();
    let load = |path: &Path| {
        let text = files.get(path.to_str().unwrap());
        let text = text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(text.as_bytes().to_vec())
    };
    let parsed = parse_jcfg(
        Path::new("d/a.jcfg"),
        files["d/a.jcfg"],
        &mut Sources::of(load),
    );
    parsed.map_err(|error| error.to_string())
}

#[test]
fn values_of_all_types_are_read() {
    for (text, expected) in [
        ("true", Value::Bool(true)),
        ("FALSE", Value::Bool(false)),
        ("-42", Value::Integer(-42)),
        ("+7", Value::Integer(7)),
        ("0x1F", Value::Integer(31)),
        ("0b101", Value::Integer(5)),
        ("0o17", Value::Integer(15)),
        ("0q17", Value::Integer(15)),
        ("9000000000L", Value::Integer(9_000_000_000)),
        ("0xFFFFFFFFFFFFFFFFLL", Value::Integer(-1)),
        ("1.5", Value::Float(1.5)),
        (".5e1", Value::Float(5.0)),
        ("-1E3", Value::Float(-1_000.0)),
        (r#""a\tb\"\\\x41\q""#, Value::Text("a\tb\"\\A\\q".into())),
        (
            "\"one\" \"two\"\n \"three\"",
            Value::Text("onetwothree".into()),
        ),
        ("[]", Value::Array(vec![])),
        (
            "[1, 2,]",
            Value::Array(vec![Value::Integer(1), Value::Integer(2)]),
        ),
        (
            "( \"x\", [1], () )",
            Value::List(vec![
                Value::Text("x".into()),
                Value::Array(vec![Value::Integer(1)]),
                Value::List(vec![]),
            ]),
        ),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn settings_end_with_a_semicolon_a_comma_or_nothing() {
    let group = jcfg("a = 1 b: 2, c = { d = 3; } e-f_g* = 4;").unwrap();
    let names: Vec<_> = group.settings().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "e-f_g*"]);
    assert_eq!(
        group.get("c").unwrap().group().unwrap().text("d").unwrap(),
        "3"
    );
}

#[test]
fn each_setting_has_its_place() {
    let group = jcfg("# é\ngeneral: {\n\tport = 1\n}\n").unwrap();
    let port = &group.settings()[0].group().unwrap().settings()[0];
    assert_eq!(port.at.to_string(), "a.jcfg:3:2");
}

#[test]
fn mistakes_have_a_place_and_say_what_was_expected() {
    let deep = format!("a = {}1", "(".repeat(MAX_DEPTH + 1));
    for (text, expected) in [
        (
            "a 1",
            "1:3: expected = or : after the name of a setting, found 1",
        ),
        (
            "a = ;",
            "1:5: expected a value (text needs quotes), found ;",
        ),
        (
            "a = {\n b = 1;\n",
            "3:1: expected the name of a setting or }, found the end of the file",
        ),
        ("a = 1;\n}", "2:1: expected the name of a setting, found }"),
        ("a = [1 2]", "1:8: expected , or ], found 2"),
        ("a = (1; 2)", "1:7: expected , or ), found ;"),
        (
            "a = [1, \"x\"]",
            "1:9: expected a whole number, found text in quotes: all values of an array have one type; ( ) may mix",
        ),
        (
            "a = [{}]",
            "1:6: expected a value (text needs quotes), found {",
        ),
        ("a = \"x", "1:5: this string has no closing quote"),
        ("/* a", "1:1: this comment has no */ at its end"),
        (
            "a = 99999999999999999999",
            "1:5: 99999999999999999999 is no number of 64 bits (text needs quotes)",
        ),
        (
            "a = 0x",
            "1:5: 0x is no number of 64 bits (text needs quotes)",
        ),
        (
            "a = 12ab",
            "1:5: 12ab is no number of 64 bits (text needs quotes)",
        ),
        (
            "a = 1;\na = 2;",
            "2:1: a is set twice: the first time in line 1",
        ),
        (
            "a = <x> 1",
            "1:5: expected a name, a bracket or a value (text needs quotes), found <x>",
        ),
        ("5 = 1", "1:1: expected the name of a setting, found 5"),
        (
            "@include x",
            "1:1: expected a file in quotes after @include, found x",
        ),
        (
            "@include \"x\"",
            "1:1: cannot read x: files cannot be included here",
        ),
        (
            &deep,
            "1:37: more than 32 groups and lists inside each other",
        ),
    ] {
        assert_eq!(jcfg(text), Err(format!("a.jcfg:{expected}")), "{text}");
    }
}

#[test]
fn included_files_are_part_of_the_file_and_keep_their_places() {
    let group = with_files(&[
        (
            "d/a.jcfg",
            "general: {\n  @include \"keys/b.jcfg\"\n  c = 3\n}\n",
        ),
        ("d/keys/b.jcfg", "# Mine\nb = 2\n@include \"c.jcfg\"\n"),
        ("d/keys/c.jcfg", "x = 1"),
    ])
    .unwrap();
    let general = group.get("general").unwrap().group().unwrap();
    let places: Vec<_> = general
        .settings()
        .iter()
        .map(|it| it.at.to_string())
        .collect();
    assert_eq!(
        places,
        ["d/keys/b.jcfg:2:1", "d/keys/c.jcfg:1:1", "d/a.jcfg:3:3"]
    );
    assert_eq!(general.get("b").unwrap().comments, ["Mine"]);
}

#[test]
fn includes_are_bounded() {
    let cycle = with_files(&[
        ("d/a.jcfg", "@include \"b\""),
        ("d/b", "\n@include \"a.jcfg\""),
    ]);
    assert_eq!(cycle, Err("d/b:2:1: d/a.jcfg includes itself".into()));
    let down = |path: &Path| Ok(format!("@include \"{}x\"", path.display()).into_bytes());
    let parsed = parse_jcfg(Path::new("a"), "@include \"x\"", &mut Sources::of(down));
    let problem = parsed.unwrap_err().problem;
    assert_eq!(problem, Problem::TooManyIncludes(MAX_INCLUDES));
    // Each of 10 files includes the next one 10 times.
    let line = |n: usize| format!("@include \"{n}\"\n").repeat(10);
    let wide = |path: &Path| {
        let n: usize = path.to_str().unwrap().parse().unwrap();
        Ok((line(n + 1) + &" ".repeat(1 << 16)).into_bytes())
    };
    let parsed = parse_jcfg(Path::new("a"), &line(1), &mut Sources::of(wide));
    let problem = parsed.unwrap_err().problem;
    let is_bounded = matches!(problem, Problem::TooLarge(_) | Problem::TooManyIncludes(_));
    assert!(is_bounded, "{problem}");
}

#[test]
fn a_setting_has_the_comments_around_it() {
    let text = "
// Everybody meets here.
/* Ask the
 * office first. */
room-1: {
\tsecret = \"s\"\t\t# Changed in May,
\t\t\t\t\t# and in June
\t#pin = \"p\"\t\t# What they need
\t\t\t\t\t# to join
\tpublishers = 6
\t# Low

\tbitrate = 1
\t# For phones
\tfir_freq = 2
\t#}
\trecord = true
}
";
    let group = jcfg(text).unwrap();
    let room = &group.settings()[0];
    assert_eq!(
        room.comments,
        ["Everybody meets here.", "Ask the", "office first."]
    );
    let comments = |name| room.group().unwrap().get(name).unwrap().comments.clone();
    assert_eq!(comments("secret"), ["Changed in May,", "and in June"]);
    for name in ["publishers", "bitrate", "record"] {
        assert!(comments(name).is_empty(), "{name}: {:?}", comments(name));
    }
    assert_eq!(comments("fir_freq"), ["For phones"]);
}

#[test]
fn cfg_files_are_read_as_janus_reads_them() {
    let text = "loose = 1\n; About the room\n[1234]\ndescription = a \\; b ; Shown\n\
                ;pin = x\nis_private => yes\npublishers=\npublishers = 3\n[ other ]\n";
    let group = parse_cfg(Path::new("a.cfg"), text).unwrap();
    assert_eq!(group.text("loose").as_deref(), Some("1"));
    let setting = group.get("1234").unwrap();
    assert_eq!(
        (setting.at.line, &*setting.comments),
        (3, &["About the room".to_owned()][..])
    );
    let room = setting.group().unwrap();
    assert_eq!(room.text("description").as_deref(), Some("a ; b"));
    assert_eq!(room.get("description").unwrap().comments, ["Shown"]);
    assert!(room.is_on("is_private") && room.get("pin").is_none());
    assert_eq!(room.get("publishers").unwrap().value.integer(), Some(3));
    assert!(
        group
            .get("other")
            .unwrap()
            .group()
            .unwrap()
            .settings()
            .is_empty()
    );
    for (text, expected) in [
        ("\n[a", "2:1: expected [name], found [a"),
        ("[ ]", "1:1: expected [name], found [ ]"),
        ("  word", "1:3: expected name = value or [name], found word"),
        ("= x", "1:1: expected name = value or [name], found = x"),
    ] {
        let error = parse_cfg(Path::new("a.cfg"), text).unwrap_err();
        assert_eq!(error.to_string(), format!("a.cfg:{expected}"));
    }
}

/// Writes a value as libconfig.
fn written(value: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(written).collect::<Vec<_>>().join(", ");
    match value {
        Value::Text(text) => {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        }
        Value::Float(value) => format!("{value:e}"),
        Value::Array(values) => format!("[ {} ]", list(values)),
        Value::List(values) => format!("( {} )", list(values)),
        Value::Group(group) => format!("{{\n{}}}", written_group(group)),
        scalar => scalar.text().unwrap(),
    }
}

fn written_group(group: &Group) -> String {
    let line = |it: &Setting| format!("{} = {}; # x\n", it.name, written(&it.value));
    group.settings().iter().map(line).collect()
}

/// Returns the settings without places and comments.
fn bare(group: &Group) -> Group {
    let setting = |it: &Setting| Setting {
        name: it.name.clone(),
        value: bare_value(&it.value),
        at: Location::start(Path::new("a")),
        comments: Vec::new(),
    };
    Group(group.settings().iter().map(setting).collect())
}

fn bare_value(value: &Value) -> Value {
    match value {
        Value::Group(group) => Value::Group(bare(group)),
        Value::List(values) => Value::List(values.iter().map(bare_value).collect()),
        value => value.clone(),
    }
}

fn group(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Group> {
    let settings = proptest::collection::btree_map("[a-z][a-z0-9_-]{0,8}x", value, 0..5);
    settings.prop_map(|settings| {
        let setting = |(name, value)| Setting {
            name,
            value,
            at: Location::start(Path::new("a")),
            comments: Vec::new(),
        };
        Group(settings.into_iter().map(setting).collect())
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        (-1e9..1e9).prop_map(Value::Float),
        ".{0,12}".prop_map(Value::Text),
    ];
    let numbers = proptest::collection::vec(any::<i64>().prop_map(Value::Integer), 0..4);
    let leaf = prop_oneof![scalar, numbers.prop_map(Value::Array)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            group(inner).prop_map(Value::Group),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(group in group(any_value())) {
        let read = jcfg(&written_group(&group)).unwrap();
        prop_assert_eq!(bare(&read), group);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c{}()\\[\\]=:;,\"\\\\#/*@ \n0-9xL.+-]{0,80}|.{0,40}") {
        let _ = jcfg(&text);
        let _ = parse_cfg(Path::new("a.cfg"), &text);
    }
}
