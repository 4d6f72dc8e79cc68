#!/usr/bin/env python3
"""Holds `octet eval --task` and examples/python/lm_eval_octet.py against lm-evaluation-harness, on tiny models and questions made here.

    python tests/peers/tasks.py --octet build/cpu/octet     compares; the module `octet` too, where PYTHONPATH has it
    python tests/peers/tasks.py --golden tests/golden/tasks.jsonl    writes what tests/tasks.test.cpp compares with

Needs lm_eval with its model of transformers (pip install torch transformers accelerate lm_eval); exit code 77: they are missing. Stored:
lm_eval 0.4.13, transformers 5.24, torch 2.15. The prompts are those of the package's own tasks hellaswag, arc_easy and mmlu_anatomy, whose
data is replaced by files. The harness computes in FP64. Models are of the family llama, with weights of golden.py's formula; the first
tokenizer begins each text with a token, the second does not and knows such a token, the third has an end token alone.

Lines of the golden file: one of the model; one per tokenizer with the keys that differ; and one per task with its questions, the
log-likelihoods of their choices, and the shares.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
try:
    import lm_eval
    import torch
    import transformers
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
except ImportError as missing:
    print(f"SKIPPED: {missing}; pip install torch transformers accelerate lm_eval")
    sys.exit(77)
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

import golden

HERE = pathlib.Path(__file__).resolve().parent
CONTEXT, QUESTIONS, MERGES = 160, 8, 40
WORDS = ("the of include return value int const text name file line über Ärger Étude naïve жук 狐 🙂 can't it's 12 3.14 <s> (a) x_y "
         "Question Answer cook pan water").split()
SPACES = [" ", " ", " ", " ", "  ", "\u00a0", "\n", "\t"]
MARKS = ["[header]", "[title]", "[step]", "[substeps]", " [title]", "[a\nb]", "["]
# tokenizer_config.json of each tokenizer, and whether its template begins texts with <s>.
TOKENIZERS = {"begins": (dict(bos_token="<s>", eos_token="</s>"), True),
              "knows": (dict(bos_token="<s>", eos_token="</s>"), False),
              "ends": (dict(eos_token="</s>"), False)}


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator([" ".join(WORDS) * 3], trainer)
    made.add_special_tokens([AddedToken(t, special=True) for t in ("<s>", "</s>")])
    return json.loads(made.to_str())


def with_template(source):
    begin = next(t["id"] for t in source["added_tokens"] if t["content"] == "<s>")
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = single + [{"Sequence": {"id": "B", "type_id": 1}}]
    return dict(type="TemplateProcessing", single=single, pair=pair, special_tokens={"<s>": dict(id="<s>", ids=[begin], tokens=["<s>"])})


class Questions:
    """Random questions of each form, with what is hard to count: marks, blanks of all kinds at the ends, choices of several lengths in
    characters and bytes, no context, and more tokens than the model takes."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, least, most):
        pick = self.random
        return "".join(pick.choice(WORDS) + pick.choice(SPACES) for _ in range(pick.randint(least, most)))

    def marked(self, least, most):
        text = self.text(least, most)
        at = self.random.randint(0, len(text))
        return text[:at] + self.random.choice(MARKS) + text[at:] if self.random.random() < 0.6 else text

    def choices(self, count, make):
        return [make(1, 5) for _ in range(count)]

    def hellaswag(self):
        return dict(activity_label=self.text(1, 2), ctx_a=self.marked(2, 9), ctx_b=self.random.choice(["", self.marked(1, 4)]),
                    endings=self.choices(4, self.marked), label=str(self.random.randrange(4)))

    def arc(self):
        n = self.random.randint(3, 5)
        labels = list("ABCDE"[:n]) if self.random.random() < 0.5 else [str(i + 1) for i in range(n)]
        return dict(question=self.text(3, 12), choices=dict(text=self.choices(n, self.text), label=labels),
                    answerKey=self.random.choice(labels))

    def mmlu(self):
        return dict(question=self.text(2, 6), subject="anatomy", choices=self.choices(4, self.text), answer=self.random.randrange(4))

    def plain(self):
        return dict(context=self.random.choice(["", self.text(1, 8), "<s>" + self.text(1, 3), self.text(60, 80), self.text(2, 3) + "  "]),
                    choices=self.choices(3, self.text), answer=self.random.randrange(3))


