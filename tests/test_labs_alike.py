"""Which submissions are alike and why: copies are found, honest students are not paired; the reason is named wherever a pair is."""

from __future__ import annotations

import csv
import io
import math
import random
from pathlib import Path
from typing import Any

import class_of_students as simulated
import pytest
from cases import for_each

from retrompi.base.bidi import plain_direction
from retrompi.labs import alike, answers, chance, collect, student, tokens
from retrompi.labs.alike import Facts, Reason, SimilarPair
from retrompi.labs.bench import Bench
from retrompi.store import open_store

PASSAGE = """every message waits for the daemon which is asleep until the clock of the other machine
has ticked once more and then it is woken"""
WORDS = PASSAGE.split()


def facts(who: str, **given: Any) -> Facts:
    return Facts(who, who, "1", f"token of {who}", **given)


def test_a_simulated_class_has_no_false_pair_and_its_copies_are_found(tmp_path: Path) -> None:
    """A short form of ``python tests/class_of_students.py``, whose result for classes of 200 is in docs/course-lti.md."""
    made, planted = simulated.klass(40, 7, Bench(open_store(str(tmp_path / "class.db"))), each=2)
    false, told = simulated.measured(made, planted)
    assert [p.why for p in false] == []
    for kind in ("all numbers", "both texts, every tenth word replaced", "one text, word for word", "the folder"):
        assert told[kind] == [2, 2], kind
    assert sum(found for found, _ in told.values()) >= 12


def test_equal_predictions_make_no_pair_and_are_named_beside_other_reasons() -> None:
    same = {"p-a": "1.37 ms", "p-b": "77 KiB", "p-c": "2.9"}
    crowd = [facts(f"other {i}", predictions=dict.fromkeys(same, f"{i}.{i} ms")) for i in range(30)]
    two = [facts("ann", predictions=same), facts("bob", predictions=same)]
    assert alike.pairs([*crowd, *two]) == []
    told = {"explain": " ".join(WORDS)}
    two = [facts(f.student, predictions=same, texts=told) for f in two]
    (pair,) = alike.pairs([*crowd, *two])
    assert pair.why[0].endswith(" words in 'explain'")
    assert pair.why[1] == "the same predictions: p-a, p-b, p-c"


def test_what_the_lab_says_itself_is_nobodys_own() -> None:
    told = " ".join(WORDS)
    two = [facts(who, texts={"explain": f"{who} thinks that {told}"}, told=f"the question says {told} indeed") for who in ("ann", "bob")]
    assert alike.pairs(two) == []
    assert len(alike.pairs([facts(f.student, texts=f.texts) for f in two])) == 1


def test_what_many_write_is_nobodys_own_but_copies_of_one_folder_count_once() -> None:
    told = {"explain": " ".join(WORDS)}
    assert alike.pairs([facts(f"student {i}", texts=told) for i in range(alike.COMMON + 1)]) == []
    copies = [Facts(f"s{i}", f"s{i}", "1", "one token", texts=told) for i in range(alike.COMMON + 1)]
    assert len(alike.pairs(copies)) == 10
    assert alike.pairs(copies)[0].why[1].endswith(" words in 'explain'")


def test_a_passage_within_another_text_is_quoted() -> None:
    (pair,) = alike.pairs(
        [facts("ann", texts={"t": " ".join(WORDS)}), facts("bob", texts={"t": f"I think {' '.join(WORDS[3:19])} and so on"})]
    )
    assert pair.why == ("the same 16 words in 't': “for the daemon which is asleep until the clock of the other …”",)


def test_a_standard_phrase_counts_less_than_words_of_ones_own() -> None:
    def weight(told: str, others: list[str]) -> float:
        crowd = [facts(f"other {i}", texts={"t": text}) for i, text in enumerate(others)]
        class_ = alike._Class([*crowd, facts("ann", texts={"t": told}), facts("bob", texts={"t": told})])
        return class_.reasons(len(crowd), len(crowd) + 1)[0].weight

    told = "the time of a message is the start up plus the size over the rate"
    phrases = [
        "the time of a message is what counts", "a message is the start up plus something", "it is the start up plus the size",
        "plus the size over the rate of the wire", "the size over the rate is small", "say that the time of a message grows",
    ]
    unlike = [f"word{i} " * 9 for i in range(len(phrases))]
    assert weight(told, phrases) < 0.7 * weight(told, unlike), "each word is what others write after the same words"
    two_more = [*unlike, told, told]
    assert weight(told, two_more) == pytest.approx(weight(told, unlike), rel=0.05), "who copied as well is no witness of what people write"


def test_a_number_counts_less_where_many_right_answers_lie() -> None:
    dense = chance.Numbers([{"a": 5.0 + i / 1000} for i in range(50)])
    wide = chance.Numbers([{"a": 1.3**i} for i in range(50)])
    assert dense.surprise("a", 5.02, 3) < wide.surprise("a", 5.02, 3) - 0.8
    assert wide.surprise("a", 5.0213, 5) == pytest.approx(wide.surprise("a", 5.0213, 3) + 2)
    given = {"a": 612.3, "b": 71.12, "c": 5.551}
    tolerances = dict.fromkeys(given, (0.01, 0.0))
    owner = facts("ann", given=given, expected=given, tolerances=tolerances)

    def copier(**others: float) -> list[Facts]:
        wrong = {"a": 612.3, "b": 71.12, **others}
        return [owner, facts("bob", given=wrong, expected={"a": 500.0, "b": 60.0, "c": 4.0}, tolerances=tolerances)]

    one_of_two, one_of_three = (alike._Class(copier(c=c)).reasons(0, 1)[0].weight for c in (4.0, 3.217))
    assert one_of_three == pytest.approx(one_of_two - math.log10(3)), "two of three wrong numbers may fit in three ways"


