#![no_main]

use libfuzzer_sys::fuzz_target;

// Files of Janus, each after a line `@@ NAME`. The import is a valid configuration.
fuzz_target!(|text: &str| {
    let files: Vec<(&str, &str)> = text
        .split("@@ ")
        .filter_map(|file| file.split_once('\n'))
        .take(8)
        .collect();
    match portunus::import_janus(&files) {
        Ok(config) => assert!(portunus::print_config(&config).is_ok(), "{config}"),
        Err(error) => assert!(!error.is_empty()),
    }
});
