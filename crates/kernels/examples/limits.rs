use aleator_kernels::limits;
use std::time::Instant;
fn main() {
    let n = 64_000_000;
    for _ in 0..3 {
        for (name, f, k) in [
            ("normals", limits::normals as fn(usize) -> f32, 1),
            ("exp", limits::exponentials, 1),
            ("fma", limits::multiply_adds, 34),
        ] {
            let t = Instant::now();
            let c = f(n * k);
            let e = t.elapsed().as_secs_f64();
            println!("{name} {:.1} ms {:.2} G/s {c}", e * 1e3, (n * k) as f64 / e / 1e9);
        }
    }
}
