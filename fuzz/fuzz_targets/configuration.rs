#![no_main]

use libfuzzer_sys::fuzz_target;

// An accepted file reads the same after printing. A refused one has an explanation.
fuzz_target!(|text: &str| {
    match portunus::print_config(text) {
        Ok(printed) => assert_eq!(portunus::print_config(&printed), Ok(printed.clone())),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
});
