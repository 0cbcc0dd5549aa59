//! A matrix with too many cells for marks, as one small image.

/// Most pixels on a side.
pub(super) const SIDE: usize = 500;

/// Half of the 256 colours is for each sign.
const LEVELS: usize = 127;

/// Works in light and dark mode, since the size of a value is the opacity.
const POSITIVE: [u8; 3] = [47, 126, 204];
const NEGATIVE: [u8; 3] = [214, 108, 44];

/// The PNG of a matrix whose values lie between −1 and 1. Where several cells share a pixel, the
/// value farthest from zero wins, because rare confusions are what readers look for.
pub(super) fn png(classes: usize, value: &dyn Fn(usize, usize) -> f64) -> Vec<u8> {
    let block = classes.div_ceil(SIDE).max(1);
    let side = classes.div_ceil(block);
    let mut pixels = Vec::with_capacity(side * side);
    for row in 0..side {
        for column in 0..side {
            let cells = |at: usize| at * block..((at + 1) * block).min(classes);
            let all = cells(row).flat_map(|i| cells(column).map(move |j| (i, j)));
            let strongest = all.map(|(i, j)| value(i, j)).fold(0.0_f64, |strongest, value| {
                if value.abs() > strongest.abs() { value } else { strongest }
            });
            pixels.push(level(strongest));
        }
    }
    encode(side, &pixels).expect("memory takes all that is written")
}

fn level(value: f64) -> u8 {
    let steps = (value.clamp(-1.0, 1.0) * LEVELS as f64).round() as i32;
    (LEVELS as i32 + steps) as u8
}

/// A palette of both colours from opaque over transparent to opaque.
fn encode(side: usize, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let entries = 2 * LEVELS + 1;
    let colour = |at: usize| if at < LEVELS { NEGATIVE } else { POSITIVE };
    let palette: Vec<u8> = (0..entries).flat_map(colour).collect();
    let strength = |at: usize| (255 * at.abs_diff(LEVELS) / LEVELS) as u8;
    let mut out = vec![];
    let mut encoder = png::Encoder::new(&mut out, side as u32, side as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_trns((0..entries).map(strength).collect::<Vec<u8>>());
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out)
}
