#!/usr/bin/env python3
"""Tests of `import octet`: the module that the build made, compared with the program, NumPy and, where they are, ml_dtypes and PyTorch.

Usage: check.py PROGRAM FOLDER [unittest options]; the package is found by PYTHONPATH. Exit code 77: there is no NumPy.
"""
import json
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: no NumPy; install the Debian package python3-numpy")
    sys.exit(77)
import octet

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
PROGRAM, FOLDER = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
SMALL = {
    "model": {"layers": 2, "width": 64, "heads": 4, "kv_heads": 2, "hidden": 128},
    "data": {"path": "data", "sequence_length": 64, "eval_fraction": 0.2},
    "train": {"steps": 4, "batch": 2, "eval_tokens": 512},
    "recipe": {"name": "current"},
    "telemetry.tensorboard": False,
    "threads": 2,
}


def make_text():
    texts = pathlib.Path("texts")
    texts.mkdir()
    for number in range(40):
        (texts / f"{number}.txt").write_text(" ".join(str(number * i % 97) for i in range(400)))
    return octet.tokenize("texts/*.txt", "data")


class Training(unittest.TestCase):
    def test_losses_are_those_of_the_program(self):
        steps = []
        outcome = octet.train(SMALL, steps.append, set={"name": "module"})
        pathlib.Path("small.toml").write_text(
            "telemetry.tensorboard = false\nthreads = 2\n" +
            "".join(f"[{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in part.items())
                    for name, part in SMALL.items() if isinstance(part, dict)))
        subprocess.run([PROGRAM, "train", "small.toml", "--name", "program", "--quiet"], check=True, capture_output=True)
        self.assertEqual([s.loss for s in steps], losses("runs/program"))
        self.assertEqual(outcome.eval_loss, record("runs/program", "end")[-1]["eval_loss"])
        self.assertEqual((outcome.state, outcome.steps, outcome.folder), ("finished", 4, "runs/module"))
        self.assertTrue(pathlib.Path("runs/module/report.html").exists())
        same = octet.train("small.toml", set={"name": "file"})
        self.assertEqual(same.eval_loss, outcome.eval_loss)

    def test_callback_stops_and_a_resumed_run_has_the_same_bits(self):
        whole = octet.train(SMALL, set={"name": "whole"})
        stopped = octet.train(SMALL, [lambda step: step.step == 2, lambda step: None], set={"name": "stopped"})
        self.assertEqual((stopped.state, stopped.steps), ("stopped", 2))
        resumed = octet.train(resume=stopped.folder)
        self.assertEqual((resumed.state, resumed.eval_loss), ("finished", whole.eval_loss))

    def test_error_of_a_callback_follows_after_the_run_was_saved(self):
        def fail(step):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            octet.train(SMALL, fail, set={"name": "failed"})
        self.assertEqual(octet.train(resume="runs/failed").state, "finished")

    def test_ctrl_c_saves(self):
        main = threading.main_thread().ident
        with self.assertRaises(KeyboardInterrupt):
            octet.train(SMALL, lambda step: signal.pthread_kill(main, signal.SIGINT) if step.step == 3 else None,
                        set={"name": "ended", "train.steps": 100000})
        self.assertTrue(any(pathlib.Path("runs/ended/checkpoints").iterdir()))
        self.assertEqual(octet.train(SMALL, set={"name": "next"}).state, "finished")

    def test_ctrl_c_while_no_python_code_runs(self):
        code = "import octet, sys\ntry: octet.train('long.toml')\nexcept KeyboardInterrupt: print('saved')"
        octet.plan(SMALL)
        pathlib.Path("long.toml").write_text("threads = 1\nname = 'long'\n[data]\npath = 'data'\nsequence_length = 64\n[train]\nsteps = 1000000\n")
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        metrics = pathlib.Path("runs/long/metrics.jsonl")
        for _ in range(600):
            if metrics.exists() and '"step"' in metrics.read_text():
                break
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
        self.assertEqual((out, error), ("saved\n", ""))
        self.assertTrue(any(pathlib.Path("runs/long/checkpoints").iterdir()))

    def test_two_runs_at_once_and_python_goes_on(self):
        alone = octet.train(SMALL, set={"name": "alone"}).eval_loss
        found, count = {}, 0
        threads = [threading.Thread(target=lambda n=n: found.__setitem__(n, octet.train(SMALL, set={"name": f"both{n}"}).eval_loss))
                   for n in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            count += 1
            time.sleep(0.001)
        self.assertEqual(found, {0: alone, 1: alone})
        self.assertGreater(count, 10)

    def test_ranks_train_in_one_process(self):
        steps = []
        outcome = octet.train(SMALL, steps.append, set={"name": "ranks", "ranks.data": 2})
        self.assertEqual((outcome.state, len(steps)), ("finished", 4))

    def test_lines_go_to_the_logger_and_nothing_is_printed(self):
        code = f"import octet; octet.train({SMALL!r}, set={{'name': 'quiet', 'comm.overlap': False}})"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual((child.stdout, child.stderr), ("", ""))
        with self.assertLogs("octet", logging.INFO) as lines:
            octet.train(SMALL, set={"name": "heard", "comm.overlap": False})
        self.assertTrue(any(line.startswith("WARNING:octet:config: `comm.overlap`") for line in lines.output))
        self.assertTrue(any("step" in line for line in lines.output))

    def test_errors_have_their_classes_and_sentences(self):
        for config, error, sentence in (
                ({"train": {"stepss": 3}}, octet.ConfigError, "config: unknown key `train.stepss`; did you mean `train.steps`?"),
                ({"train.steps": "x"}, octet.ConfigError, 'config: `train.steps` must be an integer >= 0, got "x"'),
                ({"data.path": "nowhere", "train.steps": 1}, octet.Error, "nowhere"),
                ("none.toml", octet.ConfigError, "there is no configuration file none.toml")):
            with self.assertRaises(error) as raised:
                octet.train(config)
            self.assertIn(sentence, str(raised.exception))
            self.assertIsInstance(raised.exception, octet.Error)
        self.assertEqual(raised.exception.exit_code, 2)
        with self.assertRaisesRegex(TypeError, "no values of type set"):
            octet.train({"seed": {1}})

    def test_compare_and_plan(self):
        comparison = octet.compare(SMALL, recipes=["current"], set={"name": "compared", "recipe.name": "bf16", "train.steps": 2})
        self.assertEqual([arm.name for arm in comparison.arms], ["bf16", "bf16 twin 1", "current"])
        self.assertIn("gap to bf16", str(comparison))
        plan = octet.plan(SMALL)
        self.assertEqual(plan.tokens_per_step, 128)
        self.assertEqual(sum(plan.memory_by_category.values()), plan.memory_bytes)
        self.assertIn("layers.0.mlp.down", [path for path, _, _ in plan.layers])


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = octet.train(SMALL, set={"name": "model"}).folder

    def test_logits_and_text_are_those_of_the_program(self):
        model = octet.Model.open(self.folder, recipe="fp32")
        ids = model.encode("1 2 3 4 5")
        one, two = model.logits(ids), model.logits([ids, ids])
        self.assertEqual((one.shape, one.dtype), ((len(ids), model.vocabulary), np.float32))
        np.testing.assert_array_equal(two[1], one)
        write_ids("ids.safetensors", ids)
        subprocess.run([PROGRAM, "eval", self.folder, "--recipe", "fp32", "--ids", "ids.safetensors", "--logits", "logits.safetensors"],
                       check=True, capture_output=True)
        np.testing.assert_array_equal(read_tensor("logits.safetensors", "logits"), one[None])
        text = subprocess.run([PROGRAM, "generate", self.folder, "--recipe", "fp32", "--prompt", "1 2", "--tokens", "9"], check=True,
                              capture_output=True).stdout.decode(errors="replace")
        self.assertEqual("1 2" + model.generate("1 2", tokens=9) + "\n", text)
        self.assertEqual(model.decode(ids), "1 2 3 4 5")

    def test_prompts_side_by_side_get_the_text_that_each_gets_alone(self):
        model, greedy = octet.Model.open(self.folder, recipe="fp32"), {"tokens": 12, "temperature": 0}
        prompts = ["1 2 3", "7", "count 4 5 6 7 8"]
        alone = [model.generate(p, **greedy) for p in prompts]
        self.assertEqual(model.generate(prompts, **greedy), alone)
        ids = model.encode(prompts[0], document=True)
        for _ in range(12):  # the program's own logits, without stored keys
            ids.append(int(model.logits(ids)[-1].argmax()))
        self.assertEqual(model.decode(ids), prompts[0] + alone[0])
        stop = alone[0][4:6]
        self.assertEqual(model.generate(prompts[0], stop=stop, **greedy), alone[0][:alone[0].find(stop)])
        self.assertEqual(len(model.generate([[1, 2], [3]], cache="e4m3", **greedy)), 2)
        penalized = model.generate(ids[:3], tokens=6, temperature=0, repetition_penalty=1e9)
        self.assertEqual(len(set(penalized) - set(ids[:3])), 6, "no id comes twice")
        for options, sentence in (({"cache": "fp4"}, "cache"), ({"repetition_penalty": 0}, "above 0"), ({"stop": ""}, "empty stop string")):
            with self.assertRaisesRegex(octet.ConfigError, sentence):
                model.generate("1", **options)
        with self.assertRaisesRegex(octet.ConfigError, "open it with sequence="):
            model.generate([1] * (model.sequence + 1))

    def test_evaluation_repeats_that_of_the_run(self):
        run = record(self.folder, "end")[-1]["eval_loss"]
        model = octet.Model.open(self.folder)
        self.assertAlmostEqual(model.evaluate(recipe="current", batch=2).loss, run, places=6)
        self.assertNotAlmostEqual(model.evaluate(batch=2).loss, run, places=6)

    def test_parameters_are_the_memory_of_the_model(self):
        model = octet.Model.open(self.folder, recipe="fp32")
        before, parameters = model.logits([1, 2, 3]), model.parameters()
        for name, values in parameters.items():
            again = model.parameters()[name]
            self.assertTrue(np.shares_memory(values, again), name)
        np.testing.assert_array_equal(np.from_dlpack(parameters["layers.0.norm1.weight"]), parameters["layers.0.norm1.weight"])
        parameters["layers.1.mlp.down.weight"][...] = 0
        self.assertFalse(np.array_equal(model.logits([1, 2, 3]), before))
        del model
        self.assertEqual(float(parameters["layers.1.mlp.down.weight"].sum()), 0)

    def test_refusals(self):
        model = octet.Model.open(self.folder, sequence=8)
        for ids, sentence in (([], "there is no token"), ([0] * 9, "opened for 8; open it with sequence=9"), ([9999], "token id 9999")):
            with self.assertRaises(octet.Error) as raised:
                model.logits(ids)
            self.assertIn(sentence, str(raised.exception))
        with self.assertRaisesRegex(octet.ConfigError, "there is no such folder"):
            octet.Model.open("nowhere")
        with self.assertRaisesRegex(TypeError, "octet.Model.open"):
            octet.Model(self.folder)


class Examples(unittest.TestCase):
    def test_the_script_trains(self):
        out = subprocess.run([sys.executable, EXAMPLES / "train.py", "texts/*.txt", "3"], capture_output=True, text=True, check=True)
        self.assertIn("step    1  loss", out.stdout)
        self.assertIn("state=finished", out.stdout)
        self.assertEqual(out.stderr, "")

    def test_the_class_for_lm_evaluation_harness_scores_texts(self):
        sys.path.insert(0, str(EXAMPLES))
        from lm_eval_octet import OctetLM
        model = OctetLM(octet.train(SMALL, set={"name": "scored"}).folder, recipe="fp32", sequence=32)
        request = types.SimpleNamespace(args=("1 2 3", " 4"))
        (score, greedy), = model.loglikelihood([request])
        self.assertTrue(-40 < score < 0)
        self.assertIs(greedy, False)
        whole, first = (model.score([256], list(text))[0] for text in (b"1 2 3 4", b"1 2 3"))
        self.assertAlmostEqual(model.of_texts("", "1 2 3 4")[0], whole)
        self.assertAlmostEqual(model.score(list(b"1 2 3"), list(b" 4"))[0], score)
        self.assertAlmostEqual(whole, first + model.score([256, *b"1 2 3"], list(b" 4"))[0], places=4)
        self.assertEqual(model.of_texts("1 2 3 ", "4"), model.of_texts("1 2 3", " 4"))
        rolling, = model.loglikelihood_rolling([types.SimpleNamespace(args=("1 2 3 " * 20,))])
        self.assertLess(rolling, score)
        text, = model.generate_until([types.SimpleNamespace(args=("1 2", {"until": ["3"], "max_gen_toks": 5}))])
        self.assertNotIn("3", text)


class Formats(unittest.TestCase):
    def test_every_code_is_the_nearest_to_its_value(self):
        for name in ("e4m3", "e5m2"):
            codes = np.arange(256, dtype=np.uint8)
            values = octet.fp8.decode(codes, name)
            finite = np.isfinite(values)
            np.testing.assert_array_equal(octet.fp8.encode(values[finite], name), codes[finite])
        self.assertEqual(octet.fp8.encode([1.0625, 1e9, -np.inf, np.nan, 0.0]).tolist(), [0x38, 0x7E, 0xFE, 0x7F, 0])

    def test_codes_are_those_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes")
        x = np.random.default_rng(1).normal(size=(64, 33)).astype(np.float32) * 100
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            theirs = x.astype(dtype)
            name = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}[theirs.dtype.name]
            fits = np.isfinite(theirs.astype(np.float32))
            np.testing.assert_array_equal(octet.fp8.encode(x, name)[fits], theirs.view(np.uint8)[fits])
            np.testing.assert_array_equal(octet.fp8.decode(theirs)[fits], theirs.astype(np.float32)[fits])

    def test_quantized_matrices_follow_the_formula(self):
        x = np.random.default_rng(2).normal(size=(200, 300)).astype(np.float32)
        for block, scale in (("tensor", "quotient"), ("row", "power_of_two"), ((1, 128), "power_of_two"), ((128, 128), "power_of_two"),
                             ((1, 32), "e8m0")):
            q = octet.fp8.quantize(x, block=block, scale=scale)
            rows, cols = (q.block[0] or 200), (q.block[1] or 300)
            for i in range(0, 200, rows):
                for j in range(0, 300, cols):
                    part = x[i:i + rows, j:j + cols]
                    factor = q.descales[i // rows, j // cols]
                    np.testing.assert_array_equal(q.codes[i:i + rows, j:j + cols], octet.fp8.encode(part * np.float32(1 / factor)))
                    self.assertLess(np.abs(part).max() / factor, 464)
            self.assertEqual(q.amax, np.abs(x).max())
            self.assertLess(np.abs(q.dequantize() - x).max(), q.amax / 14)

    def test_layers_in_memory_of_others_have_the_bits_of_octets(self):
        # As octet.torch calls them, without PyTorch: memory of NumPy, values of bfloat16 as float32.
        rng = np.random.default_rng(3)
        x, w, dy = (rng.integers(-128, 128, shape).astype(np.float32) / 64 for shape in ((48, 64), (32, 64), (48, 32)))
        for options in ({"name": "current"}, {"name": "block128"}, {"name": "delayed", "calibration": 0}):
            codec = octet._core.LinearCodec(0, "cpu", 0, [(key, json.dumps(value)) for key, value in options.items()])

            def memory(operand, shape):
                layout = codec.layout(operand, *shape, "float32", True, True)
                made = [np.empty(int(np.prod(size)) * {"uint8": 1, "bfloat16": 2, "float32": 4}[kind], np.uint8) for size, kind, _ in layout.parts]
                kept = [m.ctypes.data for m, part in zip(made, layout.parts) if part[2]]
                return layout, [m.ctypes.data for m in made], kept, made

            (xs, x_at, kept, *x_alive), (ws, w_at, _, *w_alive) = memory("x", (48, 64)), memory("w", (32, 64))
            y, dx, dw, db = (np.empty(shape, np.float32) for shape in ((48, 32), (48, 64), (32, 64), 32))
            codec.forward(0, x.ctypes.data, xs, x_at, w.ctypes.data, ws, w_at, 0, y.ctypes.data, True)
            columns = codec.layout("x", 48, 64, "float32", False, True)
            codec.backward(0, dy.ctypes.data, 48, 32, "float32", 0, columns, kept, 0, ws, w_at, dx.ctypes.data, dw.ctypes.data, "float32", db.ctypes.data, True)
            wanted = octet.fp8.linear(x, w, dy, np.zeros(32), recipe=options)
            np.testing.assert_array_equal(dw, wanted.dw)
            np.testing.assert_array_equal(db, wanted.db)
            for own, rounded in ((y, wanted.y), (dx, wanted.dx)):  # to 8 bits
                self.assertLessEqual(np.abs(own - rounded).max(), np.abs(rounded).max() / 256)
            self.assertEqual(len(codec.state()), 9 if options["name"] == "delayed" else 0)

    def test_refusals(self):
        for call in (lambda: octet.fp8.encode([1.0], "e3m4"), lambda: octet.fp8.decode(np.zeros(3, np.int64)),
                     lambda: octet.fp8.quantize([1.0]), lambda: octet.fp8.quantize([[1.0]], block="cell"),
                     lambda: octet.fp8.quantize([[1.0]], scale="none"), lambda: octet.fp8.quantize(np.zeros((0, 3)))):
            self.assertRaises(octet.ConfigError, call)


def record(folder, kind):
    lines = [json.loads(line) for line in pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line.get("event", line.get("type")) == kind]


def losses(folder):
    return [line["loss"] for line in record(folder, "step")]


def write_ids(path, ids):
    header = json.dumps({"ids": {"dtype": "I64", "shape": [1, len(ids)], "data_offsets": [0, 8 * len(ids)]}}).encode()
    pathlib.Path(path).write_bytes(len(header).to_bytes(8, "little") + header + np.array(ids, "<i8").tobytes())


def read_tensor(path, name):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.chdir(FOLDER)
    make_text()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
