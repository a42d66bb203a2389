"""Languages: which one is spoken, the catalogues, what of the studio is not translated, and the labs' translations."""

from __future__ import annotations

from typing import Any

import pytest

from retrompi.base import translate
from retrompi.base.errors import UsageError


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "en"), ({"LANG": "de_DE.UTF-8"}, "de"), ({"LANG": "pt_BR.UTF-8", "LANGUAGE": "pt:fr:de"}, "fr"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "de"}, "en"), ({"LC_ALL": "fr_CH", "LANG": "de_DE"}, "fr"),
        ({"LANG": "de_AT@euro", "LC_ALL": ""}, "de"),
        ({"LANG": "en_GB.UTF-8", "LANGUAGE": "de"}, "de"), ({"LANG": "xx_YY", "LANGUAGE": "::"}, "en"),
    ],
)  # fmt: skip
def test_the_terminals_language_is_gettexts(given: dict[str, str], found: str) -> None:
    assert translate.of_environment(given) == found


def test_a_language_belongs_to_its_context() -> None:
    with translate.speaking("de"):
        assert (translate.language(), translate._("Copy link")) == ("de", "Link kopieren")
        with translate.speaking("fr"):
            assert translate._("Copy link") == "Copier le lien"
        assert [translate._(""), translate._("no such text")] == ["", "no such text"]
    assert (translate.language(), translate._("Copy link")) == ("en", "Copy link")
    with pytest.raises(UsageError, match="no language 'dee'; did you mean 'de'"):
        translate.use("dee")


@pytest.mark.parametrize(
    ("address", "accept", "cookie", "spoken"),
    [
        ("/", "", None, "en"), ("/", "de-CH,de;q=0.9,en;q=0.8", None, "de"), ("/", "it,fr;q=0.5,de;q=0.4", None, "fr"),
        ("/", "de;q=0,en", None, "en"),
        ("/", "de", "fr", "fr"), ("/?lang=de", "fr", "fr", "de"), ("/?lang=xx", "fr", None, "fr"), ("/", "fr", "<b>", "fr"),
    ],
)  # fmt: skip
def test_address_cookie_and_browser_choose_the_language(
    app: Any,
    address: str,
    accept: str,
    cookie: str | None,
    spoken: str,
) -> None:
    browser = app.server.test_client()
    if cookie:
        browser.set_cookie("retrompi-language-80", cookie)
    answer = browser.get(address, headers={"Accept-Language": accept})
    assert f'<html lang="{spoken}">' in answer.text
    assert answer.headers["Content-Language"] == spoken
    if "?" in address and spoken == "de":  # kept across pages
        assert '<html lang="de">' in browser.get("/curves", headers={"Accept-Language": "fr"}).text
