#!/usr/bin/env python3
"""Experts without dropped tokens, by torch._grouped_mm: rows of tokens in the order of experts, two grouped products, sums per token.

Run as a program, it compares them with a loop over experts on a CPU, values and gradients, and trains a tiny decoder.
"""

import torch
import torch.nn.functional as F
from torch import nn

ALIGN = 8  # rows: groups of BF16 begin at multiples of 16 bytes where a product sums over them


class ToExperts(torch.autograd.Function):
    """Rows of x in the order of experts. Rows of padding are zeros."""

    @staticmethod
    def forward(ctx, x, token_of_row, row_of_choice):
        ctx.save_for_backward(row_of_choice)
        return F.pad(x, (0, 0, 0, 1))[token_of_row]

    @staticmethod
    def backward(ctx, d):
        (row_of_choice,) = ctx.saved_tensors
        return d[row_of_choice].sum(1), None, None


class FromExperts(torch.autograd.Function):
    """The sum of each token's rows."""

    @staticmethod
    def forward(ctx, y, token_of_row, row_of_choice):
        ctx.save_for_backward(token_of_row)
        return y[row_of_choice].sum(1)

    @staticmethod
    def backward(ctx, d):
        (token_of_row,) = ctx.saved_tensors
        return F.pad(d, (0, 0, 0, 1))[token_of_row], None, None


class Experts(nn.Module):
    def __init__(self, width, hidden, experts, chosen):
        super().__init__()
        self.chosen, self.balanced = chosen, False
        self.router = nn.Parameter(torch.empty(experts, width))
        self.gate_up = nn.Parameter(torch.empty(experts, 2 * hidden, width))
        self.down = nn.Parameter(torch.empty(experts, width, hidden))
        self.register_buffer("loads", torch.zeros(experts, dtype=torch.int64), persistent=False)
        for p in (self.gate_up, self.down, self.router):
            nn.init.normal_(p, std=0.02)

    def choose(self, x):
        """Weights and numbers of each token's experts, [T, K]. Balanced: consecutive experts in turn, so that all have equal loads."""
        p = F.linear(x.float(), self.router.float()).softmax(-1)
        if not self.balanced:
            return p.topk(self.chosen, dim=-1)
        tokens, experts = p.shape
        choices = torch.arange(tokens * self.chosen, device=x.device).view(tokens, self.chosen) % experts
        return p.gather(1, choices), choices

    def order(self, choices):
        """Row -> token, (token, choice) -> row, and where each expert's rows end. Memory does not depend on the choices."""
        (tokens, chosen), experts = choices.shape, self.router.shape[0]
        flat = choices.flatten()
        by_expert = flat.argsort(stable=True)
        counts = torch.zeros(experts, dtype=torch.int64, device=flat.device).scatter_add_(0, flat, torch.ones_like(flat))
        room = (counts + ALIGN - 1) // ALIGN * ALIGN
        ends = room.cumsum(0)
        # The i-th of the sorted choices is behind the padding of all experts before its own.
        before = (room - counts).cumsum(0) - (room - counts)
        row_of_sorted = torch.arange(flat.numel(), device=flat.device) + before[flat[by_expert]]
        bound = flat.numel() + (0 if self.balanced and flat.numel() % (experts * ALIGN) == 0 else experts * ALIGN)
        token_of_row = torch.full((bound,), tokens, device=flat.device).scatter_(0, row_of_sorted, by_expert // chosen)
        row_of_choice = torch.empty_like(flat).scatter_(0, by_expert, row_of_sorted).view(tokens, chosen)
        return token_of_row, row_of_choice, counts, ends.to(torch.int32)

    def forward(self, x):
        weights, choices = self.choose(x)
        token_of_row, row_of_choice, counts, ends = self.order(choices)
        self.loads.copy_(counts)
        rows = ToExperts.apply(x, token_of_row, row_of_choice)
        weight_of_row = torch.zeros(rows.shape[0], device=x.device).index_put((row_of_choice.flatten(),), weights.float().flatten())
        gate, up = torch._grouped_mm(rows, self.gate_up.transpose(-2, -1), offs=ends).chunk(2, dim=-1)
        h = (F.silu(gate.float()) * up.float() * weight_of_row[:, None]).to(x.dtype)
        return FromExperts.apply(torch._grouped_mm(h, self.down.transpose(-2, -1), offs=ends), token_of_row, row_of_choice)

    def by_loop(self, x):
        """The same by one expert after the other."""
        weights, choices = self.choose(x)
        y = torch.zeros_like(x)
        for e in range(self.router.shape[0]):
            token, place = (choices == e).nonzero(as_tuple=True)
            gate, up = (x[token] @ self.gate_up[e].T).chunk(2, dim=-1)
            y = y.index_add(0, token, (F.silu(gate) * up * weights[token, place][:, None].to(x.dtype)) @ self.down[e].T)
        return y


def check(balanced):
    """Values and gradients of both ways, as a share of the largest one."""
    torch.manual_seed(1)
    experts = Experts(64, 48, 8, 3)
    experts.balanced = balanced
    for p in experts.parameters():
        nn.init.normal_(p, std=0.2)
    x, d = torch.randn(40, 64, requires_grad=True), torch.randn(40, 64)
    tensors = [x, *experts.parameters()]
    results = []
    for form in (experts.forward, experts.by_loop):
        y = form(x)
        results.append([y, *torch.autograd.grad(y, tensors, d)])
    gaps = [float((a - b).detach().abs().max() / b.detach().abs().max()) for a, b in zip(*results)]
    print(f"{'balanced' if balanced else 'natural'}: y, x and {[n for n, _ in experts.named_parameters()]} differ by {max(gaps):.1e}")
    assert max(gaps) < 1e-5, gaps


def train_tiny():
    from decoder import SHAPES, Decoder

    torch.manual_seed(1)
    shape = SHAPES["olmoe-tiny"]
    model = Decoder(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(shape.vocabulary, (2, 65))
    cos, sin = model.tables(64, "cpu", torch.float32)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(model(tokens[:, :-1], cos, sin).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step(), optimizer.zero_grad()
        losses.append(loss.item())
    print(f"olmoe-tiny: loss {losses[0]:.2f} -> {losses[-1]:.2f} in 30 steps")
    assert losses[-1] < losses[0] / 4


if __name__ == "__main__":
    for balanced in (False, True):
        check(balanced)
    train_tiny()
