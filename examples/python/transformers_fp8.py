#!/usr/bin/env python3
"""Fine-tunes a model of transformers with FP8 linear layers, by its Trainer or by Accelerate. One line differs from BF16: convert().

    python transformers_fp8.py FOLDER TEXT... [--loop accelerate] [--recipe current | bf16] [--steps 100] [--seed 1]

FOLDER: a Hugging Face folder with a tokenizer, or "tiny": a random model of 0.2M parameters that reads bytes. Prints the loss of held-out
text after training [nats per token]. Needs transformers, accelerate and octet-train.
"""
import argparse
import itertools
import pathlib

import torch
import transformers
from accelerate import Accelerator

import octet.torch

LENGTH = 64  # tokens per sequence


def load(folder):
    """The model, and a function from text to ids."""
    if folder == "tiny":
        config = transformers.LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=176, num_hidden_layers=3, num_attention_heads=4,
                                          num_key_value_heads=2, max_position_embeddings=LENGTH)
        return transformers.AutoModelForCausalLM.from_config(config), lambda text: list(text.encode())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder), lambda text: tokenizer(text)["input_ids"]


def sequences(ids):
    parts = [torch.tensor(ids[i:i + LENGTH]) for i in range(0, len(ids) - LENGTH + 1, LENGTH)]
    return [{"input_ids": part, "labels": part} for part in parts]


def train_by_trainer(model, train, held_out, options):
    on_gpu = torch.cuda.is_available()
    arguments = transformers.TrainingArguments(
        "trainer", max_steps=options.steps, per_device_train_batch_size=8, per_device_eval_batch_size=8, learning_rate=1e-3,
        gradient_accumulation_steps=2, lr_scheduler_type="cosine", bf16=True, use_cpu=not on_gpu, seed=options.seed, report_to=[],
        save_strategy="no", logging_strategy="no", disable_tqdm=True)
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=held_out)
    trainer.train()
    return trainer.evaluate()["eval_loss"]


def train_by_accelerate(model, train, held_out, options):
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2, cpu=not torch.cuda.is_available())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader, eval_loader = (torch.utils.data.DataLoader(part, batch_size=8, shuffle=part is train) for part in (train, held_out))
    model, optimizer, loader, eval_loader = accelerator.prepare(model, optimizer, loader, eval_loader)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for batch in itertools.islice(batches, 2 * options.steps):
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        return torch.stack([model(**batch).loss for batch in eval_loader]).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--loop", choices=("trainer", "accelerate"), default="trainer")
    parser.add_argument("--recipe", default="current", help="bf16: PyTorch's layers as they are")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    transformers.set_seed(options.seed)
    model, encode = load(options.folder)
    if options.recipe != "bf16":
        octet.torch.convert(model, options.recipe)
    data = sequences(encode("\n".join(pathlib.Path(text).read_text() for text in options.texts)))
    held_out, train = data[::20], [part for i, part in enumerate(data) if i % 20]
    train_it = train_by_trainer if options.loop == "trainer" else train_by_accelerate
    print(f"{options.recipe} {options.loop} seed {options.seed}: held-out loss {train_it(model, train, held_out, options):.5f}")


if __name__ == "__main__":
    main()
