#include "trace/words.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace retrompi {
namespace {

// An open-addressed table: one look per line of the trace, so a tree or a string hash would show in the profile.
constexpr size_t SLOTS = 512;

constexpr size_t slot(std::string_view s) {
  size_t h = s.size();
  for (char c : s) h = h * 31 + static_cast<unsigned char>(c);
  return h % SLOTS;
}

constexpr std::array<uint8_t, SLOTS> build_table() {
  static_assert(std::size(WORDS) < 255);
  std::array<uint8_t, SLOTS> table{};
  for (size_t i = 0; i < std::size(WORDS); ++i) {
    size_t at = slot(WORDS[i].name);
    while (table[at] != 0) at = (at + 1) % SLOTS;
    table[at] = static_cast<uint8_t>(i + 1);
  }
  return table;
}
constexpr auto TABLE = build_table();

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

// Levenshtein distance, case-insensitive (SSend is Ssend); words here are short.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

const Word* find_word(std::string_view name) {
  if (name.empty() || name.size() > 24)  // no name is longer: keeps garbage from being hashed at length
    return nullptr;
  for (size_t at = slot(name); TABLE[at] != 0; at = (at + 1) % SLOTS)
    if (WORDS[TABLE[at] - 1].name == name) return &WORDS[TABLE[at] - 1];
  return nullptr;
}

namespace {

// The word that to_ti writes, by operation and variant: 0 the blocking call on all targets, 1 with a request or with a target (where that is
// another word); of CommNew by its kind of creation.
constexpr size_t VARIANTS = 8;

constexpr std::array<uint8_t, OP_COUNT * VARIANTS> build_names() {
  std::array<uint8_t, OP_COUNT * VARIANTS> table{};
  for (size_t i = 0; i < std::size(WORDS); ++i) {
    const Word& w = WORDS[i];
    if (w.form == Form::Refused || w.form == Form::Ignored || w.form == Form::Location) continue;
    uint8_t* const names = &table[static_cast<size_t>(w.op) * VARIANTS];
    const size_t variant = w.op == Op::CommNew ? static_cast<size_t>(w.how) : w.flags != 0 || (w.form == Form::WinTarget && names[0] != 0);
    if (names[variant] == 0) names[variant] = static_cast<uint8_t>(i + 1);
  }
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] == 0) table[i] = table[i - i % VARIANTS];
  return table;
}
constexpr auto NAMES = build_names();

}  // namespace

const Word& word_of(const Action& a) {
  size_t variant = 0;
  if (a.op == Op::CommNew)
    variant = static_cast<size_t>(a.get<action::NewComm>().how) % VARIANTS;
  else if (a.nonblocking() || (a.kind() == ActionKind::WindowSync && a.get<action::WindowSync>().target >= 0))
    variant = 1;
  const uint8_t at = NAMES[static_cast<size_t>(a.op) * VARIANTS + variant];
  return WORDS[at == 0 ? 0 : at - 1];
}

std::string_view canonical_name(Op op) {
  if (op == Op::Mark) return "mark";
  return WORDS[NAMES[static_cast<size_t>(op) * VARIANTS] - 1].name;
}

const char* op_name(Op op) { return canonical_name(op).data(); }  // literals: zero-terminated
const char* action_name(const Action& a) { return a.op == Op::Mark ? "mark" : word_of(a).name.data(); }

std::optional<Transfer> sent_by(const Action& a) {
  if (!is_send(a.op)) return std::nullopt;
  if (const auto* both = a.get_if<action::SendReceive>()) return Transfer{both->destination, both->bytes};
  const auto& x = a.get<action::PointToPoint>();
  return Transfer{x.peer, x.bytes};
}

size_t nearest_ops(std::string_view word, std::vector<std::string>& out) {
  out.clear();
  if (word.size() > 64) return 0;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const Word& w : WORDS)
    if (w.form != Form::Refused)
      if (const size_t d = edit_distance(word, w.name); d <= std::max<size_t>(1, w.name.size() / 3)) near.emplace_back(d, w.name);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < near.size() && i < 3; ++i) out.emplace_back(near[i].second);
  return out.size();
}

std::string suggestion(std::string_view word) {
  std::vector<std::string> near;
  if (nearest_ops(word, near) == 0)
    return "; known are init, finalize, compute, sleep, send, recv, isend, irecv, wait, waitall, barrier, bcast and others: docs/trace-format.md";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "'" : i + 1 == near.size() ? " or '" : ", '") + near[i] + "'";
  return text + "?";
}

std::string quoted(std::string_view text) {
  constexpr size_t LIMIT = 40;
  static const char* HEX = "0123456789abcdef";
  std::string out = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == LIMIT) {
      out += "...";
      break;
    }
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f)
      out += text[i];
    else
      (out += "\\x") += {HEX[c >> 4], HEX[c & 15]};
  }
  return out + "'";
}

bool is_text(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    size_t more = 0;
    uint32_t code = c;
    if (c < 0x20 || c == 0x7f) return false;
    if (c >= 0x80) {
      if (c >= 0xc2 && c <= 0xdf) {
        more = 1;
        code = c & 0x1f;
      } else if ((c & 0xf0) == 0xe0) {
        more = 2;
        code = c & 0x0f;
      } else if (c >= 0xf0 && c <= 0xf4) {
        more = 3;
        code = c & 0x07;
      } else {
        return false;
      }
      if (s.size() - i <= more) return false;
      for (size_t k = 1; k <= more; ++k) {
        const auto d = static_cast<unsigned char>(s[i + k]);
        if ((d & 0xc0) != 0x80) return false;
        code = code << 6 | (d & 0x3f);
      }
      const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
      if (overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || code < 0xa0) return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace retrompi
