"""The networks of the benchmark by PyTorch, with random weights: what bench/*.h has by pangrad."""

import torch
import torch.nn.functional as F
from torch import nn


class Demo(nn.Module):
    """apps/demo_net.h."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.norm1 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 32, 5), nn.BatchNorm2d(32)
        self.conv3, self.conv4, self.norm2 = nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64)
        self.head = nn.Linear(576, 10)

    def forward(self, x):
        x = F.max_pool2d(self.norm1(F.relu(self.conv2(F.relu(self.conv1(x))))), 2)
        x = F.max_pool2d(self.norm2(F.relu(self.conv4(F.relu(self.conv3(x))))), 2)
        return self.head(x.flatten(1))


class Bottleneck(nn.Module):
    def __init__(self, inside, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, planes, 1, bias=False)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(planes), nn.BatchNorm2d(planes)
        self.norm3 = nn.BatchNorm2d(planes * 4)
        self.short = None
        if stride != 1 or inside != planes * 4:
            self.short = nn.Sequential(
                nn.Conv2d(inside, planes * 4, 1, stride, bias=False), nn.BatchNorm2d(planes * 4))

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)), inplace=True)
        h = F.relu(self.norm2(self.conv2(h)), inplace=True)
        h = self.norm3(self.conv3(h))
        h += self.short(x) if self.short else x
        return F.relu(h, inplace=True)


class ResNet50(nn.Module):
    """bench/resnet.h."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, inside = [], 64
        for planes, count, stride in (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2):
            for i in range(count):
                blocks.append(Bottleneck(inside, planes, stride if i == 0 else 1))
                inside = planes * 4
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x)), inplace=True), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        n, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:  # keys and values of what came before, and room for these
            keys, values = past
            keys[:, :, -tokens:], values[:, :, -tokens:] = k, v
            k, v = keys, values
        h = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(h.transpose(1, 2).reshape(n, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """bench/gpt2.h: GPT-2 small."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers = nn.ModuleList(Layer(768, 12) for _ in range(12))
        self.norm = nn.LayerNorm(768)

    def forward(self, tokens, start=0, past=None):
        x = self.tokens(tokens) + self.places.weight[start:start + tokens.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, past and past[i])
        return F.linear(self.norm(x[:, -1]), self.tokens.weight)


def demo():
    net = Demo()
    images, labels = torch.randint(0, 256, (60000, 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (60000,))
    adam = torch.optim.Adam(net.parameters())

    def step():
        pick = torch.randint(0, 60000, (512,))
        loss = F.cross_entropy(net(images[pick].float()), labels[pick])
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.item()
    return step


def resnet50(batch):
    net, x = ResNet50().eval(), torch.randn(int(batch), 3, 224, 224)

    def run():
        with torch.inference_mode():
            net(x)
    return run


def resnet50_training(batch):
    net, x, y = ResNet50(), torch.randn(int(batch), 3, 224, 224), torch.randint(0, 1000, (int(batch),))
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        loss = F.cross_entropy(net(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss.item()
    return step


def gpt2_forward(tokens):
    net, tokens = Gpt2().eval(), torch.randint(0, 50257, (1, int(tokens)))

    def run():
        with torch.inference_mode():
            net(tokens)
    return run


def gpt2_decode(before):
    before = int(before)
    net, token = Gpt2().eval(), torch.randint(0, 50257, (1, 1))
    past = [(torch.randn(1, 12, before + 1, 64), torch.randn(1, 12, before + 1, 64)) for _ in range(12)]

    def run():
        with torch.inference_mode():
            net(token, before, past)
    return run


CASES = {f.__name__: f for f in (demo, resnet50, resnet50_training, gpt2_forward, gpt2_decode)}
