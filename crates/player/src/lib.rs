//! Plays files: hands their packets to the media plane when they are due.
//!
//! A [`Player`] plays anything that can be read packet by packet ([`portunus_files::Play`]), and
//! feeds an ingest for each track. Files are read ahead in batches on blocking threads; the task
//! that waits for packets to be due never touches the disk.
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
