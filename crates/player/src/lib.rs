//! Plays files: hands their packets to the media plane when they are due.
//!
//! A [`Player`] takes whatever can be read packet by packet ([`portunus_files::Play`]) and feeds an ingest for each of
//! its tracks. Files are read ahead on the threads for what blocks, a batch at a time; the task that sleeps until
//! packets are due never touches the disk.
#![forbid(unsafe_code)]

mod batch;
mod clock;
mod disk;
mod feed;
mod player;
mod requests;

pub use feed::Feed;
pub use player::{Ended, Player};
pub use requests::Hold;
