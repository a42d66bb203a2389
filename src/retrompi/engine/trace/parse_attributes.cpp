// KEY=VALUE at the end of a line (ours; docs/trace-format.md, "Communicators, requests and windows").
#include <limits>

#include "trace/parser.hpp"

namespace retrompi::parsing {
namespace {

std::string known_keys() {
  std::string text;
  for (const std::string_view key : KEY_NAMES) (text += text.empty() ? "" : ", ") += key;
  return text;
}

std::string shown(Key key) { return "'" + std::string(KEY_NAMES[static_cast<size_t>(key)]) + "='"; }

}  // namespace

void Parser::attributes() {
  while (!args_.empty()) {
    const std::string_view token = args_.back();
    const size_t equals = token.find('=');
    if (equals == std::string_view::npos) break;
    const std::string_view name = token.substr(0, equals);
    const auto found = std::find(KEY_NAMES.begin(), KEY_NAMES.end(), name);
    if (found == KEY_NAMES.end()) {
      std::string_view nearest = "comm";
      size_t least = std::numeric_limits<size_t>::max();
      for (const std::string_view known : KEY_NAMES)
        if (const size_t d = edit_distance(name.substr(0, 24), known); d < least) nearest = known, least = d;
      fail("unknown attribute " + quoted(name) + "; " + (least <= 2 ? "did you mean '" + std::string(nearest) + "='?" : "known are " + known_keys()));
    }
    const auto key = static_cast<Key>(found - KEY_NAMES.begin());
    if (given_.has(key)) fail("the attribute " + shown(key) + " stands twice in the line");
    if (equals + 1 == token.size()) fail("the attribute " + shown(key) + " has no value");
    given_.mask |= bit(key);
    given_.value[static_cast<size_t>(key)] = token.substr(equals + 1);
    args_.pop_back();
  }
}

void Parser::allow(const Word &word) {
  const uint32_t wrong = given_.mask & ~word.keys;
  if (wrong == 0) return;
  for (size_t k = 0; k < KEYS; ++k)
    if ((wrong & bit(static_cast<Key>(k))) != 0) fail("the attribute " + shown(static_cast<Key>(k)) + " does not belong to " + quoted(word.name));
}

void Parser::fail_attribute(Key key, std::string_view value, const char *right) const {
  fail("the value of " + shown(key) + ", " + quoted(value) + ", is not " + right);
}

int32_t Parser::attribute(Key key, int32_t least) const {
  int32_t value = 0;
  if (!to_int(given_[key], value)) fail_attribute(key, given_[key], "an integer");
  if (value < least) fail("the value of " + shown(key) + ", " + quoted(given_[key]) + ", is less than " + std::to_string(least));
  return value;
}

bool Parser::flag() const {
  const std::string_view value = given_[Key::Flag];
  if (value != "0" && value != "1") fail_attribute(Key::Flag, value, "0 or 1");
  return value == "1";
}

std::vector<int32_t> Parser::list(Key key, int32_t least) const {
  std::vector<int32_t> out;
  std::string_view rest = given_[key];
  if (rest == "none") return out;
  while (true) {
    const size_t comma = rest.find(',');
    int32_t value = 0;
    if (!to_int(rest.substr(0, comma), value) || value < least) fail_attribute(key, rest.substr(0, comma), "a list as in 1,2,3, or 'none'");
    out.push_back(value);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<std::pair<int32_t, int32_t>> Parser::pairs(Key key, int32_t least) const {
  std::vector<std::pair<int32_t, int32_t>> out;
  std::string_view rest = given_[key];
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t colon = item.find(':');
    std::pair<int32_t, int32_t> value;
    if (colon == std::string_view::npos || !to_int(item.substr(0, colon), value.first) || !to_int(item.substr(colon + 1), value.second) ||
        value.first < 1 || value.second < least)
      fail_attribute(key, item, "REQUEST:VALUE, as in 3:0,4:2");
    out.push_back(value);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(out.begin(), out.end());
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i].first == out[i - 1].first) fail("request " + std::to_string(out[i].first) + " stands twice in " + shown(key));
  return out;
}

int32_t Parser::store(std::vector<int64_t> &&counts) {
  // Programs repeat their calls with the same few vectors: keep one of each.
  if (!trace_.vec.empty() && trace_.vec.back() == counts) return static_cast<int32_t>(trace_.vec.size() - 1);
  uint64_t hash = 0x9e3779b97f4a7c15ULL + counts.size();
  for (const int64_t c : counts) hash = (hash ^ static_cast<uint64_t>(c)) * 0xbf58476d1ce4e5b9ULL, hash ^= hash >> 29;
  const auto [first, last] = stored_.equal_range(hash);
  int tried = 0;
  for (auto it = first; it != last && tried < 16; ++it, ++tried)
    if (trace_.vec[static_cast<size_t>(it->second)] == counts) return it->second;
  if (trace_.vec.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) fail("more than 2147483647 different vectors of counts");
  const auto at = static_cast<int32_t>(trace_.vec.size());
  trace_.vec.push_back(std::move(counts));
  if (tried < 16) stored_.emplace(hash, at);
  return at;
}

}  // namespace retrompi::parsing
