//! `refit crash`: what real programs lose at simulated power cuts, and that the lab leaves nothing behind.

use std::collections::HashSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::lab::{Lab, described, expect_code, wait_until};
use crate::runner::{Outcome, Test};
use crate::test;

pub const TESTS: &[Test] = &[
    test!(a_synced_log_loses_nothing_and_without_syncs_everything).limit_seconds(180),
    test!(sqlite_loses_its_last_row_as_it_says),
    test!(a_flush_each_second_loses_what_was_safe).limit_seconds(300),
    test!(a_check_that_always_says_yes_is_found),
    test!(checks_may_have_much_to_say),
    test!(sync_calls_are_acknowledgements),
    test!(a_load_on_a_server_is_heard),
    test!(mails_are_acknowledged),
    test!(a_slow_disk_s_flushes_take_their_time),
    test!(each_file_system_keeps_what_was_synced),
    test!(a_state_opens_again),
    test!(a_killed_lab_leaves_nothing),
];

/// What the lab needs beside root.
pub fn require_lab(lab: &Lab) {
    lab.require_root();
    for path in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = fs::File::options().read(true).write(true).open(path) {
            lab.skip(&format!("simulated power cuts need {path}: {error}"));
        }
    }
    lab.require_command("mkfs.ext4");
}

/// A mode of a report, by its name.
fn mode<'a>(report: &'a Value, name: &str) -> &'a Value {
    let modes = report["modes"].as_array().expect("an array");
    let found = modes.iter().find(|mode| mode["name"] == name);
    found.unwrap_or_else(|| panic!("no mode {name}: {modes:?}"))
}

