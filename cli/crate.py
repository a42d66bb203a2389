"""``retrompi crate``: a paper or a study with all of its evidence, as a Workflow Run RO-Crate."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import Option, debug_option, option, options
from retrompi.cli.options import StoreOutput, Uncertain, Workers, ends_in, progress
from retrompi.cli.output import Column, Output, as_text, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.crate.record import CrateRecord
    from retrompi.store import Store

LICENSE = "https://spdx.org/licenses/LGPL-2.1-or-later"
_ADDRESS = re.compile(r"https?://[^\s\"<>]{3,200}")
_HOUSE = re.compile(r"([^<>]*?)(?: ?<(https?://[^\s\"<>]{3,200})>)?")
_ORCID = re.compile(r"(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")

WRITTEN = (Column("crate", "crate"), Column("files", "files", right=True), Column("runs", "runs", right=True),
           Column("bytes", "bytes", right=True), Column("digest", "digest"))
FINDINGS = (Column("file", "file"), Column("what", "what"))
ABOUT = (Column("what", "what"), Column("value", "value", as_text))
STATEMENTS = (Column("id", "id"), Column("use", "use"), Column("verdict", "verdict"), Column("statement", "statement"),
              Column("observed", "simulated"), Column("runs", "runs"), Column("functions", "judged by"))
POINTS = (Column("position", "point", right=True), Column("axes", "axes"), Column("outcome", "outcome"), Column("run", "run", right=True),
          Column("time_s", "time_s", right=True))


@click.group()
@debug_option
def command() -> None:
    """Pack a paper or a study with its evidence, or verify such a crate.

    A crate is a Workflow Run RO-Crate: published statements, parameters with their sources and intervals, code by hash, runs, results and
    verdicts, for people (a page) and for programs (RO-Crate, PROV, CodeMeta, CSV). What is verified is every byte, and every number by
    simulating it again.

    \b
    Examples:
      retrompi crate write krishna-2010 -o krishna.zip
      retrompi crate verify krishna.zip
      retrompi crate show krishna.zip KB-08
    """


@dataclass(frozen=True)
class WriteOptions(Uncertain, Workers):
    """Options of ``retrompi crate write``."""

    agent: str = option("Person who made the runs (default: the name of this account).", default="", metavar="NAME")
    orcid: str = option("ORCID of that person.", default="", metavar="ID")
    organization: str = option("Organization of that person, which publishes the crate.", default="", metavar="'NAME <URL>'")
    license: str = option("Address of the licence of the crate.", default=LICENSE, metavar="URL")


@dataclass(frozen=True)
class WriteOutput(StoreOutput):
    """The output's format, the store, and whether stored runs are used; a crate is rebuilt with the engine's own network alone."""

    fresh: bool = option("Simulate even when an identical run is stored.")


@command.command("write")
@click.argument("what", metavar="PAPER|STUDY")
@click.option(
    "-o",
    "--output",
    "file",
    cls=Option,
    aliases=("--out",),
    required=True,
    metavar="CRATE",
    type=click.Path(path_type=Path),
    callback=ends_in("zip", or_folder=True),
    help="Where to write: a new .zip file or a new folder.",
)
@options(given=WriteOptions, output=WriteOutput)
def write(what: str, file: Path, given: WriteOptions, output: WriteOutput) -> None:
    """Write the crate of a paper or of a stored study.

    PAPER is the key of one of retrompi's papers or the folder of your own; its runs are found in the store or simulated. STUDY is the
    number, the name or the beginning of a hash of a study that has been run. Prints the crate's digest: publish it elsewhere, and
    'retrompi crate verify --digest' tells this crate from any other. --uncertainty adds what the draws of a paper's parameters say; a
    study's draws are in its definition.

    \b
    Examples:
      retrompi crate write krishna-2010 -o krishna.zip
      retrompi crate write mpptest-1994 -o mpptest.zip --uncertainty 90% --draws 20
      retrompi crate write ./mypaper -o mypaper-crate --agent "J. Doe" --orcid 0000-0002-1825-0097
      retrompi crate write proxy-cost -o proxy-cost-crate.zip
    """
    from retrompi.crate import container, derive, record
    from retrompi.crate.verify import digest_of

    if file.exists() and (file.is_file() or any(file.iterdir())):
        raise UsageError(f"{file} exists; choose another name", code="exists-already")
    about = _circumstances(given)
    store = output.open()
    made, ids = _make_record(what, store, given, output)
    for line in made.notes:
        click.echo(f"note: {line}", err=True)
    files = derive.complete(made.record, record.circumstances(about, [store.run(i) for i in ids], datetime.now(UTC)), made.inputs)
    container.write(files, file)
    row = {"crate": str(file), "files": len(files), "runs": len(ids), "bytes": sum(map(len, files.values())), "digest": digest_of(files)}
    if not output.text:
        output.emit([row], WRITTEN)
        return
    say(f"{row['files']} files, {row['bytes']} B, {row['runs']} runs: {file}")
    say(f"digest {row['digest']}")


def _circumstances(given: WriteOptions) -> Any:
    from retrompi.crate.record import Circumstances

    orcid = _ORCID.fullmatch(given.orcid)
    if given.orcid and orcid is None:
        raise UsageError(f"--orcid: '{given.orcid[:60]}' is no ORCID; one is 0000-0002-1825-0097", code="bad-syntax")
    if not _ADDRESS.fullmatch(given.license):
        raise UsageError(f"--license: '{given.license[:60]}' is no address; one is {LICENSE}", code="bad-syntax")
    try:
        agent = given.agent.strip() or getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        agent = "unknown"
    address = f"https://orcid.org/{orcid[1]}" if orcid else ""
    house = _HOUSE.fullmatch(" ".join(given.organization.split()))
    if house is None:
        raise UsageError("--organization is a name, or a name and an address: 'A House <https://ror.org/...>'", code="bad-syntax")
    return Circumstances(" ".join(agent.split()), given.license, address, house[1], house[2] or "")


def _make_record(what: str, store: Store, given: WriteOptions, output: WriteOutput) -> tuple[CrateRecord, list[int]]:
    """The record of a paper, replayed, or of a stored study; and the ids of its runs."""
    from retrompi.base.errors import nearest
    from retrompi.base.files import is_dir
    from retrompi.crate import record
    from retrompi.papers import all_papers, run_papers
    from retrompi.papers.reproduce.agreement import with_agreement
    from retrompi.papers.reproduce.reproduction import WORKERS
    from retrompi.papers.statements.paper import working_with
    from retrompi.studies.read import stored_study

    spec, workers = given.spec(), given.jobs or WORKERS
    if what in all_papers() or is_dir(what):
        with working_with(what) as plans, progress(plans[0].key) as report:
            done = run_papers([plans[0].key], store, output.fresh, report, workers=workers)[0]
            if spec is not None:
                done = with_agreement([done], store, spec, report, fresh=output.fresh, workers=workers)[0]
            return record.of_paper(done, store), list(done.runs)
    try:
        found = stored_study.read(store, what, together=True)
    except UsageError as error:
        if error.code != "unknown-study":
            raise
        raise UsageError(f"no paper and no stored study '{what[:80]}'{nearest(what, all_papers())}; 'retrompi study list' has the studies",
                         code="unknown-study") from None
    if spec is not None:
        raise UsageError("--uncertainty is for a paper; the draws of a study are in its definition: 'retrompi sweep --uncertainty'",
                         code="conflicting-options")
    ids = list(dict.fromkeys(r["run_id"] for r in found.rows if r["run_id"] is not None))
    return record.of_study(found, record.study_intervals(store, int(found.study["id"]))), ids


@dataclass(frozen=True)
class VerifyOptions(Workers):
    """Options of ``retrompi crate verify``."""

    digest: str = option("Digest that 'crate write' printed: the crate must be that one.", default="", metavar="SHA256")
    files_only: bool = option("Compare the files alone: nothing is simulated.")
    trust: bool = option("Run the Python code in it: models of its own that are in the crate.")


@command.command("verify")
@click.argument("crate", metavar="CRATE", type=click.Path(path_type=Path))
@options(given=VerifyOptions, output=Output)
@click.pass_context
def verify(ctx: click.Context, crate: Path, given: VerifyOptions, output: Output) -> None:
    """Verify a crate: every byte of it, and every number by simulating it again.

    CRATE is a folder or a .zip file. Needed are the crate and this retrompi, no network and no store. Each file is compared with the
    manifest, each file that follows from the record is made again and compared byte for byte, and each run is simulated again. Exit code 1
    if anything is found. --digest tells the crate from another one that is consistent in itself.

    \b
    Examples:
      retrompi crate verify krishna.zip
      retrompi crate verify krishna-folder --files-only --json
    """
    from retrompi.crate.verify import Rebuild
    from retrompi.crate.verify import verify as verified
    from retrompi.papers.reproduce.reproduction import WORKERS

    if given.digest and not re.fullmatch("[0-9a-fA-F]{64}", given.digest):
        raise UsageError("--digest is the SHA-256 that 'retrompi crate write' printed: 64 hexadecimal digits", code="bad-syntax")
    with progress(crate.name) as report:
        rebuild = None if given.files_only else Rebuild(given.trust, given.jobs or WORKERS, report)
        told = verified(crate, digest=given.digest, rebuild=rebuild)
    rows: list[dict[str, Any]] = [{"file": f.file, "what": f.what} for f in told.findings]
    if output.as_json:
        print_json({"crate": str(crate), "digest": told.digest, "files": told.files, "runs": told.runs, "numbers": told.numbers,
                    "findings": rows, "remarks": told.remarks})
    elif output.as_csv:
        output.emit(rows, FINDINGS)
    else:
        for line in told.remarks:
            say(f"note: {line}", err=True)
        for row in rows:
            say(f"{row['file']}: {row['what']}" if row["file"] else row["what"])
        if not rows:
            done = "" if given.files_only else f", {told.runs} runs simulated again, {told.numbers} numbers are equal"
            say(f"nothing found: {told.files} files{done}")
            say(f"digest {told.digest}")
    if rows:
        ctx.exit(1)


@command.command("show")
@click.argument("crate", metavar="CRATE", type=click.Path(path_type=Path))
@click.argument("statement", metavar="[STATEMENT]", required=False)
@options(output=Output)
def show(crate: Path, statement: str | None, output: Output) -> None:
    """Show what a crate says, or the way from one of its statements to the verdict.

    Nothing is verified but the hashes, and nothing is simulated.

    \b
    Examples:
      retrompi crate show krishna.zip
      retrompi crate show krishna.zip KB-08
    """
    from retrompi.base.errors import InputError, nearest
    from retrompi.crate.verify import open_crate

    told, wrong = open_crate(crate)
    if wrong:
        where = f"{wrong[0].file}: " if wrong[0].file else ""
        raise InputError(f"is damaged: {where}{wrong[0].what}; 'retrompi crate verify' lists all", crate, code="damaged-file")
    try:
        if statement is not None:
            known = {s["id"]: s for s in told.record["statements"]}
            if statement not in known:
                raise UsageError(f"no statement '{statement[:60]}' in this crate{nearest(statement, known)}", code="unknown-claim")
            rows = _way(told.record, known[statement])
            output.emit(rows, ABOUT, keys=("what", "value"))
            return
        rows, columns = _listing(told.record)
        head = _head(told.record, told.circumstances)
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise InputError(f"its record is none: {type(error).__name__}: {error}", crate, code="bad-crate") from None
    if output.as_json:
        print_json({"about": head, "rows": rows})
        return
    if output.text:
        print_table([{"what": k, "value": v} for k, v in head.items()], ABOUT, "")
        say("")
    output.emit(rows, columns)


def _head(record: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": record["kind"], "name": record["name"], "title": record["title"], "retrompi": record["software"]["code_version"],
            "made": about["created"], "by": about["agent"], "license": about["license"], "runs": len(record["runs"]),
            "statements": len(record["statements"])}


def _listing(record: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[Column, ...]]:
    from retrompi.render.document.html import ranges

    if record["statements"]:
        rows = [{"id": s["id"], "use": s["use"], "verdict": s["verdict"]["word"],
                 "statement": f"{s['observable']}: {s['value']} {s['unit']}",
                 "observed": s["verdict"]["observed"], "runs": ranges(s["runs"]),
                 "functions": ", ".join(f["name"].removeprefix("retrompi.papers.") for f in s["functions"])}
                for s in record["statements"]]
        return rows, STATEMENTS
    times = {r["run"]: r["time_s"] for r in record["runs"]}
    return [{"position": r["position"], "axes": ", ".join(f"{k}={v}" for k, v in r["axes"].items()), "outcome": r["outcome"],
             "run": r["run"],
             "time_s": times.get(r["run"])} for r in record["rows"]], POINTS


def _way(record: Mapping[str, Any], told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """From the sentence to the parameters, the code, the runs and the verdict, a row for each station."""
    verdict = told["verdict"]
    rows: list[tuple[str, Any]] = [
        ("statement", f"{told['observable']}: {told['value']} {told['unit']}"),
        ("printed", f"{told['where']}; {told['system']}; {told['configuration']}"),
        ("use", told["use"]),
    ]
    runs = [r for r in record["runs"] if r["run"] in told["runs"]]
    for number in sorted({r["parameters"] for r in runs}):
        each = next(s for s in record["parameters"] if s["set"] == number)
        rows += [(f"parameter, set {number}", f"{p['name']} = {p.get('text') or p['value']} ({p.get('source') or 'no source'})")
                 for p in each["rows"]]
    rows += [("model", f"{m['name']}, {f['name']}: {f['file']}:{f['line']}, SHA-256 {f['sha256'][:12]}")
             for m in record["models"] if m["name"] in {r["model"] for r in runs} for f in m["functions"]]
    rows += [
        (f"run {r['run']}", f"{r['model']} on {r['platform']}, {r['workload']}: {r['outcome']}; identity {r['identity'][:12]}")
        for r in runs
    ]
    rows += [("judged by", f"{f['name']}: {f['file']}:{f['line']}, SHA-256 {f['sha256'][:12]}") for f in told["functions"]]
    rows += [("read", ", ".join(told["reads"])), ("simulated", f"{verdict['observed']} {verdict['unit']}"),
             ("judged within", f"{verdict['low']} to {verdict['high']} {verdict['unit']}"), ("verdict", verdict["word"])]
    if (seen := told.get("agreement")) is not None:
        span = "" if seen["observed_low"] is None else f"; {seen['observed_low']} to {seen['observed_high']} {verdict['unit']}"
        rows.append(("draws", f"{seen['agreement']}: {seen['share']:.0%} of {seen['draws']} pass{span}"))
    rows += [("note", verdict["note"])] if verdict["note"] else []
    return [{"what": what, "value": value} for what, value in rows]
