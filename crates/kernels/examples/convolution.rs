//! Times convolutions: reads one shape a line, answers with seconds.
//!
//!     echo 128 16 16 32 32 3 3 1 1 1 | cargo run --release -p aleator-kernels --example convolution
//!
//! A line is batch, inputs, outputs, height, width, kernel height and width, stride, padding and
//! groups; the answer the shortest of three times of forward, input gradient and weight gradient.

use std::io::{BufRead, stdin};
use std::time::Instant;

use aleator_kernels::convolution::{ConvolutionShape, forward, input_gradient, weight_gradient};
use aleator_kernels::split_mix;

fn main() {
    for line in stdin().lock().lines().map_while(Result::ok) {
        match parse(&line) {
            Some(shape) => time(&shape),
            None => eprintln!("ten whole numbers are expected, found: {line}"),
        }
    }
}

fn parse(line: &str) -> Option<ConvolutionShape> {
    let numbers: Vec<usize> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [batch, inputs, outputs, height, width, down, right, stride, padding, groups] =
        numbers.try_into().ok()?;
    Some(ConvolutionShape {
        batch,
        inputs,
        outputs,
        size: [height, width],
        kernel: [down, right],
        stride: [stride; 2],
        padding: [padding; 4],
        groups,
    })
}

fn time(shape: &ConvolutionShape) {
    let ConvolutionShape { batch, inputs, outputs, size, kernel, groups, .. } = *shape;
    let [height, width] = shape.out_size();
    let x = numbers(batch * inputs * size[0] * size[1]);
    let weight = numbers(outputs * inputs / groups * kernel[0] * kernel[1]);
    let grad_out = numbers(batch * outputs * height * width);
    let (mut out, mut grad_x) = (grad_out.clone(), x.clone());
    let mut grad_weight = weight.clone();
    let forward = shortest(|| forward(&x, &weight, &mut out, shape));
    let input = shortest(|| input_gradient(&grad_out, &weight, &mut grad_x, shape));
    let weight = shortest(|| weight_gradient(&x, &grad_out, &mut grad_weight, shape));
    println!("{forward:.6} {input:.6} {weight:.6}");
}

fn shortest(mut run: impl FnMut()) -> f64 {
    run();
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..3).map(time).fold(f64::INFINITY, f64::min)
}

fn numbers(len: usize) -> Vec<f32> {
    split_mix(len as u64)
        .take(len)
        .map(|word| (word >> 40) as f32 / (1 << 23) as f32 - 1.0)
        .collect()
}
