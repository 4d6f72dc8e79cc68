"""A model of Octet for lm-evaluation-harness (package lm-eval of PyPI):

    import lm_eval, lm_eval_octet
    model = lm_eval_octet.OctetLM("runs/current", recipe="current")
    print(lm_eval.simple_evaluate(model, tasks=["lambada_openai"], limit=100)["results"])
"""
import numpy as np
import octet

try:
    from lm_eval.api.model import LM
except ImportError:  # the class also works alone, for requests of one's own
    LM = object


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class OctetLM(LM):
    """Requests have `args`: (context, continuation), (text,) or (context, options), as in lm-evaluation-harness."""

    def __init__(self, folder, **options):
        super().__init__()
        self.model = octet.Model.open(folder, **options)

    def score(self, context, continuation):
        """Log-likelihood of the ids `continuation` after `context`, and whether each is the most likely one. Both lists of ids."""
        kept = (context + continuation)[-(self.model.sequence + 1):]
        scores = log_softmax(self.model.logits(kept[:-1]).astype(np.float64))[-len(continuation):]
        target = np.array(continuation[-len(scores):])
        return float(scores[np.arange(len(target)), target].sum()), bool((scores.argmax(axis=-1) == target).all())

    def loglikelihood(self, requests):
        return [self.of_texts(*request.args) for request in requests]

    def of_texts(self, context, continuation):
        before = self.model.encode(context, document=True)
        together = self.model.encode(context + continuation, document=True)
        if together[:len(before)] != before:  # the tokenizer joins the end of one with the begin of the other
            together = before + self.model.encode(continuation)
        return self.score(together[:len(before)], together[len(before):])

    def loglikelihood_rolling(self, requests):
        return [self.rolling(*request.args) for request in requests]

    def rolling(self, text):
        ids, size, total = self.model.encode(text, document=True), self.model.sequence, 0.0
        for begin in range(1, len(ids), size):
            part = ids[begin:begin + size]
            total += self.score(ids[max(0, begin + len(part) - size - 1):begin], part)[0]
        return total

    def generate_until(self, requests):
        return [self.until(*request.args) for request in requests]

    def until(self, context, options):
        tokens = options.get("max_gen_toks", 128)
        ids = self.model.encode(context, document=True)
        kept = ids[-max(1, self.model.sequence - tokens):]
        prompt = context if len(kept) == len(ids) else self.model.decode(kept)
        return self.model.generate(prompt, tokens=tokens, temperature=options.get("temperature", 0.0), stop=options.get("until", []))
