#!/usr/bin/env python3
"""Makes tests/golden: what other frameworks say, for values, random numbers, optimisers and a short training run.

Needs NumPy, PyTorch and tinygrad (with a clang on the PATH), none of which a build or a test does: run it by hand where
a case was added, and commit what it writes.

    python3 tools/make_golden.py [ops|random|optim|train]...
"""
import math
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault('DEV', 'CPU')
OUT = pathlib.Path(__file__).parent.parent / 'tests' / 'golden'


def number(v, dtype):
    if dtype == 'bool' or dtype[0] in 'iu':
        return str(int(v))
    if math.isnan(v):
        return 'nan'
    if math.isinf(v):
        return 'inf' if v > 0 else '-inf'
    text = f'{v:.{17 if dtype == "f64" else 10}g}'
    return text


def line(name, digest, dtype, array):
    dims = 'x'.join(map(str, array.shape)) or '-'
    return ' '.join([name, f'{digest:016x}', dtype, dims] + [number(v, dtype) for v in array.reshape(-1).tolist()])


def ops():
    import numpy as np
    import torch

    from golden_inputs import FLOATS, fnv, storage_bytes
    from golden_ops import all_cases
    names = {'torch.float64': 'f32', 'torch.float32': 'f32', 'torch.float16': 'f16', 'torch.int64': 'i32',
             'torch.int32': 'i32', 'torch.int16': 'i16', 'torch.int8': 'i8', 'torch.uint8': 'u8', 'torch.bool': 'bool',
             'float64': 'f64', 'float32': 'f32', 'float16': 'f16', 'int64': 'i64', 'uint64': 'u64', 'int32': 'i32',
             'uint32': 'u32', 'int16': 'i16', 'uint16': 'u16', 'int8': 'i8', 'uint8': 'u8', 'bool': 'bool'}
    lines = []
    for name, (inputs, function, dtype, native) in all_cases().items():
        arrays, digest = [], 0xcbf29ce484222325
        for i, spec in enumerate(inputs):
            a = spec.make(name, i)
            digest = fnv(storage_bytes(a, spec.dtype), digest)
            # Double precision, unless the case asks for its own.
            arrays.append(a.astype(np.float64) if spec.dtype in FLOATS and not native else a)
        try:
            with np.errstate(all='ignore'):
                r = function(*(arrays if native == 'numpy' else map(torch.from_numpy, arrays)))
        except Exception as e:
            raise RuntimeError(f'case {name}') from e
        if isinstance(r, torch.Tensor):
            dtype = dtype or ('f64' if name.endswith('f64') and r.dtype == torch.float64 else names[str(r.dtype)])
            r = r.detach().numpy()
        else:
            r = np.asarray(r)
            dtype = dtype or names[str(r.dtype)]
        lines.append(line(name, digest, dtype, r))
    write('ops.txt', ['# case, digest of its inputs, dtype, dimensions, values; by PyTorch and NumPy in double precision'],
          lines)


def random():
    from tinygrad import Tensor, dtypes
    import numpy as np
    lines = []

    def show(name, tensor, dtype):
        lines.append(line(name, 0, dtype, np.asarray(tensor.numpy())))
    for seed in (0, 1, 42, 1337, 2**32 - 1):
        Tensor.manual_seed(seed)
        show(f'seed{seed}.rand2', Tensor.rand(2), 'f32')
        show(f'seed{seed}.then_rand2', Tensor.rand(2), 'f32')
        show(f'seed{seed}.then_rand3x5', Tensor.rand(3, 5), 'f32')
        show(f'seed{seed}.then_randn7', Tensor.randn(7), 'f32')
        show(f'seed{seed}.then_randint9', Tensor.randint(9, low=-5, high=20), 'i32')
        show(f'seed{seed}.then_rand1', Tensor.rand(1), 'f32')
        show(f'seed{seed}.then_rand_f16', Tensor.rand(5, dtype=dtypes.float16), 'f16')
        show(f'seed{seed}.then_rand_bf16', Tensor.rand(5, dtype=dtypes.bfloat16), 'bf16')
        show(f'seed{seed}.then_rand_f64', Tensor.rand(5, dtype=dtypes.float64), 'f64')
        show(f'seed{seed}.then_rand0', Tensor.rand(0, 3), 'f32')
        show(f'seed{seed}.then_uniform', Tensor.uniform(6, low=-3.0, high=5.0), 'f32')
        show(f'seed{seed}.then_normal', Tensor.normal(6, mean=2.0, std=0.5), 'f32')
        show(f'seed{seed}.then_scaled_uniform', Tensor.scaled_uniform(2, 3), 'f32')
        show(f'seed{seed}.then_glorot_uniform', Tensor.glorot_uniform(2, 3), 'f32')
        show(f'seed{seed}.then_kaiming_uniform', Tensor.kaiming_uniform(2, 3), 'f32')
        show(f'seed{seed}.then_kaiming_normal', Tensor.kaiming_normal(2, 3), 'f32')
        show(f'seed{seed}.then_randperm', Tensor.randperm(9), 'i32')
        show(f'seed{seed}.then_rand100', Tensor.rand(100), 'f32')
    Tensor.manual_seed(0)
    show('devices.first', Tensor.rand(2), 'f32')
    show('devices.second', Tensor.rand(2, device='CPU:1'), 'f32')
    show('devices.third', Tensor.rand(2, device='CPU:2'), 'f32')
    show('devices.first_again', Tensor.rand(2), 'f32')
    write('random.txt', ['# drawn in this order after manual_seed(seed); name, 0, dtype, dimensions, values; by tinygrad'],
          lines)


