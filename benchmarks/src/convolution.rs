//! Times convolutions: reads one shape per line, prints seconds.
//!
//! ```text
//! echo 128 16 16 32 32 3 3 1 1 1 | cargo run --release -p aleator-benchmarks -- convolution
//! ```
//!
//! A line is batch, inputs, outputs, height, width, kernel height and width, stride, padding and
//! groups. The output is the shortest time of forward, input gradient and weight gradient, then the
//! mean processor time of the three, over all threads (Linux only).

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use aleator_kernels::split_mix;
use aleator_layers::convolution::{ConvolutionShape, forward, input_gradient, weight_gradient};
use anyhow::Result;

use crate::clock::processor_seconds;

pub fn run() -> Result<()> {
    for line in stdin().lock().lines() {
        let line = line?;
        match parse(&line) {
            Some(shape) => writeln!(stdout(), "{}", measure(&shape))?,
            None => eprintln!("expected ten whole numbers, found: {line}"),
        }
    }
    Ok(())
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

fn measure(shape: &ConvolutionShape) -> String {
    let ConvolutionShape { batch, inputs, outputs, size, kernel, groups, .. } = *shape;
    let [height, width] = shape.out_size();
    let x = numbers(batch * inputs * size[0] * size[1]);
    let weight = numbers(outputs * inputs / groups * kernel[0] * kernel[1]);
    let grad_out = numbers(batch * outputs * height * width);
    let (mut out, mut grad_x) = (grad_out.clone(), x.clone());
    let mut grad_weight = weight.clone();
    let forward = seconds(|| forward(&x, &weight, &mut out, shape));
    let input = seconds(|| input_gradient(&grad_out, &weight, &mut grad_x, shape));
    let weight = seconds(|| weight_gradient(&x, &grad_out, &mut grad_weight, shape));
    let [shortest, processor] = [0, 1].map(|of| [forward[of], input[of], weight[of]]);
    let words: Vec<String> =
        shortest.iter().chain(&processor).map(|time| format!("{time:.6}")).collect();
    words.join(" ")
}

/// The shortest time and the mean processor time, of calls for a tenth of a second.
fn seconds(mut run: impl FnMut()) -> [f64; 2] {
    run();
    let (mut calls, mut shortest) = (0, f64::INFINITY);
    let (begin, before) = (Instant::now(), processor_seconds());
    while calls < 3 || begin.elapsed().as_secs_f64() < 0.1 {
        let start = Instant::now();
        run();
        shortest = shortest.min(start.elapsed().as_secs_f64());
        calls += 1;
    }
    [shortest, (processor_seconds() - before) / f64::from(calls)]
}

fn numbers(len: usize) -> Vec<f32> {
    split_mix(len as u64)
        .take(len)
        .map(|word| (word >> 40) as f32 / (1 << 23) as f32 - 1.0)
        .collect()
}
