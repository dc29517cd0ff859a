//! `refit crash`: by what a program, its load or its calls acknowledge.

use std::net::TcpListener;

use crate::crash::{bad, crash, crash_shell, mode, require_lab};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(sync_calls_are_acknowledgements),
    test!(acknowledgements_of_a_load_on_a_server_are_read),
    test!(mails_are_acknowledged),
];

fn sync_calls_are_acknowledgements(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 500 300");
    let report = crash_shell(
        env,
        0,
        "--check lines:a.log --ack sync --size 64M --cuts 60",
        &command,
    );
    let baseline = mode(&report, "baseline");
    assert_eq!(bad(baseline), 0);
    let acknowledged = baseline["record"]["acknowledged_ns"]
        .as_array()
        .expect("times");
    assert_eq!(acknowledged.len(), 500);
    Outcome::Pass
}

fn acknowledgements_of_a_load_on_a_server_are_read(env: &TestEnv) -> Outcome {
    require_lab(env);
    // The server appends what arrives in its pipe; the load is told when it is durable.
    let server = env.file(
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
    let load = env.file(
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
    let report = crash(env, 0, &words);
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

fn mails_are_acknowledged(env: &TestEnv) -> Outcome {
    require_lab(env);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let server = env.file("smtp.py", SMTP_SERVER);
    let ack = format!("smtp:127.0.0.1:{port}/b@test.local");
    let port = port.to_string();
    let words = [
        "--check", "mail:box", "--ack", &ack, "--for", "2s", "--size", "128M", "--cuts", "40",
        "sync=off", "--", "python3", &server, &port,
    ];
    let report = crash(env, 0, &words);
    let baseline = mode(&report, "baseline");
    let mails = baseline["record"]["acknowledged_ns"]
        .as_array()
        .expect("times")
        .len();
    // How many there are in two seconds depends on the machine.
    assert!(mails > 0, "no mail was acknowledged");
    assert_eq!(bad(baseline), 0);
    assert!(bad(mode(&report, "sync=off")) > 0);
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