def optim():
    """A small network by each optimiser: parameters after steps 1 and 5, by tinygrad; SGD and Adam also by PyTorch."""
    import numpy as np
    import torch
    from tinygrad import Tensor, Context
    from tinygrad.nn import optim as tg

    from golden_inputs import f
    inputs = [f(5, 3), f(3, 4), f(4), f(5, 4, low=-1, high=1)]
    x, w, b, y = (spec.make('optim', i) for i, spec in enumerate(inputs))
    lines = []
    table = {
        'sgd': lambda p: tg.SGD(p, lr=0.1),
        'sgd.momentum': lambda p: tg.SGD(p, lr=0.1, momentum=0.9),
        'sgd.nesterov': lambda p: tg.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        'sgd.weight_decay': lambda p: tg.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.05),
        'adam': lambda p: tg.Adam(p, lr=0.02),
        'adam.betas': lambda p: tg.Adam(p, lr=0.02, b1=0.8, b2=0.95, eps=1e-4),
        'adamw': lambda p: tg.AdamW(p, lr=0.02, weight_decay=0.1),
        'lamb': lambda p: tg.LAMB(p, lr=0.02),
        'lamb.weight_decay': lambda p: tg.LAMB(p, lr=0.02, weight_decay=0.1),
        'lars': lambda p: tg.LARS(p, lr=0.1),
        'muon': lambda p: tg.Muon(p[:1], lr=0.02),
    }
    for name, make in table.items():
        weight, bias = Tensor(w.copy()), Tensor(b.copy())
        opt = make([weight, bias])
        with Context(TRAINING=1):
            for step in range(1, 6):
                opt.zero_grad()
                ((Tensor(x) @ weight + bias).tanh() - Tensor(y)).square().mean().backward()
                opt.step()
                if step in (1, 5):
                    lines.append(line(f'{name}.step{step}.w', 0, 'f32', weight.numpy()))
                    lines.append(line(f'{name}.step{step}.b', 0, 'f32', bias.numpy()))
    torched = {
        'sgd': lambda p: torch.optim.SGD(p, lr=0.1),
        'sgd.momentum': lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        'sgd.nesterov': lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        'sgd.weight_decay': lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.05),
        'adam': lambda p: torch.optim.Adam(p, lr=0.02),
        'adam.betas': lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-4),
        'adamw': lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    }
    for name, make in torched.items():
        weight, bias = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (w, b))
        opt = make([weight, bias])
        for step in range(1, 6):
            opt.zero_grad()
            ((torch.tensor(x).double() @ weight + bias).tanh() - torch.tensor(y).double()).square().mean().backward()
            opt.step()
            if step in (1, 5):
                ours = next(v for v in lines if v.startswith(f'{name}.step{step}.w ')).split()[4:]
                worst = np.abs(np.array(ours, float) - weight.detach().numpy().reshape(-1)).max()
                assert worst < 1e-5, f'{name}: PyTorch and tinygrad differ by {worst} at step {step}'
    write('optim.txt', ['# x (5,3), w (3,4), b (4), y (5,4) are inputs 0 to 3 of the case "optim"; the loss is',
                        '# mean((tanh(x w + b) - y)^2); parameters after a step; by tinygrad in f32, where PyTorch has the',
                        '# optimiser it agrees'], lines)


