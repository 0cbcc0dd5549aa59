//! Networks run by ONNX Runtime.

use std::path::Path;

use ort::session::builder::GraphOptimizationLevel;
use ort::session::{OutputSelector, RunOptions, Session};
use ort::value::{Outlet, TensorElementType, TensorRef, ValueType};

use super::library::Library;
use super::{Network, Output};
use crate::error::EmbedError;
use crate::signature::{Element, Port};

pub(super) fn open(path: &Path, library: &Library, threads: usize) -> Result<Network, EmbedError> {
    let load = || -> Result<Session, ort::Error> {
        Session::builder(&library.environment)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_intra_threads(threads)?
            // Spinning threads would take the cores from those that decode images.
            .with_intra_op_spinning(false)?
            .with_deterministic_compute(true)?
            .commit_from_file(path)
    };
    let mut session = load().map_err(|error| {
        let message = format!("cannot be read as an ONNX network ({error}); export it again");
        EmbedError::model(path, message)
    })?;
    let inputs = session.inputs().iter().map(port).collect();
    let outputs: Vec<Port> = session.outputs().iter().map(port).collect();
    let names: Vec<String> = outputs.iter().map(|port| port.name.clone()).collect();
    let run = move |images: &[f32], shape, output: usize| {
        run(&mut session, images, shape, &names[output])
            .map_err(|error| format!("cannot be run ({error})"))
    };
    Ok(Network { inputs, outputs, runtime: library.version.clone(), run: Box::new(run) })
}

fn run(
    session: &mut Session,
    images: &[f32],
    shape: [usize; 4],
    output: &str,
) -> Result<Output, ort::Error> {
    let images = TensorRef::from_array_view((shape, images))?;
    // Only the requested output is computed.
    let options = RunOptions::new()?.with_outputs(OutputSelector::no_default().with(output));
    let results = session.run_with_options(ort::inputs![images], &options)?;
    let (shape, values) = results[output].try_extract_tensor::<f32>()?;
    let shape = shape.iter().map(|&length| length as usize).collect();
    Ok(Output { shape, values: values.to_vec() })
}

fn port(outlet: &Outlet) -> Port {
    let name = outlet.name().to_string();
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => Port {
            name,
            // −1 is an open length. An empty shape is not specified in the file.
            shape: (!shape.is_empty())
                .then(|| shape.iter().map(|&length| usize::try_from(length).ok()).collect()),
            element: match ty {
                TensorElementType::Float32 => Element::Float,
                TensorElementType::Float16 => Element::Other("float16".into()),
                TensorElementType::Float64 => Element::Other("float64".into()),
                TensorElementType::Uint8 => Element::Other("uint8".into()),
                TensorElementType::Int64 => Element::Other("int64".into()),
                other => Element::Other(other.to_string()),
            },
        },
        other => Port { name, shape: None, element: Element::Other(format!("{other:?}")) },
    }
}
