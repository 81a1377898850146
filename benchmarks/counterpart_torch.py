"""The steps of `programs.py` and `more_programs.py` in PyTorch, eager and compiled."""

import numpy as np
import torch
import torch.nn.functional as F
from counterpart_larger import MODELS
from counterpart_models import (
    GAN_SHAPES,
    HESSIAN_FEED,
    HESSIAN_SHAPES,
    IMAGES,
    METRIC_FEED,
    METRIC_SHAPES,
    POLICY_FEED,
    POLICY_SHAPES,
    RNN_FEED,
    R,
    around,
    batch_norm_network,
    d_loss,
    dense,
    dense_shapes,
    g_loss,
    hessian_loss,
    is_held,
    metrics,
    parameters,
    policy,
    q_values,
)

DEVICE = "cuda"


class TorchMath:
    """Images are NCHW, as torch's convolutions like them best."""

    relu, elu, tanh, sigmoid = F.relu, F.elu, torch.tanh, torch.sigmoid
    exp, log, sqrt, rsqrt, softplus = torch.exp, torch.log, torch.sqrt, torch.rsqrt, F.softplus
    maximum, where, one_hot = torch.maximum, torch.where, F.one_hot
    softmax = staticmethod(lambda x: torch.softmax(x, -1))
    logsumexp = staticmethod(lambda x, axis: torch.logsumexp(x, axis))
    leaky_relu = staticmethod(lambda x: F.leaky_relu(x, 0.2))
    concat, stack, split = torch.cat, torch.stack, staticmethod(lambda x, parts, axis: x.chunk(parts, axis))
    stop = staticmethod(lambda x: x.detach())
    whole = staticmethod(lambda x: x.long())
    max = torch.amax
    xent = staticmethod(lambda logits, labels: F.cross_entropy(logits, labels.long()))
    normal = staticmethod(lambda shape: torch.randn(tuple(shape), device=DEVICE))
    uniform = staticmethod(lambda shape: torch.rand(tuple(shape), device=DEVICE))
    zeros = staticmethod(lambda *shape: torch.zeros(shape, device=DEVICE))
    range = staticmethod(lambda n: torch.arange(n, device=DEVICE))
    dropout = staticmethod(lambda x, keep: F.dropout(x, 1 - keep))
    images = staticmethod(lambda x: x.permute(0, 3, 1, 2))
    per_channel = staticmethod(lambda v: v[:, None, None])
    all_but_channels, space = (0, 2, 3), (2, 3)

    @staticmethod
    def conv(x, kernel, stride=1, padding=None):
        return F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2 if padding is None else padding)

    @staticmethod
    def conv_transpose(x, kernel):
        size = kernel.shape[-1]
        return F.conv_transpose2d(x, kernel, stride=2, padding=size // 2, output_padding=1)

    @staticmethod
    def moments(x, axes):
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        return mean, variance

    @staticmethod
    def scan(cell, state, items):
        outputs = []
        for t in range(len(items[0])):
            state, output = cell(state, tuple(item[t] for item in items))
            outputs.append(output)
        return state, torch.stack(outputs)

    @staticmethod
    def grad(function, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x).sum(), x, create_graph=True)[0]

    @staticmethod
    def ctc(logits, labels, lengths):
        counts = torch.full((logits.shape[1],), labels.shape[1], device=DEVICE)
        blank = logits.shape[2] - 1
        return F.ctc_loss(torch.log_softmax(logits, 2), labels, lengths, counts, blank, reduction="none").mean()


def on_gpu(feed):
    return [torch.as_tensor(each).to(DEVICE, non_blocking=True) for each in feed]


def torch_optimizer(kind, p, rate):
    return {
        "adam": lambda: torch.optim.Adam(p, rate, fused=True),
        "clipped adam": lambda: torch.optim.Adam(p, rate, fused=True),
        "clipped descent": lambda: torch.optim.SGD(p, rate),
        "momentum": lambda: torch.optim.SGD(p, rate, momentum=0.9),
        "rmsprop": lambda: torch.optim.RMSprop(p, rate),
        "adagrad": lambda: torch.optim.Adagrad(p, rate, initial_accumulator_value=0.1),
    }[kind]()


