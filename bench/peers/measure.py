"""What both peers print: one JSON line, then a table."""

import json
import statistics


def spread(samples):
    """Median and quartiles of seconds."""
    q = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    return {"seconds": q[1], "seconds_low": q[0], "seconds_high": q[2]}


def show(facts, rows):
    print(json.dumps({**facts, "rows": rows}))
    print("; ".join(f"{k} {v}" for k, v in facts.items()))
    names = list(rows[0])
    cells = [names] + [[f"{v:,.4g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v) for v in r.values()] for r in rows]
    width = [max(len(line[c]) for line in cells) for c in range(len(names))]
    for line in cells:
        print("  ".join(text.ljust(width[c]) if c < 3 else text.rjust(width[c]) for c, text in enumerate(line)))
