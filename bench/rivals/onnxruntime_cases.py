"""ResNet-50 and GPT-2 small by ONNX Runtime, with random weights, as graphs made here by hand."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(0)

    def weight(self, *shape, scale=0.02, values=None):
        data = self.random.standard_normal(shape, np.float32) * np.float32(scale) if values is None else values
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(data, name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def session(self, inputs, result, threads):
        values = [
            helper.make_tensor_value_info(
                name, TensorProto.INT64 if data.dtype == np.int64 else TensorProto.FLOAT, data.shape)
            for name, data in inputs.items()
        ]
        out = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", values, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 9
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run([result], inputs)

    # --- layers

    def conv(self, x, inside, out, kernel, stride=1, padding=0):
        w = self.weight(out, inside, kernel, kernel, scale=(2 / (inside * kernel * kernel)) ** 0.5)
        y = self.op("Conv", x, w, strides=[stride] * 2, pads=[padding] * 4, kernel_shape=[kernel] * 2)
        ones, zeros = np.ones(out, np.float32), np.zeros(out, np.float32)
        return self.op("BatchNormalization", y, *(self.weight(values=v) for v in (ones, zeros, zeros, ones)))

    def linear(self, x, inside, out):
        return self.op("Add", self.op("MatMul", x, self.weight(inside, out)), self.weight(out))

    def norm(self, x, width):
        return self.op("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1)

    def shape(self, *sizes):
        return self.weight(values=np.array(sizes, np.int64))


def resnet50(threads, batch):
    g = Graph()
    h = g.op("Relu", g.conv("x", 3, 64, 7, 2, 3))
    h = g.op("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inside = 64
    for planes, count, stride in (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2):
        for i in range(count):
            s = stride if i == 0 else 1
            y = g.op("Relu", g.conv(h, inside, planes, 1))
            y = g.op("Relu", g.conv(y, planes, planes, 3, s, 1))
            y = g.conv(y, planes, planes * 4, 1)
            short = g.conv(h, inside, planes * 4, 1, s) if i == 0 else h
            h = g.op("Relu", g.op("Add", y, short))
            inside = planes * 4
    h = g.op("Flatten", g.op("GlobalAveragePool", h))
    x = g.random.standard_normal((int(batch), 3, 224, 224), np.float32)
    return g.session({"x": x}, g.linear(h, 2048, 1000), threads)


def gpt2(threads, tokens, before):
    g = Graph()
    heads, width, layers = 12, 768, 12
    inputs = {"tokens": g.random.integers(0, 50257, (1, tokens), np.int64)}
    table = g.weight(50257, width)
    x = g.op("Add", g.op("Gather", table, "tokens"), g.weight(1, tokens, width))
    mask = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    for i in range(layers):
        qkv = g.linear(g.norm(x, width), width, 3 * width)
        parts = g.op("Split", qkv, outputs=3, num_outputs=3, axis=-1)
        q, k, v = (
            g.op("Transpose", g.op("Reshape", p, g.shape(1, tokens, heads, width // heads)), perm=[0, 2, 1, 3])
            for p in parts)
        if before:
            for name in f"k{i}", f"v{i}":
                inputs[name] = g.random.standard_normal((1, heads, before, width // heads), np.float32)
            k, v = g.op("Concat", f"k{i}", k, axis=2), g.op("Concat", f"v{i}", v, axis=2)
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.weight(values=np.array((width // heads) ** -0.5, np.float32)))
        if not before:
            scores = g.op("Add", scores, g.weight(values=mask))
        h = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        h = g.op("Reshape", g.op("Transpose", h, perm=[0, 2, 1, 3]), g.shape(1, tokens, width))
        x = g.op("Add", x, g.linear(h, width, width))
        up = g.op("Gelu", g.linear(g.norm(x, width), width, 4 * width), approximate="tanh")
        x = g.op("Add", x, g.linear(up, 4 * width, width))
    last = g.op("Gather", g.norm(x, width), g.weight(values=np.array(tokens - 1, np.int64)), axis=1)
    return g.session(inputs, g.op("MatMul", last, g.op("Transpose", table, perm=[1, 0])), threads)


CASES = {
    "resnet50": resnet50,
    "gpt2_forward": lambda threads, tokens: gpt2(threads, int(tokens), 0),
    "gpt2_decode": lambda threads, before: gpt2(threads, 1, int(before)),
}


class Library:
    def __init__(self, threads):
        self.threads = threads
        self.version = onnxruntime.__version__

    def make(self, case, arguments):
        return CASES[case](self.threads, *arguments)

    def warm(self):
        pass


def open(threads):
    return Library(threads)
