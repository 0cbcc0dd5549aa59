//! Networks run by rten, which is part of the program.

use std::sync::Arc;

use rten::{
    DataType, Dimension, Model, ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView,
    ValueType,
};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensorView, Tensor};

use super::model_file::ModelFile;
use super::{Network, Output};
use crate::error::EmbedError;
use crate::signature::{Element, Port};

/// The name of the runtime in files.
const VERSION: &str = "rten 0.27";

pub(super) fn open(file: ModelFile, threads: usize) -> Result<Network, EmbedError> {
    let path = file.path.clone();
    let refuse = |what: String| {
        let message = format!(
            "cannot be read as an ONNX network ({what}); export it again, or try --runtime \
             onnxruntime, which knows more kinds of networks"
        );
        EmbedError::model(&path, message)
    };
    let mut options = ModelOptions::with_all_ops();
    for (name, external) in &file.external {
        let weights =
            aleator_run::read_file(external).map_err(|error| refuse(error.to_string()))?;
        options.external_data(name, weights);
    }
    let model = options.load(file.bytes).map_err(|error| refuse(error.to_string()))?;
    let ports = |ids: &[NodeId]| ids.iter().map(|id| port(&model, *id)).collect::<Vec<_>>();
    let (inputs, outputs) = (ports(model.input_ids()), ports(model.output_ids()));
    if inputs.is_empty() && outputs.is_empty() {
        return Err(refuse("it has neither inputs nor outputs".into()));
    }
    let pool = Arc::new(ThreadPool::with_num_threads(threads));
    let run = move |images: &[f32], shape, output| run(&model, &pool, images, shape, output);
    Ok(Network { inputs, outputs, runtime: VERSION.into(), run: Box::new(run) })
}

fn run(
    model: &Model,
    pool: &Arc<ThreadPool>,
    images: &[f32],
    shape: [usize; 4],
    output: usize,
) -> Result<Output, String> {
    let images = NdTensorView::from_data(shape, images);
    let input = (model.input_ids()[0], ValueOrView::from(images));
    let options = RunOptions::default().with_thread_pool(Some(Arc::clone(pool)));
    let output = [model.output_ids()[output]];
    let [value] = model
        .run_n(vec![input], output, Some(options))
        .map_err(|error| format!("cannot be run by rten ({error}); try --runtime onnxruntime"))?;
    let tensor: Tensor<f32> =
        value.try_into().map_err(|_| "its output is not of float32".to_string())?;
    Ok(Output { shape: tensor.shape().to_vec(), values: tensor.into_data() })
}

fn port(model: &Model, id: NodeId) -> Port {
    let info = model.node_info(id);
    let info = info.as_ref();
    let element = match info.and_then(|info| info.dtype()) {
        Some(ValueType::Tensor(DataType::Float)) => Element::Float,
        Some(ValueType::Tensor(DataType::Int32)) => Element::Other("whole numbers".into()),
        Some(ValueType::Tensor(DataType::Int8)) => Element::Other("int8".into()),
        Some(ValueType::Tensor(DataType::UInt8)) => Element::Other("uint8".into()),
        Some(other) => Element::Other(format!("{other:?}")),
        None => Element::Unsaid,
    };
    let length = |dimension: Dimension| match dimension {
        Dimension::Fixed(length) => Some(length),
        Dimension::Symbolic(_) => None,
    };
    let shape = info.and_then(|info| info.shape());
    Port {
        name: info.and_then(|info| info.name()).unwrap_or_default().into(),
        shape: shape.map(|shape| shape.into_iter().map(length).collect()),
        element,
    }
}
