//! Agents: workers register, and get jobs when rooms and participants begin.

mod job_token;
mod pool;
