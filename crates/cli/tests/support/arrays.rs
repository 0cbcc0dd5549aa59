//! Small data files, written by hand so that no reader of ours is trusted.

use super::Place;

/// Examples in four clusters of a plane with some more dimensions of noise.
pub struct Toy {
    pub examples: usize,
    pub seed: u64,
}

const WIDTH: usize = 6;
const CLASSES: usize = 4;

impl Toy {
    /// A label for each example; one in ten is wrong.
    pub fn write_single(&self, place: &Place, features: &str, labels: &str) {
        let mut random = Random(self.seed);
        let classes: Vec<i64> = (0..self.examples).map(|at| (at % CLASSES) as i64).collect();
        let values = classes.iter().flat_map(|class| example(*class, &mut random)).collect();
        place.write(features, npy_f32(&[self.examples, WIDTH], values));
        let wrong = |class: &i64| if random.uniform() < 0.1 { (class + 1) % 4 } else { *class };
        let given: Vec<i64> = classes.iter().map(wrong).collect();
        place.write(labels, npy_i64(&[self.examples], given));
    }

    /// The class of the cluster is on, and sometimes the next one.
    pub fn write_multi_hot(&self, place: &Place, features: &str, labels: &str) {
        let mut random = Random(self.seed);
        let classes: Vec<i64> = (0..self.examples).map(|at| (at % CLASSES) as i64).collect();
        let values = classes.iter().flat_map(|class| example(*class, &mut random)).collect();
        place.write(features, npy_f32(&[self.examples, WIDTH], values));
        let mut on = vec![];
        for class in classes {
            let both = random.uniform() < 0.3;
            on.extend((0..4).map(|k| i64::from(k == class || both && k == (class + 1) % 4)));
        }
        place.write(labels, npy_i64(&[self.examples, CLASSES], on));
    }
}

fn example(class: i64, random: &mut Random) -> Vec<f32> {
    let center = [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)][class as usize];
    let mut values: Vec<f32> = (0..WIDTH).map(|_| random.uniform() * 2.0 - 1.0).collect();
    values[0] += center.0;
    values[1] += center.1;
    values
}

/// Knuth's linear congruential generator; the tests need variety, not quality.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }
}

pub fn npy_f32(shape: &[usize], values: Vec<f32>) -> Vec<u8> {
    npy("<f4", shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

pub fn npy_i64(shape: &[usize], values: Vec<i64>) -> Vec<u8> {
    npy("<i8", shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// A `.npy` file of version 1.
pub fn npy(kind: &str, shape: &[usize], bytes: Vec<u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(bytes);
    out
}

/// The numbers of a `.npy` file of version 1 with 64-bit integers.
pub fn read_npy_i64(bytes: &[u8]) -> Vec<i64> {
    let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let text = String::from_utf8_lossy(&bytes[10..10 + header]).into_owned();
    assert!(text.contains("<i8"), "{text}");
    let (numbers, rest) = bytes[10 + header..].as_chunks::<8>();
    assert!(rest.is_empty());
    numbers.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

/// A grey image in the format PNM, all pixels alike.
pub fn ppm(side: usize, grey: u8) -> Vec<u8> {
    let mut out = format!("P6\n{side} {side}\n255\n").into_bytes();
    out.extend(vec![grey; 3 * side * side]);
    out
}

/// A coloured PPM of stripes, across or down, whose place and brightness depend on `seed`.
pub fn picture(side: usize, seed: usize, down: bool) -> Vec<u8> {
    let mut out = format!("P6 {side} {side} 255\n").into_bytes();
    for row in 0..side {
        for column in 0..side {
            let along = if down { column } else { row };
            let on = ((along + seed) / 3).is_multiple_of(2);
            let level = if on { 200 } else { 40 } + (seed * 7 + row * column) % 40;
            out.extend([level as u8, (255 - level) as u8, (seed % 200) as u8]);
        }
    }
    out
}
