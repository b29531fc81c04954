//! What passes between a node and the bus.

use bytes::Bytes;

/// A bucket of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// The nodes. An entry expires 15 s after it was written.
    Nodes,
    /// The homes. An entry stays until it is deleted.
    Homes,
}

/// The number of a request to the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A request to write. It is always answered, at the latest after 5 s, by [`BusEvent::Written`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusRequest {
    /// Its number.
    pub id: OpId,
    /// Where to write.
    pub bucket: Bucket,
    /// The key.
    pub key: String,
    /// What to write.
    pub write: Write,
}

/// A write, which fails if the entry is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Makes an entry where there is none, or where it was deleted or has expired.
    Create(Bytes),
    /// Replaces the entry with this sequence number.
    Update(Bytes, u64),
    /// Deletes the entry with this sequence number.
    Delete(u64),
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is written, with this sequence number.
    Done(u64),
    /// The entry is not as expected.
    Conflict,
    /// The bus did not confirm it. It may be written all the same, or still become so.
    Unknown,
}

/// Something that comes from the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusEvent {
    /// The bus is connected. The entries of each bucket follow.
    Connected,
    /// The bus is lost.
    Lost,
    /// The entries of a bucket follow from the beginning.
    Snapshot {
        /// The bucket.
        bucket: Bucket,
        /// When the bucket was made, in ms since 1970.
        generation: u64,
    },
    /// An entry, or a change of one.
    Entry(Entry),
    /// All entries that a bucket had have come. From now on changes follow.
    Current(Bucket),
    /// The outcome of a request.
    Written {
        /// The request.
        id: OpId,
        /// The outcome.
        outcome: Outcome,
    },
}

/// An entry of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its bucket.
    pub bucket: Bucket,
    /// Its key.
    pub key: String,
    /// Its sequence number.
    pub sequence: u64,
    /// The value, or `None` if it was deleted or has expired.
    pub value: Option<Bytes>,
}
