use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::schedule::{Arrivals, schedule};

/// A server in a thread of its own; `answer` writes the answer to a line.
fn server(answer: fn(&mut UnixStream) -> io::Result<()>) -> (TempDir, Target) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                for _ in BufReader::new(stream).lines().map_while(Result::ok) {
                    if answer(&mut writer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (directory, Target::Unix(path))
}

fn plan(target: Target, count: usize, connections: usize) -> Plan {
    Plan {
        target,
        protocol: Protocol::Lines,
        request: Protocol::Lines.request("ping").unwrap(),
        due: schedule(Arrivals::Constant, 2000, count, 0),
        connections,
        patience: Duration::from_secs(60),
    }
}

fn go(plan: &Plan) -> Result<Generated, LoadError> {
    generate(plan, &AtomicBool::new(false))
}

#[test]
fn every_request_is_sent_and_answered() {
    let (_directory, target) = server(|writer| writer.write_all(b"pong\n"));
    let made = go(&plan(target, 300, 4)).unwrap();
    assert_eq!((made.latencies.count(), made.unanswered), (300, 0));
    assert_eq!(made.lateness.count(), 300);
    // The last one is due after 149.5 ms.
    assert!(
        made.took >= Duration::from_micros(149_500),
        "{:?}",
        made.took
    );
}

#[test]
fn a_request_that_waited_for_a_connection_counts_from_when_it_was_due() {
    let (_directory, target) = server(|writer| {
        thread::sleep(Duration::from_millis(5));
        writer.write_all(b"pong\n")
    });
    // Forty requests within 20 ms, which one connection takes 200 ms for at least.
    let made = go(&plan(target, 40, 1)).unwrap();
    assert!(made.held >= 30, "{}", made.held);
    assert_eq!(made.connections, 1);
    assert!(made.latencies.quantile(1.0) >= 175_000_000, "{made:?}");
}

#[test]
fn a_server_that_goes_away_is_an_error() {
    let (_directory, target) = server(|writer| writer.shutdown(std::net::Shutdown::Both));
    let error = go(&plan(target, 10, 1)).unwrap_err().to_string();
    assert!(error.starts_with("request 1: "), "{error}");
    let (directory, target) = server(|_| Ok(()));
    std::fs::remove_file(directory.path().join("socket")).unwrap();
    let error = go(&plan(target, 10, 1)).unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to "), "{error}");
}

#[test]
fn an_error_that_is_answered_ends_it() {
    let (_directory, target) = server(|writer| writer.write_all(b"-OOM no\r\n"));
    let plan = Plan {
        protocol: Protocol::Redis,
        ..plan(target, 10, 1)
    };
    let error = go(&plan).unwrap_err().to_string();
    assert_eq!(error, "request 1: OOM no");
}

#[test]
fn it_can_be_stopped_and_does_not_wait_for_ever() {
    let (_directory, target) = server(|_| Ok(()));
    let stopped = generate(&plan(target.clone(), 10, 1), &AtomicBool::new(true)).unwrap();
    assert_eq!(stopped.unanswered, 10);
    let began = Instant::now();
    let impatient = Plan {
        patience: Duration::from_millis(20),
        ..plan(target, 10, 1)
    };
    assert_eq!(go(&impatient).unwrap().unanswered, 10);
    assert!(began.elapsed() >= Duration::from_millis(20));
}

/// Stands still for the first 100 ms of each second of the clock.
fn stall() {
    let into_second = now() % 1_000_000_000;
    if let Some(left) = 100_000_000_u64.checked_sub(into_second) {
        thread::sleep(Duration::from_nanos(left));
    }
}

/// Whoever is to be asked in the first half of a stall waits for more than 50 ms: 5 % of the requests, by the schedule
/// alone. A closed loop has one request on its way then, in each second.
#[test]
fn a_server_that_stands_still_is_seen_by_an_open_loop_alone() {
    let (_directory, target) = server(|writer| {
        stall();
        writer.write_all(b"pong\n")
    });
    let plan = Plan {
        due: schedule(Arrivals::Constant, 500, 1000, 0),
        ..plan(target.clone(), 0, 100)
    };
    let made = go(&plan).unwrap();
    let slow = made.latencies.counts().into_iter();
    let slow = slow.filter(|[ns, _]| *ns > 50_000_000);
    let slow: u64 = slow.map(|[_, many]| many).sum();
    // A machine that is busy with something else only adds to it.
    assert!(slow >= 45, "{slow} of 1000");
    assert!(made.latencies.quantile(0.99) > 80_000_000, "{made:?}");

    let Target::Unix(path) = target else {
        panic!("it is a socket")
    };
    let mut stream = UnixStream::connect(path).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut slow = 0;
    for _ in 0..2000 {
        let began = Instant::now();
        stream.write_all(b"ping\n").unwrap();
        answers.next().unwrap().unwrap();
        slow += u32::from(began.elapsed() > Duration::from_millis(50));
    }
    assert!(slow < 20, "{slow} of 2000");
}
