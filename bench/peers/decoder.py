"""The decoder that both PyTorch peers train: the shapes of Octet's models, written as plainly as PyTorch allows."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from experts import Experts


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocabulary: int
    gated: bool = True       # SwiGLU, RMSNorm and rotations; otherwise GELU, LayerNorm and learned positions
    qkv_bias: bool = False
    tied: bool = False
    rope_theta: float = 1e4
    positions: int = 0       # learned ones
    experts: int = 0         # in the place of an MLP, of `hidden` columns each; `chosen` of them by each token
    chosen: int = 0
    whole_norms: bool = False  # one norm of all query heads, and one of all key heads


SHAPES = {
    "llama-tiny": Shape(256, 6, 4, 2, 64, 1024, 257),
    "gpt2-124m": Shape(768, 12, 12, 12, 64, 3072, 50257, gated=False, qkv_bias=True, tied=True, positions=1024),
    "qwen2.5-0.5b": Shape(896, 24, 14, 2, 64, 4864, 151936, qkv_bias=True, tied=True, rope_theta=1e6),
    "qwen2.5-1.5b": Shape(1536, 28, 12, 2, 128, 8960, 151936, qkv_bias=True, tied=True, rope_theta=1e6),
    "qwen2.5-7b": Shape(3584, 28, 28, 4, 128, 18944, 152064, qkv_bias=True, rope_theta=1e6),
    "olmoe-tiny": Shape(256, 4, 4, 4, 64, 256, 257, experts=8, chosen=2, whole_norms=True),
    "olmoe-1b-7b": Shape(2048, 16, 16, 16, 128, 1024, 50304, experts=64, chosen=8, whole_norms=True),
    "llama-3-8b": Shape(4096, 32, 32, 8, 128, 14336, 128256, rope_theta=5e5),
}


def rotate(x, cos, sin):
    """The rotation by halves of a head, x [B, H, S, d]."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        bias = not s.gated
        norm = (lambda: nn.RMSNorm(s.width, eps=1e-6)) if s.gated else (lambda: nn.LayerNorm(s.width))
        self.norm1, self.norm2 = norm(), norm()
        self.qkv = nn.Linear(s.width, (s.heads + 2 * s.kv_heads) * s.head_dim, bias=s.qkv_bias)
        self.out = nn.Linear(s.heads * s.head_dim, s.width, bias=bias)
        if s.whole_norms:
            self.q_norm, self.k_norm = nn.RMSNorm(s.heads * s.head_dim, eps=1e-5), nn.RMSNorm(s.kv_heads * s.head_dim, eps=1e-5)
        if s.experts:
            self.experts = Experts(s.width, s.hidden, s.experts, s.chosen)
        else:
            self.mlp_in = nn.Linear(s.width, (2 if s.gated else 1) * s.hidden, bias=bias)
            self.mlp_out = nn.Linear(s.hidden, s.width, bias=bias)
        self.native_gqa = True

    def attend(self, x, cos, sin):
        s, (B, S, _) = self.s, x.shape
        q, k, v = self.qkv(x).split([n * s.head_dim for n in (s.heads, s.kv_heads, s.kv_heads)], dim=-1)
        if s.whole_norms:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (t.view(B, S, -1, s.head_dim).transpose(1, 2) for t in (q, k, v))
        if cos is not None:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        grouped = s.heads != s.kv_heads
        if grouped and not self.native_gqa:
            k, v = (t.repeat_interleave(s.heads // s.kv_heads, dim=1) for t in (k, v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped and self.native_gqa)
        return self.out(o.transpose(1, 2).reshape(B, S, s.heads * s.head_dim))

    def feed(self, x):
        if self.s.experts:
            return self.experts(x.flatten(0, 1)).view_as(x)
        h = self.mlp_in(x)
        if not self.s.gated:
            return self.mlp_out(F.gelu(h, approximate="tanh"))
        gate, up = h.chunk(2, dim=-1)
        return self.mlp_out(F.silu(gate) * up)

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        return x + self.feed(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.embedding = nn.Embedding(s.vocabulary, s.width)
        self.positions = nn.Embedding(s.positions, s.width) if s.positions else None
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.norm = nn.RMSNorm(s.width, eps=1e-6) if s.gated else nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.vocabulary, bias=False)
        if s.tied:
            self.head.weight = self.embedding.weight
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def tables(self, sequence, device, dtype):
        """cos and sin [S, d/2] of the rotations; None with learned positions."""
        if not self.s.gated:
            return None, None
        half = self.s.head_dim // 2
        frequency = self.s.rope_theta ** (-torch.arange(half, device=device, dtype=torch.float64) / half)
        angle = torch.arange(sequence, device=device, dtype=torch.float64)[:, None] * frequency
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def hidden(self, tokens, cos, sin, recompute=False):
        """What the head reads, [B, S, D]."""
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            if recompute:
                x = torch.utils.checkpoint.checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        return self.norm(x)

    def forward(self, tokens, cos, sin):
        return self.head(self.hidden(tokens, cos, sin))
