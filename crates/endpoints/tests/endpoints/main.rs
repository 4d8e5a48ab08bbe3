//! Requests to resources on a real store, without a network.

mod bad_input;
mod discovery;
mod fuzz;
mod lists;
mod matrix;
mod objects;
mod resources;
mod routes;
mod support;
mod watches;
mod websockets;
