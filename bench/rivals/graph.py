"""The rows of `pangrad-bench graph` as tinygrad does them: prints `name<TAB>seconds` for each. Run by the bench with the
interpreter that PANGRAD_RIVAL_PYTHON names, if tinygrad is there."""
import os, statistics, sys, time

os.environ.setdefault("DEV", "CPU")
os.environ.setdefault("CC", "clang-19")
from tinygrad import Tensor, Variable, dtypes, nn
from tinygrad.helpers import Context
from tinygrad.uop.ops import Ops, UOp, graph_rewrite
from tinygrad.uop.symbolic import symbolic


def say(name, seconds):
  print(f"{name}\t{seconds:.9g}", flush=True)


def median(f, times=5):
  f()
  out = []
  for _ in range(times):
    start = time.perf_counter()
    f()
    out.append(time.perf_counter() - start)
  return statistics.median(out)


def once(f):
  start = time.perf_counter()
  f()
  return time.perf_counter() - start


def nodes():
  x, kept = UOp.variable("x", 0, 9), []

  def chain(n, root):
    for _ in range(n):
      root = root + root
      kept.append(root)
    return root

  say("a + a", once(lambda: chain(1000, x)) / 1000)
  say("constant", median(lambda: [UOp.const(5, dtypes.int) for _ in range(1000)]) / 1000)
  long = x
  for i in range(10000): long = UOp(Ops.ADD, long.dtype, (long, UOp.const(i, long.dtype)))
  say("toposort", median(lambda: long.toposort()) / 20001)
  count = iter(range(10**9))

  def fresh(make):  # other variables each time, so that nothing is found
    times = []
    for _ in range(101):
      i = next(count)
      expression = make(*(UOp.variable(f"{name}{i}", 1, 100) for name in "xyz"))
      times.append(once(lambda: graph_rewrite(expression, symbolic)))
    return statistics.median(times)

  say("terms", fresh(lambda x, y, z: (x * 2) + 5 + (x * 4) + (y * 2) + y))
  say("quotient", fresh(lambda x, y, z: (x * 4 + y * 8) // (z * 2)))


def tensors():
  a, b = Tensor.empty(4, 4), Tensor.empty(4, 4)
  say("Tensor a + b", median(lambda: [a + b for _ in range(1000)]) / 1000)
  say("rand", median(lambda: Tensor.rand(10, 10), 21))
  say("randn", median(lambda: Tensor.randn(10, 10), 21))


class Bottleneck:
  def __init__(self, cin, planes, stride):
    self.conv1, self.bn1 = nn.Conv2d(cin, planes, 1, bias=False), nn.BatchNorm(planes)
    self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(planes)
    self.conv3, self.bn3 = nn.Conv2d(planes, planes * 4, 1, bias=False), nn.BatchNorm(planes * 4)
    self.down = None
    if stride != 1 or cin != planes * 4:
      self.down = [nn.Conv2d(cin, planes * 4, 1, stride=stride, bias=False), nn.BatchNorm(planes * 4)]

  def __call__(self, x):
    h = self.bn1(self.conv1(x)).relu()
    h = self.bn2(self.conv2(h)).relu()
    h = self.bn3(self.conv3(h))
    return (h + (x.sequential(self.down) if self.down else x)).relu()


class ResNet50:
  def __init__(self):
    self.stem, self.norm, self.blocks, cin = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm(64), [], 64
    for planes, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
      for i in range(n):
        self.blocks.append(Bottleneck(cin, planes, stride if i == 0 else 1))
        cin = planes * 4
    self.head = nn.Linear(2048, 1000)

  def __call__(self, x):
    h = self.norm(self.stem(x)).relu().pad((1, 1, 1, 1)).max_pool2d((3, 3), 2)
    return self.head(h.sequential(self.blocks).mean((2, 3)))


def parameters(net):
  for t in nn.state.get_parameters(net): t.replace(Tensor.empty(*t.shape, dtype=t.dtype))


def resnet():
  net = ResNet50()
  parameters(net)
  x = Tensor.empty(64, 3, 224, 224)
  say("resnet trace", median(lambda: net(x), 3))
  with Context(SCACHE=0): say("resnet schedule", median(lambda: net(x).schedule_linear(), 3))
  linear = net(x).schedule_linear()
  say("resnet schedule hit", median(lambda: net(x).schedule_linear(), 3))
  from tinygrad.codegen import to_program
  from tinygrad.device import Device
  kernels = {call.src[0].key: call.src[0] for call in linear.src if call.src[0].op is Ops.SINK}
  renderer = Device["CPU"].renderer
  type(renderer.compiler).compile_cached = lambda self, text: b""  # up to the text only
  say("resnet lower", once(lambda: [to_program(k, renderer) for k in kernels.values()]))


class Block:
  def __init__(self, width):
    self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
    self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

  def __call__(self, x, heads=12):
    b, t, c = x.shape
    q, k, v = [y.reshape(b, t, heads, c // heads).transpose(1, 2) for y in self.attn(self.ln1(x)).chunk(3, -1)]
    h = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
    x = x + self.proj(h)
    return x + self.down(self.up(self.ln2(x)).gelu())


class Gpt2:
  def __init__(self, width=768, layers=12):
    self.tokens, self.places = nn.Embedding(50257, width), nn.Embedding(1024, width)
    self.blocks, self.norm = [Block(width) for _ in range(layers)], nn.LayerNorm(width)

  def __call__(self, ids):
    x = self.tokens(ids) + self.places(Tensor.arange(ids.shape[1]).reshape(1, -1))
    return self.norm(x.sequential(self.blocks)) @ self.tokens.weight.T


def gpt2():
  net = Gpt2()
  parameters(net)
  opt = nn.optim.Adam(nn.state.get_parameters(net))
  Tensor.realize(*nn.state.get_parameters(opt))
  ids, targets = Tensor.empty(1, 128, dtype=dtypes.int), Tensor.empty(1, 128, dtype=dtypes.int)

  def step():
    with Context(TRAINING=1):
      opt.zero_grad()
      loss = net(ids).sparse_categorical_crossentropy(targets)
      loss.backward()
      loss.schedule_linear(*opt.schedule_step())

  say("gpt2", once(step))


def first_result():
  # A new process that adds one to what it has; its kernel is on disk from the first of two.
  import subprocess
  code = "from tinygrad import Tensor\n(Tensor([1.0, 2.0]) + 1).tolist()"
  run = lambda: subprocess.run([sys.executable, "-c", code], check=True)
  say("first result", median(run, 3))


for part in (nodes, tensors, first_result, resnet, gpt2):
  try:
    part()
  except Exception as e:
    print(f"graph.py: {part.__name__}: {e!r}", file=sys.stderr)
