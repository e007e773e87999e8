//! `meter-test METER FIXTURE`: runs a meter on the successive states of a stored tree and compares
//! its readings with the fixture's `expected.jsonl`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{json, Value};

use crate::cgroup::Cgroup;
use crate::device;
use crate::fingerprint;
use crate::manifest::Manifest;
use crate::meter::{Final, Meter, Reach, Received, Stream, Subject, Tree};
use crate::reaped::Usage;
use crate::registry::{self, Open};
use crate::samples::{RecordWriter, Samples};
use crate::tree_file::Replay;

/// The contents of `fixture.json`. The fixture's folders `0`, `1`, … are the successive states.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    #[allow(dead_code)] // documents the fixture
    source: String,
    /// Time of each state; its length is the number of states.
    t_ns: Vec<i64>,
    /// States at which `samples.edge` is true, as at a mark.
    #[serde(default)]
    edges: Vec<usize>,
    #[serde(default)]
    deny: Vec<String>,
    /// Paths that disappear, per state.
    #[serde(default)]
    gone: Vec<Vec<String>>,
    #[serde(default)]
    subjects: Vec<FixtureSubject>,
    /// The address of a device. The file `answer` of each state is what came from it.
    #[serde(default)]
    at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureSubject {
    name: String,
    pid: i32,
    guard_pid: i32,
    cgroup: Option<FixtureCgroup>,
    /// First state in which the meter follows the subject.
    #[serde(default)]
    from: usize,
    ended: Option<FixtureEnd>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureCgroup {
    path: String,
    usage: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureEnd {
    at: usize,
    cgroup_usage_ns: Option<i64>,
    reaped_ns: Option<i64>,
    /// The guard's sums, if a fixture needs more than CPU time.
    usage: Option<Usage>,
}

/// Returns the facts and the meters of the machine whose files are in the folder `0` of `folder`.
pub fn describe(folder: &Path) -> Value {
    let tree = Tree::Replay(Arc::new(Replay {
        folder: folder.to_path_buf(),
        step: AtomicUsize::new(0),
        deny: Vec::new(),
        gone: Vec::new(),
    }));
    json!({"facts": fingerprint::facts(&tree), "meters": registry::describe_all(&tree)})
}

/// Returns the meter's readings of this fixture, one JSON object per line.
pub fn replay(meter: &str, folder: &Path) -> Result<String, String> {
    let entry = registry::find(meter).ok_or_else(|| format!("no meter {meter:?}"))?;
    let path = folder.join("fixture.json");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let fixture: Fixture =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let tree = Arc::new(Replay {
        folder: folder.to_path_buf(),
        step: AtomicUsize::new(0),
        deny: fixture.deny.clone(),
        gone: fixture.gone.clone(),
    });
    let mut lines: Vec<Value> = Vec::new();
    let replayed = Tree::Replay(tree.clone());
    let absence = match entry.open {
        Open::Polled(open) => open(&replayed).map(|opened| {
            lines.push(json!({"info": opened.info}));
            let mut samples = Samples::new(RecordWriter::in_memory());
            samples.declare_for(&entry.manifest);
            run(opened.meter, &fixture, &tree, &mut samples, &mut lines);
        }),
        Open::Stream(open) => open(&replayed, &fixture.at).map(|opened| {
            answer(opened.stream, (&fixture, &tree), &entry.manifest, &mut lines);
        }),
    };
    if let Err(absent) = absence {
        lines.push(json!({"absent": {"reason": absent.reason, "grant": absent.grant}}));
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Passes the answers of a device to its meter: the bytes of the file `answer` of each state.
fn answer(
    mut stream: Box<dyn Stream>,
    (fixture, tree): (&Fixture, &Replay),
    manifest: &'static Manifest,
    lines: &mut Vec<Value>,
) {
    for (step, t_ns) in fixture.t_ns.iter().enumerate() {
        tree.step.store(step, Ordering::Relaxed);
        let path = tree.find("answer");
        let bytes = path.and_then(std::fs::read).unwrap_or_default();
        let received = Received { t_ns: *t_ns, read_ns: 0, delay_ns: 0 };
        match device::understand(&mut *stream, (manifest, 0), &bytes, received) {
            Ok(taken) => {
                let described = device::described(manifest, &taken.readings);
                let mut line = json!({"step": step, "readings": described});
                if !taken.remarks.is_empty() {
                    line["remarks"] = json!(taken.remarks);
                }
                lines.push(line);
            }
            Err(fault) => lines.push(json!({"step": step, "fault": fault})),
        }
    }
    lines.push(json!({"info": stream.info()}));
}

fn run(
    mut meter: Box<dyn Meter>,
    fixture: &Fixture,
    tree: &Replay,
    samples: &mut Samples,
    lines: &mut Vec<Value>,
) {
    let subjects: Vec<Arc<Subject>> = fixture.subjects.iter().map(subject).collect();
    meter.declare(samples);
    for (step, t_ns) in fixture.t_ns.iter().enumerate() {
        tree.step.store(step, Ordering::Relaxed);
        samples.at(*t_ns);
        samples.edge = fixture.edges.contains(&step);
        for (planned, subject) in fixture.subjects.iter().zip(&subjects) {
            if planned.from == step {
                meter.follow(subject, samples);
            }
            if let Some(end) = planned.ended.as_ref().filter(|end| end.at == step) {
                let _ = subject.ended.set(final_times(end));
            }
        }
        meter.read(samples);
        let series = samples.describe();
        for (index, value) in samples.take_values() {
            let known = &series[index as usize];
            lines.push(json!({"step": step, "quantity": known["quantity"],
                              "subject": known["subject"], "value": value}));
        }
    }
    lines.extend(samples.describe());
}

fn subject(planned: &FixtureSubject) -> Arc<Subject> {
    let cgroup = planned.cgroup.as_ref().map(|cgroup| Cgroup {
        path: cgroup.path.clone().into(),
        usage: Path::new(&cgroup.path).join(&cgroup.usage),
    });
    Arc::new(Subject {
        name: planned.name.clone(),
        pid: planned.pid,
        guard_pid: planned.guard_pid,
        reach: match planned.guard_pid {
            0 => Reach::Below,
            _ => Reach::Guarded,
        },
        cgroup,
        ended: OnceLock::new(),
    })
}

fn final_times(end: &FixtureEnd) -> Final {
    let reaped = end.reaped_ns.map(|user_ns| Usage { user_ns, ..Usage::default() });
    let rusage = end.usage.clone().or(reaped);
    Final { cgroup_usage_ns: end.cgroup_usage_ns, rusage, reaped: Vec::new() }
}

/// Runs the command: prints the readings and compares them with `expected.jsonl`, or overwrites
/// the file if `update` is true. Returns the exit code, which is 1 if the readings differ.
pub fn command(meter: &str, folder: &Path, update: bool) -> i32 {
    let readings = match replay(meter, folder) {
        Ok(readings) => readings,
        Err(message) => {
            eprintln!("meter-test: {message}");
            return 2;
        }
    };
    print!("{readings}");
    let path = folder.join("expected.jsonl");
    if update {
        return match std::fs::write(&path, readings) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("meter-test: {}: {error}", path.display());
                2
            }
        };
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    match difference(&expected, &readings) {
        None => 0,
        Some(message) => {
            eprintln!("meter-test: {}: {message}", path.display());
            1
        }
    }
}

fn difference(expected: &str, actual: &str) -> Option<String> {
    let (mut left, mut right) = (expected.lines(), actual.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (expected_line, actual_line) if expected_line != actual_line => {
                return Some(format!(
                    "line {number}: expected {}; found {}; if the new readings are correct, store \
                     them with --update",
                    expected_line.unwrap_or("no more lines"),
                    actual_line.unwrap_or("no more lines")
                ));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixtures() -> Vec<(String, std::path::PathBuf)> {
        let meters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meters");
        let folders = |path: &Path| -> Vec<std::path::PathBuf> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
        };
        let mut fixtures = Vec::new();
        for meter in folders(&meters) {
            let name = meter.file_name().unwrap().to_string_lossy().into_owned();
            for fixture in folders(&meter.join("fixtures")) {
                fixtures.push((name.clone(), fixture));
            }
        }
        fixtures
    }

    #[test]
    fn every_meter_reads_the_expected_values_from_its_fixtures() {
        let mut problems = Vec::new();
        for (meter, folder) in fixtures() {
            let expected =
                std::fs::read_to_string(folder.join("expected.jsonl")).unwrap_or_default();
            match replay(&meter, &folder).map(|readings| difference(&expected, &readings)) {
                Ok(None) => {}
                Ok(Some(message)) | Err(message) => {
                    problems.push(format!("{}: {message}", folder.display()));
                }
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn every_meter_has_a_fixture() {
        let with: Vec<String> = fixtures().into_iter().map(|(meter, _)| meter).collect();
        let mut all = registry::METERS.iter().map(|entry| entry.manifest.name);
        let without: Vec<&str> =
            all.by_ref().filter(|name| !with.contains(&(*name).into())).collect();
        assert!(without.is_empty(), "no fixture: {}", without.join(", "));
    }

    #[test]
    fn a_difference_reports_the_line_number_and_both_lines() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let message = difference("a\nb\n", "a\n").unwrap();
        assert!(message.contains("line 2: expected b; found no more lines"), "{message}");
    }
}
