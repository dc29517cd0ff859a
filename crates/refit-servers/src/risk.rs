//! What the settings of servers risk.

use refit_knobs::Class;

use crate::mariadb::in_sql;

type Values = &'static [&'static str];

/// A setting, its values that are no risk, and those with which a power cut takes the last moments and no more: with any
/// other value it loses on a crash.
pub type Risk = (&'static str, Values, Values);

const ON: Values = &["on", "true", "yes", "1"];
const OFF: Values = &["off", "false", "no", "0"];

/// <https://www.postgresql.org/docs/15/runtime-config-wal.html>, `runtime-config-developer.html`. The bound of
/// `synchronous_commit` is three times `wal_writer_delay`: `wal-async-commit.html`.
pub const POSTGRESQL: &[Risk] = &[
    ("fsync", ON, &[]),
    ("full_page_writes", ON, &[]),
    ("data_sync_retry", OFF, &[]),
    ("zero_damaged_pages", OFF, &[]),
    ("ignore_checksum_failure", OFF, &[]),
    ("ignore_invalid_pages", OFF, &[]),
    ("ignore_system_indexes", OFF, &[]),
    (
        "wal_sync_method",
        &["fsync", "fdatasync", "open_sync", "open_datasync"],
        &[],
    ),
    (
        "synchronous_commit",
        &["on", "true", "yes", "1", "remote_apply"],
        OFF,
    ),
];

/// <https://mariadb.com/kb/en/innodb-system-variables/>
pub const MARIADB: &[Risk] = &[
    ("innodb_flush_log_at_trx_commit", &["1", "3"], &["0", "2"]),
    ("innodb_flush_log_at_timeout", &["1"], &[]),
    ("innodb_doublewrite", &["1", "on", "true"], &[]),
    (
        "innodb_flush_method",
        &["fsync", "o_direct", "o_dsync"],
        &[],
    ),
    ("innodb_force_recovery", &["0"], &[]),
    ("sync_binlog", &["1"], &[]),
];

/// <https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/>
pub const REDIS: &[Risk] = &[
    ("appendfsync", &["always"], &["everysec"]),
    ("appendonly", &["yes"], &[]),
    ("no-appendfsync-on-rewrite", &["no"], &[]),
    ("save", &[], &[]),
    ("stop-writes-on-bgsave-error", &["yes"], &[]),
];

/// By the names of the recipe rsyslog-sync. What takes syncs away loses, also where nothing was synced: that is not known.
pub const RSYSLOG: &[Risk] = &[("sync", &["on", "each"], &[]), ("queue", &["direct"], &[])];

/// The class of a setting; `None`: it is not known to risk anything. MariaDB takes options with `-` for `_`, and shortened:
/// what begins a risky name loses on a crash.
#[must_use]
pub fn class(risks: &[Risk], name: &str, value: &str) -> Option<Class> {
    let name = in_sql(name);
    let mut risks = risks.iter();
    let (of, safe, bounded) = risks.find(|(of, ..)| in_sql(of).starts_with(&name))?;
    let is_one_of = |values: Values| values.iter().any(|one| one.eq_ignore_ascii_case(value));
    Some(match in_sql(of) == name {
        true if is_one_of(safe) => Class::Safe,
        true if is_one_of(bounded) => Class::BoundedLoss,
        _ => Class::LosesOnCrash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_class_of_its_setting() {
        for (risks, name, value, class) in [
            (POSTGRESQL, "fsync", "ON", Some(Class::Safe)),
            (
                POSTGRESQL,
                "synchronous_commit",
                "off",
                Some(Class::BoundedLoss),
            ),
            (
                POSTGRESQL,
                "synchronous_commit",
                "local",
                Some(Class::LosesOnCrash),
            ),
            (POSTGRESQL, "work_mem", "4MB", None),
            (MARIADB, "innodb-doublewrite", "ON", Some(Class::Safe)),
            (
                MARIADB,
                "innodb_flush_log_at_tr",
                "1",
                Some(Class::LosesOnCrash),
            ),
            (REDIS, "save", "", Some(Class::LosesOnCrash)),
        ] {
            assert_eq!(super::class(risks, name, value), class, "{name}={value}");
        }
    }
}
