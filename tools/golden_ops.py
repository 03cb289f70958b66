"""What PyTorch and NumPy say to the cases of tests/ops: a function for each name, in double precision where it matters."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from golden_inputs import Input, bools, distinct, f, ints, special, special_pair

CASES = {}  # name: (inputs, function, dtype of the result or None, native)
t64 = torch.float64


def case(name, inputs, function, dtype=None, native=False):
    assert name not in CASES, name
    CASES[name] = (inputs, function, dtype, native)


# --- elementwise -----------------------------------------------------------------------------------------------------

def unary():
    rows = {
        'neg': (torch.neg, -2, 2), 'abs': (torch.abs, -2, 2), 'sign': (torch.sign, -2, 2), 'square': (torch.square, -2, 2),
        'reciprocal': (torch.reciprocal, 0.3, 3), 'sqrt': (torch.sqrt, 0.1, 4), 'rsqrt': (torch.rsqrt, 0.1, 4),
        'exp': (torch.exp, -4, 4), 'exp2': (torch.exp2, -4, 4), 'log': (torch.log, 0.1, 5), 'log2': (torch.log2, 0.1, 5),
        'log10': (torch.log10, 0.1, 5), 'sin': (torch.sin, -8, 8), 'cos': (torch.cos, -8, 8), 'tan': (torch.tan, -1.3, 1.3),
        'asin': (torch.asin, -0.95, 0.95), 'acos': (torch.acos, -0.95, 0.95), 'atan': (torch.atan, -5, 5),
        'sinh': (torch.sinh, -3, 3), 'cosh': (torch.cosh, -3, 3), 'tanh': (torch.tanh, -4, 4), 'asinh': (torch.asinh, -3, 3),
        'acosh': (torch.acosh, 1.1, 4), 'atanh': (torch.atanh, -0.9, 0.9), 'erf': (torch.erf, -3, 3),
        'trunc': (torch.trunc, -4, 4), 'floor': (torch.floor, -4, 4), 'ceil': (torch.ceil, -4, 4),
        'round': (torch.round, -4, 4), 'isnan': (torch.isnan, -2, 2), 'isinf': (torch.isinf, -2, 2),
        'isfinite': (torch.isfinite, -2, 2), 'relu': (F.relu, -2, 2), 'relu6': (F.relu6, -2, 9),
        'selu': (F.selu, -3, 3), 'quick_gelu': (lambda x: x * torch.sigmoid(1.702 * x), -4, 4),
        'sigmoid': (torch.sigmoid, -8, 8), 'logsigmoid': (F.logsigmoid, -8, 8), 'hardsigmoid': (F.hardsigmoid, -5, 5),
        'silu': (F.silu, -6, 6), 'hardswish': (F.hardswish, -5, 5), 'softsign': (F.softsign, -4, 4), 'mish': (F.mish, -6, 6),
        'logical_not': (torch.logical_not, -2, 2),
    }
    for name, (function, low, high) in rows.items():
        case(name, [f(45, low=low, high=high)], function)
    sure = ('neg abs square reciprocal sqrt exp exp2 log log2 sin cos tanh erf trunc floor ceil round isnan isinf '
            'isfinite sigmoid').split()
    for dtype in ('f32', 'f64'):
        for name in sure:
            case(f'{name}.special.{dtype}', [special(dtype)], rows[name][0], native=name in ('square', 'exp2'))
    case('leaky_relu', [f(3, 5)], F.leaky_relu)
    case('leaky_relu.slope', [f(3, 5)], lambda x: F.leaky_relu(x, 0.3))
    case('elu', [f(3, 5)], F.elu)
    case('elu.alpha', [f(3, 5)], lambda x: F.elu(x, 1.7))
    case('celu', [f(3, 5)], lambda x: F.celu(x, 0.7))
    case('gelu', [f(3, 5, low=-4, high=4)], lambda x: F.gelu(x, approximate='tanh'))
    case('gelu.erf', [f(3, 5, low=-4, high=4)], F.gelu)
    case('hardtanh', [f(3, 5)], F.hardtanh)
    case('hardtanh.bounds', [f(3, 5)], lambda x: F.hardtanh(x, -0.3, 1.2))
    case('softplus', [f(3, 5, low=-6, high=6)], F.softplus)
    case('softplus.beta', [f(3, 5, low=-6, high=6)], lambda x: F.softplus(x, 3, 1000))
    case('sin.large', [f(40, low=-1e5, high=1e5)], torch.sin)
    case('cos.large', [f(40, low=-1e30, high=1e30)], torch.cos)
    case('exp.range', [f(40, low=-110, high=90)], torch.exp)
    case('exp2.range', [f(40, low=-155, high=130)], torch.exp2)
    case('log.range', [f(40, low=0, high=1e30)], torch.log)
    case('log.one', [f(40, low=0.99, high=1.01)], torch.log)
    case('tanh.small', [f(40, low=-1e-3, high=1e-3)], torch.tanh)
    case('erf.small', [f(40, low=-1e-3, high=1e-3)], torch.erf)


def binary():
    two = [f(3, 5), f(3, 5)]
    divided = [f(3, 5, low=-9, high=9), f(3, 5, low=0.5, high=2)]
    case('add', two, torch.add)
    case('sub', two, torch.sub)
    case('mul', two, torch.mul)
    case('div', [f(3, 5), f(3, 5, low=0.5, high=2)], torch.div)
    case('floor_div', divided, torch.floor_divide)
    case('mod', divided, torch.remainder)
    case('mod.negative', [f(3, 5, low=-9, high=9), f(3, 5, low=-2, high=-0.5)], torch.remainder)
    case('fmod', divided, torch.fmod)
    case('pow', [f(3, 15, low=0.1, high=4), f(3, 15, low=-3, high=3)], torch.pow)
    case('pow.negative_base', [f(3, 5, low=-4, high=-0.1), ints(3, 5, low=-3, high=4)], lambda x, y: x.pow(y.to(t64)))
    case('pow.fraction_of_negative', [f(3, 5, low=-4, high=-0.1), f(3, 5, low=0.1, high=0.9)], torch.pow)
    case('maximum', two, torch.maximum)
    case('minimum', two, torch.minimum)
    case('copysign', two, torch.copysign)
    case('logaddexp', two, torch.logaddexp)
    case('bits_by_name', [ints(3, 5, low=-99, high=99), ints(5, low=-99, high=99)],
         lambda x, y: ((x & y) | (x << 3)) ^ (y >> 2))
    case('equal_by_name', [ints(3, 5, low=0, high=3), ints(5, low=0, high=3)], lambda x, y: (x == y) & (x != 2))
    case('lerp', two + [f(3, 5, low=0, high=1)], torch.lerp)
    case('lerp.number', two, lambda x, y: torch.lerp(x, y, 0.25))
    near = [f(3, 5, low=1, high=1.0001), f(3, 5, low=1, high=1.0001)]
    case('isclose', near, torch.isclose)
    case('allclose', two, lambda x, y: torch.isclose(x, y).all())
    small = [ints(3, 5, low=0, high=3), ints(3, 5, low=0, high=3)]
    case('eq', small, torch.eq)
    case('ne', small, torch.ne)
    for name in ('lt', 'le', 'gt', 'ge'):
        case(name, two, getattr(torch, name))
    case('where', [bools(3, 5), f(3, 5), f(3, 5)], torch.where)
    case('where.numbers', [bools(3, 5)], lambda c: torch.where(c, 1.5, -1.0), 'f32')
    case('where.broadcast', [bools(3, 1), f(5), f(1, 1)], torch.where)
    case('masked_fill', [f(3, 5), bools(3, 5)], lambda x, m: x.masked_fill(m, -9))
    case('clamp', [f(3, 5)], lambda x: x.clamp(-0.5, 1))
    case('clamp.tensors', [f(3, 5), f(5, low=-1, high=0), f(5, low=0, high=1)], torch.clamp)
    case('clamp_min', [f(3, 5)], lambda x: x.clamp(min=torch.tensor(0.2, dtype=torch.float32).to(t64)))
    case('clamp_max', [f(3, 5)], lambda x: x.clamp(max=torch.tensor(0.2, dtype=torch.float32).to(t64)))
    case('number.add', [f(3, 5)], lambda x: x + 1)
    case('number.rsub', [f(3, 5)], lambda x: 2.5 - x)
    case('number.rdiv', [f(3, 5, low=0.5, high=2)], lambda x: 1 / x)
    case('number.div', [f(3, 5)], lambda x: x / 3)
    case('number.pow2', [f(3, 5)], lambda x: x**2)
    case('number.pow3', [f(3, 5)], lambda x: x**3)
    case('number.pow_half', [f(3, 5, low=0.1, high=4)], lambda x: x**0.5)
    case('number.pow_minus1', [f(3, 5, low=0.5, high=4)], lambda x: x**-1)
    case('number.int_times_float', [ints(3, 5, low=-9, high=9)], lambda x: x * 0.5)
    case('number.int_plus_int', [ints(3, 5, low=-9, high=9, dtype='u8')], lambda x: x + 3)
    case('number.bool_plus_int', [bools(5)], lambda x: x.int() + 1)
    case('number.int_mod', [ints(9, low=-9, high=9)], lambda x: x % 4)
    case('number.int_floor_div', [ints(9, low=-9, high=9)], lambda x: x // 4)
    pairs = {'row': ((3, 4), (4,)), 'column': ((3, 4), (3, 1)), 'outer': ((3, 1), (1, 4)), 'scalar': ((), (2, 3)),
             'one': ((1,), (5,)), 'rank': ((2, 3, 4), (3, 1)), 'ones': ((1, 1, 1), (2, 3, 4)), 'mixed': ((5, 1, 3), (4, 1)),
             'scalars': ((), ()), 'empty': ((0, 3), (3,)), 'empty_from_one': ((2, 0), (2, 1))}
    for name, (a, b) in pairs.items():
        case(f'broadcast.{name}', [f(*a), f(*b)], lambda x, y: x * y - y)
    case('chain.multiply_add', [f(50), f(50), f(50)], lambda x, y, z: x * y + z)
    case('chain.shared', [f(20)], lambda x: (x + 1) * (x + 1) - (x + 1).sin())


# --- dtypes ----------------------------------------------------------------------------------------------------------

def dtypes():
    everywhere = {'add': np.add, 'sub': np.subtract, 'mul': np.multiply, 'maximum': np.maximum, 'minimum': np.minimum,
                  'lt': np.less, 'ge': np.greater_equal, 'eq': np.equal, 'ne': np.not_equal,
                  'where': lambda x, y: np.where(x < y, x, y)}
    integers = {'floor_div': np.floor_divide, 'mod': np.mod, 'fmod': np.fmod, 'and': np.bitwise_and, 'or': np.bitwise_or,
                'xor': np.bitwise_xor, 'shl': np.left_shift, 'shr': np.right_shift}
    for dtype in ('bool', 'i8', 'i32', 'u64', 'f32'):
        for name, function in everywhere.items():
            if (dtype, name) != ('bool', 'sub'):
                case(f'{name}.{dtype}', special_pair(dtype), function, native='numpy')
    for dtype in ('i8', 'i32', 'u64'):
        for name, function in integers.items():
            case(f'{name}.{dtype}', special_pair(dtype), function, native='numpy')
    for dtype in ('f32', 'f64'):
        case(f'div.{dtype}', special_pair(dtype), np.divide, native='numpy')
    case('div.i8', special_pair('i8'), lambda x, y: x.astype(np.float32) / y.astype(np.float32), native='numpy')
    for dtype in ('i8', 'u16', 'i32', 'u64'):
        case(f'neg.{dtype}', [special(dtype)], np.negative, native='numpy')
        case(f'abs.{dtype}', [special(dtype)], np.abs, native='numpy')
        case(f'sign.{dtype}', [special(dtype)], np.sign, native='numpy')
        case(f'bitwise_not.{dtype}', [special(dtype)], np.invert, native='numpy')
        case(f'pow.{dtype}', [ints(5, 1, low=0, high=9, dtype=dtype), ints(1, 5, low=0, high=6, dtype=dtype)], np.power,
             native='numpy')
    case('sqrt.i32', [ints(6, low=0, high=99)], lambda x: x.to(t64).sqrt())
    # Casts on which everybody agrees: between integers, from integers, between floats, to bool.
    kinds = {'bool': np.bool_, 'i8': np.int8, 'u8': np.uint8, 'i16': np.int16, 'u16': np.uint16, 'i32': np.int32,
             'u32': np.uint32, 'i64': np.int64, 'u64': np.uint64, 'f16': np.float16, 'f32': np.float32, 'f64': np.float64}
    for a in kinds:
        for b in kinds:
            if a != b and (a[0] != 'f' or b[0] in 'fb'):
                case(f'cast.{a}.{b}', [special(a)], lambda x, b=b: x.astype(kinds[b]), b, native='numpy')
    for a, b in (('f32', 'i32'), ('f32', 'u32'), ('i32', 'f32'), ('f16', 'i16'), ('f64', 'i64'), ('u64', 'f64'),
                 ('f32', 'u8'), ('i64', 'i16'), ('f64', 'f32'), ('u8', 'i8')):
        low = 0 if a[0] == 'u' else -99
        case(f'bitcast.{a}.{b}', [Input(a, (2, 3), low, 99)], lambda x, b=b: x.view(kinds[b]), b, native='numpy')
    case('bitcast.u8.f32', [ints(2, 8, low=0, high=127, dtype='u8')], lambda x: x.view(np.float32), 'f32', native='numpy')
    case('bitcast.i16.i64', [ints(3, 4, low=-999, high=999, dtype='i16')], lambda x: x.view(np.int64), 'i64', native='numpy')

    case('full', [], lambda: torch.full((2, 3), 2.5))
    case('full.int', [], lambda: torch.full((2, 3), 7, dtype=torch.int16))
    case('full.scalar', [], lambda: torch.tensor(True))
    case('zeros', [], lambda: torch.zeros(3, 1))
    case('ones', [], lambda: torch.ones(0, 2))
    case('eye', [], lambda: torch.eye(4))
    case('eye.wide', [], lambda: torch.eye(2, 5))
    case('eye.int', [], lambda: torch.eye(5, 2, dtype=torch.uint8))
    case('arange', [], lambda: torch.arange(7))
    case('arange.from', [], lambda: torch.arange(-3, 4))
    case('arange.step', [], lambda: torch.arange(5, 20, 4))
    case('arange.down', [], lambda: torch.arange(9, -2, -3))
    case('arange.float', [], lambda: torch.arange(0, 1, 0.25))
    case('arange.empty', [], lambda: torch.arange(3, 3))
    case('arange.wide', [], lambda: torch.arange(3000000000, 3000000003), 'i64')
    case('arange.half', [], lambda: torch.arange(5, dtype=torch.float16))
    case('linspace', [], lambda: torch.linspace(-1, 1, 5))
    case('linspace.one', [], lambda: torch.linspace(3, 9, 1))
    case('linspace.zero', [], lambda: torch.linspace(3, 9, 0))
    case('linspace.f64', [], lambda: torch.linspace(0, 1, 8, dtype=t64), 'f64')
    case('weak.number', [], lambda: torch.tensor(7.5))


# --- movement --------------------------------------------------------------------------------------------------------

def flat_pad(*widths):
    """Widths by axis, first axis first, as F.pad wants them."""
    return [w for pair in reversed(widths) for w in pair]


def movement():
    def m(name, inputs, function, **kw):
        case(name, inputs, function, **kw)
    m('reshape', [f(2, 6)], lambda x: x.reshape(3, 4))
    m('reshape.infer', [f(2, 6)], lambda x: x.reshape(4, -1))
    m('reshape.scalar', [f(1, 1)], lambda x: x.reshape(()))
    m('reshape.empty', [f(0, 3)], lambda x: x.reshape(3, 0, 7))
    m('reshape.of_permute', [f(2, 3, 4)], lambda x: x.permute(2, 0, 1).reshape(8, 3))
    m('permute', [f(2, 3, 4)], lambda x: x.permute(1, 2, 0))
    m('permute.negative', [f(2, 3, 4)], lambda x: x.permute(-1, 0, 1))
    m('transpose', [f(3, 5)], lambda x: x.t())
    m('transpose.axes', [f(2, 3, 4)], lambda x: x.transpose(0, -1))
    m('T', [f(2, 3, 4)], lambda x: x.transpose(-1, -2))
    m('expand', [f(3, 1)], lambda x: x.expand(2, 3, 4))
    m('expand.keep', [f(3, 1)], lambda x: x.expand(-1, 4))
    m('expand.empty', [f(3, 1)], lambda x: x.expand(3, 0))
    m('flip', [f(3, 4)], lambda x: x.flip(0))
    m('flip.axes', [f(3, 4, 2)], lambda x: x.flip(0, -1))
    m('flip.twice', [f(3, 4)], lambda x: x.flip(0))
    m('shrink', [f(4, 5)], lambda x: x[1:3, 0:4])
    m('shrink.empty', [f(4, 5)], lambda x: x[2:2, 0:4])
    m('flatten', [f(2, 3, 4)], lambda x: x.flatten())
    m('flatten.from', [f(2, 3, 4)], lambda x: x.flatten(1))
    m('flatten.scalar', [f()], lambda x: x.flatten())
    m('unflatten', [f(2, 12)], lambda x: x.unflatten(1, (3, -1)))
    m('squeeze', [f(1, 3, 1, 2)], lambda x: x.squeeze())
    m('squeeze.axis', [f(1, 3, 1, 2)], lambda x: x.squeeze(2))
    m('squeeze.not_one', [f(1, 3, 1, 2)], lambda x: x.squeeze(1))
    m('unsqueeze', [f(3, 2)], lambda x: x.unsqueeze(1))
    m('unsqueeze.end', [f(3, 2)], lambda x: x.unsqueeze(-1))
    m('pad', [f(2, 3)], lambda x: F.pad(x, flat_pad((1, 0), (2, 1))))
    m('pad_to', [f(2, 3)], lambda x: F.pad(x, flat_pad((0, 2), (0, 0)), value=2.5))
    m('shrink_to', [f(4, 5)], lambda x: x[:2])
    m('pad.value', [f(2, 3)], lambda x: F.pad(x, flat_pad((1, 2), (0, 1)), value=7.5))
    m('pad.infinity', [f(2, 3)], lambda x: F.pad(x, flat_pad((1, 0), (0, 1)), value=-math.inf))
    m('pad.negative', [f(4, 5)], lambda x: F.pad(x, flat_pad((-1, 2), (1, -3))))
    m('pad.int', [ints(2, 3, low=-9, high=9)], lambda x: F.pad(x, (1, 1, 1, 1), value=3))
    m('pad.reflect', [f(1, 4, 5)], lambda x: F.pad(x[None], (3, 4, 2, 1), mode='reflect')[0])
    m('pad.replicate', [f(1, 4, 5)], lambda x: F.pad(x[None], (3, 5, 2, 1), mode='replicate')[0])
    m('pad.circular', [f(1, 4, 5)], lambda x: F.pad(x[None], (3, 5, 2, 1), mode='circular')[0])
    m('pad.empty', [f(0, 2)], lambda x: torch.full((2, 2), 2.0))
    m('cat', [f(2, 3), f(2, 3)], lambda *x: torch.cat(x))
    m('cat.unequal', [f(2, 3), f(2, 1), f(2, 4)], lambda *x: torch.cat(x, 1))
    m('cat.negative', [f(2, 3), f(2, 2)], lambda *x: torch.cat(x, -1))
    m('cat.empty', [f(0, 3), f(2, 3)], lambda *x: torch.cat(x))
    m('cat.promotes', [ints(2, low=0, high=9), f(3)], lambda *x: torch.cat(x))
    m('cat.one', [f(2, 2)], lambda x: x)
    m('stack', [f(2, 3), f(2, 3)], lambda *x: torch.stack(x))
    m('stack.last', [f(2, 3), f(2, 3), f(2, 3)], lambda *x: torch.stack(x, -1))
    m('stack.scalars', [f(), f()], lambda *x: torch.stack(x))
    m('split', [f(7, 2)], lambda x: x.split(3)[2])
    m('split.sizes', [f(2, 7)], lambda x: x.split([2, 4, 1], 1)[1])
    m('chunk', [f(7, 2)], lambda x: x.chunk(3)[1])
    m('unbind', [f(3, 2)], lambda x: x.unbind(1)[1])
    m('meshgrid', [f(3), f(2)], lambda x, y: torch.meshgrid(x, y, indexing='ij')[1])
    m('repeat', [f(2, 3)], lambda x: x.repeat(2, 2))
    m('repeat.more_axes', [f(2, 3)], lambda x: x.repeat(2, 1, 3))
    m('repeat.zero', [f(2, 3)], lambda x: x.repeat(0, 1))
    m('repeat_interleave', [f(2, 3)], lambda x: x.repeat_interleave(2))
    m('repeat_interleave.axis', [f(2, 3)], lambda x: x.repeat_interleave(3, 1))
    m('roll', [f(3, 4)], lambda x: x.roll(1, 0))
    m('roll.axes', [f(3, 4)], lambda x: x.roll((-1, 2), (0, 1)))
    m('roll.flat', [f(3, 4)], lambda x: x.roll(5))
    m('roll.far', [f(5)], lambda x: x.roll(-13, 0))
    m('diagonal', [f(4, 4)], lambda x: x.diagonal())
    m('diagonal.above', [f(3, 5)], lambda x: x.diagonal(1))
    m('diagonal.below', [f(2, 5, 3)], lambda x: x.diagonal(-2, 1, 2))
    m('diag', [f(4)], lambda x: x.diag())
    m('tril', [f(4, 5)], lambda x: x.tril())
    m('tril.above', [f(4, 5)], lambda x: x.tril(1))
    m('triu', [f(2, 4, 3)], lambda x: x.triu())
    m('triu.below', [f(4, 5)], lambda x: x.triu(-2))
    m('unfold', [f(9)], lambda x: x.unfold(0, 3, 2))
    m('unfold.middle', [f(2, 8, 2)], lambda x: x.unfold(1, 4, 3))
    m('rearrange', [f(2, 6, 3)], lambda x: x.reshape(2, 2, 3, 3).permute(0, 3, 1, 2))
    m('rearrange.merge', [f(2, 3, 4)], lambda x: x.permute(2, 0, 1).reshape(8, 3))
    m('moves.window', [f(6)], lambda x: F.pad(x, (1, 1)).unfold(0, 3, 1).flip(1))
    m('moves.padded_expand', [f(1, 3)],
      lambda x: F.pad(x.expand(4, 3), flat_pad((1, 0), (0, 2))).reshape(25)[2:20])
    m('moves.diamond', [f(4, 4)], lambda x: x.flip(0) + x.t().flip(1))
    m('contiguous', [f(3, 4)], lambda x: x.t() + 1)
    m('clone', [f(3, 4)], lambda x: x.t())
    m('detach', [f(3, 4)], lambda x: x * 2)


# --- indexing --------------------------------------------------------------------------------------------------------

def written(x, index, v):
    x = x.clone()
    x[index] = v
    return x


def indexing():
    case('index.int', [f(4, 3)], lambda x: x[1])
    case('index.negative', [f(4, 3)], lambda x: x[-1])
    case('index.ints', [f(4, 3)], lambda x: x[2, -3])
    case('index.slice', [f(7, 3)], lambda x: x[1:5])
    case('index.slice_step', [f(9, 3)], lambda x: x[1:8:3])
    case('index.slice_back', [f(9, 3)], lambda x: x.flip(0))
    case('index.slice_back_step', [f(9)], lambda x: x[torch.tensor([7, 5, 3])])
    case('index.slice_negative', [f(9)], lambda x: x[-4:-1])
    case('index.slice_clipped', [f(4)], lambda x: x)
    case('index.slice_empty', [f(4, 2)], lambda x: x[3:1])
    case('index.slices', [f(5, 6)], lambda x: x[1:4, ::2])
    case('index.ellipsis', [f(2, 3, 4)], lambda x: x[..., 2])
    case('index.newaxis', [f(2, 3)], lambda x: x[:, None, 1])
    case('index.mixed', [f(2, 3, 4, 5)], lambda x: x[1, ..., None, :-1, 3])
    case('take', [f(5, 3), ints(4, low=-5, high=5)], lambda x, i: x[i.long()])
    case('take.matrix', [f(5, 3), ints(2, 3, low=0, high=5)], lambda x, i: x[i.long()])
    case('take.second_axis', [f(3, 5), ints(4, low=0, high=5)], lambda x, i: x[:, i.long()])
    case('take.pairs', [f(4, 5), ints(6, low=0, high=4), ints(6, low=0, high=5)], lambda x, i, j: x[i.long(), j.long()])
    case('take.broadcast', [f(4, 5), ints(3, 1, low=0, high=4), ints(2, low=0, high=5)],
         lambda x, i, j: x[i.long(), j.long()])
    case('take.adjacent', [f(2, 4, 5, 3), ints(3, low=0, high=4), ints(3, low=0, high=5)],
         lambda x, i, j: x[:, i.long(), j.long()])
    case('take.separated', [f(4, 2, 5), ints(3, low=0, high=4), ints(3, low=0, high=5)],
         lambda x, i, j: x[i.long(), :, j.long()])
    case('take.with_int', [f(4, 2, 5), ints(3, low=0, high=5)], lambda x, i: x[1][:, i.long()])
    case('take.list', [f(4, 3)], lambda x: x[[2, 0, -1, 2]])
    case('take.u8', [f(5, 3), ints(4, low=0, high=5, dtype='u8')], lambda x, i: x[i.long()])
    case('take.i64', [f(5), ints(4, low=0, high=5, dtype='i64')], lambda x, i: x[i])
    case('take.out_of_range', [f(3), ints(8, low=-6, high=6)],
         lambda x, i: torch.stack([x[k] if -3 <= k < 3 else torch.zeros((), dtype=t64) for k in i.tolist()]))
    case('take.nothing', [f(3, 2), ints(0, low=0, high=3)], lambda x, i: x[i.long()])
    case('take.bools', [bools(5), ints(4, low=0, high=5)], lambda x, i: x[i.long()])
    case('index_select', [f(3, 5), ints(4, low=0, high=5)], lambda x, i: x.index_select(1, i))
    case('gather', [f(4, 3), ints(2, 3, low=0, high=4)], lambda x, i: x.gather(0, i.long()))
    case('gather.last', [f(4, 5), ints(4, 3, low=0, high=5)], lambda x, i: x.gather(1, i.long()))
    case('gather.smaller', [f(4, 5), ints(2, 7, low=0, high=5)], lambda x, i: x.gather(1, i.long()))
    case('gather.middle', [f(2, 4, 3), ints(2, 2, 3, low=0, high=4)], lambda x, i: x.gather(1, i.long()))
    case('gather.out_of_range', [f(4, 3), ints(5, 2, low=-6, high=9)],
         lambda x, i: torch.where((i >= 0) & (i < 4), x[:, :2].gather(0, i.long().clamp(0, 3)), 0.0))
    case('gather.of_permuted', [f(3, 4), ints(4, 3, low=0, high=3, dtype='u32')],
         lambda x, i: np.take_along_axis(x.T, i.astype(np.int64), 1), native='numpy')
    case('scatter', [f(3, 5), ints(3, 2, low=0, high=2), f(3, 2)],
         lambda x, i, v: x.scatter(1, i.long() * 2 + torch.arange(2), v))
    case('scatter.number', [f(3, 5), ints(3, 2, low=0, high=5)], lambda x, i: x.scatter(1, i.long(), 9.0))
    for name in ('sum', 'prod', 'mean', 'amax'):
        case(f'scatter_reduce.{name}', [f(3, 4), ints(3, 6, low=0, high=4), f(3, 6)],
             lambda x, i, v, name=name: x.scatter_reduce(1, i.long(), v, name))
    case('scatter_reduce.amin', [f(3, 4), ints(3, 6, low=0, high=4), f(3, 6)],
         lambda x, i, v: x.scatter_reduce(1, i.long(), v, 'amin', include_self=False))
    def met(x, i, v, how):
        """Values that come to rows, one after the other."""
        out = x.copy()
        for k, r in enumerate(i.tolist()):
            if 0 <= r < len(x):
                out[r] = how(out[r], v[k])
        return out
    add = lambda a, b: a + b
    case('index_add', [f(5, 3), ints(4, low=-1, high=6), f(4, 3)], lambda x, i, v: torch.from_numpy(
        met(x.numpy(), i, v.numpy(), add)))
    case('index_add.middle', [f(2, 4, 3), ints(5, low=0, high=4, dtype='u8'), f(2, 5, 3)],
         lambda x, i, v: x.index_add(1, i.long(), v))
    case('index_add.f16', [Input('f16', (4,)), ints(9, low=0, high=4), Input('f16', (9,))],
         lambda x, i, v: x.index_add(0, i, v), 'f16')
    case('index_add.sorted', [f(500, 2), ints(600, low=-9, high=59), f(600, 2)],
         lambda x, i, v: torch.from_numpy(met(x.numpy(), i, v.numpy(), add)[:70:5]))
    case('scatter.sorted', [f(500, 2), ints(600, 2, low=-9, high=509), f(600, 2)],
         lambda x, i, v: torch.from_numpy(np.stack(
             [met(x[:, c].numpy(), i[:, c], v[:, c].numpy(), lambda a, b: b) for c in (0, 1)], 1)[::37]))
    case('scatter_reduce.sorted_mean', [f(2, 400), ints(2, 680, low=0, high=99), f(2, 680)],
         lambda x, i, v: x.scatter_reduce(1, i.long(), v, 'mean')[:, ::37])
    case('write.rows_sorted', [f(500, 2), ints(600, low=-499, high=509), f(600, 2)],
         lambda x, i, v: torch.from_numpy(met(x.numpy(), torch.where(i < 0, i + 500, i), v.numpy(), lambda a, b: b)[::37]))
    def sized(a, size, fill):
        """Its first `size` rows, filled up."""
        rest = torch.full((max(0, size - len(a)), *a.shape[1:]), fill, dtype=a.dtype)
        return torch.cat([a[:size], rest])
    case('masked_select.size', [f(3, 4), bools(3, 4)], lambda x, m: sized(x.masked_select(m), 9, -7))
    case('masked_select.fewer', [f(3, 4), bools(4)], lambda x, m: sized(x.masked_select(m), 3, 0))
    case('masked_select.none', [f(3), bools(3)], lambda x, m: x[:0])
    case('nonzero.size', [ints(3, 4, low=-1, high=2)], lambda x: sized(x.nonzero(), 13, -1))
    case('nonzero.vector', [bools(40)], lambda x: sized(x.nonzero(), 30, 0))
    case('one_hot', [ints(4, low=0, high=5)], lambda i: F.one_hot(i.long(), 5))
    case('one_hot.matrix', [ints(2, 3, low=0, high=3, dtype='u8')], lambda i: F.one_hot(i.long(), 3))
    case('one_hot.embedding', [ints(4, low=0, high=5), f(5, 3)], lambda i, w: w[i.long()])
    case('sort', [distinct(3, 7)], lambda x: x.sort()[0])
    case('sort.indices', [distinct(3, 7)], lambda x: x.sort()[1])
    case('sort.descending', [distinct(7, 2)], lambda x: x.sort(0, descending=True)[0])
    case('sort.ties', [ints(12, low=0, high=4)], lambda x: x.sort(stable=True)[1])
    case('sort.one', [f(2, 1)], lambda x: x)
    order = lambda x: np.argsort(x, kind='stable').astype(np.int32)[..., ::70]
    case('sort.network', [distinct(2100)], lambda x: x.sort()[0][::70])
    case('sort.network_ties', [ints(2100, low=-9, high=9, dtype='i8')], order, native='numpy')
    case('sort.network_descending', [ints(2100, low=0, high=50, dtype='u32')],
         lambda x: order(-x.astype(np.int64)), native='numpy')
    case('sort.network_rows', [Input('f16', (3, 1500))],
         lambda x: np.argsort(x, kind='stable').astype(np.int32)[:, ::99], native='numpy')
    case('sort.network_specials', [special('f32')], lambda x: order(np.tile(x, 150)), native='numpy')
    case('sort.pairs', [ints(2100, low=-9, high=9, dtype='i64')], lambda x: order(-x), native='numpy')
    case('argsort', [distinct(9)], lambda x: x.argsort())
    case('topk', [distinct(3, 7)], lambda x: x.topk(3)[0])
    case('topk.indices', [distinct(3, 7)], lambda x: x.topk(3)[1])
    case('topk.smallest', [distinct(8)], lambda x: x.topk(2, 0, largest=False)[0])
    case('topk.none', [f(3)], lambda x: x[:0])
    case('topk.blocks', [f(2, 3001)], lambda x: x.topk(5)[0])
    case('topk.blocks_ties', [ints(3001, 2, low=0, high=400)],
         lambda x: np.argsort(x, 0, kind='stable').astype(np.int32)[:7], native='numpy')
    case('write.slice', [f(4, 3), f(2, 3)], lambda x, v: written(x, slice(1, 3), v) * 2)
    case('write.column', [f(4, 3), f(4)], lambda x, v: written(x, (slice(None), 1), v))
    case('write.through_views', [f(4, 3), f(2)], lambda x, v: written(x, (slice(None, None, 2), 1), v) + 1)

    def twice(x, v, w):
        x = written(x, slice(0, 3), v)
        x[2:5] += w
        return x
    case('write.twice', [f(5), f(3), f(3)], twice)

    def rows(x, i, v):
        x = x.clone()
        for k, row in enumerate(i.tolist()):
            x[row] = v[k]
        return x
    case('write.rows', [f(5, 2), ints(3, low=0, high=5), f(3, 2)], rows)


# --- reductions ------------------------------------------------------------------------------------------------------

def product(x, dims, keep):
    for d in sorted((d % x.ndim for d in dims), reverse=True):
        x = x.prod(d, keepdim=keep)
    return x


def first_of_running(x, axis):
    """The first position of the running maximum, in which NaN wins."""
    running = np.maximum.accumulate(x, axis)
    before = np.roll(running, 1, axis)
    changed = ~((running == before) | ((running != running) & (before != before)))
    positions = np.arange(x.shape[axis], dtype=np.int32)
    np.moveaxis(changed, axis, -1)[..., 0] = False
    return np.maximum.accumulate(np.where(changed, positions, np.int32(0)), axis)


def reductions():
    functions = {
        'sum': lambda x, d, k: x.sum(d, keepdim=k), 'prod': product, 'max': lambda x, d, k: x.amax(d, keepdim=k),
        'min': lambda x, d, k: x.amin(d, keepdim=k), 'mean': lambda x, d, k: x.mean(d, keepdim=k),
        'logsumexp': lambda x, d, k: x.logsumexp(d, keepdim=k),
    }
    places = {'all': ((3, 5), (0, 1), False), 'rows': ((3, 5), (1,), False), 'columns': ((3, 5), (0,), False),
              'keep': ((3, 5), (-1,), True), 'outer_and_inner': ((3, 4, 5), (0, 2), False), 'middle': ((2, 7, 3), (1,), False),
              'of_one': ((1, 4), (0,), False), 'long': ((1, 37), (1,), False), 'keep_all': ((2, 3), (0, 1), True),
              'tall': ((33, 2), (0,), False)}
    for name, function in functions.items():
        for place, (dims, axes, keep) in places.items():
            case(f'{name}.{place}', [distinct(*dims)], lambda x, fn=function, a=axes, k=keep: fn(x, a, k))
        case(f'{name}.scalar', [distinct()], lambda x: x)
        empty = {'sum': 0, 'prod': 1, 'max': -math.inf, 'min': math.inf, 'mean': math.nan, 'logsumexp': -math.inf}[name]
        case(f'{name}.empty', [f(0, 2)], lambda x, e=empty: torch.full((2,), float(e)))
        case(f'{name}.empty_result', [f(3, 0)], lambda x: torch.zeros(0))
    sums = {'bool': 'i32', 'i8': 'i32', 'u8': 'u32', 'i16': 'i32', 'u16': 'u32', 'i32': 'i32', 'u32': 'u32', 'i64': 'i64',
            'u64': 'u64', 'f64': 'f64'}
    kinds = {'i32': np.int32, 'u32': np.uint32, 'i64': np.int64, 'u64': np.uint64, 'f64': np.float64}
    for dtype, accumulator in sums.items():
        low = 0 if dtype[0] in 'ub' else -100
        data = [Input(dtype, (3, 9), low, 2 if dtype == 'bool' else 120)]
        case(f'sum.{dtype}', data, lambda x, a=accumulator: x.sum(1, dtype=kinds[a]), accumulator, native='numpy')
        case(f'max.{dtype}', data, lambda x: x.max(1), dtype, native='numpy')
        case(f'min.{dtype}', data, lambda x: x.min(0), dtype, native='numpy')
        case(f'mean.{dtype}', data, lambda x: x.astype(np.float64).mean(), 'f64' if dtype == 'f64' else 'f32', native='numpy')
        if dtype != 'bool':
            case(f'prod.{dtype}', [Input(dtype, (3, 5), 0 if dtype[0] == 'u' else -3, 4)],
                 lambda x: x.prod(1, dtype=x.dtype), dtype, native='numpy')
        case(f'argmax.{dtype}', data, lambda x: x.argmax(1), 'i32', native='numpy')
    case('sum.wraps', [ints(40, low=100000000, high=200000000)], lambda x: x.sum(dtype=np.int32), native='numpy')
    case('sum.named_dtype', [ints(7, low=-100, high=100, dtype='i8')], lambda x: x.sum(), 'i64')
    case('sum.half_is_wide', [Input('f16', (3000,), 1, 2)], lambda x: x.sum(), 'f16')
    case('sum.cancels', [f(100, low=1e6, high=2e6)], lambda x: (x - x.flip(0)).sum())
    case('max.nan', [special('f32')], lambda x: torch.tensor(math.nan))
    case('min.nan', [special('f16')], lambda x: torch.tensor(math.nan), 'f16')
    case('sum.special', [special('f32')], lambda x: x.sum())
    case('any', [bools(4, 2)], lambda x: x.any(1))
    case('all', [bools(4, 2)], lambda x: x.all(1))
    case('any.numbers', [ints(3, 4, low=-1, high=2)], lambda x: x.any())
    case('all.floats', [f(3, 4)], lambda x: x.all(0))
    case('any.empty', [bools(0)], lambda x: torch.tensor(False))
    case('all.empty', [bools(0)], lambda x: torch.tensor(True))

    case('argmax', [distinct(3, 6)], lambda x: x.argmax())
    case('argmax.axis', [distinct(3, 6)], lambda x: x.argmax(0))
    case('argmax.keep', [distinct(3, 6)], lambda x: x.argmax(-1, keepdim=True))
    case('argmax.ties', [ints(20, low=0, high=3)], lambda x: np.int32(x.argmax()), 'i32', native='numpy')
    case('argmin', [distinct(3, 6)], lambda x: x.argmin())
    case('argmin.axis', [distinct(3, 6)], lambda x: x.argmin(1))
    case('argmin.ties', [ints(20, low=0, high=3)], lambda x: np.int32(x.argmin()), 'i32', native='numpy')

    case('var', [f(4, 6)], lambda x: x.var())
    case('var.axis', [f(4, 6)], lambda x: x.var(1))
    case('var.biased', [f(4, 6)], lambda x: x.var(0, keepdim=True, correction=0))
    case('std', [f(4, 6)], lambda x: x.std(1))
    case('std.biased', [f(4, 6)], lambda x: x.std(correction=0))
    case('var_mean', [f(4, 6)], lambda x: x.mean(1))
    case('std_mean', [f(4, 6)], lambda x: x.std(1))
    case('mean.of_square', [f(3, 11)], lambda x: x.square().mean(1))
    case('normalize', [f(3, 5)], lambda x: F.normalize(x))
    case('normalize.p1', [f(3, 5)], lambda x: F.normalize(x, 1, 0))

    case('softmax', [f(3, 7, low=-5, high=5)], lambda x: x.softmax(-1))
    case('softmax.axis', [f(3, 7, 2, low=-5, high=5)], lambda x: x.softmax(1))
    case('softmax.large', [f(2, 5, low=900, high=1000)], lambda x: x.softmax(-1))
    case('softmax.int', [ints(2, 5, low=-5, high=5)], lambda x: x.to(t64).softmax(-1))
    case('softmax.one', [f(3, 1)], lambda x: x.softmax(-1))
    case('softmax.minus_infinity', [f(2, 5, low=-1, high=1)], lambda x: x.masked_fill(x < 0, -math.inf).softmax(-1))
    case('softmin', [f(3, 7, low=-5, high=5)], lambda x: F.softmin(x, -1))
    case('log_softmax', [f(3, 7, low=-5, high=5)], lambda x: x.log_softmax(-1))
    case('log_softmax.axis', [f(3, 7, low=-5, high=5)], lambda x: x.log_softmax(0))
    case('softmax.of_sum', [f(4, 4), f(4, 4)], lambda x, y: (x + y).softmax(-1) * 2)

    case('cumsum', [f(3, 6)], lambda x: x.cumsum(0))
    case('cumsum.axis', [f(3, 6)], lambda x: x.cumsum(1))
    case('cumsum.int', [ints(9, low=-99, high=99, dtype='i8')], lambda x: x.cumsum(0))
    case('cumsum.blocks', [f(2, 50)], lambda x: x.cumsum(1))
    case('cumsum.levels', [f(300, 2)], lambda x: x.cumsum(0)[::7])
    case('cumsum.scalar', [f()], lambda x: x)
    case('cumprod', [f(3, 6)], lambda x: x.cumprod(1))
    case('cumprod.blocks', [f(2, 40, low=0.8, high=1.25)], lambda x: x.cumprod(1))
    case('cumprod.int', [ints(40, low=1, high=3)], lambda x: np.cumprod(x, dtype=np.int32), native='numpy')
    case('cummax', [distinct(3, 6)], lambda x: x.cummax(1)[0])
    case('cummax.indices', [distinct(3, 6)], lambda x: x.cummax(1)[1])
    case('cummax.blocks', [ints(2, 60, low=-9, high=9, dtype='i8')], lambda x: x.cummax(1)[0])
    case('cummax.first_of_ties', [ints(2, 60, low=-9, high=9)], lambda x: first_of_running(x, 1), native='numpy')
    case('cummax.nan', [special('f32')], lambda x: np.maximum.accumulate(x[::-1]), native='numpy')
    case('cummax.first_nan', [special('f32')], lambda x: first_of_running(x, 0), native='numpy')
    case('cummin.positions', [distinct(50)], lambda x: x.cummin(0)[1])
    case('cummin', [distinct(3, 6)], lambda x: x.cummin(0)[0])
    case('logcumsumexp', [f(3, 6)], lambda x: x.logcumsumexp(1))
    case('logcumsumexp.blocks', [f(2, 40, low=-9, high=9)], lambda x: x.logcumsumexp(1))

    case('reduce.centre', [f(4, 5)], lambda x: x - x.mean(1, keepdim=True))
    case('reduce.twice', [f(4, 5)], lambda x: x.sum(0).max())
    case('reduce.both_ways', [f(4, 5)], lambda x: 2 * x.sum())
    case('reduce.of_permuted', [f(3, 4, 5)], lambda x: x.permute(2, 0, 1).sum(1))
    case('reduce.of_padded', [f(3, 4)], lambda x: F.pad(x, flat_pad((1, 2), (0, 3)), value=2).prod(0))
    case('reduce.of_repeat', [f(3)], lambda x: x.sum() * 5)
    case('reduce.of_cat', [f(3, 2), f(2, 2)], lambda x, y: torch.cat((x, y)).amax(0))


# --- products --------------------------------------------------------------------------------------------------------

def products():
    rows = {'': ((3, 4), (4, 5)), '.odd': ((5, 7), (7, 3)), '.one': ((1, 1), (1, 1)), '.outer': ((4, 1), (1, 3)),
            '.inner': ((1, 6), (6, 1)), '.vector_matrix': ((4,), (4, 3)), '.matrix_vector': ((3, 4), (4,)),
            '.vectors': ((5,), (5,)), '.batch': ((2, 3, 4), (2, 4, 2)), '.batch_broadcast': ((2, 1, 3, 4), (3, 4, 2)),
            '.batch_by_matrix': ((2, 3, 4), (4, 2)), '.matrix_by_batch': ((3, 4), (2, 4, 2)),
            '.vector_by_batch': ((4,), (2, 4, 3)), '.no_inner': ((3, 0), (0, 2)), '.no_rows': ((0, 3), (3, 2)),
            '.square': ((8, 8), (8, 8)), '.wide': ((2, 33), (33, 17)), '.tall': ((35, 3), (3, 2))}
    for name, (a, b) in rows.items():
        case('matmul' + name, [f(*a), f(*b)], torch.matmul)
    case('matmul.left_transposed', [f(4, 3), f(4, 5)], lambda x, y: x.T @ y)
    case('matmul.right_transposed', [f(3, 4), f(5, 4)], lambda x, y: x @ y.T)
    case('matmul.both_transposed', [f(4, 3), f(5, 4)], lambda x, y: x.T @ y.T)
    case('matmul.permuted_batch', [f(3, 2, 4), f(4, 2, 5)], lambda x, y: x.permute(1, 0, 2) @ y.permute(1, 0, 2))
    case('matmul.with_itself', [f(4, 4)], lambda x: x @ x.T)
    case('matmul.relu_bias', [f(3, 4), f(4, 5), f(5)], lambda x, y, z: (x @ y + z).relu())
    case('matmul.chain', [f(3, 4), f(4, 5), f(5, 2)], lambda x, y, z: x @ y @ z)
    case('linear', [f(3, 4), f(4, 5), f(5)], lambda x, y, z: x @ y + z)
    case('linear.by_element', [f(3, 4), f(4), f(4)], lambda x, y, z: x * y + z)
    integer = {'i8': ('i32', np.int32), 'u8': ('u32', np.uint32), 'i32': ('i32', np.int32), 'i64': ('i64', np.int64)}
    for dtype in ('i32', 'i64', 'f64'):
        case(f'matmul.{dtype}', [Input(dtype, (4, 6), -9, 9), Input(dtype, (6, 3), -9, 9)], np.matmul, native='numpy')
    case('matmul.half_to_f32', [Input('f16', (4, 6), -9, 9), Input('f16', (6, 3), -9, 9)], torch.matmul, 'f32')
    case('matmul.mixed', [ints(4, 6, low=-9, high=9), f(6, 3)], lambda x, y: x.to(t64) @ y)
    case('einsum.matmul', [f(2, 3, 4), f(2, 4, 5)], lambda *x: torch.einsum('bij,bjk->bik', *x))
    case('einsum.implicit', [f(3, 4), f(4, 5)], lambda *x: torch.einsum('ij,jk', *x))
    case('einsum.diagonal', [f(4, 4)], lambda *x: torch.einsum('ii->i', *x))
    case('einsum.trace', [f(4, 4)], lambda *x: torch.einsum('ii', *x))
    case('einsum.transpose', [f(2, 3)], lambda *x: torch.einsum('ba', *x))
    case('einsum.ellipsis', [f(2, 3, 4), f(4, 2)], lambda *x: torch.einsum('...i,ij->...j', *x))
    case('einsum.three', [f(3), f(3, 4), f(4)], lambda *x: torch.einsum('a,ab,b->', *x))
    qkv = [f(2, 3, 4), f(2, 5, 4), f(2, 5, 6)]
    case('attention', qkv, F.scaled_dot_product_attention)
    case('attention.causal', [f(1, 2, 4, 3), f(1, 2, 4, 3), f(1, 2, 4, 3)],
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    case('attention.mask', qkv + [f(3, 5)], F.scaled_dot_product_attention)

    convolutions = {
        'conv2d': ((2, 3, 6, 5), (4, 3, 3, 3), {}),
        'conv2d.one_by_one': ((2, 3, 4, 4), (5, 3, 1, 1), {}),
        'conv2d.stride': ((1, 2, 7, 7), (3, 2, 3, 3), dict(stride=2)),
        'conv2d.strides': ((1, 2, 7, 8), (3, 2, 3, 2), dict(stride=(2, 3))),
        'conv2d.padding': ((1, 2, 5, 5), (3, 2, 3, 3), dict(padding=1)),
        'conv2d.paddings': ((1, 2, 5, 4), (3, 2, 3, 3), dict(padding=(2, 1))),
        'conv2d.dilation': ((1, 2, 7, 7), (3, 2, 3, 3), dict(dilation=2)),
        'conv2d.dilations': ((1, 2, 7, 6), (2, 2, 3, 2), dict(padding=1, dilation=(2, 3))),
        'conv2d.groups': ((1, 4, 5, 5), (6, 2, 3, 3), dict(groups=2)),
        'conv2d.depthwise': ((2, 3, 5, 5), (3, 1, 3, 3), dict(padding=1, groups=3)),
        'conv2d.depthwise_multiplier': ((1, 2, 5, 5), (4, 1, 3, 3), dict(stride=2, groups=2)),
        'conv2d.whole': ((2, 2, 4, 4), (3, 2, 4, 4), {}),
        'conv2d.wide_window': ((1, 1, 9, 9), (2, 1, 5, 5), {}),
        'conv2d.everything': ((2, 4, 8, 7), (4, 2, 3, 2), dict(stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)),
        'conv1d': ((2, 3, 8), (4, 3, 3), {}),
        'conv1d.stride_padding': ((2, 3, 8), (4, 3, 3), dict(stride=2, padding=2)),
        'conv1d.dilation': ((1, 2, 9), (2, 2, 3), dict(dilation=3)),
        'conv3d': ((1, 2, 4, 4, 3), (3, 2, 2, 3, 2), {}),
        'conv3d.padding': ((1, 2, 3, 3, 3), (2, 2, 3, 3, 3), dict(stride=(1, 2, 1), padding=1)),
    }
    for name, (x, w, options) in convolutions.items():
        function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]
        case(name, [f(*x), f(*w)], lambda x, w, fn=function, o=options: fn(x, w, **o))
    case('conv2d.four_paddings', [f(1, 2, 5, 4), f(3, 2, 3, 3)], lambda x, w: F.conv2d(F.pad(x, (2, 1, 1, 0)), w))
    case('conv2d.bias', [f(2, 3, 5, 5), f(4, 3, 3, 3), f(4)], lambda x, w, b: F.conv2d(x, w, b, padding=1).relu())
    case('conv2d.int', [ints(1, 3, 5, 5, low=-9, high=9), ints(2, 3, 3, 3, low=-9, high=9)],
         lambda x, w: F.conv2d(x.to(t64), w.to(t64)).to(torch.int32))
    case('conv2d.twice', [f(1, 1, 8, 8), f(2, 1, 3, 3), f(2, 2, 3, 3)], lambda x, a, b: F.conv2d(F.conv2d(x, a).relu(), b))
    transposed = {
        'conv_transpose2d': ((1, 2, 4, 4), (2, 3, 3, 3), {}),
        'conv_transpose2d.stride': ((1, 2, 4, 3), (2, 3, 3, 3), dict(stride=2)),
        'conv_transpose2d.padding': ((1, 2, 4, 4), (2, 3, 3, 3), dict(stride=2, padding=1)),
        'conv_transpose2d.output_padding': ((1, 2, 4, 4), (2, 3, 3, 3), dict(stride=2, padding=1, output_padding=1)),
        'conv_transpose2d.dilation': ((1, 2, 4, 4), (2, 3, 2, 2), dict(dilation=2)),
        'conv_transpose2d.groups': ((1, 4, 3, 3), (4, 2, 3, 3), dict(stride=2, groups=2)),
        'conv_transpose1d': ((2, 3, 5), (3, 2, 3), dict(stride=3, padding=1)),
        'conv_transpose3d': ((1, 2, 3, 2, 3), (2, 2, 2, 2, 2), dict(stride=2)),
    }
    for name, (x, w, options) in transposed.items():
        function = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[len(x)]
        case(name, [f(*x), f(*w)], lambda x, w, fn=function, o=options: fn(x, w, **o))
    case('conv_transpose2d.bias', [f(1, 2, 4, 4), f(2, 3, 3, 3), f(3)], F.conv_transpose2d)

    pools = {
        '': ((2, 3, 6, 6), (2, 2), {}), '.odd': ((1, 2, 7, 5), (2, 2), {}), '.three': ((1, 2, 7, 7), (3, 3), {}),
        '.oblong': ((1, 2, 6, 8), (3, 2), {}), '.overlapping': ((1, 2, 6, 6), (3, 3), dict(stride=1)),
        '.strides': ((1, 2, 7, 8), (2, 3), dict(stride=(1, 2))), '.gaps': ((1, 1, 9, 9), (2, 2), dict(stride=3)),
        '.padding': ((1, 2, 6, 6), (3, 3), dict(stride=2, padding=1)),
        '.paddings': ((1, 2, 6, 5), (3, 4), dict(stride=2, padding=(1, 2))),
        '.ceil': ((1, 2, 6, 6), (3, 3), dict(stride=2, ceil_mode=True)),
        '.ceil_padding': ((1, 1, 5, 5), (2, 2), dict(stride=3, padding=1, ceil_mode=True)),
        '.global': ((2, 3, 4, 5), (4, 5), {}), '.one_axis': ((2, 3, 8), (2,), {}),
        '.three_axes': ((1, 2, 4, 4, 4), (2, 2, 2), {}),
    }
    for name, (x, kernel, options) in pools.items():
        n = len(kernel)
        largest, average = getattr(F, f'max_pool{n}d'), getattr(F, f'avg_pool{n}d')
        case('max_pool2d' + name, [distinct(*x)], lambda x, fn=largest, k=kernel, o=options: fn(x, k, **o))
        case('avg_pool2d' + name, [f(*x)], lambda x, fn=average, k=kernel, o=options: fn(x, k, **o))
    case('max_pool2d.dilation', [distinct(1, 2, 7, 7)], lambda x: F.max_pool2d(x, 2, stride=1, dilation=2))
    case('avg_pool2d.without_padding', [f(1, 2, 6, 6)],
         lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False))
    case('max_pool2d.default', [distinct(1, 2, 5, 4)], lambda x: F.max_pool2d(x, 2))
    case('max_pool2d.indices', [distinct(2, 2, 5, 6)], lambda x: F.max_pool2d(x, 2, return_indices=True)[1])
    case('max_pool2d.indices_padded', [distinct(1, 2, 5, 4)],
         lambda x: F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)[1])
    case('max_pool2d.indices_ties', [ints(1, 1, 6, 6, low=0, high=3)],
         lambda x: F.max_pool2d(x.to(t64), 3, stride=1, return_indices=True)[1])
    case('max_unpool2d', [distinct(2, 2, 4, 6)], lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2))
    case('max_unpool2d.size', [distinct(1, 5, 4)],
         lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 4)))
    case('max_pool2d.int', [ints(1, 2, 5, 4, low=-99, high=99, dtype='i8')],
         lambda x: F.max_pool2d(x.to(t64), 2, padding=1).to(torch.int8))


# --- layers ----------------------------------------------------------------------------------------------------------

def layers():
    case('layernorm', [f(3, 6)], lambda x: F.layer_norm(x, (6,)))
    case('layernorm.axes', [f(2, 3, 4)], lambda x: F.layer_norm(x, (3, 4)))
    case('layernorm.eps', [f(3, 6)], lambda x: F.layer_norm(x, (6,), eps=0.1))

    def batchnorm(x, w, b, mean, invstd):
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return (x - mean.reshape(shape)) * w.reshape(shape) * invstd.reshape(shape) + b.reshape(shape)
    case('batchnorm', [f(4, 3, 2, 2), f(3), f(3), f(3), f(3, low=0.5, high=2)], batchnorm)
    case('batchnorm.no_affine', [f(4, 3), f(3), f(3, low=0.5, high=2)], lambda x, m, s: (x - m) * s)
    case('batchnorm.training', [f(5, 3, 2, 2), f(3), f(3)], lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))

    logits, classes = f(4, 5, low=-4, high=4), ints(4, low=0, high=5)
    ce = lambda **kw: lambda x, y: F.cross_entropy(x, y.long(), **kw)  # noqa: E731
    case('cross_entropy', [logits, classes], ce())
    case('cross_entropy.sum', [logits, classes], ce(reduction='sum'))
    case('cross_entropy.none', [logits, classes], ce(reduction='none'))
    case('cross_entropy.smoothing', [logits, classes], ce(label_smoothing=0.2))
    case('cross_entropy.probabilities', [logits, f(4, 5, low=0, high=1)], lambda x, y: F.cross_entropy(x, y.softmax(-1)))
    case('cross_entropy.image', [f(2, 3, 2, 2, low=-4, high=4), ints(2, 2, 2, low=0, high=3)], ce())
    case('cross_entropy.one', [f(5, low=-4, high=4), ints(low=0, high=5)], ce())
    case('sparse_cross_entropy', [logits, classes], ce())
    case('sparse_cross_entropy.ignore', [f(6, 5, low=-4, high=4), ints(6, low=0, high=5)], ce(ignore_index=2))
    case('sparse_cross_entropy.smoothing', [logits, classes], ce(label_smoothing=0.1, reduction='sum'))
    case('sparse_cross_entropy.u8', [logits, ints(4, low=0, high=5, dtype='u8')], ce())
    nll = lambda x, y, **kw: F.nll_loss(x.log_softmax(-1), y.long(), **kw)  # noqa: E731
    case('nll_loss', [logits, classes], nll)
    case('nll_loss.weight', [logits, classes, f(5, low=0.1, high=2)], lambda x, y, w: nll(x, y, weight=w))
    case('nll_loss.ignore', [f(6, 3, low=-4, high=4), ints(6, low=0, high=3)],
         lambda x, y: nll(x, y, ignore_index=1, reduction='sum'))
    p, y = f(3, 4, low=0.05, high=0.95), f(3, 4, low=0, high=1)
    case('bce', [p, y], F.binary_cross_entropy)
    case('bce.none', [p, y], lambda x, y: F.binary_cross_entropy(x, y, reduction='none'))
    x = f(3, 4, low=-5, high=5)
    case('bce_logits', [x, y], F.binary_cross_entropy_with_logits)
    case('bce_logits.pos_weight', [x, y, f(4, low=0.5, high=2)],
         lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction='sum'))
    case('mse', [f(3, 4), f(3, 4)], F.mse_loss)

    picture = [f(1, 2, 4, 5)]
    case('interpolate', picture, lambda x: F.interpolate(x, (6, 3), mode='bilinear'))
    case('interpolate.corners', picture, lambda x: F.interpolate(x, (7, 3), mode='bilinear', align_corners=True))
    case('interpolate.nearest', picture, lambda x: F.interpolate(x, (6, 3), mode='nearest'))
    case('interpolate.nearest_exact', picture, lambda x: F.interpolate(x, (6, 3), mode='nearest-exact'))
    case('interpolate.one_axis', [f(1, 2, 5)], lambda x: F.interpolate(x, 8, mode='linear'))

    case('layer.mlp', [f(3, 4), f(4, 6), f(6), f(6, 2), f(2)],
         lambda x, a, b, c, d: ((x @ a + b).relu() @ c + d).log_softmax(-1))
    case('layer.gated', [f(3, 4), f(4, 6), f(4, 6)], lambda x, a, b: F.silu(x @ a) * (x @ b))
    case('layer.conv_pool', [f(2, 1, 8, 8), f(3, 1, 3, 3), f(3)],
         lambda x, w, b: F.avg_pool2d(F.conv2d(x, w, b).relu(), 2).flatten(1))
    case('layer.rms', [f(3, 6), f(6)], lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w)

    def newton_schulz(x):
        a, b, c = 3.4445, -4.775, 2.0315
        x = x / (x.norm() + 1e-7)
        for _ in range(3):
            g = x @ x.T
            x = a * x + (b * g + c * g @ g) @ x
        return x
    case('newton_schulz', [f(3, 4)], newton_schulz)


def all_cases():
    for family in (unary, binary, dtypes, movement, indexing, reductions, products, layers):
        family()
    return CASES
