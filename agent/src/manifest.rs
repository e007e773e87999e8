//! Types for the contents of a `meter.toml`, which `build.rs` compiles into the agent.

/// How often a meter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // the compiled meters may not use every tier
pub enum Tier {
    Tick,
    Second,
    Edge,
    /// By a thread of its own, which waits for a device outside the machine.
    Stream,
}

/// A `[[quantity]]` of a `meter.toml`.
#[derive(Debug)]
pub struct Quantity {
    pub name: &'static str,
    pub unit: &'static str,
    pub scope: &'static str,
    pub counter: bool,
    pub kind: &'static str,
    pub summary: &'static str,
    pub wrap: Option<&'static str>,
    /// Preference among energy sources (docs/manifests.md). None: not an energy source.
    pub rank: Option<u32>,
}

/// Scopes of values that two agents of one machine do not read twice.
const OWN_SCOPES: [&str; 3] = ["process", "interface", "harness"];

/// A `meter.toml`.
#[derive(Debug)]
pub struct Manifest {
    pub name: &'static str,
    pub title: &'static str,
    pub tier: Tier,
    pub default: bool,
    /// If true, the values of scope `machine` belong to the agent's network namespace.
    pub per_network_namespace: bool,
    /// An example of an address; empty except for meters of tier `stream`.
    pub address: &'static str,
    pub quantities: &'static [Quantity],
}

impl Manifest {
    /// Returns whether values of this scope describe more than the agent's own part of the machine.
    pub fn is_machine_wide(&self, scope: &str) -> bool {
        !self.per_network_namespace && !OWN_SCOPES.contains(&scope)
    }
}