def train():
    """The demo network at batch 16 for ten steps: the losses, and norms of the parameters after the last."""
    import torch
    import torch.nn.functional as F

    from golden_inputs import Input, Lcg
    shapes = {'conv1.weight': (32, 1, 5, 5), 'conv1.bias': (32,), 'conv2.weight': (32, 32, 5, 5), 'conv2.bias': (32,),
              'norm1.weight': (32,), 'norm1.bias': (32,), 'conv3.weight': (64, 32, 3, 3), 'conv3.bias': (64,),
              'conv4.weight': (64, 64, 3, 3), 'conv4.bias': (64,), 'norm2.weight': (64,), 'norm2.bias': (64,),
              'head.weight': (10, 576), 'head.bias': (10,)}
    batch, steps = 16, 10

    def weight(name, shape):
        if name.startswith('norm'):
            return torch.ones(shape) if name.endswith('weight') else torch.zeros(shape)
        owner = shapes[name.split('.')[0] + '.weight']
        bound = math.sqrt(1.0 / math.prod(owner[1:]))
        return torch.from_numpy(Input('f32', shape, -bound, bound).make('train/' + name, 0))

    def data(step):
        """Pictures of 28 x 28 bytes: noise, and a bright block whose place is the class."""
        labels = [Lcg(f'train/label/{step}', i).next() % 10 for i in range(batch)]
        pictures = torch.from_numpy(Input('u8', (batch, 1, 28, 28), 0, 128).make(f'train/picture/{step}', 0)).float()
        for i, c in enumerate(labels):
            row, column = 4 + 10 * (c // 5), 1 + 5 * (c % 5)
            pictures[i, 0, row:row + 8, column:column + 5] += 100
        return pictures, torch.tensor(labels)

    lines = []
    for dtype, label in ((torch.float64, 'f64'), (torch.float32, 'f32')):
        torch.manual_seed(0)
        p = {n: weight(n, s).to(dtype).requires_grad_() for n, s in shapes.items()}
        opt = torch.optim.Adam(p.values(), lr=1e-3)
        losses = []
        for step in range(steps):
            x, y = data(step)
            h = F.relu(F.conv2d(x.to(dtype), p['conv1.weight'], p['conv1.bias']))
            h = F.relu(F.conv2d(h, p['conv2.weight'], p['conv2.bias']))
            h = F.max_pool2d(F.batch_norm(h, None, None, p['norm1.weight'], p['norm1.bias'], training=True), 2)
            h = F.relu(F.conv2d(h, p['conv3.weight'], p['conv3.bias']))
            h = F.relu(F.conv2d(h, p['conv4.weight'], p['conv4.bias']))
            h = F.max_pool2d(F.batch_norm(h, None, None, p['norm2.weight'], p['norm2.bias'], training=True), 2)
            loss = F.cross_entropy(h.flatten(1) @ p['head.weight'].T + p['head.bias'], y)
            opt.zero_grad()
            loss.backward()
            if step == 0:
                norms = torch.stack([v.grad.norm() for v in p.values()]).detach()
                lines.append(line(f'first_gradient_norms.{label}', 0, label, norms.numpy()))
            opt.step()
            losses.append(loss.detach())
        lines.append(line(f'losses.{label}', 0, label, torch.stack(losses).numpy()))
        norms = torch.stack([v.norm() for v in p.values()]).detach()
        lines.append(line(f'last_norms.{label}', 0, label, norms.numpy()))
        print(label, [round(v.item(), 4) for v in losses])
    write('train.txt', ['# the demo network, Adam, lr 1e-3, batch 16, ten steps; parameters in the order',
                        '# ' + ' '.join(shapes), '# by PyTorch, in f64 and in f32'], lines)


def write(name, head, lines):
    OUT.mkdir(exist_ok=True)
    text = '\n'.join(head + lines) + '\n'
    (OUT / name).write_text(text)
    print(f'{name}: {len(lines)} lines, {len(text)} bytes')


if __name__ == '__main__':
    warnings.simplefilter('ignore')
    parts = {'ops': ops, 'random': random, 'optim': optim, 'train': train}
    for part in sys.argv[1:] or parts:
        parts[part]()
