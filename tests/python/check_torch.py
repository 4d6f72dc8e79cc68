#!/usr/bin/env python3
"""Tests of octet.torch: its layers compared with nn::Linear of Octet, bit for bit, and what PyTorch expects of a module.

Usage: check_torch.py FOLDER [unittest options]; the package is found by PYTHONPATH. Exit code 77: there is no PyTorch.
"""
import copy
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    print("SKIPPED: no PyTorch; OCTET_TORCH_PYTHON names a Python that has it")
    sys.exit(77)
import numpy as np
import octet
import octet.torch
from octet._torch_operand import Latest, Layouts

FOLDER = pathlib.Path(sys.argv[1])
DEVICE = "cuda" if torch.cuda.is_available() and os.environ.get("OCTET_TORCH_DEVICE") != "cpu" else "cpu"
ONE_GPU = DEVICE == "cuda" and torch.cuda.device_count() < 2
HISTORY = {"name": "delayed", "history": 4}
RECIPES = ("current", "rowwise", "block128", "mxfp8", {**HISTORY, "calibration": 0})
T, IN, OUT = 130, 256, 192


def values(*shape, scale=1.0, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


def layer(recipe="current", dtype=torch.float32, bias=True, seed=1):
    made = octet.torch.Linear(IN, OUT, bias, device=DEVICE, dtype=dtype, recipe=recipe)
    with torch.no_grad():
        made.weight.copy_(values(OUT, IN, scale=0.02, seed=seed))
        if bias:
            made.bias.copy_(values(OUT, seed=seed + 1))
    return made


def step(module, x, dy):
    """y, dx and the gradients of the parameters of a forward and a backward."""
    module.zero_grad()
    x = x.to(DEVICE).clone().requires_grad_()
    y = module(x)
    y.backward(dy.to(DEVICE))
    return [t.detach().float().cpu().numpy() for t in (y, x.grad, *(p.grad for p in module.parameters()))]


def encoded(operand, f):
    """How often f() made codes of such an operand."""
    with mock.patch.object(Layouts, "memory", autospec=True, side_effect=Layouts.memory) as memory:
        f()
    return [call.args[1] for call in memory.call_args_list].count(operand)


def model():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)).to(DEVICE)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


class Bits(unittest.TestCase):
    @unittest.skipIf(DEVICE != "cpu", "sums of a GPU have another order; tests/cuda compares them")
    def test_layers_have_the_bits_of_those_of_octet(self):
        x, dy = values(T, IN).bfloat16(), values(T, OUT, scale=1e-3, seed=2).bfloat16()
        for recipe in RECIPES:
            for dtype in (torch.float32, torch.bfloat16):
                own = layer(recipe, dtype)
                for _ in range(3):
                    found = step(own, x, dy)
                    octet.torch.end_step()
                w, b = own.weight.detach().float(), own.bias.detach().float()
                theirs = octet.fp8.linear(x.float(), w, dy.float(), b, recipe=recipe, steps=3, weights=str(dtype)[6:])
                db = torch.tensor(theirs.db).to(dtype).float().numpy()
                for name, a, r in zip(("y", "dx", "dw", "db"), found, (theirs.y, theirs.dx, theirs.dw, db)):
                    np.testing.assert_array_equal(a, r, f"{recipe} {dtype} {name}")

    def test_products_keep_the_signal_to_noise_of_their_formats(self):
        # Gaussian data: E4M3 by E4M3 has 28.5 dB, E5M2 by E4M3 24.5 dB.
        x, dy = values(T, IN), values(T, OUT, seed=2)
        w = layer().weight.detach().double().cpu()
        exact = x.double() @ w.t(), dy.double() @ w, dy.double().t() @ x.double()
        for recipe in ("current", "rowwise", "block128", "mxfp8", HISTORY):
            for dtype in (torch.float32, torch.bfloat16):
                found = step(layer(recipe, bias=False), x.to(dtype), dy.to(dtype))
                for name, a, r in zip(("y", "dx", "dw"), found, exact):
                    noise = np.square(a - r.numpy()).sum()
                    self.assertGreater(10 * np.log10(np.square(r.numpy()).sum() / noise), 27 if name == "y" else 23.5, f"{recipe} {name}")


