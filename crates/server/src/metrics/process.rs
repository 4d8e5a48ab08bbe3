use std::fs;

use prometheus::{Counter, Gauge, IntGauge, Registry};

use super::registered;

/// The unit of times in `/proc`, which Linux has fixed for programs: a hundredth of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// What the operating system says about the process. Where there is no `/proc` everything stays zero.
pub(super) struct Process {
    cpu: Counter,
    open_fds: IntGauge,
    max_fds: IntGauge,
    virtual_memory: IntGauge,
    resident_memory: IntGauge,
    start_time: Gauge,
}

impl Process {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name: &str, help: &str| registered(registry, IntGauge::new(name, help));
        let cpu = Counter::new("process_cpu_seconds_total", "CPU time used, in seconds.");
        let start =
            Gauge::new("process_start_time_seconds", "When the process began, in seconds of Unix time.");
        Self {
            cpu: registered(registry, cpu),
            open_fds: gauge("process_open_fds", "File descriptors that are open."),
            max_fds: gauge("process_max_fds", "File descriptors that may be open."),
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory, in bytes."),
            resident_memory: gauge("process_resident_memory_bytes", "Resident memory, in bytes."),
            start_time: registered(registry, start),
        }
    }

    pub(super) fn update(&self) {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/self/stat");
        if let Some(times) = Times::parse(&stat) {
            self.cpu.reset();
            self.cpu.inc_by(times.cpu);
            if let Some(booted) = number_after(&read("/proc/stat"), "btime ") {
                self.start_time.set(booted as f64 + times.begun);
            }
        }
        let status = read("/proc/self/status");
        for (gauge, label) in [(&self.virtual_memory, "VmSize:"), (&self.resident_memory, "VmRSS:")] {
            gauge.set(number_after(&status, label).unwrap_or_default().saturating_mul(1024));
        }
        let limits = read("/proc/self/limits");
        self.max_fds.set(number_after(&limits, "Max open files").unwrap_or_default());
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.open_fds.set(i64::try_from(open).unwrap_or_default());
    }
}

/// Times of the process, in seconds.
struct Times {
    cpu: f64,
    /// Since the machine was booted.
    begun: f64,
}

impl Times {
    /// From the text of `/proc/PID/stat`. The second field is the program's name, which can contain anything,
    /// also brackets and spaces.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let field = |number: usize| fields.split(' ').nth(number - 3)?.parse::<f64>().ok();
        let (user, system, begun) = (field(14)?, field(15)?, field(22)?);
        Some(Self { cpu: (user + system) / TICKS_PER_SECOND, begun: begun / TICKS_PER_SECOND })
    }
}

/// The first number after `label`.
fn number_after(text: &str, label: &str) -> Option<i64> {
    let (_, after) = text.split_once(label)?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 9 0 0 0 250 50 0 0 20 0 4 0 12345 99 88";
        let times = Times::parse(stat).expect("readable");
        assert_eq!((times.cpu, times.begun), (3.0, 123.45));
        assert!(Times::parse("").is_none() && Times::parse("7 (a) R").is_none());
        assert_eq!(number_after("VmSize:\t 123 kB\nVmRSS:\t45 kB\n", "VmRSS:"), Some(45));
        assert_eq!(number_after("Max open files   1024  2048  files", "Max open files"), Some(1024));
        assert_eq!(number_after("", "VmRSS:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_has_memory_files_and_a_beginning() {
        let process = Process::new(&Registry::new());
        process.update();
        process.update();
        assert!(process.resident_memory.get() > 1 << 20);
        assert!(process.virtual_memory.get() >= process.resident_memory.get());
        assert!(process.open_fds.get() > 2 && process.max_fds.get() >= process.open_fds.get());
        assert!(process.start_time.get() > 1.5e9, "{}", process.start_time.get());
    }
}
