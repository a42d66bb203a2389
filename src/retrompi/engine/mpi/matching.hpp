// Queues in which messages and receives are matched in order of arrival, without scanning all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "channel/queued.hpp"
#include "trace/trace.hpp"

namespace retrompi {

/// Envelopes (context, source, tag) in order. T has ctx, tag, envelope_source() and a `Queued<T> queued`. A short queue is scanned;
/// a longer one has a separate chain for each envelope, and another one for all entries with a wildcard.
template <class T>
class MatchQueue {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T*;
    using difference_type = std::ptrdiff_t;
    using pointer = T* const*;
    using reference = T*;
    explicit Iterator(T* at = nullptr) : at_(at) {}
    T* operator*() const { return at_; }
    Iterator& operator++() {
      at_ = at_->queued.after;
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator&) const = default;

   private:
    T* at_;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(first_); }
  [[nodiscard]] Iterator end() const { return Iterator(); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void push_back(T* t) {
    Queued<T>& q = t->queued;
    q.before = last_;
    q.after = nullptr;
    q.order = ++order_;
    (last_ ? last_->queued.after : first_) = t;
    last_ = t;
    ++size_;
    if (index_) {
      hang(t);
    } else if (size_ > kFew) {
      index_ = std::make_unique<Index>();
      index_->chains.resize(kChains);
      for (T* each : *this) hang(each);
    }
  }
  void erase(T* t) {
    Queued<T>& q = t->queued;
    (q.before ? q.before->queued.after : first_) = q.after;
    (q.after ? q.after->queued.before : last_) = q.before;
    --size_;
    if (!index_) return;
    Chain& c = chain(*t);
    (q.chain_before ? q.chain_before->queued.chain_after : c.first) = q.chain_after;
    (q.chain_after ? q.chain_after->queued.chain_before : c.last) = q.chain_before;
    if (size_ == 0) index_.reset();
  }
  /// The first one for which `fits` holds; each such one has this envelope or a wildcard in its own (`exact`: the envelope has none).
  template <class F>
  T* find(int32_t ctx, int32_t source, int32_t tag, bool exact, F fits) {
    if (!index_ || !exact) {
      for (T* t = first_; t; t = t->queued.after)
        if (fits(*t)) return t;
      return nullptr;
    }
    T* found = index_->chains[index(ctx, source, tag)].first;
    while (found && !fits(*found)) found = found->queued.chain_after;
    for (T* t = index_->wild.first; t && !(found && found->queued.order < t->queued.order); t = t->queued.chain_after)
      if (fits(*t)) return t;
    return found;
  }

 private:
  static constexpr size_t kFew = 12, kChains = 64;
  struct Chain {
    T *first = nullptr, *last = nullptr;
  };
  static bool wild(const T& t) { return t.envelope_source() == ANY_SOURCE || t.tag == ANY_TAG; }
  [[nodiscard]] size_t index(int32_t ctx, int32_t source, int32_t tag) const {
    uint64_t h = static_cast<uint32_t>(source) * 0x9e3779b97f4a7c15ULL;
    h ^= static_cast<uint32_t>(tag) * 0xc2b2ae3d27d4eb4fULL + static_cast<uint32_t>(ctx) * 0x165667b19e3779f9ULL;
    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
    return (h >> 40) & (index_->chains.size() - 1);
  }
  Chain& chain(const T& t) { return wild(t) ? index_->wild : index_->chains[index(t.ctx, t.envelope_source(), t.tag)]; }
  void hang(T* t) {
    if (auto& chains = index_->chains; size_ > 2 * chains.size()) {
      chains.assign(4 * chains.size(), Chain{});
      index_->wild = {};
      for (T* each : *this) {
        append(each);
        if (each == t) return;
      }
    }
    append(t);
  }
  void append(T* t) {
    Chain& c = chain(*t);
    t->queued.chain_before = c.last;
    t->queued.chain_after = nullptr;
    (c.last ? c.last->queued.chain_after : c.first) = t;
    c.last = t;
  }
  struct Index {
    Chain wild;
    std::vector<Chain> chains;  // size is a power of two
  };
  T *first_ = nullptr, *last_ = nullptr;
  std::unique_ptr<Index> index_;  // null while the queue is short
  size_t size_ = 0;
  uint64_t order_ = 0;
};

}  // namespace retrompi
