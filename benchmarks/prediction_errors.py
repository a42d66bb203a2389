"""The errors of held-out times and rates, for validate/predictions/errors.csv (its README says what they are good for).

    retrompi validate --all --json > verdicts.json
    python benchmarks/prediction_errors.py verdicts.json

A row is a held-out statement that gives a time or a rate of messages or of a program; counts, sizes, ratios and speed-ups (ratios of listed
times) are left out, as are the Rinf1 loops, which send nothing. The published number is the middle of the range it is read as.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from retrompi.papers.predict import predictions

UNITS = ("us", "ms", "s", "KByte/s", "MByte/s", "GByte/s")


def main(file: str) -> None:
    """Writes errors.csv and prints the factor that nine of ten rows stay within."""
    rows = []
    for v in json.loads(Path(file).read_text(encoding="utf-8")):
        if v["use"] == "validate" and v["unit"] in UNITS and isinstance(v["observed"], float) and v["low"] and v["high"]:
            middle = round((v["low"] + v["high"]) / 2, 6)
            rows.append({"claim": v["id"], "simulated": v["observed"], "published": middle, "unit": v["unit"]})
    to = predictions.folder() / "errors.csv"
    with to.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ("claim", "simulated", "published", "unit"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows; nine of ten within a factor of {predictions.held_out_error(to):.3g}")


if __name__ == "__main__":
    main(sys.argv[1])
