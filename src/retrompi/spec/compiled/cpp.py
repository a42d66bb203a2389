"""The engine's structs and their readers, generated from the declarations when the engine is built: ``python -m retrompi.spec.compiled.cpp
FILE``.

Generated code is not kept in the repository. The build runs this module before the package is installed (and the SMPI plug-in, which
is compiled on the user's machine, runs it there), so it may import only declarations and the standard library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from retrompi.base.units import PS
from retrompi.spec.compiled.cpp_calls import calls_header
from retrompi.spec.declare.fields import Field, fields_of
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import Counters, OutputField, RankRow, Totals, TrafficRow, WaitRow, outputs
from retrompi.spec.host import REFERENCE_CALL, REFERENCE_CLOCK, Host
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.topology import KINDS, FromFile, LinkLayout
from retrompi.spec.media import MEDIA, Broadcast, Checked, Medium, OneSided, SampledCurve, WaitPolicy

__all__ = ["header", "write"]

_READERS = {
    "Ps": "seconds",
    "Work": "seconds",
    "Service": "seconds",
    "PsPerByte": "seconds_per_byte",
    "double": "number",
    "bool": "flag",
    "int": "whole",
    "int64_t": "whole",
    "size_t": "whole",
    "std::string": "text",
}
"""C++ type -> the reader's method for it; an enumeration is read by ``choice``, any other type by ``value``."""


def _cpp_name(cls: type) -> str:
    """The engine calls a sampled curve, which is a medium there, a curve."""
    return "Curve" if cls is SampledCurve else cls.__name__


def _struct_name(cls: type) -> str:
    """The C++ name of a declaration. `Host` becomes ``HostFields``, the base of a hand-written class with the host's behaviour."""
    return {Host: "HostFields", WaitPolicy: "WaitPolicy"}.get(cls, f"{_cpp_name(cls)}Spec")


_OWN: Mapping[type, tuple[str, ...]] = {
    WaitPolicy: ("using Kind = WaitKind;", "using enum WaitKind;", "WaitFor what{};  // it waits for: the engine's to say"),
}
"""Members added to a struct after its declared fields."""


def _enumerator(word: str) -> str:
    return "".join(part.capitalize() for part in word.replace("-", "_").split("_"))


def _own(cls: type) -> Iterator[Field]:
    """The fields that a declaration adds to its base class, except those without a C++ type."""
    above = {name for base in cls.__mro__[1:] if base not in (object, Checked) for name in fields_of(base)}
    yield from (f for name, f in fields_of(cls).items() if name not in above and f.cpp)


def _initial(f: Field) -> str:
    """The C++ initializer: the default, or else the lowest value within the bounds."""
    value: Any = f.default
    if f.kind == "choice":
        word = f.choices[0] if value is MISSING else value
        return f' = "{word}"' if f.cpp == "std::string" else f" = {f.cpp}::{_enumerator(word)}"
    if not f.is_quantity:
        return f' = "{value}"' if isinstance(value, str) else ""
    if value is MISSING:
        value = f.low if f.low else 1 if f.above is not None else 0
    if f.cpp == "bool":
        return " = true" if value else " = false"
    if f.scale in ("work", "os"):
        return f" = {{{round(value * 1e12)}}}"
    return f" = {round(value * 1e12) if f.cpp == 'Ps' else f'{value:g}'}"


def _read(f: Field) -> str:
    if f.kind == "choice" and f.cpp != "std::string":
        words = ", ".join(f'{{"{w}", {f.cpp}::{_enumerator(w)}}}' for w in f.choices)
        return f'r.choice("{f.name}", {f.name}, {{{words}}});'
    return f'r.{_READERS.get(f.cpp, "value")}("{f.name}", {_number(f)});'


def _number(f: Field) -> str:
    """The C++ expression for the number of a field."""
    return f"{f.name}.ps" if f.scale in ("work", "os") else f.name


def _bounds(f: Field) -> Iterator[tuple[str, str]]:
    """(C++ condition, description) of each bound; a default outside of the bounds means "none" and is allowed."""
    if not f.is_quantity or f.cpp == "bool":
        return
    ends = [(f.low, ">=", "or more"), (f.high, "<=", "or less"), (f.above, ">", "")]
    if f.low is None and f.above is None:
        ends.append((0.0, ">=", "or more"))
    for bound, sign, words in ends:
        if bound is not None:
            scale = 1e12 if f.cpp in ("Ps", "Work", "Service") else 1
            told = f"more than {bound:g}" if sign == ">" else f"{bound:g} {words}"
            absent = f"{_number(f)} == 0 || " if f.default == 0 and (f.above is not None or (f.low or 0) > 0) else ""
            value = bound * scale
            yield f"{absent}{_number(f)} {sign} {round(value) if value == round(value) else value!r}", told


