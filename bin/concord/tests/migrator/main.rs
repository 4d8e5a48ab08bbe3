//! The migrator in one process with its store, its encryption and its admission, all of which do what a test says: crashes,
//! lost answers, refusals, and a server that is behind.
//!
//! Which test shows which row of the list that a migrator has to pass stands in `docs/migration-tests.md`.

mod answers;
mod automatic;
mod crashes;
mod definitions;
mod faulty;
mod manners;
mod orders;
mod rates;
mod services;
mod several;
mod store;
mod world;
