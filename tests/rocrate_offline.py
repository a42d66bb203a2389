"""The official validator of RO-Crates, offline: what it would fetch, the JSON-LD context of RO-Crate 1.1, is put in its cache.

    python rocrate_offline.py CRATE REPORT.json

The context has the terms that a crate uses, each with the address that RO-Crate 1.1 gives it: nearly all are schema.org's.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
SCHEMA_ORG = """
Claim ClaimReview ComputerLanguage ControlAction CreateAction CreativeWork Dataset HowTo HowToStep Organization OrganizeAction Person
PropertyValue Rating ScholarlyArticle SoftwareApplication SoftwareSourceCode about actionStatus additionalType affiliation agent
alternateName appearance author bestRating citation claimReviewed codeSampleType contentSize creator dateCreated datePublished description
encodingFormat endTime error exampleOfWork hasPart identifier instrument isBasedOn isPartOf itemReviewed keywords license mainEntity
maxValue measurementTechnique mentions minValue name object position programmingLanguage publisher ratingExplanation ratingValue result
reviewAspect reviewRating softwareVersion startTime step subjectOf text unitCode unitText url value valueReference version workExample
worstRating
"""
OTHERS = {
    "File": "http://schema.org/MediaObject",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
    "input": "https://bioschemas.org/ComputationalWorkflow#input",
    "output": "https://bioschemas.org/ComputationalWorkflow#output",
}
TERMS = {**{term: f"http://schema.org/{term}" for term in SCHEMA_ORG.split()}, **OTHERS}


def fill(cache: Path) -> None:
    """The answer to a request for the context, in a new cache of the validator."""
    import requests
    import requests_cache
    from urllib3.response import HTTPResponse

    body = json.dumps({"@context": TERMS}).encode()
    answer = requests.Response()
    answer.status_code, answer.url, answer._content = 200, CONTEXT, body
    answer.headers["Content-Type"] = "application/ld+json"
    answer.request = requests.Request("GET", CONTEXT, headers={"Accept": "application/ld+json"}).prepare()
    answer.raw = HTTPResponse(io.BytesIO(body), headers=dict(answer.headers), status=200, preload_content=False, request_url=CONTEXT)
    requests_cache.CachedSession(cache_name=str(cache), backend="sqlite").cache.save_response(answer)


def main(crate: str, report: str) -> None:
    from rocrate_validator.cli import cli

    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder, "cache"))
        sys.argv = ["rocrate-validator", "-y", "--disable-color", "validate", "--offline", "--cache-path", f"{folder}/cache",
                    "-l", "recommended", "-p", "provenance-run-crate", "-v", "--no-paging", "-f", "json", "-o", report, crate]
        cli()


if __name__ == "__main__":
    main(*sys.argv[1:])