def _struct(cls: type) -> Iterator[str]:
    base = cls.__mro__[1]
    inherits = "" if base in (object, Checked) else f" : {_struct_name(base)}"
    fields = list(_own(cls))
    yield f"struct {_struct_name(cls)}{inherits} {{"
    if cls in MEDIA.values():
        yield f"  static constexpr Medium kMedium = Medium::{_cpp_name(cls)};"
    for f in fields:
        yield f"  {'double' if f.cpp == 'PsPerByte' else f.cpp} {f.name}{_initial(f)};  // {f.help}{_unit(f)}"
    yield from (f"  {line}" for line in _OWN.get(cls, ()))
    if issubclass(cls, Medium | WaitPolicy):
        yield f"  bool operator==(const {_struct_name(cls)}&) const = default;"
    yield "  template <class Reader>"
    yield "  void read(Reader& r) {"
    if inherits:
        yield f"    {_struct_name(base)}::read(r);"
    for f in fields:
        yield f"    {_read(f)}"
        for condition, told in _bounds(f):
            yield f'    r.require({condition}, "{f.name}", "{told}");'
    yield "  }"
    yield "};"


def _numbers(cls: type) -> Iterator[str]:
    """The numbers of a declaration that delays are computed from, by name (engine/host/cost.hpp)."""
    numbers = [f for f in _own(cls) if f.cpp in ("Ps", "Work", "Service", "PsPerByte", "double")]
    if numbers:
        yield f"namespace {_namespace(cls)} {{"
        yield from (f'inline constexpr DeclaredNumber {f.name}{{&{_struct_name(cls)}::{f.name}, "{f.name}"}};' for f in numbers)
        yield "}"


def _namespace(cls: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _cpp_name(cls)).lower() + "_number"


def _unit(f: Field) -> str:
    times = {"Ps": "ps", "Work": "ps", "Service": "ps", "PsPerByte": "ps/B"}
    told = times.get(f.cpp, f.unit if f.kind == "quantity" and f.unit != "count" else "")
    return f" ({told})" if told else ""


def _declarations() -> list[type]:
    """All declarations, each after its base classes."""
    out: list[type] = []
    for cls in (Host, Link, WaitPolicy, Medium, *MEDIA.values(), OneSided, Broadcast):
        out += [c for c in reversed(cls.__mro__) if c not in (object, Checked) and c not in out]
    return out


def _enums() -> Iterator[str]:
    known: dict[str, tuple[str, ...]] = {}
    for cls in _declarations():
        for f in fields_of(cls).values():
            if f.kind == "choice" and f.cpp not in ("", "std::string"):
                known[f.cpp] = f.choices
    for name, words in known.items():
        yield f"enum class {name} : uint8_t {{ {', '.join(map(_enumerator, words))} }};"


def _outcomes() -> Iterator[str]:
    yield "/// How a job ended."
    yield f"enum class Outcome : uint8_t {{ {', '.join(map(_enumerator, Outcome))} }};"
    yield "inline const char* outcome_name(Outcome o) {"
    yield "  static constexpr const char* kNames[] = {" + ", ".join(f'"{o}"' for o in Outcome) + "};"
    yield "  return kNames[static_cast<size_t>(o)];"
    yield "}"
    good = " && ".join(f"o != Outcome::{_enumerator(o)}" for o in Outcome if o.exit_code == 0)
    yield "/// Whether it is a negative result: the job did not end as it should."
    yield f"inline bool is_negative(Outcome o) {{ return {good}; }}"


def _result(name: str, about: str, fields: Sequence[OutputField], base: str = "", inherited: Sequence[OutputField] = ()) -> Iterator[str]:
    """A struct of a run's result; its ``each`` calls a function with every field: its name in the answer, and the member."""
    yield f"/// {about}"
    yield f"struct {name}{base and ' : '}{base} {{"
    yield from (f"  {o.cpp} {o.member}{{}};  // {o.meaning}" for o in fields)
    yield "  template <class F>"
    yield "  static void each(F f) {"
    yield from (f'    f("{o.key}", &{name}::{o.member});' for o in (*inherited, *fields))
    yield "  }"
    yield f"  bool operator==(const {name}&) const = default;"
    yield "};"


def _results() -> Iterator[str]:
    for cls, name in ((Counters, "CounterFields"), (Totals, "Totals"), (WaitRow, "WaitRow"), (TrafficRow, "TrafficRow")):
        yield from (*_result(name, (cls.__doc__ or "").partition("\n")[0], [o for o in outputs(cls).values() if o.cpp]), "")
    grows, ends = ([o for o in outputs(RankRow).values() if o.grows == whether] for whether in (True, False))
    yield from (*_result("RankCounters", "What is counted for a rank.", grows), "")
    yield from (*_result("RankRow", "What one rank did.", ends, "RankCounters", grows), "")


