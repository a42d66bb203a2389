"""The provenance of a crate as W3C PROV, in PROV-JSON: files are entities, runs and the judging activities, people and retrompi agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.crate.container import sha256

__all__ = ["document"]

Row = Mapping[str, Any]


def document(record: Row, circumstances: Row, files: Mapping[str, bytes]) -> dict[str, Any]:
    """The document; names are paths in the crate, or the things that its metadata describe."""
    made = _Document()
    made.agents(record, circumstances)
    for name in sorted(files):
        made.entity[f"crate:{name}"] = {"prov:label": name, "crate:sha256": sha256(files[name])}
    for run, when in zip(record["runs"], circumstances["runs"], strict=True):
        made.run(run, when)
    if record["statements"]:
        made.activity["crate:judging"] = {"prov:endTime": circumstances["created"], "prov:label": "judging"}
        made.by("crate:judging")
        made.relate("wasGeneratedBy", entity="crate:results/verdicts.csv", activity="crate:judging")
        for told in record["statements"]:
            made.statement(told)
    return made.as_json()


class _Document:
    def __init__(self) -> None:
        self.entity: dict[str, Row] = {}
        self.activity: dict[str, Row] = {}
        self.agent: dict[str, Row] = {}
        self.relations: dict[str, dict[str, Row]] = {}
        self._count = 0

    def relate(self, kind: str, **ends: str) -> None:
        self._count += 1
        self.relations.setdefault(kind, {})[f"_:r{self._count}"] = {f"prov:{k}": v for k, v in ends.items()}

    def agents(self, record: Row, circumstances: Row) -> None:
        self.agent["crate:agent"] = {"prov:type": {"$": "prov:Person", "type": "prov:QUALIFIED_NAME"}, "prov:label": circumstances["agent"]}
        self.agent["crate:retrompi"] = {"prov:type": {"$": "prov:SoftwareAgent", "type": "prov:QUALIFIED_NAME"},
                                        "prov:label": f"retrompi {record['software']['code_version']}"}
        self.relate("actedOnBehalfOf", delegate="crate:retrompi", responsible="crate:agent")

    def by(self, activity: str) -> None:
        self.relate("wasAssociatedWith", activity=activity, agent="crate:retrompi")

    def run(self, run: Row, when: Row) -> None:
        name, result = f"crate:run-{run['run']}", f"crate:run-{run['run']}-result"
        self.activity[name] = {"prov:startTime": when["start"], "prov:endTime": when["end"], "crate:identity": run["identity"],
                               "prov:label": f"{run['model']} on {run['platform']}, {run['workload']}"}
        self.by(name)
        self.relate("used", activity=name, entity=f"crate:parameters/set-{run['parameters']}.csv")
        time = {} if run["time_s"] is None else {"prov:value": {"$": repr(run["time_s"]), "type": "xsd:double"}, "crate:unit": "s"}
        self.entity[result] = {"prov:label": f"result of run {run['run']}: {run['outcome']}", **time}
        self.relate("wasGeneratedBy", entity=result, activity=name)
        self.relate("hadMember", collection="crate:results/runs.csv", entity=result)

    def statement(self, told: Row) -> None:
        name, verdict = f"crate:statement-{told['id']}", f"crate:verdict-{told['id']}"
        self.entity[name] = {"prov:label": f"{told['observable']}: {told['value']} {told['unit']}", "crate:where": told["where"],
                             "crate:use": told["use"]}
        self.entity[verdict] = {"prov:label": told["verdict"]["word"]}
        self.relate("used", activity="crate:judging", entity=name)
        self.relate("wasGeneratedBy", entity=verdict, activity="crate:judging")
        self.relate("wasDerivedFrom", generatedEntity=verdict, usedEntity=name)
        for number in told["runs"]:
            self.relate("wasDerivedFrom", generatedEntity=verdict, usedEntity=f"crate:run-{number}-result")

    def as_json(self) -> dict[str, Any]:
        """PROV-JSON."""
        return {"prefix": {"crate": "arcp://name,retrompi-crate/", "xsd": "http://www.w3.org/2001/XMLSchema#"}, "entity": self.entity,
                "activity": self.activity, "agent": self.agent, **self.relations}
