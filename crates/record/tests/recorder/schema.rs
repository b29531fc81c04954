//! Checks manifests against docs/manifest.schema.json, for the parts of JSON Schema that it uses.

use serde_json::Value;

/// Panics unless the manifest fits the schema.
pub fn check(manifest: &[u8]) {
    let schema = include_str!("../../../../docs/manifest.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let manifest = serde_json::from_slice(manifest).unwrap();
    check_value(&manifest, &schema, &schema, "");
}

fn check_value(value: &Value, schema: &Value, root: &Value, path: &str) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.strip_prefix('#').unwrap()).unwrap();
        return check_value(value, target, root, path);
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{path}");
    }
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{path}: {value}");
    }
    let is_of = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{path}: {other}"),
    };
    match &schema["type"] {
        Value::String(name) => assert!(is_of(name), "{path}: {value}"),
        Value::Array(names) => {
            let is_one = names.iter().any(|name| is_of(name.as_str().unwrap()));
            assert!(is_one, "{path}: {value}");
        }
        _ => {}
    }
    if let (Some(number), Some(least)) = (value.as_f64(), schema["minimum"].as_f64()) {
        assert!(number >= least, "{path}: {value}");
    }
    if let Some(members) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                members.contains_key(name.as_str().unwrap()),
                "{path}: {name}"
            );
        }
        for (name, member) in members {
            let path = format!("{path}/{name}");
            let known = schema["properties"].get(name);
            check_value(member, known.expect(&path), root, &path);
        }
    }
    let items = value.as_array().into_iter().flatten().enumerate();
    for (index, item) in items {
        let of = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
        check_value(item, of, root, &format!("{path}/{index}"));
    }
}