class Settings(unittest.TestCase):
    def test_settings_nest(self):
        own, plain = layer(bias=False), torch.nn.Linear(IN, OUT, bias=False, device=DEVICE)
        plain.weight = own.weight
        other = layer("block128", bias=False)
        x = values(T, IN).to(DEVICE)
        with octet.torch.fp8("block128"):
            inside = own(x)
            with octet.torch.fp8(enabled=False):
                off = own(x)
                with octet.torch.fp8("current"):
                    again = own(x)
            self.assertTrue(torch.equal(own(x), inside))
        self.assertTrue(torch.equal(inside, other(x)))
        self.assertTrue(torch.equal(off, plain(x)))
        self.assertTrue(torch.equal(again, own(x)))
        self.assertFalse(torch.equal(inside, again))

    def test_autocast_gives_bfloat16(self):
        x = values(2, 3, IN).to(DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            y = layer()(x)
        self.assertEqual((y.dtype, y.shape), (torch.bfloat16, (2, 3, OUT)))
        self.assertTrue(torch.equal(y, layer()(x.bfloat16())))

    def test_convert_leaves_heads_and_layers_that_do_not_fit(self):
        whole = torch.nn.ModuleDict({"body": torch.nn.Linear(64, 64), "odd": torch.nn.Linear(64, 10), "lm_head": torch.nn.Linear(64, 64)})
        weight = whole["body"].weight
        with self.assertLogs("octet", "INFO") as lines:
            self.assertIs(octet.torch.convert(whole), whole)
        self.assertIs(whole["body"].weight, weight)
        self.assertEqual([type(m) is octet.torch.Linear for m in whole.values()], [True, False, False])
        self.assertIn("odd (10 x 64 is not a multiple of 16", "\n".join(lines.output))
        self.assertIn("lm_head (filter)", "\n".join(lines.output))

    def test_refusals(self):
        with self.assertRaisesRegex(octet.ConfigError, 'recipe "bf16" has no 8-bit operands'):
            octet.torch.convert(model(), "bf16")
        with self.assertRaisesRegex(octet.ConfigError, 'did you mean `history`'):
            octet.torch.Linear(32, 32, recipe={"name": "delayed", "histori": 3})
        with self.assertRaisesRegex(octet.ConfigError, "24 x 32 is not a multiple of 16"):
            octet.torch.Linear(32, 24)
        with self.assertRaisesRegex(octet.ConfigError, "no linear layer is left to convert"):
            octet.torch.convert(model(), filter=lambda module, name: False)
        with self.assertRaisesRegex(octet.ConfigError, "use torch.autocast with bfloat16"):
            layer()(values(2, IN).half().to(DEVICE))


class Steps(unittest.TestCase):
    def test_micro_batches_share_codes_of_weights(self):
        own = layer()
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)

        def step():
            for _ in range(3):
                own(values(T, IN).to(DEVICE).requires_grad_()).sum().backward()
            optimizer.step()

        self.assertEqual([encoded("w", step) for _ in range(2)], [1, 1])
        before = own(values(T, IN).to(DEVICE))
        own.weight.data.zero_()  # leaves the version as it is; an optimizer that does so ends a step
        octet.torch.end_step()
        self.assertFalse(torch.equal(own(values(T, IN).to(DEVICE)), before))

    def test_histories_are_in_the_state_and_continue_with_the_same_bits(self):
        x, dy = values(T, IN), values(T, OUT, seed=2)
        own = layer(HISTORY)
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for size in (1.0, 3.0):
            step(own, size * x, size * dy)
            optimizer.step()
        state = own.state_dict()
        self.assertEqual(state["fp8_delayed_x_amax_history"].shape, (4, 1))
        self.assertAlmostEqual(state["fp8_delayed_x_amax_history"].max().item(), 3 * x.abs().max().item(), places=5)
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        others = [layer(HISTORY, seed=9), copy.deepcopy(own), layer(HISTORY, seed=9)]
        others[0].load_state_dict(torch.load(file))
        others[2](x.to(DEVICE))  # had a state of its own
        others[2].load_state_dict(own.state_dict())
        wanted = step(own, x, dy)
        for other in others:
            for a, b in zip(step(other, x, dy), wanted):
                np.testing.assert_array_equal(a, b)
        self.assertNotIn("fp8_current_x_scale", layer().state_dict())
        with self.assertRaisesRegex(octet.ConfigError, "x_amax_history must be"):
            other = layer({"name": "delayed", "history": 7})
            other.load_state_dict(state)
            other(x.to(DEVICE))

    def test_a_backward_after_the_step_is_refused(self):
        own = layer(HISTORY)
        y = own(values(T, IN).to(DEVICE).requires_grad_())
        octet.torch.end_step()
        with self.assertRaisesRegex(RuntimeError, "step after the backward"):
            y.sum().backward()

    def test_a_new_layer_has_no_state_of_one_that_is_gone(self):
        x, dy = values(T, IN), values(T, OUT, seed=2)
        first = step(layer(HISTORY), x, dy)
        used = layer(HISTORY)
        y = used(100 * x.to(DEVICE))
        octet.torch.end_step()
        del used, y
        for a, b in zip(step(layer(HISTORY), x, dy), first):
            np.testing.assert_array_equal(a, b)
        y = layer()(x.to(DEVICE).requires_grad_())  # the graph keeps what backward needs
        y.sum().backward()

    def test_frozen_weights_keep_no_codes_of_the_input(self):
        own = layer().requires_grad_(False)
        x = values(T, IN).to(DEVICE).requires_grad_()
        y = own(x)
        self.assertEqual([t is own.weight for t in y.grad_fn.saved_tensors], [True])
        y.sum().backward()
        self.assertGreater(x.grad.abs().sum().item(), 0)


