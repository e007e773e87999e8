//! Types for the contents of a `meter.toml`, which `build.rs` compiles into the agent.

/// How often a meter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // the compiled meters may not use every tier
pub enum Tier {
    Tick,
    Second,
    Edge,
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

/// A `meter.toml`.
#[derive(Debug)]
pub struct Manifest {
    pub name: &'static str,
    pub title: &'static str,
    pub tier: Tier,
    pub default: bool,
    pub quantities: &'static [Quantity],
}
