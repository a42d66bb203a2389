// Called by an event, the arrival of a frame or the end of kernel work: a member function of an object, with one number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace retrompi {

/// Two pointers and a number: nothing is allocated. Only `callback` creates it and knows the types, so that this header is the only
/// place in the engine where the type of an event's object is erased.
struct Callback {
  /// A member function. What it will use comes into the cache step by step, each of which reads what the one before it has brought
  /// (`void fetch(int step) const` of the object's class).
  struct Member {
    void (*call)(void* object, uint64_t arg);
    void (*fetch)(const void* object, int step);
  };
  using Fn = const Member*;
  static constexpr int kFetchSteps = 4;
  Fn fn = nullptr;
  void* object = nullptr;
  uint64_t arg = 0;
  void operator()() const { fn->call(object, arg); }
  void fetch(int step) const { fn->fetch(object, step); }
  explicit operator bool() const { return fn != nullptr; }
};

/// So many cache lines will be used soon.
inline void fetch_lines(const void* object, std::ptrdiff_t lines) {
  for (std::ptrdiff_t line = 0; line < lines; ++line) __builtin_prefetch(static_cast<const char*>(object) + 64 * line);
}

/// Outcome of a transmission: one of two member functions of the same object is called.
struct Delivery {
  Callback::Fn delivered = nullptr, lost = nullptr;
  void* object = nullptr;
  uint64_t arg = 0;
  [[nodiscard]] Callback on_delivered() const { return {delivered, object, arg}; }
  [[nodiscard]] Callback on_lost() const { return {lost, object, arg}; }
  /// It will be delivered soon: its object comes into the cache meanwhile.
  void fetch() const { fetch_lines(object, 3); }
};

namespace detail {
template <auto Method, class T, class C>
void invoke(T& object, uint64_t, void (C::*)()) {
  (object.*Method)();
}
template <auto Method, class T, class C, class A>
void invoke(T& object, uint64_t arg, void (C::*)(A)) {
  (object.*Method)(static_cast<A>(arg));
}
template <auto Method, class T>
void call_erased(void* object, uint64_t arg) {
  invoke<Method>(*static_cast<T*>(object), arg, Method);
}
template <class T>
void fetch_erased(const void* object, int step) {
  if constexpr (requires(const T& t) { t.fetch(step); })
    static_cast<const T*>(object)->fetch(step);
  else if (step == 0)
    fetch_lines(object, 4);
}
template <auto Method, class T>
inline constexpr Callback::Member erased = {&call_erased<Method, T>, &fetch_erased<T>};

/// For those who trace events (event/event_trace.hpp): which process the object of a call belongs to, where it says so.
using ProcessOf = std::string (*)(const void* object);
template <class T>
std::string process_of(const void* object) {
  if constexpr (requires(const T& t) { t.process_name(); })
    return static_cast<const T*>(object)->process_name();
  else
    return {};
}
/// Keeps the name of a call: the member function in `signature`, as the compiler writes it. Before the program begins.
bool name_call(Callback::Fn fn, const char* signature, ProcessOf process);
template <auto Method, class T>
const char* signature() {
  return __PRETTY_FUNCTION__;
}
template <auto Method, class T>
struct Named {
  static inline const bool known = name_call(&erased<Method, T>, signature<Method, T>(), &process_of<T>);
};
}  // namespace detail

/// `Method`: void (T::*)() or void (T::*)(integer).
template <auto Method, class T>
[[nodiscard]] Callback callback(T& object, uint64_t arg = 0) {
  (void)detail::Named<Method, T>::known;
  return {&detail::erased<Method, T>, &object, arg};
}
template <auto Delivered, class T>
[[nodiscard]] Delivery delivery(T& object, uint64_t arg = 0) {
  (void)detail::Named<Delivered, T>::known;
  return {&detail::erased<Delivered, T>, nullptr, &object, arg};
}
/// Whether it was made by `callback<Method>` of a T.
template <auto Method, class T>
[[nodiscard]] bool calls(const Callback& c) {
  return c.fn == &detail::erased<Method, T>;
}
template <auto Delivered, auto Lost, class T>
[[nodiscard]] Delivery delivery(T& object, uint64_t arg = 0) {
  (void)detail::Named<Delivered, T>::known;
  (void)detail::Named<Lost, T>::known;
  return {&detail::erased<Delivered, T>, &detail::erased<Lost, T>, &object, arg};
}

}  // namespace retrompi
