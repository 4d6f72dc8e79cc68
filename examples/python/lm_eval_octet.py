"""A model of Octet for lm-evaluation-harness (package lm-eval of PyPI), from Python or from the command line:

    import lm_eval, lm_eval_octet
    model = lm_eval_octet.OctetLM("runs/current", recipe="current")
    print(lm_eval.simple_evaluate(model, tasks=["lambada_openai"], limit=100)["results"])

    python lm_eval_octet.py --model octet --model_args folder=runs/current,recipe=current --tasks lambada_openai --limit 100
"""
import numpy as np
import octet

try:
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
except ImportError:  # the class also works alone, for requests of one's own
    LM, register_model = object, lambda name: lambda model: model


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@register_model("octet")
class OctetLM(LM):
    """Requests have `args`: (context, continuation), (text,) or (context, options), as in lm-evaluation-harness, and are counted as its
    model of transformers counts them. `options` are those of octet.Model.open; texts of more than `sequence` tokens lose the first ones.
    The harness's command line gives a batch size, too: texts are scored one by one whatever it is."""

    def __init__(self, folder, batch_size=1, max_batch_size=None, **options):
        super().__init__()
        if str(options.get("device", "")).startswith("cuda"):
            options["device"] = "auto"  # the default of the command line, also where there is no GPU
        self.model = octet.Model.open(folder, **options)
        self.begin = self.model.empty_context

    def encode(self, text):
        """Ids with those that the tokenizer's template adds, unless the text begins with the begin token."""
        ids = self.model.encode(text)
        return ids if ids[:1] == [self.begin] else self.model.encode(text, document=True)

    def score(self, context, continuation):
        """Log-likelihood of the ids `continuation` after `context`, and whether each is the most likely one. Both lists of ids."""
        if not 1 <= len(continuation) <= self.model.sequence:
            raise ValueError(f"a continuation has {len(continuation)} tokens; the model scores 1 to {self.model.sequence}")
        kept = (context + continuation)[-(self.model.sequence + 1):]
        scores = log_softmax(self.model.logits(kept[:-1]).astype(np.float64))[-len(continuation):]
        target = np.array(continuation)
        return float(scores[np.arange(len(target)), target].sum()), bool((scores.argmax(axis=-1) == target).all())

    def loglikelihood(self, requests):
        return [self.of_texts(*request.args) for request in requests]

    def of_texts(self, context, continuation):
        if context == "":
            after = self.model.encode(continuation)
            return self.score([self.begin], after) if after[:1] != [self.begin] else self.score(after[:1], after[1:])
        together, before = self.encode(context + continuation), self.encode(context.rstrip())
        return self.score(together[:len(before)], together[len(before):])  # blanks at the end of the context belong to the continuation

    def loglikelihood_rolling(self, requests):
        return [self.rolling(*request.args) for request in requests]

    def rolling(self, text):
        ids, size, total = [self.begin] + self.encode(text), self.model.sequence, 0.0
        for begin in range(1, len(ids), size):
            part = ids[begin:begin + size]
            total += self.score(ids[max(0, begin + len(part) - size - 1):begin], part)[0]
        return total

    def generate_until(self, requests):
        return [self.until(*request.args) for request in requests]

    def until(self, context, options):
        tokens, stops = options.get("max_gen_toks", 256), options.get("until") or []
        if tokens >= self.model.sequence:
            raise ValueError(f"max_gen_toks = {tokens} leaves no place for the context in {self.model.sequence} tokens")
        stops = [s for s in ([stops] if isinstance(stops, str) else stops) if s]
        sampling = {key: options[key] for key in ("top_k", "top_p") if key in options}
        temperature = options.get("temperature", 0.0) if options.get("do_sample", True) else 0.0
        prompt = self.encode(context)[-(self.model.sequence - tokens):]
        text = self.model.decode(self.model.generate(prompt, tokens=tokens, temperature=temperature, stop=stops, **sampling))
        for stop in stops:
            text = text.split(stop)[0]
        return text


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate
    cli_evaluate()
