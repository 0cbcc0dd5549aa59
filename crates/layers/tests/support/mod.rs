//! Test data and comparisons.

/// SplitMix64, the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn vector(&mut self, len: usize, low: f32, high: f32) -> Vec<f32> {
        (0..len).map(|_| low + (high - low) * self.unit()).collect()
    }

    /// A number of this range.
    pub fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        range.start + (self.unit() * range.len() as f32) as usize
    }

    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Compares up to an absolute `tolerance`, plus the rounding of the expected number to f32.
#[track_caller]
pub fn assert_close(name: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}: length");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        let allowed = tolerance + expected.abs() * 2f64.powi(-22);
        assert!(
            error <= allowed,
            "{name}[{at}]: {found} is {error:e} from {expected}, allowed {allowed:e}"
        );
    }
}
