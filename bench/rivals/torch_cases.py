"""The cases of the benchmark by PyTorch. A case is prepared by name and arguments and gives a function to time."""

import torch
import torch.nn.functional as F

import torch_models

DTYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32,
}


def random(*shape, dtype="f32"):
    if dtype in ("i8", "i32"):
        return torch.randint(-127, 127, shape, dtype=DTYPES[dtype])
    return torch.randn(*shape).to(DTYPES[dtype])


def without_history(f):
    def run():
        with torch.no_grad():
            f()
    return run


def matmul(dtype, layout, batch, m, n, k):
    lead = (int(batch),) if batch != "1" else ()
    m, n, k = int(m), int(n), int(k)
    a = random(*lead, k, m, dtype=dtype).mT if layout[0] == "t" else random(*lead, m, k, dtype=dtype)
    b = random(*lead, n, k, dtype=dtype).mT if layout[1] == "t" else random(*lead, k, n, dtype=dtype)
    if dtype == "i8":
        return without_history(lambda: torch._int_mm(a, b))
    out = torch.empty(*lead, m, n, dtype=DTYPES[dtype])
    return without_history(lambda: torch.matmul(a, b, out=out))


def conv(way, n, cin, size, cout, kernel, stride, padding, groups):
    n, cin, size, cout, kernel, stride, padding, groups = map(
        int, (n, cin, size, cout, kernel, stride, padding, groups))
    x, w = random(n, cin, size, size), random(cout, cin // groups, kernel, kernel)
    if way == "forward":
        return without_history(lambda: F.conv2d(x, w, None, stride, padding, 1, groups))
    out = random(*F.conv2d(x, w, None, stride, padding, 1, groups).shape)
    return lambda: torch.ops.aten.convolution_backward(
        out, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, [True, True, False])


def both_ways(f, inputs, out):
    """A function that computes f of inputs and, given the gradient of its result, theirs."""
    for x in inputs:
        x.requires_grad_()

    def run():
        for x in inputs:
            x.grad = None
        f().backward(out)
    return run


def rows(what, way, n, m):
    n, m = int(n), int(m)
    x, weight, bias = random(n, m), random(m), random(m)
    if what == "softmax":
        f, inputs = (lambda: F.softmax(x, -1)), [x]
    elif what == "layernorm":
        f, inputs = (lambda: F.layer_norm(x, (m,), weight, bias)), [x, weight, bias]
    elif what == "rmsnorm":
        f, inputs = (lambda: F.rms_norm(x, (m,), weight)), [x, weight]
    elif what == "crossentropy":
        target = torch.randint(0, m, (n,))
        f, inputs = (lambda: F.cross_entropy(x, target)), [x]
    else:
        raise ValueError(what)
    if way == "forward":
        return without_history(f)
    return both_ways(f, inputs, None if what == "crossentropy" else random(n, m))


def pool(what, way, n, c, size, kernel, stride, padding):
    n, c, size, kernel, stride, padding = map(int, (n, c, size, kernel, stride, padding))
    x = random(n, c, size, size)
    f = {
        "max": lambda: F.max_pool2d(x, kernel, stride, padding),
        "avg": lambda: F.avg_pool2d(x, kernel, stride, padding),
    }[what]
    if way == "forward":
        return without_history(f)
    return both_ways(f, [x], random(*f().shape))


def attention(heads, tokens, width, causal):
    q, k, v = (random(1, int(heads), int(tokens), int(width)) for _ in range(3))
    return without_history(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal == "causal"))


def embedding(vocabulary, width, tokens):
    table, at = random(int(vocabulary), int(width)), torch.randint(0, int(vocabulary), (int(tokens),))
    out = torch.empty(int(tokens), int(width))
    return without_history(lambda: torch.index_select(table, 0, at, out=out))


def index_add(vocabulary, width, tokens):
    table, at = torch.zeros(int(vocabulary), int(width)), torch.randint(0, int(vocabulary), (int(tokens),))
    source, out = random(int(tokens), int(width)), torch.empty(int(vocabulary), int(width))
    return without_history(lambda: torch.index_add(table, 0, at, source, out=out))


def sort(n):
    x = random(int(n))
    out = torch.empty(int(n)), torch.empty(int(n), dtype=torch.int64)
    return without_history(lambda: torch.sort(x, stable=True, out=out))


def topk(n, m, k):
    x = random(int(n), int(m))
    return without_history(lambda: torch.topk(x, int(k)))


def cumsum(n, m):
    x, out = random(int(n), int(m)), torch.empty(int(n), int(m))
    return without_history(lambda: torch.cumsum(x, -1, out=out))


CASES = {
    f.__name__: f
    for f in (matmul, conv, rows, pool, attention, embedding, index_add, sort, topk, cumsum)
} | torch_models.CASES


class Library:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.version = torch.__version__

    def make(self, case, arguments):
        torch.manual_seed(0)
        return CASES[case](*arguments)

    def warm(self):
        conv("backward", *"1 3 8 4 3 1 1 1".split())()
        matmul("f32", "nn", "1", "64", "64", "64")()


def open(threads):
    return Library(threads)
