//! What `refit status` tells a monitoring system.

use refit_services::{Layer, Phase, ServiceStatus, Status};

use super::{Family, Labels, Metrics};

static SERVICES: Family = Family::gauge(
    "refit_services",
    "",
    "Services of this machine that have a change.",
);
static PROFILE: Family = Family::gauge(
    "refit_profile_info",
    "",
    "The settings that a service was given, without the values of its variables and of its own settings, and a hash of all; always 1.",
);
static APPLIED: Family = Family::gauge(
    "refit_applied",
    "",
    "1 where the change was made to its end and was not taken back since by a reboot, else 0.",
);
static DRIFT: Family = Family::gauge(
    "refit_drift",
    "",
    "1 where files, what the service has loaded, or what its processes do differs from what was applied, else 0.",
);
static EFFECT: Family = Family::gauge(
    "refit_effect_ratio",
    "ratio",
    "The metric with the settings divided by the metric without, as it was measured before they were applied.",
);
static EFFECT_LOW: Family = Family::gauge(
    "refit_effect_low_ratio",
    "ratio",
    "Lower end of the interval of that ratio.",
);
static EFFECT_HIGH: Family = Family::gauge(
    "refit_effect_high_ratio",
    "ratio",
    "Upper end of the interval of that ratio.",
);
static VERIFIED: Family = Family::gauge(
    "refit_last_verify_timestamp_seconds",
    "seconds",
    "When refit status last looked at the service, in seconds since 1970.",
);

/// All families of a status.
pub static FAMILIES: [&Family; 8] = [
    &SERVICES,
    &PROFILE,
    &APPLIED,
    &DRIFT,
    &EFFECT,
    &EFFECT_LOW,
    &EFFECT_HIGH,
    &VERIFIED,
];

const LAYERS: [(Layer, &str); 3] = [
    (Layer::File, "file"),
    (Layer::Loaded, "loaded"),
    (Layer::Effective, "effective"),
];

/// The samples of a status. `is_whole`: of all services that have a change.
#[must_use]
pub fn of_status(status: &Status, is_whole: bool, looked_unix: u64) -> Metrics {
    let mut metrics = Metrics::of(&FAMILIES);
    if is_whole {
        metrics.add(&SERVICES, &Labels::default(), status.services.len() as f64);
    }
    for service in &status.services {
        tell(&mut metrics, service, looked_unix);
    }
    metrics
}

fn tell(metrics: &mut Metrics, status: &ServiceStatus, looked_unix: u64) {
    let service = ("service", &*status.service);
    let settings: Vec<&str> = status.settings.iter().map(|word| shown(word)).collect();
    let (profile, hash) = (settings.join(" "), status.profile_hash());
    let labels = Labels::of(&[service, ("profile", &profile), ("hash", &hash)]);
    metrics.add(&PROFILE, &labels, 1.0);
    let is_applied = status.phase == Phase::Applied && !status.taken_back;
    metrics.add(
        &APPLIED,
        &Labels::of(&[service]),
        f64::from(u8::from(is_applied)),
    );
    for (layer, name) in LAYERS {
        if let Some(drift) = status.drift_of(layer) {
            let labels = Labels::of(&[service, ("layer", name)]);
            metrics.add(&DRIFT, &labels, f64::from(u8::from(drift)));
        }
    }
    let evidence = status.evidence.as_ref();
    if let Some(effect) = evidence.and_then(|evidence| evidence.effect.as_ref()) {
        let labels = Labels::of(&[service, ("metric", &*effect.metric)]);
        metrics.add(&EFFECT, &labels, effect.ratio);
        if let Some([low, high]) = effect.interval {
            metrics.add(&EFFECT_LOW, &labels, low);
            metrics.add(&EFFECT_HIGH, &labels, high);
        }
    }
    metrics.add(&VERIFIED, &Labels::of(&[service]), looked_unix as f64);
}

