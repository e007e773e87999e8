//! Determines the descendants of a process from /proc.

use std::ffi::CStr;
use std::fs;

/// Returns all descendants of `root`, without `root` itself.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut pids = Vec::new();
    if children(root, &mut pids).is_none() {
        return descendants_by_parent(root);
    }
    let mut next = 0;
    while next < pids.len() {
        let pid = pids[next];
        children(pid, &mut pids);
        next += 1;
    }
    pids
}

/// Appends the children of all threads of `pid`. Returns None if the kernel has no `children` file
/// or the process has ended.
fn children(pid: i32, pids: &mut Vec<i32>) -> Option<()> {
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let Ok(task) = task else { continue };
        let Ok(text) = fs::read_to_string(task.path().join("children")) else {
            if task.path().exists() {
                return None;
            }
            continue;
        };
        pids.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(())
}

/// Does the same on kernels without CONFIG_PROC_CHILDREN, from the parent of every process.
fn descendants_by_parent(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> =
        all().into_iter().filter_map(|pid| Some((pid, Stat::read(pid)?.parent))).collect();
    let mut pids = vec![root];
    let mut next = 0;
    while next < pids.len() {
        let parent = pids[next];
        let children = parents.iter().filter(|(pid, of)| *of == parent && !pids.contains(pid));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        pids.extend(children);
        next += 1;
    }
    pids.split_off(1)
}

/// Sends a signal to one process and returns whether it was sent. A list of processes contains 0
/// for a process of another PID namespace, and kill(2) takes 0 and below for groups.
pub fn kill(pid: i32, signal: i32) -> bool {
    // SAFETY: plain system call.
    pid > 1 && unsafe { libc::kill(pid, signal) } == 0
}

/// Parses a list of processes, such as cgroup.procs, without those that no signal may reach.
pub fn parse_pids(text: &str) -> impl Iterator<Item = i32> + '_ {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).filter(|pid| *pid > 1)
}

/// Returns every process of this host that is visible to this user.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Returns whether the process has this name and is not a zombie.
pub fn is_called(pid: i32, name: &CStr) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat_has_name(&stat, name.to_bytes())
}

/// Checks the contents of /proc/PID/stat: `pid (name) state ...`. The name may contain brackets
/// and spaces.
fn stat_has_name(stat: &[u8], name: &[u8]) -> bool {
    let begin = stat.iter().position(|byte| *byte == b'(').map(|at| at + 1);
    let end = stat.iter().rposition(|byte| *byte == b')');
    let (Some(begin), Some(end)) = (begin, end) else { return false };
    stat.get(begin..end) == Some(name) && !matches!(stat.get(end + 2), None | Some(b'Z' | b'X'))
}

/// The process flag of kernel threads (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Fields of /proc/PID/stat.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    pub state: char,
    pub parent: i32,
    pub session: i32,
    pub is_kernel_thread: bool,
    /// Minor page faults of the children that the process has waited for.
    pub waited_children_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub waited_children_ticks: u64,
    /// From -20 (highest priority) to 19.
    pub nice: i64,
    pub threads: u64,
    pub start_ticks: u64,
    /// SCHED_OTHER is 0, SCHED_IDLE is 5.
    pub policy: u64,
}

impl Stat {
    pub fn read(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Counts the fields after the last bracket, because the name may contain spaces and brackets.
    pub fn parse(text: &str) -> Option<Stat> {
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            is_kernel_thread: number(6)? & PF_KTHREAD != 0,
            waited_children_faults: number(8)?,
            user_ticks: number(11)?,
            system_ticks: number(12)?,
            waited_children_ticks: number(13)? + number(14)?,
            nice: fields.get(16)?.parse().ok()?,
            threads: number(17)?,
            start_ticks: number(19)?,
            policy: number(38).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_spaces_in_a_name_do_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 42 40 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 5 0 999 0 0";
        let stat = Stat::parse(line).unwrap();
        let expected = Stat {
            state: 'S',
            parent: 7,
            session: 40,
            is_kernel_thread: false,
            waited_children_faults: 2,
            user_ticks: 10,
            system_ticks: 20,
            waited_children_ticks: 70,
            nice: 0,
            threads: 5,
            start_ticks: 999,
            policy: 0,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn a_name_matches_the_complete_text_in_brackets_and_never_a_zombie() {
        let matches = |stat: &[u8]| stat_has_name(stat, b"wattwire-agent");
        assert!(matches(b"42 (wattwire-agent) S 7 42"));
        assert!(!matches(b"42 (wattwire-agent) Z 7 42"));
        assert!(!matches(b"42 (wattwire-agent)) S 7 42"));
        assert!(!matches(b"42 (my wattwire-agent) S 7 42"));
        assert!(!matches(b""));
    }

    #[test]
    fn no_signal_reaches_a_group_the_own_group_or_the_first_process() {
        assert!([i32::MIN, -1, 0, 1].iter().all(|pid| !kill(*pid, 0)));
        assert!(kill(std::process::id() as i32, 0));
        assert_eq!(parse_pids("0\n0\n1\n7\n-3\n").collect::<Vec<i32>>(), [7]);
    }

    #[test]
    fn both_methods_return_the_same_descendants() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 30 & sleep 30 & wait"])
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        while descendants(pid).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let (mut by_children, mut by_parent) = (descendants(pid), descendants_by_parent(pid));
        by_children.sort_unstable();
        by_parent.sort_unstable();
        for pid in by_children.iter().chain([&pid]) {
            kill(*pid, libc::SIGKILL);
        }
        child.wait().unwrap();
        assert_eq!(by_children, by_parent);
    }
}
