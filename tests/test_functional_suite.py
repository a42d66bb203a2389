"""The recorded functional suite on runtimes that no paper tested: which of its 79 programs complete."""

from __future__ import annotations

from cases import for_each

from retrompi.papers.experiments import suite

ARCHIVE = "ibm-suite.tar.zst"


@for_each(
    "model, platform, failing",
    [
        ("cheui", "ibm-sp1*8@sp1-switch", ()),
        # It was recorded as a nonblocking send of 8000 B instead of a buffered one, and MPI-F asks above 4 KiB.
        ("mpif", "ibm-sp1*8@sp1-switch", ("ibm-pt2pt-bsend_free",)),
        ("mpichgm", "myrinet-piii", ()),
        ("ntmpich", "nt-cluster", ()),
        ("chnt", "nt-cluster", ()),
    ],
)
def test_programs_complete(model: str, platform: str, failing: tuple[str, ...]) -> None:
    outcomes = {run: suite.outcome_of(model, platform, "distributed", trace, []) for run, trace in suite.runs_of(ARCHIVE).items()}
    told = suite.summary(outcomes)
    assert told["programs"] == 79
    assert tuple(told["failing"]) == failing, told["ends"]
