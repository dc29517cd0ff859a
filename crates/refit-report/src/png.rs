//! The picture in pixels, for places that show no SVG.

use refit_lab::Experiment;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree};

use crate::plot::svg;

/// Pixels for each of the SVG's.
const ZOOM: f32 = 2.0;

/// A picture in the PNG format.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file.
    pub bytes: Vec<u8>,
    /// Whether this system has a font. Without one all shapes are drawn and no
    /// text: then the SVG is the better file.
    pub has_text: bool,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The drawing was not understood.
    #[error("the drawing cannot be read: {0}")]
    Drawing(#[from] usvg::Error),
    /// It has no size, or one beyond memory.
    #[error("a picture of {width} × {height} pixels cannot be made")]
    Size {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The file could not be written.
    #[error("the picture cannot be encoded: {0}")]
    Encode(Box<dyn std::error::Error + Send + Sync>),
}

/// The strip plot as a PNG, with the fonts of this system.
///
/// # Errors
/// [`PictureError`]; a missing font is none.
pub fn png(experiment: &Experiment) -> Result<Picture, PictureError> {
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    draw(&svg(experiment), options)
}

fn draw(drawing: &str, mut options: Options) -> Result<Picture, PictureError> {
    // Where none of the families is installed, any font is better than none.
    let any = options
        .fontdb
        .faces()
        .find_map(|face| Some(face.families.first()?.0.clone()));
    let has_text = any.is_some();
    if let Some(family) = any {
        options.fontdb_mut().set_sans_serif_family(family);
    }
    let tree = Tree::from_str(drawing, &options)?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * ZOOM).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or(PictureError::Size { width, height })?;
    resvg::render(
        &tree,
        Transform::from_scale(ZOOM, ZOOM),
        &mut pixels.as_mut(),
    );
    let bytes = pixels
        .encode_png()
        .map_err(|error| PictureError::Encode(error.into()))?;
    Ok(Picture { bytes, has_text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Sets of colours that occur, from the decoded file.
    fn colours(bytes: &[u8]) -> Vec<[u8; 3]> {
        let pixels = Pixmap::decode_png(bytes).unwrap();
        assert_eq!(pixels.width(), 1920);
        let mut colours: Vec<[u8; 3]> = pixels
            .pixels()
            .iter()
            .map(|p| [p.red(), p.green(), p.blue()])
            .collect();
        colours.sort_unstable();
        colours.dedup();
        colours
    }

    #[test]
    fn it_renders_with_every_candidate_in_its_colour() {
        let picture = png(&sample::experiment()).unwrap();
        let colours = colours(&picture.bytes);
        for colour in [[0x00, 0x72, 0xb2], [0xd5, 0x5e, 0x00], [0x00, 0x9e, 0x73]] {
            assert!(colours.contains(&colour), "{colour:?}");
        }
        if let Some(path) = std::env::var_os("REFIT_SAMPLE_PNG") {
            std::fs::write(path, &picture.bytes).unwrap();
        }
    }

    #[test]
    fn without_a_font_the_shapes_remain() {
        let picture = draw(&svg(&sample::experiment()), Options::default()).unwrap();
        assert!(!picture.has_text);
        assert!(colours(&picture.bytes).contains(&[0x00, 0x72, 0xb2]));
    }
}