class Sharing(unittest.TestCase):
    """Layers that read one tensor after another share its codes."""

    def gated(self, x, gate, up):
        return gate(x) * up(x)

    def test_results_are_those_of_layers_alone(self):
        gate, up = layer(seed=3), layer(seed=5)
        for dtype in (torch.float32, torch.bfloat16):
            x, dy = values(3, T, IN).to(DEVICE, dtype), values(3, T, OUT, seed=2).to(DEVICE, dtype)
            found = []
            for other in (lambda x: x, lambda x: x.view_as(x)):  # a view is another tensor
                one = x.clone().requires_grad_()
                for module in (gate, up):
                    module.zero_grad()
                n = encoded("x", lambda: (torch.nn.functional.silu(gate(one)) * up(other(one))).backward(dy))
                found.append([n, one.grad, *(p.grad for module in (gate, up) for p in module.parameters())])
            self.assertEqual([f[0] for f in found], [1, 2])
            for a, b in zip(found[0][1:], found[1][1:]):
                self.assertTrue(torch.equal(a, b))

    def test_autocast_rounds_and_encodes_once(self):
        gate, up, x = layer(seed=3), layer(seed=5), values(T, IN).to(DEVICE).requires_grad_()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            self.assertEqual(encoded("x", lambda: self.gated(x, gate, up).sum().backward()), 1)
        both = x.grad.clone()
        x.grad = None
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            (gate(x) * up(x.bfloat16())).sum().backward()
        self.assertEqual(both.dtype, torch.float32)
        np.testing.assert_allclose(both.cpu(), x.grad.cpu(), rtol=0.02, atol=1e-3)  # the sum of both is rounded to bfloat16 or not

    def test_a_change_of_the_input_or_a_backward_ends_it(self):
        gate, up = layer(seed=3), layer(seed=5)
        x = values(T, IN).to(DEVICE)

        def changed():
            gate(x)
            x.mul_(2)
            self.assertTrue(torch.equal(up(x), up(x.clone())))

        self.assertEqual(encoded("x", changed), 3)
        y = x.clone().requires_grad_()
        self.assertEqual(encoded("x", lambda: [self.gated(y, gate, up).sum().backward() for _ in range(2)]), 2)
        with torch.no_grad():
            self.assertEqual(encoded("x", lambda: self.gated(x, gate, up)), 1)
        with torch.inference_mode():
            self.assertEqual(encoded("x", lambda: self.gated(values(T, IN).to(DEVICE), gate, up)), 2)

    def test_codes_die_with_the_tensor(self):
        x = values(T, IN).to(DEVICE)
        latest = Latest.of(octet.torch.Recipe.of("current").key, x.device)
        with torch.no_grad():
            layer()(x)
        self.assertIsNotNone(latest.operand)
        del x
        self.assertIsNone(latest.operand)

    def test_compilers_merge_encodings(self):
        gate, up = layer(seed=3), layer(seed=5)
        x = values(T, IN).to(DEVICE).requires_grad_()
        plain = self.gated(x, gate, up)
        plain.sum().backward()
        wanted, x.grad = x.grad, None
        compiled = torch.compile(self.gated, fullgraph=True, backend="aot_eager_decomp_partition")
        found = compiled(x, gate, up)
        n = encoded("x", lambda: compiled(x, gate, up).sum().backward())
        self.assertEqual(n, 1)
        self.assertTrue(torch.equal(found, plain))
        self.assertTrue(torch.equal(x.grad, wanted))