/// The value of a variable or of a service's own setting may be a password, and only root reads refit's records.
fn shown(setting: &str) -> &str {
    match setting.split_once('=') {
        Some((name, _)) if name.starts_with("env.") || name.starts_with("conf.") => name,
        _ => setting,
    }
}

#[cfg(test)]
mod tests {
    use refit_services::{Check, Evidence, MeasuredEffect};

    use super::super::Format;
    use super::*;

    fn check(layer: Layer, holds: Option<bool>) -> Check {
        Check {
            layer,
            key: "key".to_owned(),
            expected: "a".to_owned(),
            found: "b".to_owned(),
            holds,
        }
    }

    fn service(settings: &[&str]) -> ServiceStatus {
        ServiceStatus {
            service: "a.service".to_owned(),
            kind: "systemd unit".to_owned(),
            settings: settings.iter().map(|word| (*word).to_owned()).collect(),
            trial: false,
            unconfirmed_until_unix: None,
            taken_back: false,
            phase: Phase::Applied,
            drift: true,
            evidence: Some(Evidence {
                files: Vec::new(),
                gain: "rate +50 %".to_owned(),
                effect: Some(MeasuredEffect {
                    metric: "rate".to_owned(),
                    ratio: 1.5,
                    interval: Some([1.25, 1.75]),
                }),
                differs: Vec::new(),
                loss: None,
                packages: std::collections::BTreeMap::new(),
                fewer_durable: false,
                lacks: Vec::new(),
            }),
            accepted: None,
            health: None,
            since_unix: 1,
            packages: Vec::new(),
            libraries: Vec::new(),
            checks: vec![
                check(Layer::File, Some(true)),
                check(Layer::File, None),
                check(Layer::Loaded, Some(true)),
                check(Layer::Loaded, Some(false)),
                check(Layer::Effective, None),
            ],
        }
    }

    fn text(services: Vec<ServiceStatus>, is_whole: bool) -> String {
        let status = Status {
            version: 1,
            services,
            unreadable: Vec::new(),
        };
        of_status(&status, is_whole, 7).text(Format::Prometheus)
    }

    #[test]
    fn each_layer_is_told_that_can_be_told() {
        let text = text(vec![service(&["malloc=jemalloc", "env.KEY=se cret"])], true);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let hash = service(&["env.KEY=se cret", "malloc=jemalloc"]).profile_hash();
        let profile = format!(
            "refit_profile_info{{service=\"a.service\",profile=\"malloc=jemalloc env.KEY\",hash=\"{hash}\"}} 1"
        );
        let expected = [
            "refit_services 1",
            &profile,
            "refit_applied{service=\"a.service\"} 1",
            "refit_drift{service=\"a.service\",layer=\"file\"} 0",
            "refit_drift{service=\"a.service\",layer=\"loaded\"} 1",
            "refit_effect_ratio{service=\"a.service\",metric=\"rate\"} 1.5",
            "refit_effect_low_ratio{service=\"a.service\",metric=\"rate\"} 1.25",
            "refit_effect_high_ratio{service=\"a.service\",metric=\"rate\"} 1.75",
            "refit_last_verify_timestamp_seconds{service=\"a.service\"} 7",
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn what_is_not_known_has_no_sample() {
        let mut one = service(&[]);
        one.evidence = None;
        one.checks.clear();
        one.taken_back = true;
        let some = text(vec![one], false);
        for absent in ["refit_drift", "refit_effect", "refit_services"] {
            assert!(!some.contains(absent), "{some}");
        }
        assert!(some.contains("refit_applied{service=\"a.service\"} 0"));
        assert!(text(Vec::new(), true).contains("refit_services 0\n# EOF\n"));
    }

    #[test]
    fn other_settings_have_another_hash() {
        let hash = |settings: &[&str]| service(settings).profile_hash();
        assert_eq!(hash(&["a=1", "b=2"]), hash(&["b=2", "a=1"]));
        assert_ne!(hash(&["env.A=1"]), hash(&["env.A=2"]));
        assert_ne!(hash(&["a=1", "b=2"]), hash(&["a=1 b=2"]));
    }
}
