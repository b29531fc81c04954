//! The program holds the web pages: it is built anew when they are.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
