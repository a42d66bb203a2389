// Looking up the words of trace lines (generated/calls.hpp), and words for messages.
#pragma once

#include <optional>

#include "trace/trace.hpp"

namespace retrompi {

const Word* find_word(std::string_view name);  // nullptr: no such action
std::string_view canonical_name(Op op);        // the name to_ti writes, of the blocking form
const Word& word_of(const Action& a);          // the word to_ti writes
constexpr size_t word_index(const Word& word) { return static_cast<size_t>(&word - WORDS); }
// The message that an action sends: of Send .. Irsend and Sendrecv.
struct Transfer {
  int32_t peer;
  int64_t bytes;
};
std::optional<Transfer> sent_by(const Action& a);
// "; did you mean 'send'?", or the whole list if no name is close
std::string suggestion(std::string_view word);
size_t edit_distance(std::string_view a, std::string_view b);  // case-insensitive
// A piece of a file for a message: short, printable, in quotes.
std::string quoted(std::string_view text);
bool is_text(std::string_view s);  // UTF-8 without control characters

}  // namespace retrompi
