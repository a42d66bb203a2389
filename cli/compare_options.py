"""The options of ``retrompi compare``, which its three kinds of comparison share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option
from retrompi.cli.options import (
    Effort,
    Overrides,
    SeedOption,
    Uncertain,
    Workers,
    complete_model,
    complete_platform,
    output_option,
    ranks_option,
)

__all__ = ["CompareOptions", "split"]


def split(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """The callback of an option that takes a list separated by commas."""
    return None if value is None else tuple(part.strip() for part in value.split(",") if part.strip())


def _ids(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(",")) if value else ()
    except ValueError:
        raise UsageError(
            f"--runs {value}: the numbers of runs, e.g. --runs 12,13,14 ('retrompi runs list' has them)", code="bad-syntax"
        ) from None


@dataclass(frozen=True)
class CompareOptions(Uncertain, Overrides, SeedOption, Workers, Effort):
    """Options of ``retrompi compare``."""

    ranks: int = ranks_option(default=2)
    model: str | None = option(
        "Runtime model: of the backends smpi and model.", "-m", "--model", metavar="NAME|FOLDER", shell_complete=complete_model)
    platform: str | None = option(
        "Platform: of the backends smpi and model (default: the model's own).",
        "-p", "--platform", metavar="NAME|FILE", shell_complete=complete_platform)
    mode: str | None = option(
        "Placement of the ranks: as for 'retrompi replay' (default: shared if there is a native run).", metavar="MODE")
    backends: tuple[str, ...] | None = option(
        "Two or three of native,smpi,model, separated by commas (default: all).", metavar="LIST", callback=split)
    mpi: str | None = option("MPI library: of native runs (default: MPICH if installed, else Open MPI).", metavar="mpich|openmpi")
    repetitions: int = option(
        "Number of native runs to measure; their spread is the noise band.", "-r", "--repetitions", type=click.IntRange(1), default=10)
    trace_from: Literal["native", "smpi"] | None = option("Backend whose recording the model replays (default: native, else smpi).")
    models: tuple[str, ...] | None = option(
        "Runtimes: compare these on one scenario, trace or generator, e.g. wmpi,winmpich,hpvm; all: every one.", metavar="LIST",
        callback=split)
    platforms: tuple[str, ...] | None = option(
        "With --models: compare on each of these platforms, that of -p first; all: every one; own: those that the runtimes are calibrated "
        "on. With --networks also hosts of the library.", metavar="LIST", callback=split)
    networks: tuple[str, ...] | None = option(
        "With --platforms: join each host of the library among them by each of these networks, as many as the ranks need.", metavar="LIST",
        callback=split)
    metrics: tuple[str, ...] = option(
        "Quantity: with --models, a further column, e.g. time@1MiB (repeatable).", "--metric", metavar="METRIC")
    runs: tuple[int, ...] = option("Compare stored runs instead of running a program.", metavar="ID,ID[,ID]", callback=_ids)
    suite: bool = option("Compare the collectives and the example programs in one table of held-out results.")
    only: tuple[str, ...] = option("With --suite: only this program or group (repeatable).", metavar="NAME")
    within: str | None = option("Exit code 1 if errors exceed this bound: 10% (median) or median=5%,p95=15%.", metavar="BOUND")
    full: bool = option("Print all of it instead of a summary: every pair, its reason and its cautions.", "--full")
    out: Path | None = output_option("the comparison, as a page, figures or numbers", "html", "svg", "png", "csv", "json")
    fidelity: Literal["mechanism", "curve", "loggp"] | None = option(
        "Level of detail: of the model (default: curve if SMPI is compared, since it runs the sampled curve; else mechanism).")