def torch_step(name, *, compiled=False):
    """Returns the step of a program in eager torch, or with its loss and gradient compiled; None if there is none."""
    if name in TORCH:
        return TORCH[name](compiled=compiled) if name == "gan" else None if compiled else TORCH[name]()
    if name not in MODELS or MODELS[name][2] == "ftrl":
        return None
    model, shapes, kind, rate, feed = MODELS[name]
    p = {name: torch.tensor(value, device=DEVICE) for name, value in parameters(shapes, for_torch=True).items()}
    trained = [value.requires_grad_() for name, value in p.items() if not is_held(name)]
    made = torch_optimizer(kind, trained, rate)
    loss_of = torch.compile(model) if compiled else model
    fed = [list(feed)]

    def step():
        made.zero_grad()
        loss = loss_of(TorchMath, p, *on_gpu(fed[0]))
        moved = {}
        if isinstance(loss, tuple):
            loss, moved = loss
        loss.backward()
        if kind.startswith("clipped"):
            torch.nn.utils.clip_grad_norm_(trained, 5.0)
        made.step()
        if "kept" in moved:
            fed[0][-4:] = [each.cpu().numpy() for each in moved.pop("kept")]
        p.update(moved)
        return loss.item()

    return around(name, step, lambda x: int(q_values(TorchMath, p, "online", on_gpu([x])[0]).argmax(1)),
                  lambda: batch_norm_network(TorchMath, p, *on_gpu(feed), training=False)[0].item())  # fmt: skip


def torch_word2vec():
    tables = [torch.randn(50000, 128, device=DEVICE) * 0.1, torch.randn(50000, 128, device=DEVICE) * 0.1]
    biases = torch.zeros(50000, device=DEVICE)
    feed = [R(0).randint(0, 50000, 128), R(1).randint(0, 50000, 128)]
    scale = np.log(50001.0)

    def step():
        center, context = on_gpu(feed)
        drawn = (torch.exp(torch.rand(64, device=DEVICE) * scale).long() - 1).clamp(0, 49999)
        ids = torch.cat([context, drawn])
        rows, weights, bias = (x.requires_grad_() for x in (tables[0][center], tables[1][ids], biases[ids]))
        expected = 64 * torch.log((ids + 2.0) / (ids + 1.0)) / scale
        shift = bias - torch.log(expected)
        true = (rows * weights[:128]).sum(1) + shift[:128]
        sampled = rows @ weights[128:].T + shift[128:]
        loss = (F.softplus(-true) + F.softplus(sampled).sum(1)).mean()
        g_rows, g_weights, g_bias = torch.autograd.grad(loss, [rows, weights, bias])
        tables[0].index_add_(0, center, -g_rows)
        tables[1].index_add_(0, ids, -g_weights)
        biases.index_add_(0, ids, -g_bias)
        return loss.item()

    return step


def torch_dynamic_rnn():
    """cuDNN's LSTM."""
    lstm, top = torch.nn.LSTM(64, 128, 2, batch_first=True).to(DEVICE), torch.nn.Linear(128, 10, bias=False).to(DEVICE)
    made = torch.optim.Adam([*lstm.parameters(), *top.parameters()], 1e-3, fused=True)
    rnn = torch.nn.utils.rnn

    def step():
        made.zero_grad()
        x, labels = on_gpu([RNN_FEED[0], RNN_FEED[2]])
        packed = rnn.pack_padded_sequence(x, torch.from_numpy(RNN_FEED[1]), True, enforce_sorted=False)
        outputs, _ = rnn.pad_packed_sequence(lstm(packed)[0], True, total_length=40)
        loss = F.cross_entropy(top(outputs.mean(1)), labels)
        loss.backward()
        made.step()
        return loss.item()

    return step


