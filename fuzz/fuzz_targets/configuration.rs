#![no_main]

use libfuzzer_sys::fuzz_target;

// A file that is taken reads the same when it is printed; one that is not is told why.
fuzz_target!(|text: &str| {
    match portunus::print_config(text) {
        Ok(printed) => assert_eq!(portunus::print_config(&printed), Ok(printed.clone())),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
});
