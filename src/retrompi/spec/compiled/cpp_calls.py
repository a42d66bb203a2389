"""The engine's table of calls, generated from `retrompi.spec.declare.calls` with the other declarations (`retrompi.spec.compiled.cpp`):
operations, words, and the layout of their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from retrompi.spec.declare.calls import CALLS, KEYS, OTHER_WORDS, Call, Family, Form

__all__ = ["calls_header"]

_KINDS = {
    Form.COMPUTE: "Compute", Form.SLEEP: "Sleep", Form.KERNEL: "Kernel", Form.SEND: "PointToPoint", Form.RECV: "PointToPoint",
    Form.PROBE: "PointToPoint", Form.SENDRECV: "SendReceive", Form.REQUEST: "OneRequest", Form.ALL: "SeveralRequests",
    Family.COLLECTIVE: "Collective", Family.NEIGHBOUR: "Collective", Family.MAKES_COMM: "NewComm", Family.WINDOW: "NewWindow",
    Family.TRANSFER: "Rma", Family.EPOCH: "WindowSync",
}
"""By form or family, the group of arguments that an action of the engine has (``action`` in engine/trace/action.hpp)."""

_BY_COMM = (Family.COLLECTIVE, Family.NEIGHBOUR, Family.MAKES_COMM, Family.FREES_COMM, Family.WINDOW)
_TRAITS: dict[str, tuple[str, Callable[[Call], bool]]] = {
    "Collective": ("moves data between all members of a communicator", lambda c: c.family in (Family.COLLECTIVE, Family.NEIGHBOUR)),
    "Neighbour": ("a collective of neighbours", lambda c: c.family is Family.NEIGHBOUR),
    "Rooted": ("a collective with a root", lambda c: bool(c.root)),
    "ToRoot": ("the root receives", lambda c: c.root == "to"),
    "Vector": ("a collective with vectors of counts", lambda c: c.form.vectors),
    "Joint": ("all members of a communicator call it, in the same order", lambda c: c.family in _BY_COMM),
    "OneSided": ("a one-sided transfer", lambda c: c.family is Family.TRANSFER),
    "Window": ("on a window, except making and freeing it", lambda c: c.family in (Family.TRANSFER, Family.EPOCH)),
    "Send": ("sends a message", lambda c: c.family in (Family.SEND, Family.EXCHANGE)),
    "Receive": ("receives a message, or makes the request of one", lambda c: c.form is Form.RECV),
    "Persistent": ("makes a persistent request", lambda c: c.family is Family.PERSISTENT),
    "Posts": ("returns a request of a message", lambda c: c.posts),
    "Probes": ("looks for a message", lambda c: c.family is Family.PROBE),
    "Synchronous": ("its message waits for the receive", lambda c: c.mode == "synchronous"),
    "Buffered": ("its message is copied into the program's buffer", lambda c: c.mode == "buffered"),
}
"""What the engine asks of an operation."""

_UNNAMED = {
    Family.COLLECTIVE: "non-blocking collectives need the identity of their request: without req=N no wait can name it",
    Family.TRANSFER: "one-sided calls that return a request need its identity: without req=N no wait can name it",
}
_MANY = {"": "One", "n": "Ranks", "in": "In", "out": "Out"}


def _kind(call: Call) -> str:
    return _KINDS.get(call.form, _KINDS.get(call.family, "None"))


def _traits(call: Call) -> int:
    return sum(1 << i for i, (_, has) in enumerate(_TRAITS.values()) if has(call))


def _enumerator(form: Form) -> str:
    return "".join(part.capitalize() for part in form.name.split("_"))


def _operations() -> dict[str, Call]:
    """The engine's operations in the order of their numbers, each with its first call."""
    out: dict[str, Call] = {}
    for call in CALLS:
        out.setdefault(call.operation, call)
    return out


def _enum(name: str, of: str, members: Iterable[str]) -> str:
    return f"enum class {name} : {of} {{ {', '.join(members)} }};"


def _layout(form: Form) -> str:
    of = {a.means: a for a in reversed(form.arguments)}
    sent, received = (_MANY[of[side].many] if side in of else "None" for side in ("sent", "received"))
    least = sum(not a.optional for a in form.arguments)
    types = sum(a.means == "type" for a in form.arguments)
    has = ", ".join(str(means in of).lower() for means in ("buffer", "flops", "root", "displacement"))
    text = json.dumps(form.text)
    return f"{{{text}, {least}, {len(form.arguments)}, {types}, Many::{sent}, Many::{received}, {has}}},  // {_enumerator(form)}"


def _word(name: str, call: Call, *, nonblocking: bool = False) -> str:
    keys = [*call.attributes, *(["req"] if nonblocking else [])]
    mask = sum(1 << KEYS.index(key) for key in keys)
    reason = _UNNAMED[Family.TRANSFER if call.family is Family.TRANSFER else Family.COLLECTIVE] if nonblocking else call.reason
    return _row(name, call.form, reason, f"Op::{call.operation}", f"{2 if nonblocking else 0}, CommHow::{call.how or 'Split'}, {mask:#x}")


