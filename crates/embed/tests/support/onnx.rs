//! Small ONNX files, written by hand: messages of Protocol Buffers, field by field.

/// The lengths of a shape; −1 is open.
pub type Shape<'a> = &'a [i64];

/// Element types by their numbers in the format.
pub const FLOAT: u64 = 1;
pub const UINT8: u64 = 2;

/// The value of an attribute.
pub enum Attribute {
    Whole(i64),
    List(&'static [i64]),
    Graph(Vec<u8>),
}

/// A network of few nodes.
#[derive(Default)]
pub struct Onnx {
    nodes: Vec<u8>,
    weights: Vec<u8>,
    inputs: Vec<u8>,
    outputs: Vec<u8>,
}

impl Onnx {
    pub fn input(mut self, name: &str, element: u64, shape: Shape) -> Self {
        self.inputs.extend(message(11, &port(name, element, shape)));
        self
    }

    pub fn output(mut self, name: &str, element: u64, shape: Shape) -> Self {
        self.outputs.extend(message(12, &port(name, element, shape)));
        self
    }

    pub fn node(self, operator: &str, inputs: &[&str], output: &str) -> Self {
        self.node_with(operator, inputs, output, &[])
    }

    /// With attributes. Operators whose names start with `our_` are functions of the file.
    pub fn node_with(
        mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) -> Self {
        let mut node: Vec<u8> =
            inputs.iter().flat_map(|input| message(1, input.as_bytes())).collect();
        node.extend(message(2, output.as_bytes()));
        node.extend(message(4, operator.as_bytes()));
        if operator.starts_with("our_") {
            node.extend(message(7, b"ours"));
        }
        for (name, values) in attributes {
            let mut attribute = message(1, name.as_bytes());
            match values {
                Attribute::Whole(value) => {
                    attribute.extend([number(3, *value as u64), number(20, 2)].concat());
                }
                Attribute::List(values) => {
                    values.iter().for_each(|value| attribute.extend(number(8, *value as u64)));
                    attribute.extend(number(20, 7));
                }
                Attribute::Graph(graph) => {
                    attribute.extend([message(6, graph), number(20, 5)].concat());
                }
            }
            node.extend(message(5, &attribute));
        }
        self.nodes.extend(message(1, &node));
        self
    }

    pub fn weight(self, name: &str, shape: &[u64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, FLOAT, shape, &message(9, &bytes))
    }

    /// A weight with these fields in place of its numbers.
    pub fn tensor(mut self, name: &str, element: u64, shape: &[u64], fields: &[u8]) -> Self {
        let mut tensor: Vec<u8> = shape.iter().flat_map(|length| number(1, *length)).collect();
        tensor.extend(number(2, element));
        tensor.extend(message(8, name.as_bytes()));
        tensor.extend(fields);
        self.weights.extend(message(5, &tensor));
        self
    }

    /// A weight in a file of this name.
    pub fn external(self, name: &str, shape: &[u64], file: &str) -> Self {
        let length = (4 * shape.iter().product::<u64>()).to_string();
        let entry = |key: &str, value: &str| {
            message(13, &[message(1, key.as_bytes()), message(2, value.as_bytes())].concat())
        };
        let fields = [entry("location", file), entry("offset", "0"), entry("length", &length)];
        self.tensor(name, FLOAT, shape, &[fields.concat(), number(14, 1)].concat())
    }

    /// The graph alone, for an attribute.
    pub fn graph(&self) -> Vec<u8> {
        let parts =
            [&self.nodes[..], &message(2, b"net"), &self.weights, &self.inputs, &self.outputs];
        parts.concat()
    }

    /// A function of this name with these nodes, for [`Onnx::file_with`].
    pub fn function(&self, name: &str) -> Vec<u8> {
        let nodes = [message(1, name.as_bytes()), self.function_nodes(), message(10, b"ours")];
        message(25, &nodes.concat())
    }

    /// The nodes as fields of a function, which have another number.
    fn function_nodes(&self) -> Vec<u8> {
        let mut nodes = self.nodes.clone();
        // Every node here is shorter than 128 bytes: a tag, a length, its bytes.
        let mut at = 0;
        while at < nodes.len() {
            nodes[at] = 7 << 3 | 2;
            at += 2 + usize::from(nodes[at + 1]);
        }
        nodes
    }

    /// The bytes of the file.
    pub fn file(&self) -> Vec<u8> {
        self.file_with(&[])
    }

    /// The bytes of the file, with these fields of the model behind the others.
    pub fn file_with(&self, fields: &[u8]) -> Vec<u8> {
        let operators = number(2, 13);
        let model = [number(1, 7), message(8, &operators), message(7, &self.graph())];
        [&model.concat(), fields].concat()
    }
}

fn port(name: &str, element: u64, shape: Shape) -> Vec<u8> {
    let length = |length: &i64| match *length {
        open if open < 0 => message(1, &message(2, b"n")),
        fixed => message(1, &number(1, fixed as u64)),
    };
    let shape: Vec<u8> = shape.iter().flat_map(length).collect();
    let tensor = [number(1, element), message(2, &shape)].concat();
    [message(1, name.as_bytes()), message(2, &message(1, &tensor))].concat()
}

/// A field that holds bytes.
pub fn message(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A field that holds a whole number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The mean of each colour, times a 3 × 4 matrix: images `[batch, 3, side, side]` → `[batch, 4]`.
pub fn mean_colours(batch: i64, side: i64) -> Onnx {
    Onnx::default()
        .input("images", FLOAT, &[batch, 3, side, side])
        .output("features", FLOAT, &[batch, 4])
        .weight("matrix", &[3, 4], &[1., 0., 0., 0.5, 0., 1., 0., 0.25, 0., 0., 1., -1.])
        .node("GlobalAveragePool", &["images"], "pooled")
        .node("Flatten", &["pooled"], "flat")
        .node("MatMul", &["flat", "matrix"], "features")
}

/// The same for images `[n, height, width, 3]`.
pub fn mean_colours_channels_last() -> Onnx {
    let attributes = [("axes", Attribute::List(&[1, 2])), ("keepdims", Attribute::Whole(0))];
    Onnx::default()
        .input("images", FLOAT, &[-1, -1, -1, 3])
        .output("features", FLOAT, &[-1, 4])
        .weight("matrix", &[3, 4], &[1., 0., 0., 0.5, 0., 1., 0., 0.25, 0., 0., 1., -1.])
        .node_with("ReduceMean", &["images"], "flat", &attributes)
        .node("MatMul", &["flat", "matrix"], "features")
}

/// A feature map of the images' own size.
pub fn feature_map() -> Onnx {
    Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .output("map", FLOAT, &[-1, 3, -1, -1])
        .node("Relu", &["images"], "map")
}

/// A vector for each row of pixels, and the mean of all.
pub fn tokens_and_mean() -> Onnx {
    let attributes = [("axes", Attribute::List(&[3])), ("keepdims", Attribute::Whole(0))];
    Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .output("tokens", FLOAT, &[-1, 3, -1])
        .output("mean", FLOAT, &[-1, 3])
        .node_with("ReduceMean", &["images"], "tokens", &attributes)
        .node("GlobalAveragePool", &["images"], "pooled")
        .node("Flatten", &["pooled"], "mean")
}