fn states(mode: &Value) -> &Vec<Value> {
    mode["states"].as_array().expect("an array")
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// Before the first acknowledgement no promise can be broken.
fn is_bad(state: &Value) -> bool {
    number(&state["loss"]["acknowledged"]) > 0 && is_harmed(state)
}

fn is_harmed(state: &Value) -> bool {
    number(&state["loss"]["lost"]) > 0
        || !state["broken"].is_null()
        || !state["unmountable"].is_null()
}

fn bad(mode: &Value) -> usize {
    states(mode).iter().filter(|state| is_bad(state)).count()
}

fn images(mode: &Value) -> usize {
    let names = states(mode)
        .iter()
        .map(|state| state["image"].as_str().expect("a name"));
    names.collect::<HashSet<_>>().len()
}

fn suppressed(mode: &Value) -> u64 {
    let totals = mode["run"]["totals"].as_object().expect("counts");
    totals
        .values()
        .map(|calls| number(&calls["suppressed"]))
        .sum()
}

/// Runs the lab in the test's own directory; its report.
pub fn crash(lab: &Lab, code: i32, words: &[&str]) -> Value {
    let json = lab.path("crash.json");
    let record = lab.path("records");
    let _ = fs::remove_dir_all(&record);
    let mut all = vec!["crash", "--quiet", "--json", &json, "--record", &record];
    all.extend(words);
    let output = lab.refit(&all);
    expect_code(&output, code);
    let text = fs::read_to_string(&json).expect("refit wrote it");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", described(&output)))
}

fn a_synced_log_loses_nothing_and_without_syncs_everything(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 1500 300");
    let words = [
        "--check",
        "log:a.log",
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "310",
        "sync=off",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(lab, 0, &words);
    let baseline = mode(&report, "baseline");
    assert_eq!(states(baseline).len(), 310);
    assert_eq!(bad(baseline), 0, "a synced log loses nothing");
    assert_eq!(suppressed(baseline), 0);
    assert!(
        images(baseline) >= 100,
        "{} different images",
        images(baseline)
    );
    let pending = states(baseline)
        .iter()
        .filter(|state| number(&state["pending"]) > 0)
        .count();
    assert!(pending >= 155, "{pending} cuts with something pending");
    let most = states(baseline)
        .iter()
        .map(|state| number(&state["loss"]["acknowledged"]))
        .max();
    assert!(most > Some(1000), "the cuts reach to the end: {most:?}");

    let off = mode(&report, "sync=off");
    assert_eq!(suppressed(off), 1500);
    assert_eq!(off["class"], "loses-on-crash");
    assert!(bad(off) >= 300, "{} of 310 lose", bad(off));
    let control = mode(&report, "control");
    assert!(
        bad(control) >= 10,
        "{} of {} lose",
        bad(control),
        states(control).len()
    );
    assert_eq!(
        report["modes"][0]["name"], "control",
        "the control comes first"
    );
    Outcome::Pass
}

/// SQLite's documentation says that in DELETE mode only EXTRA syncs the directory after its journal is unlinked.
fn sqlite_loses_its_last_row_as_it_says(lab: &Lab) -> Outcome {
    require_lab(lab);
    lab.require_command("sqlite3");
    let rows = |synchronous: &str| {
        let program = format!(
            "import os, sqlite3\n\
             db = sqlite3.connect(os.environ['REFIT_MOUNT'] + '/t.db', isolation_level=None)\n\
             db.execute('pragma journal_mode=delete')\n\
             db.execute('pragma synchronous={synchronous}')\n\
             db.execute('create table if not exists t(i integer primary key, s text)')\n\
             for i in range(1, 301):\n    \
                 db.execute('insert into t values(?, ?)', (i, 'x' * 100))\n    \
                 os.write(1, b'%d\\n' % i)\n"
        );
        let script = lab.file("rows.py", &program);
        let code = if synchronous == "full" { 1 } else { 0 };
        let words = [
            "--check",
            "sqlite:t.db:SELECT i FROM t",
            "--ack",
            "fd:1",
            "--size",
            "64M",
            "--cuts",
            "120",
            "--",
            "python3",
            &script,
        ];
        crash(lab, code, &words)
    };
    let full = rows("full");
    let baseline = mode(&full, "baseline");
    assert!(bad(baseline) > 0, "FULL loses");
    let worst = states(baseline)
        .iter()
        .map(|state| number(&state["loss"]["lost"]))
        .max();
    assert_eq!(worst, Some(1), "its last row");
    let extra = rows("extra");
    assert_eq!(bad(mode(&extra, "baseline")), 0, "EXTRA loses nothing");
    assert!(images(mode(&extra, "baseline")) > 30);
    Outcome::Pass
}

/// Items that were durable for seconds are lost when they are moved on: whether a cut shows it is a race.
fn a_flush_each_second_loses_what_was_safe(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("store_and_forward");
    let check = "cd \"$REFIT_MOUNT\" && find spool box -name '[0-9]*' -size 6000c -printf '%f\\n'";
    let prepare = "cd $REFIT_MOUNT && mkdir spool box && \
                   python3 -c 'for n in range(1, 2001): open(f\"spool/{n}\", \"w\").write(\"item\\n\" * 1200)'";
    let command = format!("cd $REFIT_MOUNT && seq 2000 && exec {program} 2000 1000");
    let mut said = String::new();
    for _ in 0..5 {
        let words = [
            "--check",
            check,
            "--ack",
            "fd:1",
            "--prepare",
            prepare,
            "--size",
            "128M",
            "--cuts",
            "60",
            "--beside",
            "while sleep 1; do sync -f \"$REFIT_MOUNT\"; done",
            "sync=off",
            "--",
            "sh",
            "-c",
            &command,
        ];
        let report = crash(lab, 0, &words);
        assert_eq!(
            bad(mode(&report, "baseline")),
            0,
            "with its syncs it loses nothing"
        );
        let off = mode(&report, "sync=off");
        assert!(suppressed(off) >= 4000);
        let lossy = bad(off);
        said = format!("{lossy} of 60 cuts lose");
        if lossy > 0 {
            let oldest = states(off)
                .iter()
                .filter_map(|state| state["loss"]["oldest_ns"].as_u64())
                .max();
            assert!(oldest.is_some(), "a loss has an age");
            return Outcome::Pass;
        }
    }
    panic!("five runs, and none lost anything: {said}");
}

fn a_check_that_always_says_yes_is_found(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 600 300");
    let words = [
        "--check",
        "cat \"$REFIT_ACKED\"",
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "20",
        "sync=off",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(lab, 2, &words);
    let why = report["invalid"].as_str().expect("a reason");
    assert!(why.contains("nothing was lost"), "{why}");
    assert_eq!(
        report["modes"].as_array().map(Vec::len),
        Some(1),
        "no verdict on a mode"
    );
    Outcome::Pass
}

/// Together more than a pipe holds, from each of two workers: 150 states of 1,200 bytes.
fn checks_may_have_much_to_say(lab: &Lab) -> Outcome {
    require_lab(lab);
    let command = format!("{} $REFIT_MOUNT/a.log 400", lab.program("append_log"));
    let check = "cat $REFIT_MOUNT/a.log
        test $(wc -l <$REFIT_ACKED) = 400 && exit
        printf '😀%.0s' $(seq 300) >&2
        exit 1";
    let words = [
        "--check", check, "--ack", "fd:1", "--size", "16M", "--cuts", "300", "--", "sh", "-c",
        &command,
    ];
    let report = crash(lab, 1, &words);
    let baseline = mode(&report, "baseline");
    let said: usize = states(baseline)
        .iter()
        .filter_map(|state| state["broken"].as_str())
        .map(str::len)
        .sum();
    assert_eq!(states(baseline).len(), 300);
    assert!(said > 4 * 65536, "{said} bytes");
    Outcome::Pass
}

fn sync_calls_are_acknowledgements(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 500 300");
    let words = [
        "--check",
        "lines:a.log",
        "--ack",
        "sync",
        "--size",
        "64M",
        "--cuts",
        "60",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(lab, 0, &words);
    let baseline = mode(&report, "baseline");
    assert_eq!(bad(baseline), 0);
    let acknowledged = baseline["record"]["acknowledged_ns"]
        .as_array()
        .expect("times");
    assert_eq!(acknowledged.len(), 500);
    Outcome::Pass
}

fn a_load_on_a_server_is_heard(lab: &Lab) -> Outcome {
    require_lab(lab);
    // The server appends what arrives in its pipe; the load is told when it is durable.
    let server = lab.file(
        "server.py",
        "import os, signal\n\
         m = os.environ['REFIT_MOUNT']\n\
         os.mkfifo(m + '/in'); os.mkfifo(m + '/out')\n\
         log = open(m + '/a.log', 'ab', 0)\n\
         open(m + '/ready', 'w').close()\n\
         i, o = open(m + '/in', 'rb', 0), open(m + '/out', 'wb', 0)\n\
         for line in i:\n    \
             log.write(line); os.fsync(log.fileno()); o.write(line)\n\
         signal.pause()\n",
    );
    let load = lab.file(
        "load.py",
        "import os, time\n\
         m = os.environ['REFIT_MOUNT']\n\
         i, o = open(m + '/in', 'wb', 0), open(m + '/out', 'rb', 0)\n\
         for n in range(1, 401):\n    \
             i.write(b'item %d\\n' % n); o.readline(); print('stored as item %d of many' % n, flush=True); time.sleep(0.0003)\n",
    );
    let load = format!("python3 {load}");
    let words = [
        "--check",
        "log:a.log:item (\\d+)",
        "--ack-regex",
        "stored as item (\\d+)",
        "--load",
        &load,
        "--ready",
        "test -e $REFIT_MOUNT/ready",
        "--size",
        "64M",
        "--cuts",
        "40",
        "sync=off",
        "--",
        "python3",
        &server,
    ];
    let report = crash(lab, 0, &words);
    let baseline = mode(&report, "baseline");
    assert_eq!(
        baseline["record"]["acknowledged_ns"]
            .as_array()
            .map(Vec::len),
        Some(400)
    );
    assert_eq!(bad(baseline), 0);
    assert!(bad(mode(&report, "sync=off")) > 0);
    Outcome::Pass
}

fn mails_are_acknowledged(lab: &Lab) -> Outcome {
    require_lab(lab);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let server = lab.file("smtp.py", SMTP_SERVER);
    let ack = format!("smtp:127.0.0.1:{port}/b@test.local");
    let port = port.to_string();
    let words = [
        "--check", "mail:box", "--ack", &ack, "--for", "2s", "--size", "128M", "--cuts", "40",
        "sync=off", "--", "python3", &server, &port,
    ];
    let report = crash(lab, 0, &words);
    let baseline = mode(&report, "baseline");
    let mails = baseline["record"]["acknowledged_ns"]
        .as_array()
        .expect("times")
        .len();
    assert!(mails > 20, "{mails} mails in two seconds");
    assert_eq!(bad(baseline), 0);
    assert!(bad(mode(&report, "sync=off")) > 20);
    Outcome::Pass
}

/// A mail server in small: each mail becomes a file of a Maildir, by the book.
const SMTP_SERVER: &str = r#"
import os, socketserver, sys, threading
box = os.environ['REFIT_MOUNT'] + '/box'
for part in ('tmp', 'new'):
    os.makedirs(box + '/' + part)
lock, count = threading.Lock(), [0]

def store(mail):
    with lock:
        count[0] += 1
        name = str(count[0])
    with open(f'{box}/tmp/{name}', 'wb') as file:
        file.write(mail)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f'{box}/tmp/{name}', f'{box}/new/{name}')
    directory = os.open(box + '/new', os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)

class Session(socketserver.StreamRequestHandler):
    def say(self, words):
        self.wfile.write(words + b'\r\n')

    def handle(self):
        self.say(b'220 here')
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b'EHLO':
                self.wfile.write(b'250-here\r\n250 HELP\r\n')
            elif verb == b'DATA':
                self.say(b'354 go on')
                mail = b''
                while (line := self.rfile.readline()) != b'.\r\n':
                    mail += line
                store(mail)
                self.say(b'250 stored')
            elif verb == b'QUIT':
                self.say(b'221 bye')
                return
            else:
                self.say(b'250 fine')

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

Server(('127.0.0.1', int(sys.argv[1])), Session).serve_forever()
"#;

fn a_slow_disk_s_flushes_take_their_time(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 100");
    let words = [
        "--check",
        "log:a.log",
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "20",
        "--with",
        "disk=4ms",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(lab, 0, &words);
    let record = &mode(&report, "baseline")["record"];
    let times = record["flushed_ns"].as_array().expect("times");
    let times: Vec<u64> = times.iter().map(number).collect();
    assert!(times.len() >= 200, "{} flushes", times.len());
    let fastest = times.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert!(fastest >= Some(2_000_000), "half of 4 ms each: {fastest:?}");
    Outcome::Pass
}

fn each_file_system_keeps_what_was_synced(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 300 500");
    for (kind, options, size) in [
        ("ext4", "data=journal", "64M"),
        ("xfs", "", "320M"),
        ("btrfs", "", "256M"),
    ] {
        lab.require_command(&format!("mkfs.{kind}"));
        let words = [
            "--fs",
            kind,
            "--mount-options",
            options,
            "--check",
            "log:a.log",
            "--ack",
            "fd:1",
            "--size",
            size,
            "--cuts",
            "24",
            "sync=off",
            "--",
            "sh",
            "-c",
            &command,
        ];
        let report = crash(lab, 0, &words);
        assert_eq!(report["filesystem"]["kind"], kind);
        assert_eq!(bad(mode(&report, "baseline")), 0, "{kind}");
        assert!(bad(mode(&report, "sync=off")) > 15, "{kind}");
    }
    Outcome::Pass
}

fn a_state_opens_again(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 400 300");
    let words = [
        "--check",
        "log:a.log",
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "20",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(lab, 0, &words);
    let state = states(mode(&report, "baseline")).last().expect("cuts");
    let name = format!(
        "{}/baseline/{}",
        lab.path("records"),
        state["name"].as_str().expect("a name")
    );
    let wanted = number(&state["loss"]["acknowledged"]);
    let output = lab.refit(&[
        "crash",
        "open",
        &name,
        "--",
        "sh",
        "-c",
        "wc -l <a.log; touch new; exit 7",
    ]);
    expect_code(&output, 7);
    let lines: u64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .expect("a number");
    assert!(
        lines >= wanted && lines <= wanted + 1,
        "{lines} lines, {wanted} acknowledged"
    );
    // What was done to a state is forgotten.
    let output = lab.refit(&["crash", "open", &name, "--", "ls"]);
    expect_code(&output, 0);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("new"));
    nothing_is_left(&lab.path("records"));
    Outcome::Pass
}

/// No mount and no loop device of the lab whose records are here.
fn remains(records: &str) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc is mounted");
    let mounts = mounts
        .lines()
        .filter(|line| line.contains(records))
        .map(str::to_owned);
    let loops = fs::read_dir("/sys/block").expect("/sys is mounted");
    let backing = loops.filter_map(|entry| {
        let path = entry.expect("readable").path().join("loop/backing_file");
        fs::read_to_string(path).ok()
    });
    mounts
        .chain(backing.filter(|file| file.contains(records)))
        .collect()
}

/// Processes that were started with this path.
fn processes_of(records: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("/proc is mounted");
    let commands = all.filter_map(|entry| {
        let path = entry.expect("readable").path().join("cmdline");
        fs::read_to_string(path).ok()
    });
    commands
        .filter(|command| command.contains(records))
        .collect()
}

fn nothing_is_left(records: &str) {
    wait_until("mounts and loop devices are gone", || {
        remains(records).is_empty()
    });
}

fn a_killed_lab_leaves_nothing(lab: &Lab) -> Outcome {
    require_lab(lab);
    let program = lab.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 2000 300");
    let records = lab.path("records");
    // What is not yet written is the hardest to let go of: it would go to a disk that nobody serves any more.
    let dirty = "i=0; while :; do i=$((i + 1)); head -c 4M /dev/urandom >$REFIT_MOUNT/f$((i % 20)); echo $i; done";
    // In the middle of the recording, and of the cuts.
    for (step, command) in [
        ("baseline/record", command.as_str()),
        ("baseline/record", dirty),
        ("acked-1", command.as_str()),
    ] {
        let _ = fs::remove_dir_all(&records);
        let words = [
            "crash",
            "--quiet",
            "--record",
            &records,
            "--check",
            "log:a.log",
            "--ack",
            "fd:1",
            "--size",
            "64M",
            "--cuts",
            "2000",
            "--",
            "sh",
            "-c",
            command,
        ];
        let mut refit: Child = lab
            .refit_command(&words)
            .stdin(Stdio::null())
            .spawn()
            .expect("refit starts");
        let heard = Path::new(&records).join("baseline/heard");
        wait_until(step, || Path::new(&records).join(step).exists());
        // It has written, and was heard.
        wait_until("the program works", || {
            fs::metadata(&heard).is_ok_and(|about| about.len() > 10)
        });
        refit.kill().expect("it runs");
        refit.wait().expect("it ended");
        nothing_is_left(&records);
        wait_until("its processes are gone", || {
            processes_of(&records).is_empty()
        });
    }
    Outcome::Pass
}
