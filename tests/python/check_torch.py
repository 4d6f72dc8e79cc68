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

try:
    import torch
except ImportError:
    print("SKIPPED: no PyTorch; OCTET_TORCH_PYTHON names a Python that has it")
    sys.exit(77)
import numpy as np
import octet
import octet.torch

FOLDER = pathlib.Path(sys.argv[1])
DEVICE = "cuda" if torch.cuda.is_available() and os.environ.get("OCTET_TORCH_DEVICE") != "cpu" else "cpu"
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


def model():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)).to(DEVICE)


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
        own, encoded = layer(), []
        codec = own._coder(own.recipe).on(torch.device(DEVICE, 0 if DEVICE == "cuda" else None))
        coder = own._coders["current"]
        coder._codec = types_of_calls(codec, encoded)
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for _ in range(2):
            for _ in range(3):
                own(values(T, IN).to(DEVICE).requires_grad_()).sum().backward()
            optimizer.step()
        self.assertEqual(encoded.count("encode_weight"), 2)
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
        self.assertEqual([t.numel() for t in y.grad_fn.next_functions[0][0].saved_tensors[:2]], [0, 0])
        y.sum().backward()
        self.assertGreater(x.grad.abs().sum().item(), 0)


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

    def test_blocks_that_are_compiled_alone_share_code(self):
        own = octet.torch.convert(torch.nn.Sequential(*[model() for _ in range(6)]))
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
        """Of two ranks that run it, with their number and a file by which they meet."""
        words = [sys.executable, "-W", "ignore", "-c", code]
        ranks = [subprocess.Popen([*words, str(rank), f"file://{FOLDER.resolve()}/{name}"], stdout=subprocess.PIPE, text=True) for rank in range(2)]
        outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        return outputs

    @unittest.skipIf(DEVICE != "cpu", "ranks of gloo")
    def test_ranks_join_their_maxima(self):
        code = """if True:
            import sys, torch, torch.distributed as dist, octet.torch
            rank = int(sys.argv[1])
            torch.set_num_threads(1)
            dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
            torch.manual_seed(1)
            model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
            model = torch.nn.parallel.DistributedDataParallel(octet.torch.convert(model, {"name": "delayed", "history": 4}))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                x = torch.full((4, 32), 1.0 + step + 10 * rank)
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            state = model.state_dict()
            print(state["module.0.fp8_delayed_x_amax_history"].flatten().tolist(),
                  sum(t.double().sum().item() for t in state.values()))
            dist.destroy_process_group()
        """
        out = self.outputs_of_ranks(code, "ranks")
        self.assertEqual(out[0], out[1])
        self.assertTrue(out[0].startswith("[0.0, 11.0, 12.0, 13.0]"), out[0])

    @unittest.skipIf(DEVICE != "cpu", "ranks of gloo")
    def test_weights_that_ranks_divide_are_gathered_or_refused(self):
        code = """if True:
            import sys, torch, torch.distributed as dist, octet, octet.torch
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
            from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
            rank = int(sys.argv[1])
            torch.set_num_threads(1)
            dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
            def model(convert=True):
                torch.manual_seed(1)
                made = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
                return octet.torch.convert(made, {"name": "delayed", "history": 4}) if convert else made
            def trained(module):
                optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
                for step in range(3):
                    optimizer.zero_grad()
                    for part in range(2):
                        x = torch.randn(4, 32, generator=torch.Generator().manual_seed(10 * step + 2 * part + rank))
                        module(x).square().sum().backward()
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
            x = torch.ones(4, 32)
            assert half(x).dtype == torch.bfloat16 and half(x).abs().sum() > 0
            for p in half.parameters():
                torch.nn.init.zeros_(p.detach())
            assert half(x).abs().sum() == 0, "codes of an earlier weight"
            late = octet.torch.convert(sharded(module=model(False)), "current")
            assert torch.isfinite(trained(late)(x)).all()
            mesh = init_device_mesh("cpu", (2,))
            for broken in (FullyShardedDataParallel(model(), device_id=torch.device("cpu")),
                           FullyShardedDataParallel(model(), use_orig_params=True, device_id=torch.device("cpu")),
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


def types_of_calls(codec, names):
    """The codec, with the names of the calls that it gets."""
    class Heard:
        def __getattr__(self, name):
            names.append(name)
            return getattr(codec, name)
    return Heard()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.set_num_threads(2)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
