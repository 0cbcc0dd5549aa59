//! Networks run by ONNX Runtime.

use std::path::Path;

use ort::session::builder::GraphOptimizationLevel;
use ort::session::{OutputSelector, RunOptions, Session};
use ort::value::{Outlet, TensorElementType, TensorRef, ValueType};

use super::library::Library;
use super::{Network, Output};
use crate::error::EmbedError;
use crate::signature::{Element, Port};

pub(super) struct OnnxRuntime {
    session: Session,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

pub(super) fn open(
    path: &Path,
    library: &Library,
    threads: usize,
) -> Result<OnnxRuntime, EmbedError> {
    let refuse = |error: ort::Error| {
        EmbedError::model(
            path,
            format!("cannot be read as an ONNX network ({error}); export it again"),
        )
    };
    let builder = Session::builder(&library.environment).map_err(refuse)?;
    let configured = builder
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(ort::Error::from)
        .and_then(|builder| builder.with_intra_threads(threads).map_err(ort::Error::from))
        // Spinning threads would take the cores from those that decode images.
        .and_then(|builder| builder.with_intra_op_spinning(false).map_err(ort::Error::from))
        .and_then(|builder| builder.with_deterministic_compute(true).map_err(ort::Error::from));
    let session =
        configured.and_then(|mut builder| builder.commit_from_file(path)).map_err(refuse)?;
    let inputs = session.inputs().iter().map(port).collect();
    let outputs = session.outputs().iter().map(port).collect();
    Ok(OnnxRuntime { session, inputs, outputs })
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

impl Network for OnnxRuntime {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn run(&mut self, images: &[f32], shape: [usize; 4], output: usize) -> Result<Output, String> {
        let failed = |error: ort::Error| format!("cannot be run ({error})");
        let name = self.outputs[output].name.as_str();
        let images = TensorRef::from_array_view((shape, images)).map_err(failed)?;
        // Only the requested output is computed.
        let options = RunOptions::new()
            .map_err(failed)?
            .with_outputs(OutputSelector::no_default().with(name));
        let results =
            self.session.run_with_options(ort::inputs![images], &options).map_err(failed)?;
        let (shape, values) = results[name].try_extract_tensor::<f32>().map_err(failed)?;
        let shape = shape.iter().map(|&length| length as usize).collect();
        Ok(Output { shape, values: values.to_vec() })
    }
}