class Frameworks(unittest.TestCase):
    def test_compiled_models_have_the_same_bits(self):
        own = octet.torch.convert(model())
        x = values(16, 32).to(DEVICE)
        plain = own(x)
        plain.sum().backward()
        wanted = [p.grad.clone() for p in own.parameters()]
        own.zero_grad()
        compiled = torch.compile(own, fullgraph=True, backend="aot_eager")
        y = compiled(x)
        y.sum().backward()
        self.assertTrue(torch.equal(y, plain))
        for p, w in zip(own.parameters(), wanted):
            self.assertTrue(torch.equal(p.grad, w))

    def test_compiled_models_follow_the_setting(self):
        own, x = octet.torch.convert(model()), values(16, 32).to(DEVICE)
        compiled = torch.compile(own, fullgraph=True, backend="aot_eager")
        for setting in ({}, {"enabled": False}, {"recipe": "block128"}, {}):
            with octet.torch.fp8(**setting):
                wanted = own(x)
                self.assertTrue(torch.equal(compiled(x), wanted), setting)

    def test_blocks_that_are_compiled_alone_share_code(self):
        own = octet.torch.convert(torch.nn.Sequential(*[Block() for _ in range(6)])).to(DEVICE)
        plain = own(values(16, 32).to(DEVICE))
        torch.compiler.reset()
        torch._dynamo.utils.counters.clear()
        for block in own:
            block.compile(backend="aot_eager", dynamic=False)
        self.assertTrue(torch.equal(own(values(16, 32).to(DEVICE)), plain))
        self.assertLessEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 2)  # of x with and without a gradient

    def test_checkpointed_layers_have_the_same_bits(self):
        x, own = values(T, IN).to(DEVICE), layer(HISTORY)
        plain = step(own, values(T, IN), values(T, OUT, seed=2))
        own.zero_grad()
        y = torch.utils.checkpoint.checkpoint(own, x.requires_grad_(), use_reentrant=False)
        y.backward(values(T, OUT, seed=2).to(DEVICE))
        np.testing.assert_array_equal(own.weight.grad.cpu().numpy(), plain[2])

    def outputs_of_ranks(self, code, name):
        """Of two ranks that run it, with their number, a file by which they meet, and the kind of their devices."""
        begin = """if True:
            import gc, sys, torch, torch.distributed as dist, octet, octet.torch
            rank, kind = int(sys.argv[1]), sys.argv[3]
            torch.set_num_threads(1)
            device = torch.device(kind, rank) if kind == "cuda" else torch.device(kind)
            if kind == "cuda":
                torch.cuda.set_device(device)
            dist.init_process_group("nccl" if kind == "cuda" else "gloo", init_method=sys.argv[2], rank=rank, world_size=2)
        """
        words = [sys.executable, "-W", "ignore", "-c", begin + code]
        ranks = [subprocess.Popen([*words, str(rank), f"file://{FOLDER.resolve()}/{name}", DEVICE], stdout=subprocess.PIPE, text=True) for rank in range(2)]
        outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        return outputs

    @unittest.skipIf(ONE_GPU, "ranks of NCCL need two GPUs")
    def test_ranks_join_their_maxima_and_train_as_one_process(self):
        code = """
            def trained(ranks, parts):
                torch.manual_seed(1)
                model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)).to(device)
                octet.torch.convert(model, {"name": "delayed", "history": 4, "calibration": 0})
                if ranks > 1:
                    model = torch.nn.parallel.DistributedDataParallel(model)
                optimizer, losses = torch.optim.SGD(model.parameters(), lr=1e-4), []
                for step in range(3):
                    optimizer.zero_grad()
                    for part in parts:
                        x = torch.rand(4, 32, generator=torch.Generator().manual_seed(2 * step + part))
                        x[0, 0] = 1.0 + step + 10 * part
                        losses.append(model(x.to(device)).square().mean())
                        losses[-1].backward()
                    for p in model.parameters():
                        p.grad /= len(parts)
                    optimizer.step()
                return model.state_dict(), [loss.item() for loss in losses]
            alone = trained(1, [0, 1])
            gc.collect()
            state, losses = trained(2, [rank])
            torch.testing.assert_close(losses, alone[1][rank::2], rtol=1e-6, atol=0)
            for name, value in state.items():
                torch.testing.assert_close(value, alone[0][name.removeprefix("module.")], rtol=1e-5, atol=1e-7, msg=name)
            print(state["module.0.fp8_delayed_x_amax_history"].flatten().tolist(),
                  sum(t.double().sum().item() for t in state.values()))
            dist.destroy_process_group()
        """
        out = self.outputs_of_ranks(code, "ranks")
        self.assertEqual(out[0], out[1])
        self.assertTrue(out[0].startswith("[0.0, 11.0, 12.0, 13.0]"), out[0])

    @unittest.skipIf(ONE_GPU, "ranks of NCCL need two GPUs")
    def test_weights_that_ranks_divide_are_gathered_or_refused(self):
        code = """
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
            from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
            def model(convert=True):
                torch.manual_seed(1)
                made = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)).to(device)
                return octet.torch.convert(made, {"name": "delayed", "history": 4}) if convert else made
            def trained(module):
                optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
                for step in range(3):
                    optimizer.zero_grad()
                    for part in range(2):
                        x = torch.randn(4, 32, generator=torch.Generator().manual_seed(10 * step + 2 * part + rank))
                        module(x.to(device)).square().sum().backward()
                    optimizer.step()
                return module
            def sharded(policy=MixedPrecisionPolicy(), layers=False, module=None):
                module = module or model()
                for layer in module if layers else []:
                    if isinstance(layer, torch.nn.Linear):
                        fully_shard(layer, mp_policy=policy)
                fully_shard(module, mp_policy=policy)
                return module
            copies = trained(torch.nn.parallel.DistributedDataParallel(model())).module.state_dict()
            for layers in (False, True):
                parts = trained(sharded(layers=layers)).state_dict()
                for name, value in copies.items():
                    found = parts[name].full_tensor() if hasattr(parts[name], "full_tensor") else parts[name]
                    torch.testing.assert_close(found, value, rtol=1e-5, atol=1e-6, msg=name)
            # Gathered in BF16; and values that change without a step.
            half = trained(sharded(MixedPrecisionPolicy(param_dtype=torch.bfloat16)))
            x = torch.ones(4, 32, device=device)
            assert half(x).dtype == torch.bfloat16 and half(x).abs().sum() > 0
            for p in half.parameters():
                torch.nn.init.zeros_(p.detach())
            assert half(x).abs().sum() == 0, "codes of an earlier weight"
            late = octet.torch.convert(sharded(module=model(False)), "current")
            assert torch.isfinite(trained(late)(x)).all()
            mesh = init_device_mesh(kind, (2,))
            for broken in (FullyShardedDataParallel(model(), device_id=device),
                           FullyShardedDataParallel(model(), use_orig_params=True, device_id=device),
                           parallelize_module(model(), mesh, {"0": ColwiseParallel()})):
                for grad in (True, False):
                    with torch.set_grad_enabled(grad):
                        try:
                            broken(x)
                        except octet.ConfigError as error:
                            print(str(error)[:64])
            dist.destroy_process_group()
        """
        for output in self.outputs_of_ranks(code, "parts"):
            said = output.splitlines()
            self.assertEqual([line.split(": ")[1].split(" (")[0] for line in said[:4]], ["FullyShardedDataParallel"] * 4)
            self.assertEqual(said[4:], ["octet.torch.Linear: the weight is a DTensor in its forward, as u"] * 2)


class Examples(unittest.TestCase):
    def test_trainer_and_accelerate_fine_tune_with_one_line(self):
        if not all(importlib.util.find_spec(name) for name in ("transformers", "accelerate")):
            self.skipTest("no transformers or no accelerate")
        text = FOLDER / "text.txt"
        text.write_text(" ".join(str(i * i % 97) for i in range(4000)))
        example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "transformers_fp8.py"
        for loop in ("trainer", "accelerate"):
            found = {}
            for recipe in ("bf16", "current"):
                done = subprocess.run([sys.executable, example, "tiny", text, "--loop", loop, "--recipe", recipe, "--steps", "8"], cwd=FOLDER,
                                      capture_output=True, text=True)
                self.assertIn("held-out loss", done.stdout, done.stderr)
                found[recipe] = float(done.stdout.split()[-1])
            self.assertAlmostEqual(found["current"], found["bf16"], delta=0.02)
            self.assertNotEqual(found["current"], found["bf16"])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.set_num_threads(2)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
