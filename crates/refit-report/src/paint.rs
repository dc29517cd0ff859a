//! What a terminal can show, and its colours by what they say.

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its columns.
    pub width: usize,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// What a piece of text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing.
    Plain,
    /// It is a heading.
    Head,
    /// It is better.
    Good,
    /// It is worse.
    Bad,
    /// It is unsure, or a warning.
    Unsure,
}

impl Tone {
    /// The text with this tone's colour, when there are colours.
    pub fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            _ if !colour || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Head => "1",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Unsure => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
