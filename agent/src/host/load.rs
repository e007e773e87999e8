//! How busy this host has been since it started: what a controller asks for before a run.

use std::io;

use serde_json::{json, Value};

use crate::clock;
use crate::meter::Tree;
use crate::others::Others;

/// CPU time since the start, summed over CPUs, how many of them there are, and what processes that
/// are not ours wanted since the first request.
pub fn since_start(tree: &Tree, others: &mut Others) -> io::Result<Value> {
    let other_demand_ns = others.read(clock::monotonic_ns(), &[]).demand_ns.round() as i64;
    let stat = tree.text("proc/stat")?;
    let per_second = match tree {
        // SAFETY: plain system call.
        Tree::Live => unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64,
        Tree::Replay(_) => 100,
    };
    let parsed = parse(&stat).ok_or_else(|| io::Error::other("its first line is none of times"))?;
    let tick_ns = 1_000_000_000 / per_second;
    let ns = |ticks: u64| ticks * tick_ns;
    let cpus = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    Ok(json!({"busy_ns": ns(parsed.busy), "steal_ns": ns(parsed.steal),
              "total_ns": ns(parsed.total), "cpus": cpus.count(), "tick_ns": tick_ns,
              "other_demand_ns": other_demand_ns}))
}

#[derive(Debug, PartialEq)]
struct Times {
    busy: u64,
    steal: u64,
    total: u64,
}

/// The first line in clock ticks. Guest time is part of user time already.
fn parse(stat: &str) -> Option<Times> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> =
        line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    fields.get(3)?;
    let busy = field(0) + field(1) + field(2) + field(5) + field(6);
    Some(Times { busy, steal: field(7), total: busy + field(3) + field(4) + field(7) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_and_guests_are_not_counted_twice() {
        let times = parse("cpu  100 20 30 1000 50 4 6 8 90 10\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!(times, Times { busy: 160, steal: 8, total: 160 + 1050 + 8 });
        assert_eq!(parse("cpu 1 2 3 4").unwrap(), Times { busy: 6, steal: 0, total: 10 });
        assert_eq!(parse("cpu 1 2"), None);
        assert_eq!(parse("intr 1 2 3 4 5"), None);
    }

    #[test]
    fn this_host_has_cpus_and_has_been_up() {
        let load = since_start(&Tree::Live, &mut Others::new(&Tree::Live)).unwrap();
        assert_eq!(load["other_demand_ns"], 0, "it counts from the first request");
        assert!(load["cpus"].as_u64().unwrap() >= 1);
        assert!(load["total_ns"].as_u64().unwrap() > load["busy_ns"].as_u64().unwrap() / 2);
    }
}