def test_a_usual_mistake_is_nobodys_own() -> None:
    given, right = {"a": 612.34, "b": 71.119, "c": 5.5512}, {"a": 500.0, "b": 60.0, "c": 4.0}
    tolerances = dict.fromkeys(given, (0.01, 0.0))

    def one(who: str, factor: float, **more: Any) -> Facts:
        return facts(who, given=given, expected={t: v * factor for t, v in right.items()}, tolerances=tolerances, **more)

    owner = facts("ann", given=given, expected=given, tolerances=tolerances)
    (pair,) = alike.pairs([owner, one("bob", 1.0)])
    assert pair.why == ("numbers of bob are the right ones of ann: a, b, c",)
    assert alike.pairs([owner, one("bob", 1.0, usual={t: (v,) for t, v in given.items()})]) == []
    both = [one("bob", 1.0), one("cyd", 1.1)]
    assert alike.pairs(both) == [], "two may have made the same mistake throughout"
    assert "the same wrong numbers under different parameters: a, b, c" in alike._Class(both).reasons(0, 1)[0].text


@for_each(
    "one, other, digits",
    [(37.46, 37.46, 4), (37.46, 37.5, 3), (37.46, 37.4, 0), (40, 40, 0), (0, 0, 0), (1.2345678, 1.2345699, 6), (float("inf"), 1.23, 0)],
)
def test_numbers_are_one_and_the_same_to_the_digits_that_are_written(one: float, other: float, digits: int) -> None:
    assert alike._equal(one, other) == digits == alike._equal(other, one)


def test_a_program_with_other_names_and_layout_has_the_same_structure() -> None:
    rng = random.Random(3)
    template = "int exchange(int a) {\n  /* Yours. It */\n  return 0;\n}\nint main(void) { return exchange(1); }\n"
    body = "\n".join(
        f"for (int i = {i}; i < n; i++) {{ sum {sign}= out[i] {sign} {i}; if (sum > {i}) break; }}" for i, sign in enumerate("+-*/%&|^")
    )
    mine = template.replace("/* Yours. It */\n  return 0;", f"{body}\n  return sum;")
    theirs = mine.replace("sum", "total").replace("out", "data").replace(" i ", " k ").replace("{ ", "{\n      // mine\n ")
    (pair,) = alike.pairs([facts(w, files={"x.c": t}, templates={"x.c": template}) for w, t in (("ann", mine), ("bob", theirs))])
    assert "the same structure in x.c: 100%" in pair.why[0]
    untouched = [facts(w, files={"x.c": template * 9}, templates={"x.c": template * 9}) for w in ("ann", "bob")]
    assert alike.pairs(untouched) == [], "the given program is nobody's own"
    assert tokens.shapes("int a; /* b */ a = 1;" * 9) == tokens.shapes("int xyz;\nxyz = 22; // c\n" * 9)
    assert rng


def test_the_table_names_who_and_why_and_no_text_changes_the_direction_of_writing() -> None:
    rows, _ = collect.rows(
        [
            collect.Graded("a", None, None, "x", "Ann"),
            collect.Graded("b", None, None, "x", "Bob"),
            collect.Graded("c", None, None, "x", "Cyd"),
        ],
        [SimilarPair(0, 1, (Reason("the same file x", 12), Reason("the same predictions: p", 1))), SimilarPair(0, 2, (Reason("y", 12),))],
    )
    assert [r["alike"] for r in rows] == [
        "Bob: the same file x; the same predictions: p | Cyd: y",
        "Ann: the same file x; the same predictions: p",
        "Ann: y",
    ]
    shown = plain_direction("12 ms\u202e sm 21\u2066")
    assert shown == "12 ms⟨U+202E⟩ sm 21⟨U+2066⟩"
    assert answers.Given("x", "a\u202eb").text == "a⟨U+202E⟩b" == student.Sealed("a\u202eb", 1).text
    assert plain_direction("שלום عليكم\u200f") == "שלום عليكم\u200f", "letters that are written from the right stay"


def test_pages_and_tables_show_an_override_of_direction_instead_of_obeying_it(
    tmp_path: Path, retrompi: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrompi.labs import lab as _lab
    from retrompi.labs import start

    folder = start.start(_lab.lab("1"), "Ann", tmp_path / "mine")
    sheet = folder / "answers.toml"
    told = "\u202e.txet eht fo noitcerid eht nrut sdrow esehT"
    sheet.write_text(
        sheet.read_text().replace('explain = """\n"""', f'explain = """{told}"""').replace('p-startup = ""', 'p-startup = "1\u202e ms"')
    )
    where = str(tmp_path / "labs.db")
    retrompi("lab", "check", str(folder), "--store", where)
    retrompi("lab", "report", str(folder), "--store", where)
    out = retrompi("lab", "collect", str(folder), "--store", where, "--json", "-o", str(tmp_path / "class.html"))
    table = retrompi("lab", "collect", str(folder), "--store", where, "--csv")
    assert list(csv.DictReader(io.StringIO(table.out)))
    pages = [(folder / "report.html").read_text(), (tmp_path / "class.html").read_text()]
    for text in (*pages, out.out, table.out, (folder / "report.html").read_text()):
        assert "\u202e" not in text
    assert all("⟨U+202E⟩.txet" in page for page in pages)