def torch_gan(*, compiled=False):
    p = {
        name: torch.tensor(value, device=DEVICE, requires_grad=True)
        for name, value in parameters(GAN_SHAPES, for_torch=True).items()
    }
    turns = []
    for side, loss_of, feed in (("d", d_loss, [IMAGES]), ("g", g_loss, [])):
        own = [v for k, v in p.items() if k.startswith(side)]
        made = torch.optim.Adam(own, 2e-4, (0.5, 0.999), fused=True)
        turns.append((made, torch.compile(loss_of) if compiled else loss_of, feed))

    def step():
        for made, loss_of, feed in turns:
            made.zero_grad()
            loss = loss_of(TorchMath, p, *on_gpu(feed))
            loss.backward()
            made.step()
            loss.item()

    return step


def torch_policy_gradient():
    p = {
        name: torch.tensor(value, device=DEVICE, requires_grad=True)
        for name, value in parameters(POLICY_SHAPES).items()
    }
    made = torch.optim.Adam(p.values(), 1e-2, fused=True)

    def step():
        with torch.no_grad():
            for row in POLICY_FEED[0]:
                int(torch.multinomial(torch.softmax(policy(TorchMath, p, on_gpu([row[None]])[0]), -1), 1))
        seen, done, earned = on_gpu(POLICY_FEED)
        made.zero_grad()
        loss = (F.cross_entropy(policy(TorchMath, p, seen), done, reduction="none") * earned).mean()
        loss.backward()
        made.step()
        return loss.item()

    return step


def torch_hessian_vector():
    p = {
        name: torch.tensor(value, device=DEVICE, requires_grad=True)
        for name, value in parameters(HESSIAN_SHAPES).items()
    }

    def step():
        loss = hessian_loss(TorchMath, p, *on_gpu([HESSIAN_FEED]))
        g = torch.autograd.grad(loss, list(p.values()), create_graph=True)
        products = torch.autograd.grad(sum(each.sum() for each in g), list(p.values()), allow_unused=True)
        with torch.no_grad():
            for value, product in zip(p.values(), products):
                if product is not None:
                    value -= 1e-3 * product
        return loss.item()

    return step


def torch_eager_tape():
    p = {
        name: torch.tensor(value, device=DEVICE, requires_grad=True)
        for name, value in parameters(dense_shapes(h=(64, 64), out=(64, 10))).items()
    }
    made = torch.optim.Adam(p.values(), 1e-3, fused=True)
    x, labels = on_gpu([R(0).randn(32, 64).astype("f"), R(1).randint(0, 10, 32)])

    def step():
        made.zero_grad()
        loss = F.cross_entropy(dense(p, "out", F.relu(dense(p, "h", x))), labels)
        loss.backward()
        made.step()
        return loss.item()

    return step


def torch_streaming_metrics():
    p = {name: torch.tensor(value, device=DEVICE) for name, value in parameters(METRIC_SHAPES).items()}
    state = [torch.zeros(200 if i in (4, 5) else (), device=DEVICE) for i in range(9)]

    def step():
        state[:], results = metrics(TorchMath, p, state, *on_gpu(METRIC_FEED))
        return torch.stack(results).tolist()

    return step


def torch_function_loop():
    w, b = torch.zeros(32, 1, device=DEVICE), torch.zeros((), device=DEVICE)
    x, y = on_gpu([R(0).randn(64, 32).astype("f"), R(1).randn(64, 1).astype("f")])

    def step():
        total = 0.0
        for _ in range(10):
            w.requires_grad_()
            b.requires_grad_()
            loss = ((x @ w + b - y) ** 2).mean()
            dw, db = torch.autograd.grad(loss, [w, b])
            with torch.no_grad():
                w.sub_(0.01 * dw)
                b.sub_(0.01 * db)
            total = total + loss.detach()
        return float(total)

    return step


TORCH = {
    "word2vec": torch_word2vec, "dynamic_rnn": torch_dynamic_rnn, "gan": torch_gan, "policy_gradient": torch_policy_gradient,
    "hessian_vector": torch_hessian_vector, "eager_tape": torch_eager_tape, "streaming_metrics": torch_streaming_metrics,
    "function_loop": torch_function_loop,
}  # fmt: skip
