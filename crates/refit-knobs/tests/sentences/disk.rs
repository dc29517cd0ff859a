//! Disks that cannot be emulated.

use refit_knobs::Setting;

#[test]
fn each_disk_that_is_none_has_its_sentence() {
    for (word, sentence) in [
        (
            "disk=",
            "`disk=` has no value: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; write it as in `disk=8ms`",
        ),
        (
            "disk=fast",
            "`disk` cannot be `fast`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; write it as in `disk=8ms`",
        ),
        (
            "disk=500µs",
            "`disk` cannot be `500µs`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; did you mean `disk=500us`?",
        ),
        (
            "disk=61s",
            "`disk` cannot be `61s`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; write it as in `disk=8ms`",
        ),
        (
            "disk=0",
            "`disk` cannot be `0`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; did you mean `disk=real`?",
        ),
        (
            "disk=0.5ns",
            "`disk` cannot be `0.5ns`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; write it as in `disk=8ms`",
        ),
        (
            "disk=off",
            "`disk` cannot be `off`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; did you mean `disk=real`?",
        ),
        (
            "disk=eio",
            "`disk` cannot be `eio`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; did you mean `disk=fail:EIO`?",
        ),
        (
            "disk=p50=4ms",
            "`p50=4ms` is not valid in `disk=…`: expected at least two percentiles, or one latency for all flushes; did you mean `disk=4ms`?",
        ),
        (
            "disk=p50=4ms,p100=30ms",
            "`p100=30ms` is not valid in `disk=…`: expected a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p0.5=4ms,p50=30ms",
            "`p0.5=4ms` is not valid in `disk=…`: expected a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p50=4ms,p99.999=30ms",
            "`p99.999=30ms` is not valid in `disk=…`: expected a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p50=4ms,",
            "`` is not valid in `disk=…`: expected a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=8ms,p99=30",
            "`8ms` is not valid in `disk=…`: expected a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`; did you mean `disk=p50=8ms,p99=30ms`?",
        ),
        (
            "disk=p50=4ms,p99=3ms",
            "`p99=3ms` is not valid in `disk=…`: expected a latency that is not less than that of the percentile before; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p99=30ms,p50=4ms",
            "`p50=4ms` is not valid in `disk=…`: expected percentiles that rise from one to the next; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p50=4ms,p50=5ms",
            "`p50=5ms` is not valid in `disk=…`: expected percentiles that rise from one to the next; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=p50=4,p99=30",
            "`p50=4` is not valid in `disk=…`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; did you mean `disk=p50=4ms,p99=30ms`?",
        ),
        (
            "disk=p50=0ms,p99=30ms",
            "`p50=0ms` is not valid in `disk=…`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; write it as in `disk=p50=4ms,p99=30ms`",
        ),
        (
            "disk=slow.json",
            r#"`disk` needs the absolute path of a profile, not `slow.json` (in a shell: "$PWD/slow.json"); write it as in `disk=/PATH/slow.json`"#,
        ),
        (
            "disk=./a/slow",
            r#"`disk` needs the absolute path of a profile, not `./a/slow` (in a shell: "$PWD/a/slow"); write it as in `disk=/PATH/a/slow`"#,
        ),
        (
            "disk=fail:EINTR",
            "`fail:EINTR` is not valid in `disk=…`: expected an error that a disk gives fsync(2): `EIO`, `ENOSPC`, `EDQUOT` or `EROFS`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:",
            "`fail:` is not valid in `disk=…`: expected an error that a disk gives fsync(2): `EIO`, `ENOSPC`, `EDQUOT` or `EROFS`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:full,after=9",
            "`fail:full` is not valid in `disk=…`: expected an error that a disk gives fsync(2): `EIO`, `ENOSPC`, `EDQUOT` or `EROFS`; did you mean `disk=fail:ENOSPC,after=9`?",
        ),
        (
            "disk=fail:EIO,every=0",
            "`every=0` is not valid in `disk=…`: expected a whole number of 1 or more, such as `every=100`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,every=+3",
            "`every=+3` is not valid in `disk=…`: expected a whole number of 1 or more, such as `every=100`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,after",
            "`after` is not valid in `disk=…`: expected a whole number of 1 or more, such as `every=100`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,after=99999999999999999999",
            "`after=99999999999999999999` is not valid in `disk=…`: expected a whole number of 1 or more, such as `every=100`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,p=5",
            "`p=5` is not valid in `disk=…`: expected a chance from 0.000001 to 1, such as `p=0.01` or `p=1%`; did you mean `disk=fail:EIO,p=0.05`?",
        ),
        (
            "disk=fail:EIO,p=0",
            "`p=0` is not valid in `disk=…`: expected a chance from 0.000001 to 1, such as `p=0.01` or `p=1%`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,p=0.0000001",
            "`p=0.0000001` is not valid in `disk=…`: expected a chance from 0.000001 to 1, such as `p=0.01` or `p=1%`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=fail:EIO,nth=3",
            "`nth=3` is not valid in `disk=…`: expected `every=N`, `after=N` or `p=0.01`; did you mean `disk=fail:EIO,every=3`?",
        ),
        (
            "disk=fail:EIO,every=3,after=2",
            "`every=3,after=2` is not valid in `disk=…`: expected only one of them; did you mean `disk=fail:EIO,every=3`?",
        ),
        (
            "disk=fail:EIO,",
            "`` is not valid in `disk=…`: expected `every=N`, `after=N` or `p=0.01`; write it as in `disk=fail:EIO,every=100`",
        ),
        (
            "disk=8ms+sycn=off",
            "unknown setting `sycn`; did you mean `sync=off`?",
        ),
    ] {
        assert_eq!(
            word.parse::<Setting>().expect_err(word).to_string(),
            sentence,
            "{word}"
        );
    }
}