def _row(name: str, form: Form, reason: str, op: str = "Op::Init", rest: str = "0, CommHow::Split, 0x0") -> str:
    why = json.dumps(reason) if reason else "nullptr"
    return f'    {{"{name}", {op}, Form::{_enumerator(form)}, {rest}, {why}}},'


def _words() -> Iterator[str]:
    """The words of the engine's table: names, then the non-blocking forms, then what is no call. The first of an operation is written."""
    for call in CALLS:
        for name in (call.name, *call.aliases):
            yield _word(name, call)
    for call in CALLS:
        if call.nonblocking:
            yield _word(call.nonblocking, call, nonblocking=True)
    for name, (form, reason) in OTHER_WORDS.items():
        yield _row(name, form, reason)


def calls_header() -> str:
    """The header ``calls.hpp``."""
    operations = _operations()
    kinds = ["None", *dict.fromkeys(["Compute", "Sleep", "Kernel", "Mark", *_KINDS.values()])]
    traits = list(_TRAITS)
    facts = [f"{{ActionKind::{_kind(call)}, {_traits(call):#x}, Form::{_enumerator(call.form)}}}" for call in operations.values()]
    lines = [
        "// Made by retrompi.spec.compiled.cpp_calls from the table in src/retrompi/spec/declare/calls.py; not to be edited.",
        "#pragma once",
        "#include <array>", "#include <cstdint>", "#include <string_view>", "",
        "namespace retrompi {", "",
        "/// The operations of a trace. A mark is a comment, which SMPI skips.",
        _enum("Op", "uint8_t", [*operations, "Mark"]),
        "constexpr int OP_COUNT = static_cast<int>(Op::Mark) + 1;",
        "/// How Op::CommNew makes a communicator.",
        _enum("CommHow", "int32_t", [call.how for call in CALLS if call.how]),
        "/// Which group of arguments an operation has.",
        _enum("ActionKind", "uint8_t", kinds), "",
        *(f"// {name}: {meaning}" for name, (meaning, _) in _TRAITS.items()),
        _enum("Trait", "uint8_t", traits),
        "/// Lines of one form have the same arguments.",
        _enum("Form", "uint8_t", map(_enumerator, Form)),
        "struct OpFacts {", "  ActionKind kind;", "  uint32_t traits;", "  Form form;", "};",
        "inline constexpr std::array<OpFacts, OP_COUNT> OPS = {{",
        *(f"    {fact},  // {name}" for name, fact in zip(operations, facts, strict=True)),
        "    {ActionKind::Mark, 0, Form::Bare},  // Mark",
        "}};",
        "constexpr bool is(Op op, Trait what) {",
        "  return (OPS[static_cast<size_t>(op)].traits >> static_cast<unsigned>(what) & 1) != 0;",
        "}", "",
        "/// How many numbers there are of a kind: one, or one for each member or neighbour.",
        _enum("Many", "uint8_t", ["None", "One", "Ranks", "In", "Out"]),
        "/// The arguments of a form, and those of a collective, which stand in this order: what is sent, what is received (each after the",
        "/// length of its buffer), computation, the root, the types, displacements.",
        "struct Layout {",
        "  const char* text;", "  uint8_t least, most;  // a vector counts as one", "  uint8_t types;", "  Many sent, received;",
        "  bool buffers, flops, root, displacements;",
        "  static constexpr bool several(Many m) { return m != Many::None && m != Many::One; }",
        "  [[nodiscard]] constexpr bool vector() const { return several(sent) || several(received); }",
        "};",
        f"inline constexpr std::array<Layout, {len(Form)}> LAYOUTS = {{{{",
        *(f"    {_layout(form)}" for form in Form),
        "}};",
        "constexpr const Layout& layout_of(Form form) { return LAYOUTS[static_cast<size_t>(form)]; }",
        "constexpr const Layout& layout_of(Op op) { return layout_of(OPS[static_cast<size_t>(op)].form); }", "",
        "/// The attributes KEY=VALUE at the end of a line.",
        _enum("Key", "uint8_t", [key.capitalize() for key in KEYS]),
        f"inline constexpr std::array<std::string_view, {len(KEYS)}> KEY_NAMES = {{{', '.join(json.dumps(key) for key in KEYS)}}};",
        "constexpr size_t KEYS = KEY_NAMES.size();", "",
        "/// A name in the place of the call.",
        "struct Word {",
        "  std::string_view name;", "  Op op;", "  Form form;", "  uint8_t flags;  // Action::flags", "  CommHow how;  // of Op::CommNew",
        "  uint32_t keys;  // the attributes that its lines may have",
        "  const char* reason;  // of Form::Refused, and of a line that lacks what this needs",
        "};",
        "inline constexpr Word WORDS[] = {", *_words(), "};", "",
        "}  // namespace retrompi", "",
    ]
    return "\n".join(lines)