TASKS = {
    "hellaswag": dict(include="hellaswag/hellaswag.yaml", validation_split="test", training_split=None),
    "arc": dict(include="arc/arc_easy.yaml", training_split=None, validation_split=None),
    "mmlu": dict(include="mmlu/default/mmlu_anatomy.yaml", fewshot_split=None, tag=None,
                 metric_list=[dict(metric=m, aggregation="mean", higher_is_better=True) for m in ("acc", "acc_norm")]),
    "plain": dict(output_type="multiple_choice", doc_to_text="{{context}}", doc_to_choice="{{choices}}", doc_to_target="{{answer}}",
                  metric_list=[dict(metric=m, aggregation="mean", higher_is_better=True) for m in ("acc", "acc_norm")]),
}


def write_tasks(place, questions):
    """Files of questions, and a task of the harness for each."""
    tasks = pathlib.Path(lm_eval.__file__).parent / "tasks"
    for name, keys in TASKS.items():
        (place / f"{name}.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions[name]))
        keys = keys | dict(task=f"local_{name}", dataset_path="json", dataset_name=None, test_split="test",
                           dataset_kwargs=dict(data_files=dict(test=str(place / f"{name}.jsonl"))))
        if "include" in keys:
            keys["include"] = str(tasks / keys["include"])
        (place / f"{name}.yaml").write_text(json.dumps(keys))  # JSON is YAML


def write_model(folder, source, kind):
    settings, begins = TOKENIZERS[kind]
    vocabulary = len(source["model"]["vocab"]) + 2
    sizes = golden.SIZES | dict(vocab_size=vocabulary, max_position_embeddings=CONTEXT)
    config = transformers.LlamaConfig(**sizes, rms_norm_eps=1e-5, tie_word_embeddings=False,
                                      rope_parameters=dict(rope_type="default", rope_theta=10000.0))
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(golden.start(name, parameter.shape))
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(source | (dict(post_processor=with_template(source)) if begins else {})))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | dict(tokenizer_class="PreTrainedTokenizerFast")))
    return model


def shares(samples):
    return [sum(s[m] for s in samples) / len(samples) for m in ("acc", "acc_norm")]


def evaluate(model, place):
    """Of each task: the log-likelihoods of its questions, and acc and acc_norm."""
    out = lm_eval.simple_evaluate(model=model, tasks=[f"local_{name}" for name in TASKS], num_fewshot=0, log_samples=True, bootstrap_iters=0,
                                  task_manager=TaskManager(include_path=str(place), include_defaults=False))
    found = {}
    for name in TASKS:
        samples = sorted(out["samples"][f"local_{name}"], key=lambda s: s["doc_id"])
        results = out["results"][f"local_{name}"]
        found[name] = dict(log_likelihoods=[[ll for ll, *_ in s["filtered_resps"]] for s in samples], shares=shares(samples))
        assert abs(results["acc,none"] - found[name]["shares"][0]) < 1e-12 and abs(results["acc_norm,none"] - found[name]["shares"][1]) < 1e-12
    return found


def harness(folder):
    return HFLM(pretrained=str(folder), device="cpu", dtype="float64", softmax_dtype="float64", batch_size=1)


def of_octet(octet, folder, place):
    found = {}
    for name in TASKS:
        shown = subprocess.run([octet, "eval", folder, "--task", place / f"{name}.jsonl", "--recipe", "fp32", "--device", "cpu", "--answers",
                                place / "answers.jsonl"], check=True, capture_output=True, text=True).stdout.split()
        lines = [json.loads(line) for line in (place / "answers.jsonl").read_text().splitlines()]
        found[name] = dict(log_likelihoods=[line["log_likelihoods"] for line in lines],
                           shares=[float(shown[shown.index(word) + 1]) for word in ("acc", "acc_norm")])
    return found


def differences(ours, theirs):
    """The largest difference of a log-likelihood, and the tasks whose shares differ."""
    most = 0.0
    for name in TASKS:
        for a, b in zip(ours[name]["log_likelihoods"], theirs[name]["log_likelihoods"], strict=True):
            most = max([most] + [abs(x - y) for x, y in zip(a, b, strict=True)])
    return most, [n for n in TASKS if any(abs(a - b) > 5e-5 for a, b in zip(ours[n]["shares"], theirs[n]["shares"]))]


