//! The guard's sums of `wait4` over a process and all its descendants, after their end.

use std::sync::Arc;

use crate::meter::{Absent, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree};

const QUANTITIES: [&str; 5] =
    ["max_rss", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches"];

struct Rusage {
    followed: Vec<Followed>,
}

struct Followed {
    subject: Arc<Subject>,
    /// In the order of `QUANTITIES`.
    series: [SeriesId; 5],
    written: bool,
}

pub fn open(_tree: &Tree) -> Result<Opened, Absent> {
    Ok(Opened::new(Rusage { followed: Vec::new() }))
}

impl Meter for Rusage {
    fn declare(&mut self, _samples: &mut Samples) {}

    fn follow(&mut self, subject: &Arc<Subject>, samples: &mut Samples) {
        if subject.reach != Reach::Guarded {
            return; // only the parent of a process gets its resource usage
        }
        let series = QUANTITIES.map(|quantity| samples.declare(quantity, Place::of(&subject.name)));
        self.followed.push(Followed { subject: subject.clone(), series, written: false });
    }

    fn read(&mut self, samples: &mut Samples) {
        for followed in self.followed.iter_mut().filter(|followed| !followed.written) {
            let Some(end) = followed.subject.ended.get() else { continue };
            followed.written = true;
            samples.begin();
            let Some(usage) = &end.rusage else {
                // The guard was killed, so its sums are lost.
                followed.series.iter().for_each(|series| samples.lost(*series));
                continue;
            };
            let values =
                [usage.maxrss_bytes, usage.minflt, usage.majflt, usage.nvcsw, usage.nivcsw];
            for (series, value) in followed.series.iter().zip(values) {
                samples.put(*series, value as f64);
            }
        }
    }
}
