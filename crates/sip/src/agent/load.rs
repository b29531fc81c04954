//! The numbers that an agent reports.

/// Counts of received and refused messages since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Messages that could not be parsed.
    pub malformed: u64,
    /// Requests of addresses that sent too many.
    pub limited: u64,
    /// Requests refused for lack of room: calls, accounts, transactions.
    pub full: u64,
    /// Requests for unknown accounts and dialogs: 404 and 481.
    pub unknown: u64,
    /// Responses that matched no request.
    pub stray: u64,
}

/// The present load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Accounts.
    pub accounts: usize,
    /// Calls.
    pub calls: usize,
    /// Subscriptions, publications and REFERs.
    pub subscriptions: usize,
    /// Transactions.
    pub transactions: usize,
    /// Requests of ours without a final response.
    pub exchanges: usize,
}
