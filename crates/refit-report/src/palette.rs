//! The colours of all pictures, by day and by night.

/// The colours of Okabe and Ito that stand out on white, and two more: told
/// apart by colour-blind people too.
pub const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933",
];

/// The same hues where the sheet is dark.
pub const AT_NIGHT: [&str; COLOURS.len()] = [
    "#56a9e8", "#ff8f4d", "#3ccfa0", "#e8a3cc", "#f2bd4b", "#a5dbfa", "#dd7fae", "#cccc66",
];

/// Greys by day, and by night.
const GREYS: [(&str, &str); 9] = [
    ("#fff", "#15171a"),
    ("#000", "#fff"),
    ("#222", "#e6e7e9"),
    ("#333", "#d9dbde"),
    ("#666", "#a0a5ac"),
    ("#999999", "#767c84"),
    ("#b4b4b4", "#7c8086"),
    ("#e4e4e4", "#33373d"),
    ("#7a5c3e", "#c9a67f"),
];

/// The colour of a dark screen in place of this one.
pub fn night(colour: &str) -> Option<&'static str> {
    let variants = COLOURS.iter().copied().zip(AT_NIGHT);
    let mut pairs = GREYS
        .into_iter()
        .chain(variants)
        .chain([("#b34700", "#ff9c63")]);
    pairs
        .find(|(day, _)| *day == colour)
        .map(|(_, night)| night)
}
