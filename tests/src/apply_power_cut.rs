//! Power cuts at each moment of `refit apply`, `confirm` and `revert`, in the crash lab.

use std::fs;

use crate::crash::{bad, crash, mode, require_lab, states};
use crate::points::all_points;
use crate::random::seed;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, refit_path};

pub const TESTS: &[Test] = &[test!(a_power_cut_leaves_old_or_new_files).limit_seconds(300)];

/// How many services are changed, one after the other.
const SERVICES: usize = 4;

/// tree.sh DIRECTORY: the units, and a library, whose first bytes are those of a shared one (ET_DYN) for /bin/sh's machine.
const TREE: &str = r#"
mkdir -p "$1/usr/lib/systemd/system" "$1/etc/systemd/system" "$1/etc/redis" "$1/lib" "$1/var/lib" "$1/run"
for i in $(seq SERVICES); do
    printf '[Service]\nExecStart=/usr/bin/redis-server /etc/redis/%s.conf\n' $i >"$1/usr/lib/systemd/system/s$i.service"
    seq 2000 >"$1/etc/redis/$i.conf"
done
{ head -c 16 /bin/sh; printf '\3\0'; head -c 20 /bin/sh | tail -c 2; head -c 5000 /dev/zero; } >"$1/lib/one.so"
"#;

/// Each step is acknowledged. A mark tells that a service's revert may have begun. Odd ones are a trial that is
/// confirmed; even ones edit the administrator's file too.
const STEPS: &str = r#"
tree=$REFIT_MOUNT/tree
for i in $(seq SERVICES); do
    case $i in
    *[13579]) how="--trial";;
    *) how=conf.maxmemory=$i;;
    esac
    REFIT apply --root "$tree" --yes s$i preload=/lib/one.so env.WORD=$i $how >&2 || exit 9
    echo a$i
    REFIT confirm --root "$tree" s$i >&2 || exit 9
    echo c$i
    : >"$REFIT_MOUNT/m$i"; sync "$REFIT_MOUNT/m$i" "$REFIT_MOUNT"
    REFIT revert --root "$tree" s$i >&2 || exit 9
    echo r$i
done
"#;

/// Approves a state, or tells why not in a file of its own.
const CHECK: &str = r#"
tree=$REFIT_MOUNT/tree own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
bad() { echo "$*" >>NOTES; exit 1; }
list() {
    ( cd "$1"; find . -path ./var/lib/refit -prune -o -printf '%p %y %m\n' | sort
      find . -path ./var/lib/refit -prune -o -type f -print0 | sort -z | xargs -0 md5sum )
}
acked() { grep -qx "$1" "$REFIT_ACKED"; }
REFIT status --root "$tree" >"$own/status" 2>&1 || bad "status: $(cat "$own/status")"
for i in $(seq SERVICES); do
    case $(grep "^s$i.service:" "$own/status") in
    '') state=none;;
    *': applied') state=kept;;
    *': applied, until a reboot') state=trial;;
    *interrupted*) state=interrupted;;
    *) bad "s$i: $(cat "$own/status")";;
    esac
    echo "$state" >>SEEN
    if acked r$i; then
        [ $state = none ] || bad "s$i was reverted, and is $state"
    elif [ ! -e "$REFIT_MOUNT/m$i" ]; then
        ! acked c$i || [ $state = kept ] || [ $state = interrupted ] || bad "s$i was confirmed, and is $state"
        ! acked a$i || [ $state != none ] || bad "s$i was applied, and is $state"
    fi
    # Old files or new ones, never a half.
    for file in "$tree"/etc/systemd/system/s$i.service.d/90-refit.conf "$tree"/run/systemd/system/s$i.service.d/90-refit.conf; do
        [ ! -e "$file" ] || [ "$(tail -n 1 "$file")" = "Environment=\"WORD=$i\"" ] || bad "a part of $file"
    done
    case $(tail -n 1 "$tree/etc/redis/$i.conf") in
    2000) ;;
    "include /etc/redis/$i.refit.conf") [ "$(tail -n 1 "$tree/etc/redis/$i.refit.conf")" = "maxmemory \"$i\"" ] || bad "s$i: what is included is not there";;
    *) bad "a part of $i.conf";;
    esac
    [ $state = none ] || REFIT revert --root "$tree" s$i >"$own/told" 2>&1 || bad "revert of $state: $(cat "$own/told")"
done
# A record that was not written yet has a name that begins with a dot; the next one takes it away.
[ -z "$(find "$tree/var/lib/refit/changes" -name 's*.json' 2>/dev/null)" ] || bad "left: $(ls -A "$tree/var/lib/refit/changes")"
list "$tree" >"$own/now"
cmp -s "$own/now" PRISTINE || bad "not as before: $(diff "$own/now" PRISTINE)"
cat "$REFIT_ACKED"
"#;

fn a_power_cut_leaves_old_or_new_files(env: &TestEnv) -> Outcome {
    require_lab(env);
    let refit = refit_path();
    let script = |name: &str, text: &str| {
        let text = text
            .replace("SERVICES", &SERVICES.to_string())
            .replace("NOTES", &env.path("notes"))
            .replace("SEEN", &env.path("seen"))
            .replace("PRISTINE", &env.path("pristine"))
            .replace("REFIT ", &format!("{refit} "));
        format!("sh -e {}", env.file(name, &text))
    };
    let tree = script("tree.sh", TREE);
    let list = script(
        "list.sh",
        r#"cd "$1"; find . -printf '%p %y %m\n' | sort; find . -type f -print0 | sort -z | xargs -0 md5sum"#,
    );
    let make = format!("{tree} first; {list} first >pristine");
    let made = env.run(&["sh", "-ec", &make]);
    assert!(made.status.success(), "{made:?}");
    let prepare = format!("{tree} $REFIT_MOUNT/tree");
    let check = script("check.sh", CHECK);
    let steps = script("steps.sh", STEPS);
    let seed = seed().to_string();
    let words = [
        "--prepare",
        &prepare,
        "--check",
        &check,
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        if all_points() { "150" } else { "60" },
        "--seed",
        &seed,
        "sync=off",
        "--",
        "sh",
        "-c",
        &steps,
    ];
    let report = crash(env, 0, &words);
    let notes = fs::read_to_string(env.path("notes")).unwrap_or_default();
    let baseline = mode(&report, "baseline");
    assert_eq!(bad(baseline), 0, "{notes}");
    // Without refit's syncs the check sees it.
    let without = mode(&report, "sync=off");
    assert!(
        bad(without) > 10,
        "{} of {}",
        bad(without),
        states(without).len()
    );
    let seen = fs::read_to_string(env.path("seen")).expect("each check tells");
    let count = |word| seen.lines().filter(|line| *line == word).count();
    let kinds = ["none", "trial", "kept", "interrupted"].map(|word| (word, count(word)));
    println!(
        "counted: seed {seed}; {} states of the baseline, none bad; without syncs {} of {}; services were {kinds:?}",
        states(baseline).len(),
        bad(without),
        states(without).len()
    );
    assert!(kinds.iter().all(|(_, count)| *count > 0), "{kinds:?}");
    Outcome::Pass
}
