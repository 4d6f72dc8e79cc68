#!/usr/bin/env python3
"""Twenty steps of direct preference optimization by TRL's published formula, for octet/train/step/preferences.test.cpp.

The loss is written as TRL documents its DPOTrainer with loss_type "sigmoid", and label smoothing as in its conservative form; rewards are its
rewards/chosen and rewards/rejected. The model is golden.py's llama, whose weights and optimizer it has; the reference is the model before the
first step, with adapters their base (PEFT's disable_adapter). Each answer is computed behind its question alone, without padding, with eager
attention, all in FP64. A step has all pairs, and its loss is their mean. Lines of the file, for each case:
  # what made it
  case <name> <beta> <label smoothing>
  pairs <tokens of the question> <of the chosen answer> <of the rejected answer> ...    whose ids are draw("pair <i> question"), "... chosen", ...
  peft <adapter_config.json>                                                           with adapters
  step <loss> <reward chosen> <reward rejected> <accuracy> <log p chosen> <log p rejected>    means over pairs, of each of STEPS steps
  gradient <parameter> <shape> <L2 norm> <sum> <largest magnitude> <index>:<value> ...        of the first step, before it is clipped
  trained <parameter> <the same>                                                              the value after all steps

Run: python tests/peers/dpo.py > tests/golden/dpo.txt     (needs torch, transformers, peft and numpy; stored: torch 2.15, transformers 5.24, peft 0.21)
"""
import json

import numpy as np
import peft
import torch
import torch.nn.functional as F
import transformers

import golden
import lora

PAIRS = [(5, 7, 4), (3, 2, 9), (8, 5, 5), (2, 10, 6), (4, 1, 3)]
CASES = [("full", 0.3, 0.1), ("lora", 0.1, 0.0)]


def ids_of(i, part, count):
    return (golden.draw(f"pair {i} {part}", count) % np.uint64(golden.VOCABULARY)).astype(np.int64)


def log_probability(model, question, answer):
    """The sum of the logarithms of the answer's tokens behind the question."""
    tokens = torch.from_numpy(np.concatenate([question, answer]))[None]
    logits = model(input_ids=tokens).logits[0, :-1]
    labels = tokens[0, 1:].clone()
    labels[: len(question) - 1] = -100
    loss_mask = labels != -100
    labels[labels == -100] = 0
    per_token = torch.gather(logits.log_softmax(-1), dim=1, index=labels.unsqueeze(1)).squeeze(1)
    return (per_token * loss_mask).sum()


def log_probabilities(model):
    """Of the chosen and of the rejected answers."""
    out = []
    for i, (question, chosen, rejected) in enumerate(PAIRS):
        q = ids_of(i, "question", question)
        out.append(torch.stack([log_probability(model, q, ids_of(i, "chosen", chosen)), log_probability(model, q, ids_of(i, "rejected", rejected))]))
    return torch.stack(out).unbind(1)


def step_of(model, reference, beta, smoothing):
    chosen, rejected = log_probabilities(model)
    logits = (chosen - rejected) - (reference[0] - reference[1])
    losses = -F.logsigmoid(beta * logits) * (1 - smoothing) - F.logsigmoid(-beta * logits) * smoothing
    chosen_rewards, rejected_rewards = beta * (chosen - reference[0]).detach(), beta * (rejected - reference[1]).detach()
    accuracy = (chosen_rewards > rejected_rewards).double()
    numbers = [t.mean().item() for t in (losses, chosen_rewards, rejected_rewards, accuracy, chosen, rejected)]
    return losses.mean(), numbers


def train(model, named, reference, beta, smoothing, rate, decays):
    trained = [p for _, p in named]
    groups = [dict(params=[p for p in trained if decays(p)], weight_decay=golden.DECAY),
              dict(params=[p for p in trained if not decays(p)], weight_decay=0.0)]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=rate, betas=golden.BETAS, eps=golden.EPS)
    for step in range(golden.STEPS):
        optimizer.zero_grad()
        loss, numbers = step_of(model, reference, beta, smoothing)
        loss.backward()
        print("step", " ".join(f"{x:.12g}" for x in numbers))
        if step == 0:
            for name, p in named:
                print("gradient", golden.line(name, p.grad))
        torch.nn.utils.clip_grad_norm_(trained, golden.CLIP)
        optimizer.step()
    for name, p in named:
        print("trained", golden.line(name, p.detach()))


def case(name, beta, smoothing):
    model = lora.base_of("llama")
    print(f"# tests/peers/dpo.py: TRL's formula, PEFT {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}, in FP64 on the CPU")
    print("case", name, beta, smoothing)
    print("pairs", " ".join(str(n) for pair in PAIRS for n in pair))
    if name == "full":
        model = model.to(torch.float64)
        with torch.no_grad():
            reference = log_probabilities(model)
        train(model, list(model.named_parameters()), reference, beta, smoothing, golden.RATE, lambda p: p.ndim > 1)
        return
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=lora.LAYERS, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, config).eval()
    with torch.no_grad():
        for tensor, p in model.named_parameters():
            if p.requires_grad:
                p.copy_(torch.zeros_like(p) if "lora_B" in tensor else golden.start(lora.tensor_name(tensor), tuple(p.shape)))
    print("peft", json.dumps(lora.written_config(model)))
    model = model.to(torch.float64)
    with torch.no_grad(), model.disable_adapter():
        reference = log_probabilities(model)
    named = [(lora.tensor_name(tensor), p) for tensor, p in model.named_parameters() if p.requires_grad]
    train(model, named, reference, beta, smoothing, golden.RATE, lambda p: True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for arguments in CASES:
        case(*arguments)
