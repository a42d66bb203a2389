// Windows and one-sided calls (part of our extension): creating windows, and the ranks that a call on one may name.
#include "trace/parser.hpp"

namespace retrompi::parsing {

void Parser::make_window(const Word &word, Action &a) {
  need(word);
  at_most(word);
  auto &x = a.get<action::NewWindow>();
  x.window = integer(0, "window");
  if (x.window < 1) fail("a window is numbered from 1, not " + quoted(args_[0]));
  x.bytes = count(1, "length of the window");
  const auto [own, first_time] = more().windows.try_emplace(x.window);
  if (!first_time)
    fail("window " + std::to_string(x.window) + " is made a second time by this rank, first in line " + std::to_string(own->second.line) +
         "; numbers are not used again");
  own->second = {here_, line_, 0};
  const auto [entry, fresh] = window_ids_.try_emplace(x.window, WindowInfo{here_->index, rank_, line_});
  if (!fresh && entry->second.comm != here_->index)
    fail("window " + std::to_string(x.window) + " is of another communicator in " + place_of(entry->second.rank, entry->second.line));
}

Window &Parser::window(int32_t id) {
  Extension &ext = more();
  const auto found = ext.windows.find(id);
  if (found == ext.windows.end())
    fail("unknown window " + std::to_string(id) + ": rank " + std::to_string(rank_) + " has not made it before this line (win_create WIN BYTES)");
  Window &w = found->second;
  if (w.freed != 0) fail("window " + std::to_string(id) + " was freed in line " + std::to_string(w.freed));
  if (given_.has(Key::Comm) && here_ != w.members) fail("window " + std::to_string(id) + " is not of the communicator that comm= names");
  here_ = w.members;
  return w;
}

void Parser::free_window(const Word &word, Action &a) {
  need(word);
  at_most(word);
  const int32_t id = a.get<action::NewWindow>().window = integer(0, "window");
  window(id).freed = line_;
  a.comm = here_->index;
}

bool Parser::window_call(const Word &word, Action &a) {
  int32_t win = 0;
  if (given_.has(Key::Win)) {
    win = attribute(Key::Win, 1);
    window(win);
    a.comm = here_->index;
  } else if (word.reason != nullptr && a.kind() == ActionKind::WindowSync) {
    refuse(word.name, word.reason);
    return false;
  }
  if (a.kind() == ActionKind::Rma) {
    auto &x = a.get<action::Rma>();
    x.window = win;
    need(word);
    x.target = destination(0);
    require_member(x.target, "target");
    x.tag = tag(1, false);
    x.bytes = bytes(count(2, "count"), type(3), word.name, x.target != PROC_NULL);
    at_most(word);
    return true;
  }
  auto &x = a.get<action::WindowSync>();
  x.window = win;
  const auto target = [&] {
    const int32_t value = member(integer(0, "target"), args_[0], "target");
    require_member(value, "target");
    return value;
  };
  switch (word.form) {
    case Form::WinTarget:
      if (win != 0 && (a.op == Op::Unlock || !args_.empty())) {
        need(word);
        x.target = target();
        x.argument = -1;
        break;
      }
      [[fallthrough]];
    case Form::WinAll:
      x.argument = args_.empty() ? -1 : count(0, "count");
      break;
    case Form::WinLock: {
      need(word);
      x.target = target();
      const int32_t kind = integer(1, "kind of lock");
      if (kind != 0 && kind != 1) fail("the kind of lock is 0 (shared) or 1 (exclusive), not " + quoted(args_[1]));
      x.exclusive = kind == 1;
      break;
    }
    case Form::WinGroup:
      need(word);
      x.ranks = window_group(win);
      break;
    default:
      break;
  }
  at_most(word);
  return true;
}

// The GROUP of a Win_post or Win_start, its ranks in Trace::vec; programs repeat the same one.
int32_t Parser::window_group(int32_t win) {
  Extension &ext = more();
  if (ext.group_index < 0 || ext.group != args_[0]) {
    std::vector<int64_t> ranks;
    for (const int32_t r : expand(group(args_[0]))) {
      require_member(r, "rank");
      ranks.push_back(r);
    }
    ext.group = args_[0];
    ext.group_index = store(std::move(ranks));
    ext.group_win = win;
  } else if (ext.group_win != win) {
    for (const int64_t r : trace_.vec[static_cast<size_t>(ext.group_index)]) require_member(static_cast<int32_t>(r), "rank");
    ext.group_win = win;
  }
  return ext.group_index;
}

}  // namespace retrompi::parsing
