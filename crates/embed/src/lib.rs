//! Images → embeddings, by any ONNX network.
