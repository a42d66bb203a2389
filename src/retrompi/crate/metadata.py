"""The metadata of a crate: RO-Crate 1.1 by the Provenance Run Crate profile, which follows every step of a workflow's run.

The workflow is the file that says what is asked (a paper's ``paper.toml``, a study's definition), retrompi the engine that ran it; its
steps are the simulation of the runs, and for a paper the judging of the statements. A published statement is a ``Claim``, its verdict
a ``ClaimReview`` based on runs and on the function that judged; a number with its interval is a ``PropertyValue`` with ``minValue`` and
``maxValue``, and what kind of interval it is stands in ``measurementTechnique``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from retrompi.crate import drawn
from retrompi.crate.container import METADATA, sha256
from retrompi.spec.declare.outcome import Outcome

__all__ = ["USES", "graph", "unit_code"]

Row = Mapping[str, Any]
Entity = dict[str, Any]

_RUN_CRATE = "https://w3id.org/ro/wfrun"
_PROFILES = (
    (f"{_RUN_CRATE}/process/0.5", "Process Run Crate", "0.5"),
    (f"{_RUN_CRATE}/workflow/0.5", "Workflow Run Crate", "0.5"),
    (f"{_RUN_CRATE}/provenance/0.5", "Provenance Run Crate", "0.5"),
    ("https://w3id.org/workflowhub/workflow-ro-crate/1.0", "Workflow RO-Crate", "1.0"),
)
_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"environment": "https://w3id.org/ro/terms/workflow-run#environment", "sha256": "http://schema.org/sha256"},
]
_FORMATS = {"json": "application/json", "csv": "text/csv", "md": "text/markdown", "toml": "application/toml", "html": "text/html",
            "py": "text/x-python", "npz": "application/zip", "zst": "application/zstd", "gz": "application/gzip",
            "xml": "application/xml"}
_QUDT = {"s": "SEC", "ms": "MilliSEC", "us": "MicroSEC", "µs": "MicroSEC", "B": "BYTE", "bytes": "BYTE", "Hz": "HZ", "%": "PERCENT",
         "percent": "PERCENT", "1": "UNITLESS", "count": "UNITLESS", "probability": "UNITLESS"}
"""Units that the QUDT vocabulary is known to name; any other has its text alone."""
USES = {"calibrate": "fitted: a calibration may have seen it", "validate": "held out: no fit has seen it",
        "context": "context: not judged", "exclude": "excluded: the paper contradicts itself"}
RANGE = "range stated with the source of the value; the prior of every uncertainty"
READING = "interval of what is printed or read off a figure"
SOFTWARE = "#retrompi"
_URL = re.compile(r"https?://[^\s;,<>()\"']+")


def unit_code(unit: str) -> dict[str, str]:
    """``unitText``, and ``unitCode`` as QUDT's address where that is known; {} without a unit."""
    if unit in ("", "-"):
        return {}
    return {"unitText": unit, **({"unitCode": f"http://qudt.org/vocab/unit/{_QUDT[unit]}"} if unit in _QUDT else {})}


def _ref(name: str) -> dict[str, str]:
    return {"@id": name}


def _refs(names: Sequence[str]) -> Any:
    """References to the entities of these names; to one alone without a list, as RO-Crate recommends."""
    found = [_ref(n) for n in dict.fromkeys(names)]
    return found[0] if len(found) == 1 else found


def _format(name: str) -> str:
    return _FORMATS.get(name.rpartition(".")[2].lower(), "application/octet-stream" if "." in name.rpartition("/")[2] else "text/plain")