def _link_kinds() -> Iterator[str]:
    kinds = sorted((*KINDS.values(), FromFile()), key=lambda kind: kind.name)
    yield "/// Which links lie between two cards."
    yield f"enum class LinkLayout : uint8_t {{ {', '.join(map(_enumerator, LinkLayout))} }};"
    yield "/// Makes a wire between cards whose hosts are at `positions`. `seed`: of what is drawn."
    yield "using MakeWire = std::unique_ptr<Wire>(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&, uint64_t seed);"
    yield "/// What each kind of link has; a file of engine/network/ defines each wire."
    yield f"MakeWire {', '.join(f'{wire}_wire' for wire in dict.fromkeys(kind.wire for kind in kinds))};"
    yield "struct LinkKind {"
    yield "  const char* name;"
    yield "  LinkLayout layout;"
    yield "  MakeWire* wire;"
    yield "};"
    yield "inline const LinkKind& kind_of(const LinkSpec& link) {"
    yield "  static constexpr LinkKind kKinds[] = {"
    yield from (f'      {{"{kind.name}", LinkLayout::{_enumerator(kind.layout)}, {kind.wire}_wire}},' for kind in kinds)
    yield "  };"
    yield "  for (const LinkKind& kind : kKinds)"
    yield "    if (link.kind == kind.name) return kind;"
    yield f"  throw ConfigError(\"unknown kind of link '\" + link.kind + \"'; valid: {', '.join(kind.name for kind in kinds)}\");"
    yield "}"


def header() -> str:
    """The header ``specs.hpp``: enumerations, a struct for each declaration, and the variant of all media with its reader."""
    names = [_cpp_name(cls) for cls in MEDIA.values()]
    specs = [_struct_name(cls) for cls in MEDIA.values()]
    lines = [
        "// Made by retrompi.spec.compiled.cpp from the declarations in src/retrompi/spec; not to be edited.",
        "#pragma once",
        "#include <memory>", "#include <string>", "#include <variant>", "#include <vector>", "",
        '#include "event/core.hpp"', '#include "host/cost.hpp"', "",
        "namespace retrompi {", "",
        "class Anatomy;", "class Chan;", "class Proc;", "class Wire;",
        "enum class WaitFor : uint8_t;", "struct CurveSet;", "struct SharedParts;", "struct World;", "",
        "/// The processes at both ends of a hop: rank, NAME@src, NAME@dst.",
        "struct Ends {", "  std::string from, to;", "  bool operator==(const Ends&) const = default;", "};", "",
        f"enum class Medium : uint8_t {{ {', '.join(names)} }};",
        "inline const char* medium_name(Medium m) {",
        "  static constexpr const char* kNames[] = {" + ", ".join(f'"{n}"' for n in MEDIA) + "};",
        "  return kNames[static_cast<size_t>(m)];",
        "}", "",
        "// The host on which the costs of a library are stated.",
        f"inline constexpr double kReferenceClock = {REFERENCE_CLOCK!r};  // Hz",
        f"inline constexpr Ps kReferenceCall = {round(REFERENCE_CALL / PS)};  // its null system call", "",
        *_enums(), "", *_outcomes(), "", *_results(),
    ]
    for cls in _declarations():
        lines += [f"/// {(cls.__doc__ or '').partition(chr(10))[0]}", *_struct(cls), *_numbers(cls), ""]
    lines += [
        *_link_kinds(), "",
        "/// One hop of a message's path.",
        f"using HopSpec = std::variant<{', '.join(specs)}>;",
        "inline const MediumSpec& common(const HopSpec& h) {",
        "  return std::visit([](const auto& s) -> const MediumSpec& { return s; }, h);",
        "}",
        "template <class Reader>",
        "HopSpec read_hop(Reader& r) {",
        "  std::string medium;",
        '  r.text("medium", medium);',
        "  auto read = [&r](auto s) -> HopSpec {",
        "    s.read(r);",
        "    return s;",
        "  };",
        *(f'  if (medium == "{name}") return read({_struct_name(cls)}{{}});' for name, cls in MEDIA.items()),
        "  throw ConfigError(\"unknown medium '\" + medium + \"'; valid: " + ", ".join(sorted(MEDIA)) + '");',
        "}", "",
        "/// The channel of a medium from one process to another; a file of engine/channel/ defines each.",
        *(f"std::unique_ptr<Chan> make_chan(World&, SharedParts&, const {spec}&, Proc&, Proc&);" for spec in specs), "",
        "}  // namespace retrompi", "",
    ]
    return "\n".join(lines)


def write(file: Path) -> None:
    """Writes the header to ``file``, and that of the calls (`calls_header`) as ``calls.hpp`` beside it; what is unchanged stays, so that
    dependent files are not recompiled."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for path, text in ((file, header()), (file.with_name("calls.hpp"), calls_header())):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
