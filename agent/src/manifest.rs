//! What a `meter.toml` says, as `build.rs` compiles it in.

/// How often a meter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // which of them occur is up to the meters
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
    /// Its place among the sources of energy; None: it is none of them.
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