class _Graph:
    """The entities, in order, each once."""

    def __init__(self, record: Row, circumstances: Row, files: Mapping[str, bytes]) -> None:
        self.record, self.about, self.files = record, circumstances, files
        self.entities: dict[str, Entity] = {}
        pages = record["software"]["codemeta"]
        self.software = str(pages.get("url") or pages.get("codeRepository") or "")
        self.actions: list[str] = []
        self.statements: list[str] = []

    def add(self, at: str, kind: str | Sequence[str], /, **facts: Any) -> str:
        """An entity; facts that are None, empty texts or empty lists are left out."""
        told = {k: v for k, v in facts.items() if v is not None and v != "" and v != []}
        self.entities.setdefault(at, {"@id": at, "@type": kind if isinstance(kind, str) else list(kind), **told})
        return at

    def tool(self, part: str) -> str:
        """The address of a part of retrompi."""
        return f"{self.software}#{part}" if self.software else f"#{part}"

    # -- who and with what -----------------------------------------------------------------------------------------------------

    def people_and_software(self) -> None:
        software = self.record["software"]
        house, page = self.about["organization"], self.about["organization_url"]
        home = [self.add(page or "#organization", "Organization", name=house, url=page)] if house else []
        self.agent = self.add(self.about["orcid"] or "#agent", "Person", name=self.about["agent"], affiliation=_refs(home))
        page = self.software
        self.engine = self.add(
            page or SOFTWARE, "SoftwareApplication", name="retrompi", softwareVersion=software["code_version"],
            url=page or _ref("codemeta.json"), description=software["codemeta"].get("description"),
            identifier=software["code_version"],
        )
        version = software["code_version"]
        self.simulate = self.add(self.tool("simulate"), "SoftwareApplication", name="retrompi's simulator", softwareVersion=version,
                                 url=page or _ref("codemeta.json"), isPartOf=_ref(self.engine))
        self.judge = self.tool("judge")
        if self.record["statements"]:
            self.add(self.judge, "SoftwareApplication", name="retrompi's judging of published statements", softwareVersion=version,
                     url=page or _ref("codemeta.json"), isPartOf=_ref(self.engine))
        self.python = self.add("#python", "ComputerLanguage", name="Python", url="https://www.python.org/")
        for name, value in self.about["environment"].items():
            self.add(f"#environment-{name}", "PropertyValue", name=name, value=value)

    def workflow(self) -> None:
        record = self.record
        language = self.add("#question-language", "ComputerLanguage", name="retrompi's files of papers and studies",
                            description="A declarative file that names models, platforms, programs and what varies; retrompi runs it.",
                            url=_ref("README.md"))
        steps = [self.add("#step-simulate", "HowToStep", name="Simulate every run", position="1", workExample=_ref(self.simulate))]
        tools = [self.simulate]
        if record["statements"]:
            steps.append(self.add("#step-judge", "HowToStep", name="Judge every statement", position="2", workExample=_ref(self.judge)))
            tools.append(self.judge)
        self.steps = steps
        self.asked = record["workflow"]
        self.file(self.asked, ("File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"), name=f"What is asked: {record['title']}",
                  version=sha256(self.files[self.asked])[:12], url=_ref(self.asked), programmingLanguage=_ref(language),
                  conformsTo=_ref("https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"), license=_ref(self.about["license"]),
                  hasPart=_refs(tools), step=_refs(steps), input=_refs(["#input-parameters"]), output=_refs(["#output-results"]),
                  creator=_ref(self.agent), dateCreated=self.about["created"])

    # -- files -----------------------------------------------------------------------------------------------------------------

    def file(self, path: str, kind: str | Sequence[str] = "File", /, **facts: Any) -> str:
        data = self.files[path]
        told = {"name": path, **facts}
        return self.add(path, kind, **told, encodingFormat=_format(path), contentSize=str(len(data)), sha256=sha256(data))

    def all_files(self) -> None:
        self.add("#input-parameters", "FormalParameter", name="parameters", additionalType="File",
                 workExample=_refs([f"parameters/set-{s['set']}.csv" for s in self.record["parameters"]]),
                 description="value, unit, sourced range and source of each number that a run uses")
        self.add("#output-results", "FormalParameter", name="results", additionalType="File", workExample=_refs(self.results()))
        for name in sorted(self.files):
            if name in (METADATA, "ro-crate-preview.html"):
                continue
            facts: Entity = {}
            if name.startswith("parameters/"):
                facts = {"exampleOfWork": _ref("#input-parameters"), "mentions": self.values_of(name)}
            elif name.startswith("results/"):
                facts = {"exampleOfWork": _ref("#output-results")}
            elif name == "README.md":
                facts = {"about": _ref("./")}
            elif name == "prov.json":
                facts = {
                    "description": "W3C PROV (PROV-JSON) of the same facts",
                    "conformsTo": _ref("https://www.w3.org/submissions/prov-json/"),
                }
            self.file(name, **facts)

    def results(self) -> list[str]:
        """The tables of numbers."""
        return sorted(n for n in self.files if n.startswith("results/"))

    # -- parameters ------------------------------------------------------------------------------------------------------------

    def values_of(self, file: str) -> Any:
        number = int(file.removeprefix("parameters/set-").removesuffix(".csv"))
        described = next(s for s in self.record["parameters"] if s["set"] == number)
        return _refs([self.value(number, row) for row in described["rows"]])

    def value(self, number: int, row: Row) -> str:
        name = f"#parameter-{number}-{row['name']}"
        unit = unit_code(str(row.get("unit") or ""))
        intervals = []
        if (left := row.get("posterior")) is not None:
            technique = (f"{left['level']:.0%} interval of the posterior of {left['of']} ({left['file']}), which has this number "
                         f"{left['told']}")
            intervals.append(self.add(f"{name}-posterior", "PropertyValue", name=f"{row['name']}: posterior interval",
                                      minValue=left["low"], maxValue=left["high"], **unit, measurementTechnique=technique))
        if row.get("low") is not None or row.get("high") is not None:
            intervals.append(self.add(f"{name}-range", "PropertyValue", name=f"{row['name']}: sourced range", minValue=row.get("low"),
                                      maxValue=row.get("high"), **unit, measurementTechnique=RANGE))
        sources = [
            i for i in self.statement_ids if str(row.get("source", "")).startswith("paper:") and i in re.split(r"[\s,;:()]", row["source"])
        ]
        return self.add(name, "PropertyValue", name=row["name"], value=row["value"], **unit, minValue=row.get("low"),
                        maxValue=row.get("high"), measurementTechnique=row.get("source"), description=row.get("help"),
                        valueReference=_refs(intervals), subjectOf=_refs([f"#statement-{i}" for i in sources]))

    # -- runs ------------------------------------------------------------------------------------------------------------------

    def run(self, run: Row, when: Row) -> str:
        name = f"#run-{run['run']}"
        done = run["outcome"] == Outcome.COMPLETED
        inputs = [f"parameters/set-{run['parameters']}.csv", *self.inputs_of(run)]
        result = ["results/runs.csv", *(["results/points.csv"] if run["points"] else []),
                  *(["results/ranks.csv"] if run["rank_times"] else []), *(["results/stages.csv"] if run["stages"] else [])]
        if run["time_s"] is not None:
            result.append(self.add(f"{name}-time", "PropertyValue", name=f"simulated time of run {run['run']}", value=run["time_s"],
                                   **unit_code("s"), measurementTechnique="simulated; the same whenever it is repeated"))
        changed = ", ".join(f"{k}={v}" for k, v in run["overrides"].items())
        return self.add(
            name, "CreateAction", name=f"Run {run['run']}: {run['model']} on {run['platform']}, {run['workload']}",
            description=f"{run['kind']} {run['workload']} of {run['model']} on {run['platform']}, {run['mode']}, seed {run['seed']}, "
                        f"{run['fidelity']}{'; ' + changed if changed else ''}; outcome: {run['outcome']}",
            instrument=_ref(self.simulate), agent=_ref(self.agent), startTime=when["start"], endTime=when["end"],
            actionStatus=f"http://schema.org/{'Completed' if done else 'Failed'}ActionStatus",
            error=None if done else run["detail"] or run["outcome"],
            object=_refs(inputs), result=_refs(result), identifier=run["identity"],
        )

    def inputs_of(self, run: Row) -> list[str]:
        """The files in the crate that a run was read from: its model's, its scenario's, its trace."""
        folder = f"/models/{run['model'].partition(':')[0]}/"
        ends = (f"scenarios/{run['scenario']}.toml",) if run["scenario"] else ()
        return sorted(n for n in self.files if folder in f"/{n}" or n.endswith(ends or ("\0",)) or n.endswith(f"/{run['workload']}"))

    def actions_of_all(self) -> None:
        record, about = self.record, self.about
        runs = [self.run(run, when) for run, when in zip(record["runs"], about["runs"], strict=True)]
        tables = self.results()
        start = min((w["start"] for w in about["runs"]), default=about["created"])
        controls = [self.add("#control-simulate", "ControlAction", name="Simulate every run", instrument=_ref(self.steps[0]),
                             object=_refs(runs), startTime=start, endTime=about["created"])]
        every = list(runs)
        if record["statements"]:
            asked = sorted(n for n in self.files if n.startswith("paper/"))
            judged = self.add("#judging", "CreateAction", name="Judging of the statements", agent=_ref(self.agent),
                              instrument=_ref(self.judge),
                              description="Every statement is judged by the functions that its checks name, from the results of the runs.",
                              endTime=about["created"], object=_refs([*asked, *(t for t in tables if t != "results/verdicts.csv")]),
                              result=_refs(["results/verdicts.csv"]), actionStatus="http://schema.org/CompletedActionStatus")
            controls.append(self.add("#control-judge", "ControlAction", name="Judge every statement", instrument=_ref(self.steps[1]),
                                     object=_refs([judged]), endTime=about["created"]))
            every.append(judged)
        whole = self.add("#workflow-run", "CreateAction", name=f"Run of {record['workflow']}", agent=_ref(self.agent),
                         description=f"All {len(runs)} runs of this {record['kind']}, found in a store or simulated for it.",
                         instrument=_ref(self.asked), startTime=start, endTime=about["created"],
                         object=_refs([f"parameters/set-{s['set']}.csv" for s in record["parameters"]]), result=_refs(tables),
                         actionStatus="http://schema.org/CompletedActionStatus",
                         environment=_refs([f"#environment-{n}" for n in about["environment"]]))
        organised = self.add("#engine-run", "OrganizeAction", name=f"retrompi {record['software']['version']}", agent=_ref(self.agent),
                             instrument=_ref(self.engine), object=_refs(controls), result=_ref(whole), startTime=start,
                             endTime=about["created"])
        self.actions = [whole, *every, *controls, organised]

    # -- statements ------------------------------------------------------------------------------------------------------------

    def paper(self) -> str:
        cited = self.record.get("citation") or {}
        found = _URL.search(str(cited.get("address", "")))
        return self.add(found[0].rstrip(".") if found else "#paper", "ScholarlyArticle", name=self.record["title"],
                        author=cited.get("authors") or None, datePublished=cited.get("year") or None,
                        publisher=None, description=cited.get("address") or None)

    def statement(self, told: Row, paper: str) -> None:
        name, verdict = f"#statement-{told['id']}", told["verdict"]
        unit = unit_code(str(told["unit"]))
        text = f"{told['observable']}: {told['value']}{' ' + told['unit'] if told['unit'] not in ('', '-') else ''}"
        number = []
        if told["low"] is not None or told["high"] is not None:
            number.append(self.add(f"{name}-value", "PropertyValue", name=told["observable"], value=told["value"], minValue=told["low"],
                                   maxValue=told["high"], **unit, measurementTechnique=READING))
        self.add(name, "Claim", name=told["id"], text=f"{text} ({told['system']}; {told['configuration']})", appearance=_ref(paper),
                 citation=f"{told['where']}", keywords=USES.get(told["use"], told["use"]), about=_refs(number),
                 description=told["note"])
        observed = []
        if verdict["observed"] is not None:
            observed.append(self.add(f"#verdict-{told['id']}-observed", "PropertyValue", name=f"{told['observable']}, simulated",
                                     value=verdict["observed"], minValue=verdict["low"], maxValue=verdict["high"],
                                     **unit_code(verdict["unit"] or ""),
                                     measurementTechnique="simulated; minValue and maxValue are the limits it was judged by"))
        observed += self.draws(told)
        rating = self.add(f"#verdict-{told['id']}-rating", "Rating", ratingValue={"pass": 1, "fail": 0}.get(verdict["word"]),
                          bestRating=1, worstRating=0, alternateName=verdict["word"], ratingExplanation=verdict["note"])
        functions = []
        for f in told["functions"]:
            functions.append(self.add(f"#function-{f['name']}", "SoftwareSourceCode", name=f["name"], version=f["sha256"][:12],
                                      codeSampleType="function", description=f"{f['file']}, line {f['line']}", sha256=f["sha256"],
                                      url=_ref("record.json"), programmingLanguage=_ref(self.python)))
        review = self.add(f"#verdict-{told['id']}", "ClaimReview", name=f"{told['id']}: {verdict['word']}", claimReviewed=text,
                          itemReviewed=_ref(name), reviewRating=_ref(rating), reviewAspect=USES.get(told["use"], told["use"]),
                          author=_ref(self.agent), datePublished=self.about["created"],
                          isBasedOn=_refs([*(f"#run-{i}" for i in told["runs"]), *functions]), about=_refs(observed),
                          isPartOf=_ref("results/verdicts.csv"))
        self.statements += [name, review]

    def draws(self, told: Row) -> list[str]:
        """The draws of the parameters for a statement: the share that passes, and the interval of what is simulated."""
        seen = told.get("agreement")
        if seen is None:
            return []
        out = [self.add(f"#verdict-{told['id']}-share", "PropertyValue", name=f"{told['id']}: share of the draws that pass",
                        value=seen["share"], **unit_code("1"), description=seen["agreement"],
                        measurementTechnique=f"simulated with {seen['draws']} draws of the parameters")]
        if seen["observed_low"] is not None:
            out.append(self.add(f"#verdict-{told['id']}-interval", "PropertyValue", name=f"{told['observable']}, simulated, over the draws",
                                value=seen["observed_median"], minValue=seen["observed_low"], maxValue=seen["observed_high"],
                                **unit_code(told["verdict"]["unit"] or ""),
                                measurementTechnique=drawn.technique(self.record, seen["draws"])))
        return out

    def build(self) -> dict[str, Any]:
        record, about = self.record, self.about
        self.statement_ids = [s["id"] for s in record["statements"]]
        self.people_and_software()
        self.workflow()
        self.all_files()
        self.actions_of_all()
        papers = []
        if record["statements"]:
            papers = [self.paper()]
            for told in record["statements"]:
                self.statement(told, papers[0])
        for address, name, number in _PROFILES:
            self.add(address, "CreativeWork", name=name, version=number)
        self.add(about["license"], "CreativeWork", name=about["license"].rpartition("/")[2], description="The licence of this crate.")
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Evidence crate: {record['title']}",
            "description": f"Every number of the {record['kind']} '{record['name']}' with what it was made from: inputs, parameters with "
                           "their sources and intervals, code by hash, runs, results" + (" and verdicts." if papers else "."),
            "datePublished": about["created"],
            "license": _ref(about["license"]),
            "author": _ref(self.agent),
            **({"publisher": _ref(about["organization_url"] or "#organization")} if about["organization"] else {}),
            "conformsTo": _refs([p[0] for p in _PROFILES]),
            "mainEntity": _ref(self.asked),
            "hasPart": _refs([n for n in sorted(self.files) if n not in (METADATA, "ro-crate-preview.html")]),
            "mentions": _refs([*self.actions, *self.statements]),
            **({"citation": _refs(papers)} if papers else {}),
        }
        descriptor = {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": _ref("./"),
            "conformsTo": _refs(["https://w3id.org/ro/crate/1.1", _PROFILES[3][0]]),
        }
        page = {"@id": "ro-crate-preview.html", "@type": "CreativeWork", "about": _ref("./"), "name": "The crate as a page"}
        return {"@context": _CONTEXT, "@graph": [descriptor, page, root, *self.entities.values()]}


def graph(record: Row, circumstances: Row, files: Mapping[str, bytes]) -> dict[str, Any]:
    """The JSON-LD of a crate with these files (all but the metadata itself and the manifest)."""
    return _Graph(record, circumstances, files).build()