def with_class(folder, theirs, place):
    """The class over the module `octet`: the same tasks, rolling likelihoods and greedy text."""
    try:
        import octet  # noqa: F401
    except ImportError:
        print("  the module octet is missing: its class is not compared")
        return True
    sys.path.insert(0, str(HERE.parents[1] / "examples" / "python"))
    from lm_eval.api.instance import Instance
    from lm_eval_octet import OctetLM
    ours, peer = OctetLM(str(folder), recipe="fp32", device="cpu"), harness(folder)
    most, wrong = differences(evaluate(ours, place), theirs)
    texts = ["", "Water", Questions(3).text(20, 30), Questions(4).text(120, 140)]
    rolling = [Instance("loglikelihood_rolling", {}, (text,), i) for i, text in enumerate(texts) if text]
    rolled = max(abs(a - b) for a, b in zip(ours.loglikelihood_rolling(rolling), peer.loglikelihood_rolling(rolling), strict=True))
    options = [dict(until=["\n"], max_gen_toks=20), dict(until=["e", "the"], max_gen_toks=12), dict(until=[], max_gen_toks=9)]
    asked = [Instance("generate_until", {}, (text, dict(o, do_sample=False, temperature=0.0)), i) for i, text in enumerate(texts) if text
             for o in options]
    texts_differ = sum(a != b for a, b in zip(ours.generate_until(asked), peer.generate_until(asked), strict=True))
    good = most <= BOUND and not wrong and rolled <= 10 * BOUND and texts_differ == 0
    print(f"  class: log-likelihoods {most:.1e}, rolling {rolled:.1e}, shares that differ {wrong or 0}, texts that differ {texts_differ}: "
          f"{'good' if good else 'FAILED'}")
    return good


BOUND = 1e-4  # FP32 against FP64, sums of up to 30 tokens


def compare(octet, place, source, questions):
    write_tasks(place, questions)
    good = True
    for kind in TOKENIZERS:
        folder = place / kind
        write_model(folder, source, kind)
        theirs = evaluate(harness(folder), place)
        most, wrong = differences(of_octet(octet, folder, place), theirs)
        fine = most <= BOUND and not wrong
        print(f"{kind}: {sum(len(q) for q in questions.values())} questions, log-likelihoods differ by at most {most:.1e}, shares that differ "
              f"{wrong or 0}: {'good' if fine else 'FAILED'}", flush=True)
        good = with_class(folder, theirs, place) and fine and good
    return good


def write_golden(path, place, source, questions):
    write_tasks(place, questions)
    lines = []
    for kind in TOKENIZERS:
        folder = place / kind
        model = write_model(folder, source, kind)
        found = evaluate(harness(folder), place)
        if not lines:
            tensors = {name: list(p.shape) for name, p in model.named_parameters()}
            config = {k: v for k, v in json.loads((folder / "config.json").read_text()).items() if v is not None}
            with torch.no_grad():
                largest = model.double()(torch.arange(CONTEXT)[None]).logits.abs().max().item()
            lines.append(dict(config=config, tokenizer=source, tensors=tensors, largest_logit=largest))
        tokenizer_keys = dict(post_processor=with_template(source)) if TOKENIZERS[kind][1] else {}
        lines.append(dict(kind=kind, tokenizer_config=TOKENIZERS[kind][0], tokenizer=tokenizer_keys))
        for name in TASKS:
            lls = [[round(x, 6) for x in sums] for sums in found[name]["log_likelihoods"]]
            lines.append(dict(task=name, log_likelihoods=lls, shares=found[name]["shares"])
                         | (dict(questions=questions[name]) if kind == "begins" else {}))
    pathlib.Path(path).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--octet")
    parser.add_argument("--golden", help="write this file")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="per form")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    make = Questions(options.seed)
    questions = {name: [getattr(make, name)() for _ in range(options.questions)] for name in TASKS}
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["HF_DATASETS_CACHE"] = temporary
        place = pathlib.Path(temporary)
        if options.golden:
            write_golden(options.golden, place, tokenizer(), questions)
            return
        print(f"lm_eval {lm_eval.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
        sys.exit(0 if compare(str(pathlib.Path(options.octet).resolve()), place, tokenizer(), questions) else 1)


if __name__ == "__main__":
    main()
