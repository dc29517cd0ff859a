//! `refit run --explain`: what each setting swaps, covers and risks.

use std::fmt::Write;

use refit_knobs::Settings;

/// One block for each setting.
pub fn text(settings: &Settings) -> String {
    let mut out = String::new();
    for (i, setting) in settings.0.iter().enumerate() {
        let e = setting.explain();
        if i > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", e.setting);
        let mut field = |name: &str, text: &str| {
            let _ = writeln!(out, "  {name:<12} {text}");
        };
        field("swaps", &e.swaps);
        field("class", &e.class.to_string());
        field("risk", &e.risk);
        field("backend", &e.backend);
        for (name, list) in [
            ("covers", &e.covers),
            ("not covered", &e.not_covered),
            ("note", &e.notes),
        ] {
            for (i, item) in list.iter().enumerate() {
                field(if i == 0 { name } else { "" }, item);
            }
        }
    }
    out
}
