//! Configurations in the documentation are valid.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::fs;
use std::path::Path;

#[test]
fn configurations_in_the_documentation_are_accepted() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut checked = 0;
    for pages in [docs.join("guides"), docs] {
        for page in fs::read_dir(pages).unwrap() {
            let page = page.unwrap().path();
            if page.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&page).unwrap();
            for block in text.split("```toml\n").skip(1) {
                let shown = block.split("```").next().unwrap();
                // Its files and addresses are not on this machine.
                if let Err(mistakes) = portunus::print_config(shown) {
                    panic!("{}: {mistakes:?}\n{shown}", page.display());
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 5, "only {checked} were found");
}
